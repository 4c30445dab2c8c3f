// SPDX-License-Identifier: MIT
#include "guest_sim/network_namespaces.hpp"

#include <unistd.h>

#include <cstdlib>

#include "guest_sim/error.hpp"

namespace ernic::guest_sim {
namespace {

bool ip(const std::string& words) {
    return std::system(("ip " + words + " >/dev/null 2>&1").c_str()) == 0;
}

void must(const std::string& words) {
    require(ip(words), ("'ip " + words + "' failed").c_str());
}

std::string prefix() {
    return "ernic-mesh-" + std::to_string(::getpid()) + "-";
}

}  // namespace

NetworkNamespaces::NetworkNamespaces(unsigned count) : count_(count) {
    try {
        make();
    } catch (...) {
        remove();
        throw;
    }
}

NetworkNamespaces::~NetworkNamespaces() {
    remove();
}

bool NetworkNamespaces::possible() {
    const std::string probe = prefix() + "probe";
    const bool made =
        ::geteuid() == 0 && ip("netns add " + probe) && ip("-n " + probe + " link add br0 type bridge");
    ip("netns del " + probe);
    return made;
}

std::string NetworkNamespaces::name(unsigned number) const {
    return prefix() + std::to_string(number);
}

std::string NetworkNamespaces::bridge() const {
    return prefix() + "bridge";
}

std::string NetworkNamespaces::address(unsigned number) {
    return "10.99.0." + std::to_string(number + 1);
}

void NetworkNamespaces::make() {
    must("netns add " + bridge());
    must("-n " + bridge() + " link add br0 up type bridge");
    for (unsigned number = 0; number < count_; ++number) {
        const std::string port = "port" + std::to_string(number);
        must("netns add " + name(number));
        must("-n " + bridge() + " link add " + port + " type veth peer name wire netns " + name(number));
        must("-n " + bridge() + " link set " + port + " master br0 up");
        must("-n " + name(number) + " link set lo up");
        must("-n " + name(number) + " addr add " + address(number) + "/24 dev wire");
        must("-n " + name(number) + " link set wire up");
    }
}

void NetworkNamespaces::remove() const {
    ip("netns del " + bridge());
    for (unsigned number = 0; number < count_; ++number) {
        ip("netns del " + name(number));
    }
}

void NetworkNamespaces::cut(unsigned number) {
    must("-n " + bridge() + " link set port" + std::to_string(number) + " nomaster");
}

void NetworkNamespaces::heal(unsigned number) {
    must("-n " + bridge() + " link set port" + std::to_string(number) + " master br0");
}

}  // namespace ernic::guest_sim
