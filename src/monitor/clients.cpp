// SPDX-License-Identifier: Apache-2.0
// Hostile input: none. The socket is in a directory that only the user can enter. Packets of
// clients are validated nevertheless.
#include "monitor/clients.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "sys/file/file.hpp"
#include "sys/net/packet.hpp"
#include "sys/net/socket.hpp"
#include "sys/process/stream.hpp"

namespace berth::monitor {
namespace {

constexpr uint32_t kMaxClients = 64;

std::string_view kind_byte(const char& kind) {
  return {&kind, 1};
}

}  // namespace

void Clients::add(sys::Fd client) {
  if (client) clients_.push_back({std::move(client), 0, {}, 0, false});
}

Result<void> Clients::listen(const sys::Fd& directory) {
  TRY(sys::remove_entry(directory, kAttachSocket));  // left by a monitor that was killed
  // The path goes through our descriptor, because the path of a socket has at most 107 bytes.
  listener_ = TRY(
      sys::listen_unix(sys::fd_path(directory) + "/" + kAttachSocket, sys::SocketType::messages));
  return {};
}

void Clients::add_to(std::vector<pollfd>& entries, Input input) const {
  entries.push_back({listener_.get(), POLLIN, 0});
  for (const Client& client : clients_) {
    short events = client.pending.empty() ? 0 : POLLOUT;
    // The end of a client is reported as POLLHUP, which needs no flag.
    if (input == Input::wanted || (client.hello & kWantsInput) == 0) events |= POLLIN;
    entries.push_back({client.socket.get(), events, 0});
  }
}

void Clients::serve(const std::vector<pollfd>& entries, size_t first, ClientWishes& wishes) {
  size_t known = entries.size() - first - 1;
  for (size_t i = 0; i < known; ++i) {
    Client& client = clients_[i];
    short events = entries[first + 1 + i].revents;
    if (events & POLLOUT) flush(client);
    if (client.socket && (events & POLLIN)) receive(client, wishes);
    if (client.socket && (events & (POLLHUP | POLLERR)) && !(events & POLLIN)) {
      drop(client, &wishes);
    }
  }
  forget_dropped();
  if (entries[first].revents == 0) return;
  auto connection = sys::accept_connection(listener_);
  if (!connection.ok()) return;
  if (clients_.size() < kMaxClients) return add(std::move(*connection));
  std::string_view count(reinterpret_cast<const char*>(&kMaxClients), sizeof kMaxClients);
  char full = static_cast<char>(FromMonitor::full);
  ignore(sys::offer_packet(*connection, kind_byte(full), count));  // the client sees the EOF
}

void Clients::receive(Client& client, ClientWishes& wishes) {
  std::array<char, kMaxData + 1> buffer;
  auto packet = sys::take_packet(client.socket, buffer);
  if (!packet.ok()) return drop(client, &wishes);
  if (!*packet) return;
  if ((*packet)->size == 0) return drop(client, &wishes);
  std::string_view body(buffer.data() + 1, (*packet)->size - 1);
  switch (static_cast<FromClient>(buffer[0])) {
    case FromClient::hello:
      if (!body.empty()) client.hello = body[0];
      return;
    case FromClient::input:
      if (client.hello & kWantsInput) wishes.input(body);
      return;
    case FromClient::input_end:
      if (client.hello & kEndsInput) wishes.input_end();
      return;
    case FromClient::resize: {
      std::array<uint16_t, 2> size;
      if (body.size() != sizeof size) return;
      std::memcpy(size.data(), body.data(), sizeof size);
      return wishes.resize({size[0], size[1]});
    }
    case FromClient::signal:
      if (body.size() == 1) wishes.signal(static_cast<unsigned char>(body[0]));
      return;
  }
}

bool Clients::are_ready() const {
  return std::ranges::all_of(clients_, [](const Client& client) {
    return (client.hello & kMustSeeAll) == 0 || client.pending.empty();
  });
}

void Clients::show(FromMonitor stream, std::string_view bytes) {
  for (Client& client : clients_) {
    if (!client.leaving) offer(client, stream, bytes);
  }
  forget_dropped();
}

void Clients::offer(Client& client, FromMonitor kind, std::string_view bytes) {
  char name = static_cast<char>(kind);
  if (client.skipped > 0) {
    char what = static_cast<char>(FromMonitor::skipped);
    std::string_view count(reinterpret_cast<const char*>(&client.skipped), sizeof client.skipped);
    auto told = sys::offer_packet(client.socket, kind_byte(what), count);
    if (!told.ok()) return drop(client, nullptr);
    if (!*told) {
      client.skipped += bytes.size();
      return;
    }
    client.skipped = 0;
  }
  auto sent = client.pending.empty() ? sys::offer_packet(client.socket, kind_byte(name), bytes)
                                     : Result<bool>(false);
  if (!sent.ok()) return drop(client, nullptr);
  if (*sent) return;
  if (client.hello & kMustSeeAll) {
    client.pending.push_back(std::string(1, name).append(bytes));
  } else {
    client.skipped += bytes.size();
  }
}

void Clients::flush(Client& client) {
  while (!client.pending.empty()) {
    auto sent = sys::offer_packet(client.socket, client.pending.front());
    if (!sent.ok()) return drop(client, nullptr);
    if (!*sent) return;
    client.pending.erase(client.pending.begin());
  }
  if (client.leaving) drop(client, nullptr);
}

void Clients::send_exit(int status) {
  auto code = static_cast<int32_t>(status);
  auto later = [](Client& client, FromMonitor kind, auto number) {
    client.pending.push_back(std::string(1, static_cast<char>(kind))
                                 .append(reinterpret_cast<const char*>(&number), sizeof number));
  };
  for (Client& client : clients_) {
    if (!client.socket || client.leaving) continue;
    if (client.skipped > 0) later(client, FromMonitor::skipped, client.skipped);
    later(client, FromMonitor::exit, code);
    client.leaving = true;
    flush(client);
  }
  forget_dropped();
}

// The element of the client stays until the round is over, because clients are identified by their
// index.
void Clients::drop(Client& client, ClientWishes* wishes) {
  if (!client.socket) return;
  client.socket.reset();
  if (wishes != nullptr && (client.hello & kEndsInput)) wishes->input_end();
}

void Clients::forget_dropped() {
  std::erase_if(clients_, [](const Client& client) { return !client.socket; });
}

}  // namespace berth::monitor
