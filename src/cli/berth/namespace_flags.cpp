// SPDX-License-Identifier: Apache-2.0
#include "cli/berth/namespace_flags.hpp"

#include "cli/berth/flag_values.hpp"
#include "engine/network/networks.hpp"
#include "engine/request/text.hpp"

namespace berth::cli {
namespace {

using engine::NamespaceFlag;

ReadValue read_mode(engine::NamespaceMode& target, NamespaceFlag flag) {
  return read_into(target,
                   [flag](std::string_view text) { return engine::parse_namespace(flag, text); });
}

/// The first, and further ones.
Flag network_flag(std::string_view name, std::string_view text, engine::NetworkFlags& flags) {
  auto read = [&flags](std::string_view mode) -> Result<void> {
    if (mode.empty()) return make_error(Kind::usage, "expected a network's name, or no --network");
    if (flags.mode.empty()) {
      flags.mode = mode;
    } else {
      flags.more.emplace_back(mode);
    }
    return {};
  };
  return {name, 0, "NETWORK", text, read, {}, Complete::network};
}

ReadValue read_alias(engine::NetworkFlags& flags) {
  return [&flags](std::string_view text) -> Result<void> {
    TRY(engine::check_network_alias(text));
    flags.aliases.emplace_back(text);
    return {};
  };
}

/// No address is any, as with docker.
ReadValue read_mac_flag(std::string& target) {
  return [&target](std::string_view text) -> Result<void> {
    target = text.empty() ? std::string() : TRY(engine::read_mac(text));
    return {};
  };
}

}  // namespace

FlagTable namespace_flags(RequestOptions& o) {
  engine::RunRequest& r = o.request;
  return {
      {"add-host", 0, "NAME:ADDRESS", "Add a line to /etc/hosts",
       append_to(r.add_host, engine::parse_add_host)},
      {"cgroupns", 0, "MODE", "Cgroup namespace: host, private or container:NAME",
       read_mode(r.cgroupns, NamespaceFlag::cgroupns)},
      {"dns", 0, "ADDRESS", "Use this DNS server", append_to(r.dns, engine::parse_dns)},
      {"dns-opt", 0, "OPTION", "The same as --dns-option",
       append_to(r.dns_option, engine::parse_dns_option)},
      {"dns-option", 0, "OPTION", "Set a DNS option in /etc/resolv.conf",
       append_to(r.dns_option, engine::parse_dns_option)},
      {"dns-search", 0, "DOMAIN", "Set a DNS search domain; '.' for none",
       append_to(r.dns_search, engine::parse_domain)},
      {"domainname", 0, "NAME", "Set the container's NIS domain name",
       read_into(r.domainname, engine::parse_domain)},
      {"expose", 0, "PORT[/PROTOCOL]", "Declare a port that the container listens on",
       append_to(r.expose, engine::parse_expose)},
      {"hostname", 'h', "NAME", "Set the container's host name", &r.hostname},
      {"ipc", 0, "MODE", "IPC mode: host, private, none, shareable, container:NAME",
       read_mode(r.ipc, NamespaceFlag::ipc)},
      {"ip", 0, "ADDRESS", "Set the container's IP address in the named network",
       &o.network.address},
      {"mac-address", 0, "ADDRESS", "Set the MAC address, such as 02:42:ac:11:00:09",
       read_mac_flag(o.network.mac)},
      network_flag("net", "The same as --network", o.network),
      {"net-alias", 0, "NAME", "The same as --network-alias", read_alias(o.network)},
      network_flag("network", "Network: a NAME, bridge, host, none or container:NAME", o.network),
      {"network-alias", 0, "NAME", "Add a DNS name for the container in its network",
       read_alias(o.network)},
      {"pid", 0, "MODE", "PID namespace: host, private or container:NAME",
       read_mode(r.pid, NamespaceFlag::pid)},
      {"publish", 'p', "[PORT:]PORT[/udp]", "Publish a container's port to the host",
       &o.network.publish},
      {"publish-all", 'P', "", "Publish all exposed ports to free ports of the host",
       &o.network.publish_all},
      {"sysctl", 0, "NAME=VALUE", "Set a kernel parameter in the container's namespaces",
       add_to(r.sysctl, engine::parse_sysctl)},
      {"userns", 0, "MODE", "host; keep-id[:uid=N,gid=N] keeps the caller's ids",
       read_mode(r.userns, NamespaceFlag::userns)},
      {"uts", 0, "MODE", "UTS namespace: host, private or container:NAME",
       read_mode(r.uts, NamespaceFlag::uts)},
  };
}

}  // namespace berth::cli
