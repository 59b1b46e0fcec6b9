// SPDX-License-Identifier: Apache-2.0
#include "sys/net/tcp.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <vector>

#include "base/text.hpp"
#include "sys/fd/poll.hpp"
#include "sys/process/stream.hpp"

namespace berth::sys {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

struct Place {
  sockaddr_storage storage{};
  socklen_t size = 0;
  sockaddr* address() { return reinterpret_cast<sockaddr*>(&storage); }
};

Result<Place> place_of(const std::string& address, uint16_t port) {
  Place place;
  auto* four = reinterpret_cast<sockaddr_in*>(&place.storage);
  auto* six = reinterpret_cast<sockaddr_in6*>(&place.storage);
  if (inet_pton(AF_INET, address.c_str(), &four->sin_addr) == 1) {
    four->sin_family = AF_INET;
    four->sin_port = htons(port);
    place.size = sizeof *four;
    return place;
  }
  place.storage = {};
  if (inet_pton(AF_INET6, address.c_str(), &six->sin6_addr) == 1) {
    six->sin6_family = AF_INET6;
    six->sin6_port = htons(port);
    place.size = sizeof *six;
    return place;
  }
  return make_error(Kind::usage, "reach " + quote(address) + ": it is not an address");
}

Result<Place> own_place(const Fd& socket) {
  Place place;
  place.size = sizeof place.storage;
  if (::getsockname(socket.get(), place.address(), &place.size) != 0) {
    return errno_now().error("look up the address of a socket");
  }
  return place;
}

Result<std::string> text_of(Place& place) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const void* bytes = &reinterpret_cast<sockaddr_in*>(&place.storage)->sin_addr;
  if (place.storage.ss_family == AF_INET6) {
    bytes = &reinterpret_cast<sockaddr_in6*>(&place.storage)->sin6_addr;
  }
  if (inet_ntop(place.storage.ss_family, bytes, text.data(), text.size()) == nullptr) {
    return errno_now().error("write down the address of a socket");
  }
  return std::string(text.data());
}

milliseconds until(Clock::time_point end) {
  auto left = std::chrono::duration_cast<milliseconds>(end - Clock::now());
  return std::max(left, milliseconds(0));
}

}  // namespace

Result<Fd> connect_tcp(const std::string& address, uint16_t port, milliseconds patience) {
  Place place = TRY(place_of(address, port));
  std::string what = "connect to " + quote(address + " port " + std::to_string(port));
  Fd socket(::socket(place.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return errno_now().error(what);
  if (::connect(socket.get(), place.address(), place.size) == 0) return socket;
  if (errno != EINPROGRESS) return errno_now().error(what);
  std::vector<pollfd> entries{{socket.get(), POLLOUT, 0}};
  int ready = TRY(poll(entries, patience));
  if (ready == 0) return make_error(Kind::interrupted, what + ": no answer");
  int error = 0;
  socklen_t size = sizeof error;
  if (::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &size) != 0) {
    return errno_now().error(what);
  }
  if (error != 0) return sys_error(error, what);
  return socket;
}

Result<Fd> listen_tcp(const std::string& address) {
  Place place = TRY(place_of(address, 0));
  std::string what = "listen at " + quote(address);
  Fd socket(::socket(place.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket || ::bind(socket.get(), place.address(), place.size) != 0 ||
      ::listen(socket.get(), SOMAXCONN) != 0) {
    return errno_now().error(what);
  }
  return socket;
}

Result<std::string> listening_address(const Fd& listener) {
  Place place = TRY(own_place(listener));
  std::string host = TRY(text_of(place));
  bool six = place.storage.ss_family == AF_INET6;
  // The port has the same offset in both address families.
  uint16_t port = ntohs(reinterpret_cast<sockaddr_in*>(&place.storage)->sin_port);
  return (six ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

Result<std::string> local_address(const Fd& socket) {
  Place place = TRY(own_place(socket));
  return text_of(place);
}

Result<std::string> read_line(const Fd& stream, size_t most, milliseconds patience,
                              const std::string& name) {
  const Clock::time_point end = Clock::now() + patience;
  std::string line;
  std::array<char, 1024> chunk;
  while (true) {
    std::vector<pollfd> entries{{stream.get(), POLLIN, 0}};
    int ready = TRY(poll(entries, until(end)));
    if (ready == 0) return make_error(Kind::interrupted, "read " + name + ": no data");
    auto count = read_some(stream, chunk, name);
    if (!count.ok() && count.error().kind == Kind::busy) continue;
    size_t size = TRY(std::move(count));
    if (size == 0)
      return make_error(Kind::io, "read " + name + ": it ends before the end of the line");
    line.append(chunk.data(), size);
    size_t newline = line.find('\n');
    if (newline != line.npos) return line.substr(0, newline);
    if (line.size() > most)
      return make_error(Kind::corrupt, "read " + name + ": the line is too long");
  }
}

}  // namespace berth::sys
