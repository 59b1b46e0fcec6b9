// SPDX-License-Identifier: Apache-2.0
#include "engine/container/relay.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>

#include "sys/fd/poll.hpp"
#include "sys/file/file.hpp"
#include "sys/process/pty.hpp"
#include "sys/process/signals.hpp"
#include "sys/process/stream.hpp"

namespace berth::engine {
namespace {

constexpr size_t kBuffer = size_t{64} << 10;  // the capacity of a pipe
constexpr std::array kStreamNames = {"standard input", "standard output", "standard error"};

std::string name_of(int number) {
  return kStreamNames[static_cast<size_t>(number)];
}

/// The status of the caller's standard stream; nothing if the caller closed the stream: one of our
/// own files may have its number now.
Result<std::optional<struct stat>> stat_stream(int number) {
  if (!sys::is_inherited(number)) return std::optional<struct stat>();
  sys::Fd stream(number);
  auto status = sys::stat_fd(stream, name_of(number));
  stream.release();
  return std::optional<struct stat>(TRY(std::move(status)));
}

// Reopening one of these gives no access to a file or a terminal.
bool is_harmless(const struct stat& status) {
  bool null = S_ISCHR(status.st_mode) && status.st_rdev == makedev(1, 3);
  return null || S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode);
}

bool is_same_file(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

Result<sys::Fd> open_null() {
  return sys::open_at(sys::cwd(), "/dev/null", O_RDWR | O_NOCTTY);
}

/// True if a signal asks this process to end.
Result<bool> asked_to_end(const sys::Fd& signals) {
  while (auto received = TRY(sys::read_signal(signals))) {
    if (asks_for_end(received->number)) return true;
  }
  return false;
}

}  // namespace

bool asks_for_end(int number) {
  return number == SIGHUP || number == SIGINT || number == SIGQUIT || number == SIGTERM;
}

Result<sys::Fd> open_stream(int number) {
  sys::Fd stream(number);
  auto copy = sys::duplicate(stream);
  auto status = sys::stat_fd(stream, name_of(number));
  stream.release();
  bool pipe = status.ok() && S_ISFIFO(status->st_mode);
  if (!copy.ok() || (!pipe && !sys::is_terminal(number))) return copy;
  int access = number == STDIN_FILENO ? O_RDONLY : O_WRONLY;
  auto own = sys::open_at(sys::cwd(), sys::fd_path(*copy), access | O_NONBLOCK | O_NOCTTY);
  return own.ok() ? std::move(own) : std::move(copy);
}

Copy::Copy(sys::Fd from, sys::Fd to, std::string name)
    : from_(std::move(from)), to_(std::move(to)), name_(std::move(name)), buffer_(kBuffer, '\0') {}

pollfd Copy::wanted() const {
  if (begin_ < end_) return {to_.get(), POLLOUT, 0};
  return {from_.get(), POLLIN, 0};
}

void Copy::step() {
  if (begin_ < end_) {
    flush();
  } else {
    fill();
  }
}

void Copy::fill() {
  auto count = sys::read_some(from_, buffer_, name_);
  if (!count.ok()) return fail(std::move(count).error());
  if (*count == 0) return end();
  begin_ = 0;
  end_ = *count;
  if (last_) last_->add(std::string_view(buffer_).substr(0, end_));
}

void Copy::flush() {
  auto count = sys::write_some(to_, std::string_view(buffer_).substr(begin_, end_ - begin_), name_);
  if (!count.ok()) return fail(std::move(count).error());
  begin_ += *count;
}

void Copy::fail(Error error) {
  if (error.kind == Kind::busy) return;
  if (error.sys_errno != EPIPE) error_ = std::move(error);
  end();
}

void Copy::end() {
  from_.reset();
  to_.reset();
  begin_ = end_ = 0;
}

Result<Relay> Relay::open(Input input, Guard guard) {
  Relay relay;
  auto connect = [&](int number, const std::optional<struct stat>& status) -> Result<void> {
    auto at = static_cast<size_t>(number);
    if (!status) {
      relay.given_[at] = TRY(open_null());
      return {};
    }
    if (is_harmless(*status)) return {};
    sys::Fd stream = TRY(open_stream(number));
    sys::Pipe pipe = TRY(sys::make_pipe());
    bool in = number == STDIN_FILENO;
    sys::Fd& ours = in ? pipe.write : pipe.read;
    TRY(sys::set_nonblocking(ours));
    relay.given_[at] = std::move(in ? pipe.read : pipe.write);
    relay.copies_[at] = in ? Copy(std::move(stream), std::move(ours), name_of(number))
                           : Copy(std::move(ours), std::move(stream), name_of(number));
    if (!in) relay.copies_[at].keep_last();
    return {};
  };
  if (input == Input::none) relay.given_[STDIN_FILENO] = TRY(open_null());
  if (guard == Guard::no) return relay;
  if (input == Input::given) {
    auto status = TRY(stat_stream(STDIN_FILENO));
    TRY(connect(STDIN_FILENO, status));
  }
  auto output = TRY(stat_stream(STDOUT_FILENO));
  auto errors = TRY(stat_stream(STDERR_FILENO));
  TRY(connect(STDOUT_FILENO, output));
  relay.errors_with_output_ = output && errors && is_same_file(*output, *errors);
  if (!relay.errors_with_output_) TRY(connect(STDERR_FILENO, errors));
  return relay;
}

void Relay::give_to(sys::SpawnOptions& options) const {
  auto given = [&](int number) {
    const sys::Fd& fd = given_[static_cast<size_t>(number)];
    return fd ? &fd : nullptr;
  };
  options.in = given(STDIN_FILENO);
  options.out = given(STDOUT_FILENO);
  options.err = given(errors_with_output_ ? STDOUT_FILENO : STDERR_FILENO);
}

void Relay::given() {
  for (sys::Fd& fd : given_) fd.reset();
}

void Relay::add_to(std::vector<pollfd>& entries) const {
  for (const Copy& copy : copies_) {
    if (!copy.ended()) entries.push_back(copy.wanted());
  }
}

void Relay::serve(const std::vector<pollfd>& entries, size_t first) {
  size_t at = first;
  for (Copy& copy : copies_) {
    if (!copy.ended() && entries[at++].revents != 0) copy.step();
  }
}

std::string Relay::printed() const {
  std::string all(copies_[STDOUT_FILENO].printed());
  return all.append(copies_[STDERR_FILENO].printed());
}

Result<void> Relay::finish(const sys::Fd& signals) {
  copies_[STDIN_FILENO].end();
  std::vector<pollfd> entries;
  bool asked = false;
  while (!asked) {
    // A process that outlives the container may keep a pipe open: read only what is in it now.
    for (Copy& copy : copies_) {
      if (copy.ended() || copy.wanted().events == POLLOUT) continue;
      copy.step();
      if (!copy.ended() && copy.wanted().events == POLLIN) copy.end();
    }
    entries = {{signals.get(), POLLIN, 0}};
    add_to(entries);
    if (entries.size() == 1) break;
    TRY(sys::poll(entries, std::nullopt));
    serve(entries, 1);
    if (entries[0].revents != 0) asked = TRY(asked_to_end(signals));
  }
  for (const Copy& copy : copies_) {
    if (copy.error()) return *copy.error();
  }
  return {};
}

}  // namespace berth::engine
