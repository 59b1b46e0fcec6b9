// SPDX-License-Identifier: Apache-2.0
// Runs as: the caller of berth (root, or root of a user namespace). Hostile: what the container
// writes, which is only copied and quoted.
#include "monitor/monitor.hpp"

#include <fcntl.h>
#include <signal.h>

#include <array>
#include <chrono>
#include <optional>
#include <vector>

#include "base/text.hpp"
#include "json/value.hpp"
#include "monitor/json_log.hpp"
#include "sys/adopt.hpp"
#include "sys/file.hpp"
#include "sys/listen.hpp"
#include "sys/poll.hpp"
#include "sys/process.hpp"
#include "sys/signals.hpp"
#include "sys/socket.hpp"
#include "sys/stream.hpp"

namespace berth::monitor {
namespace {

using Clock = std::chrono::system_clock;
constexpr std::chrono::seconds kDrainTime{2};
constexpr const char* kConsoleSocket = "console.sock";
constexpr const char* kPidFile = "pid";

/// One stream of the container's output on its way into the log.
struct Output {
  sys::Fd fd;
  std::string_view stream;
  LineCutter cutter;
};

/// What the container's processes are connected to.
struct Streams {
  // Ends that the container gets; closed here once it has them.
  sys::Fd child_in;
  sys::Fd child_out;
  sys::Fd child_err;
  sys::Fd console;     ///< the socket that receives the terminal
  sys::Fd kept_stdin;  ///< the other end of child_in
  std::vector<Output> outputs;
};

class Monitor {
 public:
  explicit Monitor(Options options) : options_(std::move(options)) {}

  Result<void> open();
  Result<void> start();
  Result<void> stay();
  Result<void> delete_container();
  Result<void> clean_up();
  Result<void> remove_files();
  void report(const Error& error);

 private:
  Result<void> call_runtime(std::vector<std::string> words, bool with_streams);
  Result<void> open_streams();
  Result<void> receive_terminal();
  Result<void> adopt_init();
  Result<void> copy_output(Output& output);
  Result<void> write_log(std::string_view piece, std::string_view stream);
  Result<void> drain();
  Result<void> write_exit() const;

