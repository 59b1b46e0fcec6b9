// SPDX-License-Identifier: Apache-2.0
#include "engine/system/metrics_server.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <optional>
#include <utility>
#include <vector>

#include "base/text.hpp"
#include "engine/system/metrics.hpp"
#include "sys/fd/poll.hpp"
#include "sys/file/file.hpp"
#include "sys/net/socket.hpp"
#include "sys/process/signals.hpp"
#include "sys/process/stream.hpp"

namespace berth::engine {
namespace {

constexpr std::chrono::milliseconds kMetricsPatience{5000};
constexpr size_t kMaxHead = size_t{8} << 10;

/// The listening socket; its file is removed with this object, unless another process has replaced
/// it.
class Socket {
 public:
  static Result<Socket> listen(const std::string& path);
  Socket(Socket&& other) noexcept
      : listener_(std::move(other.listener_)),
        path_(std::exchange(other.path_, {})),
        inode_(other.inode_) {}
  Socket& operator=(Socket&&) = delete;
  ~Socket() {
    if (!path_.empty()) ignore(remove_socket(path_, inode_));
  }
  const sys::Fd& listener() const { return listener_; }

 private:
  Socket(sys::Fd listener, std::string path, ino_t inode)
      : listener_(std::move(listener)), path_(std::move(path)), inode_(inode) {}
  static Result<ino_t> inode_of(const std::string& path);
  static Result<void> remove_socket(const std::string& path, ino_t inode);

  sys::Fd listener_;
  std::string path_;
  ino_t inode_ = 0;
};

/// 0: does not exist.  Errors: exists (not a socket).
Result<ino_t> Socket::inode_of(const std::string& path) {
  std::optional<struct stat> status = TRY(sys::stat_entry(sys::cwd(), path));
  if (!status) return ino_t{0};
  if (S_ISSOCK(status->st_mode)) return status->st_ino;
  return make_error(Kind::exists, "create socket " + quote(path) + ": there is a file",
                    "another path, or --output");
}

Result<void> Socket::remove_socket(const std::string& path, ino_t inode) {
  if (TRY(inode_of(path)) != inode) return {};  // another process has replaced it
  return sys::remove_entry(sys::cwd(), path);
}

Result<Socket> Socket::listen(const std::string& path) {
  auto listener = sys::listen_unix(path);
  if (!listener.ok() && listener.error().sys_errno == EADDRINUSE) {
    ino_t there = TRY(inode_of(path));
    // A socket without a listener was left by a killed process.
    auto answered = sys::connect_unix(path, sys::SocketType::stream);
    if (answered.ok() || answered.error().sys_errno != ECONNREFUSED)
      return std::move(listener).error();
    TRY(remove_socket(path, there));
    listener = sys::listen_unix(path);
  }
  if (!listener.ok()) return std::move(listener).error();
  ino_t inode = TRY(inode_of(path));
  return Socket(*std::move(listener), path, inode);
}

std::string reply(std::string_view status, std::string_view type, const std::string& body) {
  return "HTTP/1.1 " + std::string(status) + "\r\nContent-Type: " + std::string(type) +
         "\r\nContent-Length: " + std::to_string(body.size()) + "\r\nConnection: close\r\n\r\n" +
         body;
}

/// The first line of a request, after its complete header; empty if that does not arrive in time,
/// or at a signal.
Result<std::string> read_request(const sys::Fd& connection, const sys::Fd& signals) {
  const std::chrono::steady_clock::time_point end =
      std::chrono::steady_clock::now() + kMetricsPatience;
  std::string head;
  std::array<char, 1024> part{};
  while (head.find("\r\n\r\n") == std::string::npos && head.size() < kMaxHead) {
    auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        end - std::chrono::steady_clock::now());
    std::vector<pollfd> entries = {{connection.get(), POLLIN, 0}, {signals.get(), POLLIN, 0}};
    int ready = left.count() > 0 ? TRY(sys::poll(entries, left)) : 0;
    if (ready == 0 || entries[1].revents != 0) return std::string();
    size_t count = TRY(sys::read_some(connection, part, "a request"));
    if (count == 0) return std::string();
    head.append(part.data(), count);
  }
  return head.substr(0, head.find("\r\n"));
}

Result<void> answer(const Context& context, const sys::Fd& connection, const sys::Fd& signals) {
  constexpr std::string_view kPlain = "text/plain";
  std::string request = TRY(read_request(connection, signals));
  if (request.empty()) return {};
  auto words = split(request, ' ');
  std::string text;
  if (words.size() != 3 || words[0] != "GET") {
    text = reply("405 Method Not Allowed\r\nAllow: GET", kPlain, "");
  } else if (words[1].substr(0, words[1].find('?')) != "/metrics") {
    text = reply("404 Not Found", kPlain, "only /metrics\n");
  } else {
    auto measured = measure_all(context);
    text = measured.ok()
               ? reply("200 OK", kMetricsType, metrics_text(*measured))
               : reply("500 Internal Server Error", kPlain, to_line(measured.error()) + "\n");
  }
  return sys::send_all(connection, text, kMetricsPatience);
}

}  // namespace

Result<void> serve_metrics(const Context& context, const std::string& path) {
  Socket socket = TRY(Socket::listen(path));  // until here a signal ends this process as usual
  sys::SignalMask before;
  sys::Fd signals = TRY(sys::receive_signals({SIGINT, SIGTERM, SIGHUP}));
  while (true) {
    std::vector<pollfd> entries = {{signals.get(), POLLIN, 0},
                                   {socket.listener().get(), POLLIN, 0}};
    TRY(sys::poll(entries, std::nullopt));
    std::optional<sys::ReceivedSignal> signal = TRY(sys::read_signal(signals));
    if (signal) return {};
    if (entries[1].revents == 0) continue;
    sys::Fd connection = TRY(sys::accept_connection(socket.listener()));
    auto answered = answer(context, connection, signals);
    if (!answered.ok()) context.log.warn(to_line(answered.error()) + ", ignoring");
  }
}

}  // namespace berth::engine
