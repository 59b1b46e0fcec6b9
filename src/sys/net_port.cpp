// SPDX-License-Identifier: Apache-2.0
#include "sys/net_port.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "sys/fd.hpp"

namespace berth::sys {

Result<void> try_port(Transport transport, std::string_view address, uint16_t port,
                      const std::string& name) {
  bool is_tcp = transport == Transport::tcp;
  Fd socket(::socket(AF_INET, (is_tcp ? SOCK_STREAM : SOCK_DGRAM) | SOCK_CLOEXEC, 0));
  if (!socket) {
    int saved = errno;
    return sys_error(saved, "make a socket for " + name);
  }
  // Connections that have ended are no reason; a listener is one all the same. With UDP it would
  // be shared.
  int yes = 1;
  if (is_tcp) ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  sockaddr_in place{};
  place.sin_family = AF_INET;
  place.sin_port = htons(port);
  std::memcpy(&place.sin_addr, address.data(), std::min(address.size(), sizeof place.sin_addr));
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&place), sizeof place) == 0) return {};
  int saved = errno;
  Error error = sys_error(saved, "bind " + name);
  if (saved == EADDRINUSE) error.kind = Kind::busy;
  if (saved == EADDRNOTAVAIL) error.kind = Kind::not_found;
  return error;
}

}  // namespace berth::sys
