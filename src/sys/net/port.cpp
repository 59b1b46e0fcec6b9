// SPDX-License-Identifier: Apache-2.0
#include "sys/net/port.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "sys/fd/fd.hpp"

namespace berth::sys {

Result<void> try_port(Transport transport, std::string_view address, uint16_t port,
                      const std::string& name) {
  bool is_tcp = transport == Transport::tcp;
  bool is_six = address.size() == sizeof(in6_addr);
  int type = (is_tcp ? SOCK_STREAM : SOCK_DGRAM) | SOCK_CLOEXEC;
  Fd socket(::socket(is_six ? AF_INET6 : AF_INET, type, 0));
  if (!socket) {
    int saved = errno;
    Error error = sys_error(saved, "make a socket for " + name);
    if (saved == EAFNOSUPPORT) error.kind = Kind::unsupported;
    return error;
  }
  // With SO_REUSEADDR closed connections do not count as use of the port, but a listener does. Not
  // for UDP, where two sockets could then share the port.
  int yes = 1;
  if (is_tcp) ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  sockaddr_in four{};
  four.sin_family = AF_INET;
  four.sin_port = htons(port);
  sockaddr_in6 six{};
  six.sin6_family = AF_INET6;
  six.sin6_port = four.sin_port;
  if (is_six) {
    // A listener on every IPv4 address does not use the IPv6 port.
    ::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &yes, sizeof yes);
    std::memcpy(&six.sin6_addr, address.data(), sizeof six.sin6_addr);
  } else {
    std::memcpy(&four.sin_addr, address.data(), std::min(address.size(), sizeof four.sin_addr));
  }
  const auto* place =
      is_six ? reinterpret_cast<const sockaddr*>(&six) : reinterpret_cast<const sockaddr*>(&four);
  if (::bind(socket.get(), place, is_six ? sizeof six : sizeof four) == 0) return {};
  int saved = errno;
  Error error = sys_error(saved, "bind " + name);
  if (saved == EADDRINUSE) error.kind = Kind::busy;
  if (saved == EADDRNOTAVAIL) error.kind = Kind::not_found;
  return error;
}

}  // namespace berth::sys
