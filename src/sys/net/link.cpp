// SPDX-License-Identifier: Apache-2.0
#include "sys/net/link.hpp"

#include <fcntl.h>
#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "base/text.hpp"
#include "sys/file/file.hpp"
#include "sys/net/netlink_message.hpp"
#include "sys/user/namespace.hpp"

namespace berth::sys {

using namespace netlink;

namespace {

constexpr size_t kMaxReply = size_t{16} << 20;

std::optional<LinkAddress> read_address(std::string_view body, uint32_t index) {
  ifaddrmsg info{};
  if (body.size() < sizeof info) return std::nullopt;
  std::memcpy(&info, body.data(), sizeof info);
  if (info.ifa_index != index || info.ifa_scope != RT_SCOPE_UNIVERSE) return std::nullopt;
  LinkAddress address;
  address.family = info.ifa_family;
  address.prefix_length = info.ifa_prefixlen;
  uint32_t flags = info.ifa_flags;
  Parts<rtattr> attributes(body.substr(sizeof info));
  rtattr head{};
  std::string_view value;
  std::string given;
  while (attributes.next(head, value)) {
    if (head.rta_type == IFA_LOCAL) address.local = value;
    if (head.rta_type == IFA_ADDRESS) given = value;
    if (head.rta_type == IFA_BROADCAST) address.broadcast = value;
    if (head.rta_type == IFA_FLAGS && value.size() == sizeof flags) {
      std::memcpy(&flags, value.data(), sizeof flags);
    }
  }
  // IPv6 has the address itself in IFA_ADDRESS, where IPv4 has the other end of a point-to-point
  // link.
  if (address.local.empty()) {
    address.local = given;
  } else if (given != address.local) {
    address.peer = given;
  }
  size_t size = info.ifa_family == AF_INET ? 4 : info.ifa_family == AF_INET6 ? 16 : 0;
  bool usable = size != 0 && address.local.size() == size && (flags & IFA_F_PERMANENT);
  return usable ? std::optional(std::move(address)) : std::nullopt;
}

}  // namespace

std::vector<LinkAddress> parse_addresses(std::string_view messages, uint32_t index) {
  std::vector<LinkAddress> found;
  Parts<nlmsghdr> parts(messages);
  nlmsghdr head{};
  std::string_view body;
  while (parts.next(head, body)) {
    if (head.nlmsg_type != RTM_NEWADDR) continue;
    if (auto address = read_address(body, index)) found.push_back(std::move(*address));
  }
  return found;
}

Result<NetLinks> NetLinks::open() {
  Fd socket(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
  if (!socket) return errno_now().error("open a netlink socket");
  return NetLinks(std::move(socket));
}

Result<Fd> open_in_net_space(const Fd& space, const std::string& name, const std::string& path,
                             int flags) {
  Fd own = TRY(open_at(cwd(), "/proc/self/ns/net", O_RDONLY));
  TRY(setns(space, CLONE_NEWNET, name));
  auto opened = open_at(cwd(), path, flags);
  TRY(setns(own, CLONE_NEWNET, "our own"));
  return opened;
}

Result<NetLinks> NetLinks::open_in(const Fd& space, const std::string& name) {
  Fd own = TRY(open_at(cwd(), "/proc/self/ns/net", O_RDONLY));
  TRY(setns(space, CLONE_NEWNET, name));
  auto opened = open();
  TRY(setns(own, CLONE_NEWNET, "our own"));
  return opened;
}

// Sends one request and receives the answer: all messages up to an error, an acknowledgement or the
// end of a list.
Result<std::string> NetLinks::exchange(std::string message, const std::string& what) {
  auto length = static_cast<uint32_t>(message.size());
  uint32_t sequence = ++sequence_;
  std::memcpy(message.data() + offsetof(nlmsghdr, nlmsg_len), &length, sizeof length);
  std::memcpy(message.data() + offsetof(nlmsghdr, nlmsg_seq), &sequence, sizeof sequence);
  if (::send(socket_.get(), message.data(), message.size(), 0) < 0) return errno_now().error(what);
  std::string reply;
  std::array<char, 65536> buffer;
  while (reply.size() < kMaxReply) {
    sockaddr_nl sender{};
    socklen_t size = sizeof sender;
    ssize_t count = ::recvfrom(socket_.get(), buffer.data(), buffer.size(), 0,
                               reinterpret_cast<sockaddr*>(&sender), &size);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno_now().error(what);
    // Processes with CAP_NET_ADMIN in the network namespace can send to this socket too. netlink(7)
    if (sender.nl_pid != 0) continue;
    std::string_view got(buffer.data(), static_cast<size_t>(count));
    // Since Linux 6.9 the end of a list may arrive together with its last entries.
    reply += got;
    Parts<nlmsghdr> parts(got);
    nlmsghdr head{};
    std::string_view body;
    while (parts.next(head, body)) {
      if (head.nlmsg_seq != sequence) continue;
      if (head.nlmsg_type == NLMSG_DONE) return reply;
      if (head.nlmsg_type != NLMSG_ERROR) continue;
      int failure = -EIO;
      if (body.size() >= sizeof failure) std::memcpy(&failure, body.data(), sizeof failure);
      if (failure != 0) return sys_error(-failure, what);
      return reply;
    }
  }
  return make_error(Kind::corrupt, what + ": the answer does not end");
}

Result<std::optional<uint32_t>> NetLinks::find(const std::string& name) {
  std::string what = "find network interface " + quote(name);
  std::string message = begin(RTM_GETLINK, NLM_F_ACK, link_of(0));
  append(message, IFLA_IFNAME, std::string_view(name.c_str(), name.size() + 1));
  auto reply = exchange(std::move(message), what);
  if (!reply.ok() && reply.error().kind == Kind::not_found) return std::optional<uint32_t>();
  if (!reply.ok()) return std::move(reply).error();
  auto found = parse_links(*reply);
  if (found.empty()) return make_error(Kind::corrupt, what + ": no answer");
  return std::optional<uint32_t>(found[0].index);
}

Result<std::vector<LinkAddress>> NetLinks::addresses(uint32_t index) {
  ifaddrmsg wanted{};
  wanted.ifa_family = AF_UNSPEC;
  std::string reply = TRY(exchange(begin(RTM_GETADDR, NLM_F_DUMP, wanted), "list addresses"));
  return parse_addresses(reply, index);
}

Result<void> NetLinks::move(uint32_t index, const Fd& space, const std::string& name) {
  std::string message = begin(RTM_NEWLINK, NLM_F_ACK, link_of(index));
  uint32_t number = static_cast<uint32_t>(space.get());
  append(message, IFLA_NET_NS_FD, bytes_of(number));
  append(message, IFLA_IFNAME, std::string_view(name.c_str(), name.size() + 1));
  TRY(exchange(std::move(message), "move it to another network namespace"));
  return {};
}

Result<void> NetLinks::rename(uint32_t index, const std::string& name) {
  std::string message = begin(RTM_NEWLINK, NLM_F_ACK, link_of(index));
  append(message, IFLA_IFNAME, std::string_view(name.c_str(), name.size() + 1));
  TRY(exchange(std::move(message), "name it " + quote(name)));
  return {};
}

Result<void> NetLinks::add(uint32_t index, const LinkAddress& address) {
  ifaddrmsg info{};
  info.ifa_family = address.family;
  info.ifa_prefixlen = address.prefix_length;
  info.ifa_scope = RT_SCOPE_UNIVERSE;
  info.ifa_index = index;
  std::string message = begin(RTM_NEWADDR, NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL, info);
  append(message, IFA_LOCAL, address.local);
  append(message, IFA_ADDRESS, address.peer.empty() ? address.local : address.peer);
  if (!address.broadcast.empty()) append(message, IFA_BROADCAST, address.broadcast);
  TRY(exchange(std::move(message), "give it its address"));
  return {};
}

Result<void> NetLinks::raise(uint32_t index) {
  ifinfomsg info = link_of(index);
  info.ifi_flags = info.ifi_change = IFF_UP;
  TRY(exchange(begin(RTM_NEWLINK, NLM_F_ACK, info), "bring it up"));
  return {};
}

}  // namespace berth::sys
