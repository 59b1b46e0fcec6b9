// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <poll.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "monitor/protocol.hpp"
#include "sys/fd/fd.hpp"
#include "sys/process/pty.hpp"

namespace berth::monitor {

/// What clients ask the monitor to do.
class ClientWishes {
 public:
  virtual ~ClientWishes() = default;
  virtual void input(std::string_view bytes) = 0;
  virtual void input_end() = 0;
  virtual void resize(sys::WindowSize size) = 0;
  virtual void signal(int number) = 0;
};

/// The clients of a container: `berth run` in the foreground, `berth attach`, `berth start -a`. A
/// slow client that must see all output makes the container wait, as a pipe would. Any other slow
/// client loses output, and gets the number of lost bytes.
class Clients {
 public:
  /// Adds a connected client; an empty `client` adds none.
  void add(sys::Fd client);
  /// Accepts more clients through kAttachSocket in `directory`.
  Result<void> listen(const sys::Fd& directory);

  enum class Input { wanted, full };
  /// Appends the descriptors to poll. With `Input::full` the container takes no input, so none is
  /// received from clients.
  void add_to(std::vector<pollfd>& entries, Input input) const;
  /// Serves the entries that add_to() appended from `first` on.
  void serve(const std::vector<pollfd>& entries, size_t first, ClientWishes& wishes);

  /// Whether more output can be shown: false while a client that must see all output has not
  /// received the last piece.
  bool are_ready() const;
  /// Sends at most kMaxData bytes. Queues them for a client that must see all output and is not
  /// ready.
  void show(FromMonitor stream, std::string_view bytes);
  /// Tells every client that the container has ended. A client is dropped once it has received
  /// everything.
  void send_exit(int status);
  bool none() const { return clients_.empty(); }

 private:
  struct Client {
    sys::Fd socket;
    char hello = 0;
    std::vector<std::string> pending;  ///< packets that did not fit, the oldest first
    uint64_t skipped = 0;
    bool leaving = false;  ///< to be dropped after the pending packets
  };
  void receive(Client& client, ClientWishes& wishes);
  void offer(Client& client, FromMonitor kind, std::string_view bytes);
  void flush(Client& client);
  void drop(Client& client, ClientWishes* wishes);
  void forget_dropped();

  sys::Fd listener_;
  std::vector<Client> clients_;
};

}  // namespace berth::monitor
