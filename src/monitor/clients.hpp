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

/// What clients ask for.
class ClientWishes {
 public:
  virtual ~ClientWishes() = default;
  virtual void input(std::string_view bytes) = 0;
  virtual void input_end() = 0;
  virtual void resize(sys::WindowSize size) = 0;
  virtual void signal(int number) = 0;
};

/// Those who look at a container: `berth run` in front of it, `berth attach`, `berth start -a`.
/// A client that must see all holds the container up when it is slow, as a pipe would. Every other
/// one misses what it is too slow for, and is told how much that was.
class Clients {
 public:
  /// A client that is connected already; an empty `client` is none.
  void add(sys::Fd client);
  /// Others come through kAttachSocket in `directory`.
  Result<void> listen(const sys::Fd& directory);

  /// Appends what has to be waited for. While the container takes no input (`Input::full`) none is
  /// received.
  enum class Input { wanted, full };
  void add_to(std::vector<pollfd>& entries, Input input) const;
  /// Serves the entries that add_to() appended from `first` on.
  void serve(const std::vector<pollfd>& entries, size_t first, ClientWishes& wishes);

  /// False while somebody who must see all has not taken the last piece yet.
  bool are_ready() const;
  /// At most kMaxData bytes. Who must see all and is not ready is sent them later.
  void show(FromMonitor stream, std::string_view bytes);
  /// The container has ended: every client is told, and leaves when it has taken all.
  void tell_exit(int status);
  bool none() const { return clients_.empty(); }

 private:
  struct Client {
    sys::Fd socket;
    char hello = 0;
    std::vector<std::string> pending;  ///< packets that found no room, the oldest first
    uint64_t skipped = 0;
    bool leaving = false;  ///< after what is pending
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
