// SPDX-License-Identifier: Apache-2.0
#include "spank/board.hpp"

#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <exception>
#include <map>
#include <system_error>
#include <thread>

#include "base/text.hpp"
#include "slurm/board.hpp"

namespace berth::spank {
namespace {

using Time = slurm::Board::Time;

/// More clients than this are answered "later".
constexpr size_t kMostGuests = 512;
constexpr Time kForGreeting{10'000};
constexpr int kBacklog = 4096;

Result<std::string> make_secret() {
  std::string bytes(slurm::kSecretDigits / 2, '\0');
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    return errno_now().error("get random bytes");
  }
  return to_hex(bytes);
}

/// Listens on all IPv6 and IPv4 addresses; if the machine has no IPv6, on all IPv4 addresses.
Result<int> listen_anywhere() {
  constexpr int kFlags = SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK;
  int both = ::socket(AF_INET6, kFlags, 0);
  if (both >= 0) {
    int no = 0;
    sockaddr_in6 any{};
    any.sin6_family = AF_INET6;
    if (::setsockopt(both, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no) == 0 &&
        ::bind(both, reinterpret_cast<sockaddr*>(&any), sizeof any) == 0 &&
        ::listen(both, kBacklog) == 0) {
      return both;
    }
    ::close(both);
  }
  int four = ::socket(AF_INET, kFlags, 0);
  if (four < 0) return errno_now().error("make a socket");
  sockaddr_in any{};
  any.sin_family = AF_INET;
  if (::bind(four, reinterpret_cast<sockaddr*>(&any), sizeof any) != 0 ||
      ::listen(four, kBacklog) != 0) {
    Error error = errno_now().error("listen for the nodes of the step");
    ::close(four);
    return error;
  }
  return four;
}

Result<uint16_t> port_of(int socket) {
  sockaddr_storage place{};
  socklen_t size = sizeof place;
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(&place), &size) != 0) {
    return errno_now().error("look up a port");
  }
  // Both address families have the port at the same offset.
  return ntohs(reinterpret_cast<sockaddr_in*>(&place)->sin_port);
}

class Server final : public BoardServer {
 public:
  Server(int listener, int wake_read, int wake_write, slurm::Invitation invitation)
      : listener_(listener),
        wake_read_(wake_read),
        wake_write_(wake_write),
        invitation_(std::move(invitation)),
        board_(invitation_.door, invitation_.arity) {}

  ~Server() override {
    ::close(wake_write_);  // the thread sees end of file
    if (thread_.joinable()) thread_.join();
    for (auto& [guest, one] : guests_) ::close(guest);
    ::close(wake_read_);
    ::close(listener_);
  }

  Result<void> start() {
    // This thread blocks all signals: srun has threads that wait for them.
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    bool started = true;
    try {
      thread_ = std::thread([this] { serve(); });
    } catch (const std::system_error&) {
      started = false;
    }
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    if (!started) return make_error(Kind::busy, "start a thread");
    return {};
  }

  std::string invitation() const override { return slurm::to_text(invitation_); }

 private:
  struct Guest {
    std::string said;
    bool has_said = false;
    Time since{};
  };

  static Time now() {
    return std::chrono::duration_cast<Time>(std::chrono::steady_clock::now().time_since_epoch());
  }

  /// No exception may reach srun. If the board fails, nodes ask the registry.
  void serve() noexcept {
    try {
      while (look()) {
      }
    } catch (const std::exception&) {
    }
  }

  /// Waits for work, and does it. False: the thread has to end.
  bool look() {
    std::vector<pollfd> entries{{wake_read_, POLLIN, 0}, {listener_, POLLIN, 0}};
    for (auto& [guest, one] : guests_) entries.push_back({guest, POLLIN, 0});
    if (::poll(entries.data(), entries.size(), patience()) < 0) return errno == EINTR;
    if (entries[0].revents != 0) return false;
    for (size_t i = 2; i < entries.size(); ++i) {
      if (entries[i].revents != 0) hear(entries[i].fd);
    }
    if (entries[1].revents != 0) welcome();
    for (const slurm::Board::Answer& answer : board_.answers(now())) {
      send(answer.guest, answer.directions);
    }
    drop_silent();
    return true;
  }

