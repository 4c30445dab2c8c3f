// SPDX-License-Identifier: MIT
#include "ernicctl/completion.hpp"

namespace ernic::ctl {
namespace {

constexpr std::string_view kBash = R"script(# bash completion for ernicctl
_ernicctl() {
  local word=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} path= choices= i
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    case ${COMP_WORDS[i]} in
      -c | --control | --match | --watch | --snaplen | --file | --nsid | --bs | --nqn) ((++i)) ;;
      -*) ;;
      *) path+=" ${COMP_WORDS[i]}" ;;
    esac
  done
  case $previous in
    -c | --control | --file) mapfile -t COMPREPLY < <(compgen -f -- "$word"); return ;;
    --match) choices='control. ionic. mesh. nvmeof. rdma. segment. tap. vfio_user. queue_pairs process' ;;
    --bs) choices='512 1024 2048 4096' ;;
    --watch | --snaplen | --nsid | --nqn) return ;;
    *)
      case $path in
        '') choices='version status stats ports peers macs link pcap fault nvme log-level completion' ;;
        ' stats') choices='--match --watch' ;;
        ' link') choices='up down' ;;
        ' pcap') choices='start stop' ;;
        ' pcap start') mapfile -t COMPREPLY < <(compgen -f -- "$word") ; choices='--snaplen' ;;
        ' fault') choices='add list clear' ;;
        ' fault clear') choices='all' ;;
        ' nvme') choices='list add remove resize ana' ;;
        ' nvme ana '*) choices='optimized non-optimized inaccessible persistent-loss change' ;;
        ' nvme add'*) choices='--file --ro --nsid --bs --nqn' ;;
        ' nvme remove'* | ' nvme resize'*) choices='--nqn' ;;
        ' log-level') choices='none error warn info debug' ;;
        ' completion') choices='bash zsh fish' ;;
      esac
      case $word in -*) choices+=' --control --json --help --version' ;; esac
      ;;
  esac
  local found
  mapfile -t found < <(compgen -W "$choices" -- "$word")
  COMPREPLY+=("${found[@]}")
}
complete -o filenames -F _ernicctl ernicctl
)script";

constexpr std::string_view kZsh = R"script(#compdef ernicctl
_ernicctl() {
  local state line
  _arguments -C \
    '(-c --control)'{-c,--control}'[control socket of the server]:socket:_files' \
    '--json[print the answer as JSON]' \
    '(-h --help)'{-h,--help}'[show the help]' \
    '--version[show the version]' \
    '1:command:(version status stats ports peers macs link pcap fault nvme log-level completion)' \
    '*::argument:->argument'
  [[ $state = argument ]] || return
  case $line[1] in
    stats) _arguments '--match[names that begin with this]:prefix:(control. ionic. mesh. nvmeof. rdma. segment. tap. vfio_user.)' \
      '--watch[again every so many seconds]:seconds:' ;;
    link) _values state up down ;;
    pcap) _arguments '1:action:(start stop)' '2:file:_files' '--snaplen[bytes kept of each packet]:bytes:' ;;
    fault) _arguments '1:action:(add list clear)' '2:which:(all)' ;;
    nvme)
      case $words[2] in
        add) _arguments '1:action:' '2:size:' '--file[keep it in this file]:file:_files' '--ro[the file is only read]' '--nsid[number of the namespace]:number:' \
          '--bs[bytes of a block]:bytes:(512 1024 2048 4096)' '--nqn[which target]:name:' ;;
        remove | resize) _arguments '1:action:' '2:number:' '3:size:' '--nqn[which target]:name:' ;;
        ana) _arguments '1:action:' '2:address:' \
          '3:state:(optimized non-optimized inaccessible persistent-loss change)' ;;
        *) _arguments '1:action:(list add remove resize ana)' ;;
      esac ;;
    log-level) _values level none error warn info debug ;;
    completion) _values shell bash zsh fish ;;
  esac
}
# Sourced, or loaded by the completion system as a function of its own.
if [[ $zsh_eval_context[-1] = loadautofunc ]]; then _ernicctl "$@"; else compdef _ernicctl ernicctl; fi
)script";

constexpr std::string_view kFish = R"script(# fish completion for ernicctl
complete -c ernicctl -f
complete -c ernicctl -s c -l control -r -F -d 'control socket of the server'
complete -c ernicctl -l json -d 'print the answer as JSON'
complete -c ernicctl -s h -l help -d 'show the help'
complete -c ernicctl -n __fish_use_subcommand -a 'version status stats ports peers macs link pcap fault nvme log-level completion'
complete -c ernicctl -n '__fish_seen_subcommand_from stats' -l match -r -d 'names that begin with this'
complete -c ernicctl -n '__fish_seen_subcommand_from stats' -l watch -r -d 'again every so many seconds'
complete -c ernicctl -n '__fish_seen_subcommand_from link; and not __fish_seen_subcommand_from up down' -a 'up down'
complete -c ernicctl -n '__fish_seen_subcommand_from pcap; and not __fish_seen_subcommand_from start stop' -a 'start stop'
complete -c ernicctl -n '__fish_seen_subcommand_from pcap; and __fish_seen_subcommand_from start' -F
complete -c ernicctl -n '__fish_seen_subcommand_from pcap' -l snaplen -r -d 'bytes kept of each packet'
complete -c ernicctl -n '__fish_seen_subcommand_from fault; and not __fish_seen_subcommand_from add list clear' -a 'add list clear'
complete -c ernicctl -n '__fish_seen_subcommand_from clear' -a all
complete -c ernicctl -n '__fish_seen_subcommand_from nvme; and not __fish_seen_subcommand_from list add remove resize ana' -a 'list add remove resize ana'
complete -c ernicctl -n '__fish_seen_subcommand_from nvme; and __fish_seen_subcommand_from ana; and test (count (commandline -opc)) -ge 4' -a 'optimized non-optimized inaccessible persistent-loss change'
complete -c ernicctl -n '__fish_seen_subcommand_from nvme; and __fish_seen_subcommand_from add' -l file -r -F -d 'keep it in this file'
complete -c ernicctl -n '__fish_seen_subcommand_from nvme; and __fish_seen_subcommand_from add' -l ro -d 'the file is only read'
complete -c ernicctl -n '__fish_seen_subcommand_from nvme; and __fish_seen_subcommand_from add' -l nsid -r -d 'number of the namespace'
complete -c ernicctl -n '__fish_seen_subcommand_from nvme; and __fish_seen_subcommand_from add' -l bs -r -a '512 1024 2048 4096' -d 'bytes of a block'
complete -c ernicctl -n '__fish_seen_subcommand_from nvme; and __fish_seen_subcommand_from add remove resize' -l nqn -r -d 'which target'
complete -c ernicctl -n '__fish_seen_subcommand_from log-level' -a 'none error warn info debug'
complete -c ernicctl -n '__fish_seen_subcommand_from completion' -a 'bash zsh fish'
)script";

}  // namespace

std::string_view completion_script(std::string_view shell) {
    return shell == "zsh" ? kZsh : shell == "fish" ? kFish : kBash;
}

}  // namespace ernic::ctl
