# SPDX-License-Identifier: MIT
# CTest `headers`: every header under src/ compiles alone, and included twice. One tiny source per header, built only when
# the test runs. Sanitizers and coverage change nothing about it, so those builds go without.
if(ERNIC_SANITIZE OR ERNIC_COVERAGE)
  return()
endif()
file(GLOB_RECURSE headers CONFIGURE_DEPENDS RELATIVE ${CMAKE_SOURCE_DIR}/src src/*.hpp)
set(header_sources)
foreach(header IN LISTS headers)
  string(REPLACE "/" "." name ${header})
  set(source ${CMAKE_BINARY_DIR}/header_check/${name}.cpp)
  file(CONFIGURE OUTPUT ${source} CONTENT "#include \"${header}\"\n#include \"${header}\"  // NOLINT\n")
  list(APPEND header_sources ${source})
endforeach()
add_library(header_check OBJECT EXCLUDE_FROM_ALL ${header_sources})
target_link_libraries(header_check PRIVATE ernic_app PkgConfig::LWIP)
target_compile_options(header_check PRIVATE -O0 -g0)
set_target_properties(header_check PROPERTIES CXX_CLANG_TIDY "")
add_test(NAME headers COMMAND ${CMAKE_COMMAND} --build ${CMAKE_BINARY_DIR} --target header_check)
# It compiles every header once, which takes long beside other work.
set_tests_properties(headers PROPERTIES TIMEOUT 1500)
# Two builds at once in one tree would disturb each other.
set_tests_properties(headers PROPERTIES RUN_SERIAL TRUE LABELS build)