  /// The time until there may be work without a message, in milliseconds.
  int patience() const {
    constexpr Time kLongest{1000};
    if (guests_.empty()) return -1;
    auto next = board_.next();
    Time wait = next ? std::clamp(*next - now(), Time(0), kLongest) : kLongest;
    return static_cast<int>(wait.count());
  }

  void welcome() {
    constexpr int kAtOnce = 64;
    for (int i = 0; i < kAtOnce; ++i) {
      int guest = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
      if (guest < 0 && (errno == EMFILE || errno == ENFILE) && !guests_.empty()) make_room();
      if (guest < 0) return;
      if (guests_.size() >= kMostGuests) make_room();
      guests_[guest].since = now();
    }
  }

  /// Drops a client that has sent no message; if there is none, tells the one that has waited
  /// longest to retry "later": its parent may be a client that found no room.
  void make_room() {
    for (auto& [guest, one] : guests_) {
      if (!one.has_said) return drop(guest);
    }
    auto oldest = board_.oldest();
    if (oldest) return send(*oldest, {true, {}});
    drop(guests_.begin()->first);
  }

  void hear(int guest) {
    std::array<char, slurm::kMaxLine> chunk;
    ssize_t count = ::recv(guest, chunk.data(), chunk.size(), MSG_DONTWAIT);
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) return;
    Guest& one = guests_[guest];
    if (count <= 0 || one.has_said) return drop(guest);
    one.said.append(chunk.data(), static_cast<size_t>(count));
    size_t newline = one.said.find('\n');
    if (newline == one.said.npos) {
      if (one.said.size() >= slurm::kMaxLine) drop(guest);
      return;
    }
    one.has_said = true;
    if (!board_.arrive(guest, one.said.substr(0, newline), now()).ok()) drop(guest);
  }

  /// Sends the answer. The line is short enough for an empty socket buffer.
  void send(int guest, const slurm::Directions& directions) {
    std::string line = slurm::to_line(directions);
    // A client that does not get the whole line asks the registry.
    static_cast<void>(::send(guest, line.data(), line.size(), MSG_NOSIGNAL | MSG_DONTWAIT));
    drop(guest);
  }

  void drop(int guest) {
    board_.leave(guest);
    guests_.erase(guest);
    ::close(guest);
  }

  void drop_silent() {
    std::vector<int> silent;
    for (auto& [guest, one] : guests_) {
      if (!one.has_said && now() - one.since > kForGreeting) silent.push_back(guest);
    }
    for (int guest : silent) drop(guest);
  }

  const int listener_;
  const int wake_read_;
  const int wake_write_;
  const slurm::Invitation invitation_;
  slurm::Board board_;           // only the thread uses this and the following members
  std::map<int, Guest> guests_;  // by descriptor
  std::thread thread_;
};

}  // namespace

Result<std::unique_ptr<BoardServer>> BoardServer::open() {
  slurm::Invitation invitation;
  invitation.door = TRY(make_secret());
  invitation.key = TRY(make_secret());
  int listener = TRY(listen_anywhere());
  auto port = port_of(listener);
  int wake[2];
  if (!port.ok() || ::pipe2(wake, O_CLOEXEC) != 0) {
    Error error = port.ok() ? errno_now().error("make a pipe") : std::move(port).error();
    ::close(listener);
    return error;
  }
  invitation.port = *port;
  auto server = std::make_unique<Server>(listener, wake[0], wake[1], std::move(invitation));
  TRY(server->start());
  return std::unique_ptr<BoardServer>(std::move(server));
}

}  // namespace berth::spank
