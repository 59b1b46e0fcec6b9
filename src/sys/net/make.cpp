// SPDX-License-Identifier: Apache-2.0
#include <linux/if_link.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstddef>
#include <cstring>

#include "base/text.hpp"
#include "sys/net/link.hpp"
#include "sys/net/netlink_message.hpp"

namespace berth::sys {

using namespace netlink;

namespace {

/// The size of an address; 0 for a family other than IPv4 and IPv6.
size_t address_size(int family) {
  return family == AF_INET ? 4 : family == AF_INET6 ? 16 : 0;
}

bool discards(uint8_t type) {
  return type == RTN_BLACKHOLE || type == RTN_UNREACHABLE || type == RTN_PROHIBIT ||
         type == RTN_THROW;
}

}  // namespace

std::vector<Route> parse_routes(std::string_view messages) {
  std::vector<Route> found;
  Parts<nlmsghdr> parts(messages);
  nlmsghdr head{};
  std::string_view body;
  rtmsg info{};
  while (parts.next(head, body)) {
    if (head.nlmsg_type != RTM_NEWROUTE || body.size() < sizeof info) continue;
    std::memcpy(&info, body.data(), sizeof info);
    size_t size = address_size(info.rtm_family);
    // Routes of other types lead to this machine itself.
    bool leads_away = info.rtm_type == RTN_UNICAST || discards(info.rtm_type);
    if (size == 0 || !leads_away) continue;
    Route route{std::string(size, '\0'), info.rtm_dst_len, 0, discards(info.rtm_type)};
    Parts<rtattr> attributes(body.substr(sizeof info));
    rtattr attribute{};
    std::string_view value;
    while (attributes.next(attribute, value)) {
      if (attribute.rta_type == RTA_DST && value.size() == size) route.destination = value;
      if (attribute.rta_type == RTA_OIF && value.size() == sizeof route.index) {
        std::memcpy(&route.index, value.data(), sizeof route.index);
      }
    }
    found.push_back(std::move(route));
  }
  return found;
}

std::vector<LinkName> parse_links(std::string_view messages) {
  std::vector<LinkName> found;
  Parts<nlmsghdr> parts(messages);
  nlmsghdr head{};
  std::string_view body;
  ifinfomsg info{};
  while (parts.next(head, body)) {
    if (head.nlmsg_type != RTM_NEWLINK || body.size() < sizeof info) continue;
    std::memcpy(&info, body.data(), sizeof info);
    LinkName link{static_cast<uint32_t>(info.ifi_index), ""};
    Parts<rtattr> attributes(body.substr(sizeof info));
    rtattr attribute{};
    std::string_view value;
    while (attributes.next(attribute, value)) {
      if (attribute.rta_type != IFLA_IFNAME) continue;
      link.name = value.substr(0, value.find('\0'));
    }
    found.push_back(std::move(link));
  }
  return found;
}

Result<void> NetLinks::make_bridge(const std::string& name, std::string_view mac) {
  std::string message = begin(RTM_NEWLINK, NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL, link_of(0));
  append(message, IFLA_IFNAME, word(name));
  append(message, IFLA_ADDRESS, mac);
  size_t kind = open_nest(message, IFLA_LINKINFO);
  append(message, IFLA_INFO_KIND, "bridge");
  close_nest(message, kind);
  TRY(exchange(std::move(message), "make bridge " + quote(name)));
  return {};
}

Result<void> NetLinks::make_pair(const std::string& name, const Fd& space,
                                 const std::string& peer_name, std::string_view mac) {
  std::string message = begin(RTM_NEWLINK, NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL, link_of(0));
  append(message, IFLA_IFNAME, word(name));
  size_t info = open_nest(message, IFLA_LINKINFO);
  append(message, IFLA_INFO_KIND, "veth");
  size_t data = open_nest(message, IFLA_INFO_DATA);
  size_t peer = open_nest(message, VETH_INFO_PEER);
  message += bytes_of(link_of(0));
  pad(message);
  auto number = static_cast<uint32_t>(space.get());
  append(message, IFLA_IFNAME, word(peer_name));
  append(message, IFLA_ADDRESS, mac);
  append(message, IFLA_NET_NS_FD, bytes_of(number));
  close_nest(message, peer);
  close_nest(message, data);
  close_nest(message, info);
  TRY(exchange(std::move(message),
               "make network interfaces " + quote(name) + " and " + quote(peer_name)));
  return {};
}

Result<void> NetLinks::join_bridge(uint32_t index, uint32_t bridge) {
  std::string message = begin(RTM_NEWLINK, NLM_F_ACK, link_of(index));
  append(message, IFLA_MASTER, bytes_of(bridge));
  TRY(exchange(std::move(message), "join it to the bridge"));
  message = begin(RTM_NEWLINK, NLM_F_ACK, link_of(index));
  size_t info = open_nest(message, IFLA_LINKINFO);
  append(message, IFLA_INFO_SLAVE_KIND, "bridge");
  size_t data = open_nest(message, IFLA_INFO_SLAVE_DATA);
  append(message, IFLA_BRPORT_MODE, std::string_view("\1", 1));
  close_nest(message, data);
  close_nest(message, info);
  TRY(exchange(std::move(message), "let it hear itself"));
  return {};
}

Result<void> NetLinks::remove(uint32_t index) {
  auto done = exchange(begin(RTM_DELLINK, NLM_F_ACK, link_of(index)), "remove it");
  if (!done.ok() && done.error().sys_errno != ENODEV) return std::move(done).error();
  return {};
}

Result<void> NetLinks::add_default_route(uint32_t index, std::string_view gateway) {
  rtmsg info{};
  info.rtm_family = AF_INET;
  info.rtm_table = RT_TABLE_MAIN;
  info.rtm_protocol = RTPROT_BOOT;
  info.rtm_scope = RT_SCOPE_UNIVERSE;
  info.rtm_type = RTN_UNICAST;
  std::string message = begin(RTM_NEWROUTE, NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL, info);
  append(message, RTA_GATEWAY, gateway);
  append(message, RTA_OIF, bytes_of(index));
  TRY(exchange(std::move(message), "add a default route"));
  return {};
}

Result<std::vector<Route>> NetLinks::routes(IpVersion version) {
  rtmsg wanted{};
  wanted.rtm_family = version == IpVersion::v4 ? AF_INET : AF_INET6;
  std::string reply = TRY(exchange(begin(RTM_GETROUTE, NLM_F_DUMP, wanted), "list routes"));
  std::vector<Route> found = parse_routes(reply);
  // A kernel without IPv6 answers with the routes of all families.
  std::erase_if(found, [&](const Route& route) {
    return route.destination.size() != address_size(wanted.rtm_family);
  });
  return found;
}

Result<std::vector<LinkName>> NetLinks::links() {
  std::string reply = TRY(exchange(begin(RTM_GETLINK, NLM_F_DUMP, link_of(0)), "list interfaces"));
  return parse_links(reply);
}

}  // namespace berth::sys