  Options options_;
  sys::Fd directory_;
  sys::Fd log_;
  sys::Fd signals_;
  Streams streams_;
  sys::Process init_;
  std::optional<int> exit_code_;  ///< none: it was not seen
  bool runtime_reported_ = false;
  std::array<char, kMaxPiece> buffer_;
};

Result<void> Monitor::open() {
  // PIPE: the engine may be gone when we report. The others are no reason to leave a container.
  signals_ = TRY(sys::receive_signals({SIGTERM, SIGHUP, SIGINT, SIGQUIT, SIGPIPE}));
  // The container's first process becomes our child when `berth-runtime create` has ended.
  TRY(sys::become_subreaper());
  directory_ = TRY(sys::open_at(sys::cwd(), options_.directory, O_DIRECTORY | O_RDONLY));
  log_ = TRY(sys::open_at(directory_, "log", O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW, 0600));
  return open_streams();
}

Result<void> Monitor::open_streams() {
  streams_.child_in = TRY(sys::open_at(sys::cwd(), "/dev/null", O_RDWR | O_NOCTTY));
  if (options_.terminal) {
    // Through our own descriptor: the name of a socket is at most 107 bytes long.
    streams_.console = TRY(sys::listen_unix(sys::fd_path(directory_) + "/" + kConsoleSocket));
    return {};
  }
  if (options_.keep_stdin) {
    sys::Pipe in = TRY(sys::make_pipe());
    streams_.child_in = std::move(in.read);
    streams_.kept_stdin = std::move(in.write);
  }
  sys::Pipe out = TRY(sys::make_pipe());
  sys::Pipe err = TRY(sys::make_pipe());
  streams_.child_out = std::move(out.write);
  streams_.child_err = std::move(err.write);
  streams_.outputs.push_back({std::move(out.read), "stdout", {}});
  streams_.outputs.push_back({std::move(err.read), "stderr", {}});
  for (Output& output : streams_.outputs) TRY(sys::set_nonblocking(output.fd));
  return {};
}

Result<void> Monitor::call_runtime(std::vector<std::string> words, bool with_streams) {
  sys::SpawnOptions spawn;
  spawn.program = options_.runtime;
  spawn.args = {"berth-runtime", "--root", options_.runtime_root};
  if (options_.report) {
    spawn.args.insert(spawn.args.end(), {"--report-fd", std::to_string(options_.report.get())});
    spawn.keep = {options_.report.get()};
  }
  std::string verb = words[0];
  spawn.args.insert(spawn.args.end(), std::make_move_iterator(words.begin()),
                    std::make_move_iterator(words.end()));
  if (with_streams) {
    spawn.in = &streams_.child_in;
    if (streams_.child_out) spawn.out = &streams_.child_out;
    if (streams_.child_err) spawn.err = &streams_.child_err;
  }
  sys::Process process = TRY(sys::spawn(spawn));
  sys::ExitStatus status = TRY(process.wait());
  if (status.shell_code() == 0) return {};
  runtime_reported_ = status.signal == 0;
  return make_error(Kind::io,
                    "berth-runtime " + verb + ": status " + std::to_string(status.shell_code()));
}

Result<void> Monitor::start() {
  std::vector<std::string> words = {"create", "--bundle", options_.bundle, "--pid-file",
                                    options_.directory + "/" + kPidFile};
  if (options_.terminal) {
    words.insert(words.end(),
                 {"--console-socket", sys::shared_fd_path(directory_) + "/" + kConsoleSocket});
  }
  words.push_back(options_.id);
  TRY(call_runtime(std::move(words), true));
  streams_.child_in.reset();
  streams_.child_out.reset();
  streams_.child_err.reset();
  if (options_.terminal) TRY(receive_terminal());
  TRY(adopt_init());
  TRY(call_runtime({"start", options_.id}, false));
  sys::Fd told = std::move(options_.report);
  ignore(sys::write_all(told, "\n", "report"));  // the engine may be gone; the container stays
  return {};
}

Result<void> Monitor::receive_terminal() {
  sys::Fd connection = TRY(sys::accept_unix(streams_.console));
  char name[256];
  sys::Received received = TRY(sys::receive_message(connection, name, sizeof name));
  if (!received.passed) {
    return make_error(Kind::bug, "berth-runtime sent no terminal");
  }
  streams_.console.reset();
  TRY(sys::remove_entry(directory_, kConsoleSocket));
  TRY(sys::set_nonblocking(received.passed));
  streams_.outputs.push_back({std::move(received.passed), "stdout", {}});
  return {};
}

Result<void> Monitor::adopt_init() {
  std::string text = TRY(sys::read_file(directory_, kPidFile, 64));
  auto pid = parse_u64(trim(text));
  if (!pid || *pid == 0) return make_error(Kind::corrupt, "pid file: " + quoted(text));
  sys::Fd pidfd = TRY(sys::open_pidfd(static_cast<pid_t>(*pid)));
  init_ = sys::Process(static_cast<pid_t>(*pid), std::move(pidfd));
  return {};
}

Result<void> Monitor::stay() {
  while (true) {
    std::vector<pollfd> entries = {{signals_.get(), POLLIN, 0}, {init_.pidfd().get(), POLLIN, 0}};
    for (Output& output : streams_.outputs) entries.push_back({output.fd.get(), POLLIN, 0});
    TRY(sys::poll(entries, std::nullopt));
    if (entries[0].revents != 0) {
      auto received = TRY(sys::read_signal(signals_));
      if (received && received->number == SIGTERM) ignore(init_.signal(SIGTERM));
    }
    for (size_t i = 0; i < streams_.outputs.size(); ++i) {
      if (entries[i + 2].revents != 0) TRY(copy_output(streams_.outputs[i]));
    }
    if (entries[1].revents != 0) break;
  }
  exit_code_ = TRY(init_.wait()).shell_code();
  return drain();
}

Result<void> Monitor::copy_output(Output& output) {
  auto sink = [&](std::string_view piece) { ignore(write_log(piece, output.stream)); };
  auto count = sys::read_some(output.fd, buffer_, "output of the container");
  if (!count.ok() && count.error().kind == Kind::busy) return {};
  if (!count.ok() || *count == 0) {
    output.cutter.finish(sink);
    output.fd.reset();
    return {};
  }
  output.cutter.feed(std::string_view(buffer_.data(), *count), sink);
  return {};
}

// A full disk must not stop the container: the entry is lost, as with docker.
Result<void> Monitor::write_log(std::string_view piece, std::string_view stream) {
  return sys::write_all(log_, log_entry(piece, stream, Clock::now()), "log");
}

// All writers died with the container's pid namespace, so what is left is already in the pipes.
Result<void> Monitor::drain() {
  auto end = Clock::now() + kDrainTime;
  while (true) {
    std::vector<pollfd> entries;
    for (Output& output : streams_.outputs) {
      if (output.fd) entries.push_back({output.fd.get(), POLLIN, 0});
    }
    auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now());
    if (entries.empty() || left.count() <= 0) break;
    if (TRY(sys::poll(entries, left)) == 0) break;
    for (Output& output : streams_.outputs) {
      if (output.fd) TRY(copy_output(output));
    }
  }
  for (Output& output : streams_.outputs) {
    output.cutter.finish([&](std::string_view piece) { ignore(write_log(piece, output.stream)); });
  }
  return {};
}

Result<void> Monitor::delete_container() {
  options_.report.reset();
  return call_runtime({"delete", "--force", options_.id}, false);
}

Result<void> Monitor::clean_up() {
  auto deleted = delete_container();
  // Last: a container without this and without an owner is swept by the next command.
  auto written = write_exit();
  if (!options_.remove) return written.ok() ? std::move(deleted) : std::move(written);
  TRY(remove_files());
  return deleted;
}

Result<void> Monitor::remove_files() {
  // The name may be another container's when somebody has removed ours by force.
  auto holder = sys::read_link(sys::cwd(), options_.name_link);
  if (holder.ok() && !holder->empty() && options_.id.starts_with(*holder)) {
    TRY(sys::remove_entry(sys::cwd(), options_.name_link));
  }
  TRY(sys::remove_tree(sys::cwd(), options_.files));
  return sys::remove_tree(sys::cwd(), options_.directory);
}

Result<void> Monitor::write_exit() const {
  int64_t seconds = Clock::to_time_t(Clock::now());
  json::Object members = {{"exit_code", exit_code_ ? json::Value(*exit_code_) : json::Value()},
                          {"finished_at", json::Value(seconds)}};
  std::string path = options_.files + "/container.json";
  sys::Fd file = TRY(sys::open_at(sys::cwd(), path, O_WRONLY | O_APPEND | O_NOFOLLOW));
  TRY(sys::write_all(file, "\n" + json::dump(json::Value(std::move(members))), path));
  return sys::close_checked(std::move(file), path);
}

void Monitor::report(const Error& error) {
  // A runtime that failed has written its report by itself.
  if (!options_.report || runtime_reported_) return;
  json::Array context;
  for (const std::string& level : error.context) context.emplace_back(level);
  json::Object members = {{"kind", json::Value(kind_name(error.kind))},
                          {"errno", json::Value(error.sys_errno)},
                          {"what", json::Value(error.what)},
                          {"hint", json::Value(error.hint)},
                          {"context", json::Value(std::move(context))},
                          {"stage", json::Value("engine")}};
  ignore(sys::write_all(options_.report, json::dump(json::Value(std::move(members))), "report"));
}

}  // namespace

Result<void> watch(Options options) {
  Monitor monitor(std::move(options));
  auto opened = monitor.open();
  if (!opened.ok()) {
    monitor.report(opened.error());
    return opened;
  }
  auto started = monitor.start();
  if (!started.ok()) {
    monitor.report(started.error());
    // The engine does the same, unless it was killed.
    ignore(monitor.delete_container());
    ignore(monitor.remove_files());
    return started;
  }
  auto stayed = monitor.stay();
  auto cleaned = monitor.clean_up();
  return stayed.ok() ? std::move(cleaned) : std::move(stayed);
}

}  // namespace berth::monitor
