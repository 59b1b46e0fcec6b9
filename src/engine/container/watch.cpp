// SPDX-License-Identifier: Apache-2.0
#include "engine/container/watch.hpp"

#include <fcntl.h>

#include <iterator>

#include "engine/state/journal.hpp"
#include "json/fields.hpp"
#include "monitor/protocol.hpp"
#include "sys/file/file.hpp"
#include "sys/file/remove_tree.hpp"
#include "sys/net/socket.hpp"

namespace berth::engine {
namespace {

constexpr std::string_view kStarted = "\n";  // the monitor's report if the command runs

/// Descriptors that berth-holder inherits under the same numbers.
struct Handed {
  sys::Fd report;                    ///< may be empty
  sys::Fd client;                    ///< may be empty
  sys::Fd caller;                    ///< may be empty
  std::pair<sys::Fd, sys::Fd> pair;  ///< the queue of the first holds the container's streams
};

// Docker's defaults: json-file writes one unlimited file, local five of 20 MB.
std::string log_word(const LogSettings& log) {
  bool local = log.driver == LogDriver::local;
  uint64_t bytes = log.max_bytes.value_or(local ? 20'000'000 : 0);
  uint64_t files = log.max_files.value_or(local ? 5 : 1);
  return to_json_text(log.driver) + ":" + std::to_string(bytes) + ":" + std::to_string(files);
}

std::vector<std::string> holder_words(const Context& context, const Watch& watch,
                                      const Handed& handed) {
  const std::string program = context.paths.libexec + "/berth-monitor";
  auto number = [](const sys::Fd& fd) { return std::to_string(fd.get()); };
  const ContainerDirectory& directory = watch.directory;
  // clang-format off
  std::vector<std::string> words = {
      "berth-holder", number(handed.report), number(handed.client), number(handed.caller),
      number(handed.pair.first), program, "berth-monitor",
      "--id", directory.id(),
      "--directory", directory.path(),
      "--files", directory.files(),
      "--state", monitor_directory(context.paths, directory.id()),
      "--bundle", directory.files() + "/" + std::string(kBundleDirectory),
      "--runtime", runtime_program(context),
      "--runtime-root", runtime_root(context),
      "--journal", journal_path(context.paths),
      "--names", names_directory(context.paths.root),
      "--lock-fd", number(directory.fd()),
      "--parked-fd", number(handed.pair.first),
      "--told-fd", number(handed.pair.second)};
  // clang-format on
  if (watch.log.driver != LogDriver::none)
    words.insert(words.end(), {"--log", log_word(watch.log)});
  if (handed.report) words.insert(words.end(), {"--report-fd", number(handed.report)});
  if (handed.client) words.insert(words.end(), {"--client-fd", number(handed.client)});
  if (handed.caller) words.insert(words.end(), {"--caller-fd", number(handed.caller)});
  if (watch.terminal) words.emplace_back("--terminal");
  if (watch.interactive) words.emplace_back("--keep-stdin");
  if (watch.remove) words.emplace_back("--remove");
  return words;
}

Result<sys::Process> spawn_holder(const Context& context, const Watch& watch, const Handed& handed,
                                  std::vector<std::string> more) {
  sys::Fd null = TRY(sys::open_at(sys::cwd(), "/dev/null", O_RDWR | O_NOCTTY));
  sys::SpawnOptions spawn;
  spawn.program = context.paths.libexec + "/berth-holder";
  spawn.args = holder_words(context, watch, handed);
  spawn.args.insert(spawn.args.end(), std::make_move_iterator(more.begin()),
                    std::make_move_iterator(more.end()));
  spawn.in = spawn.out = spawn.err = &null;
  for (const sys::Fd* fd : {&watch.directory.fd(), &handed.report, &handed.client, &handed.caller,
                            &handed.pair.first, &handed.pair.second}) {
    if (*fd) spawn.keep.push_back(fd->get());
  }
  spawn.working_directory = "/";
  spawn.die_with_parent = false;
  spawn.new_session = true;
  return sys::spawn(spawn);
}

Result<void> make_monitor_directory(const Context& context, const Watch& watch) {
  std::string path = monitor_directory(context.paths, watch.directory.id());
  // Remove what a killed monitor left of an earlier run.
  TRY(sys::remove_tree(sys::cwd(), path));
  TRY(sys::make_directories(sys::cwd(), path, 0700));
  if (watch.health) {
    TRY(sys::write_file(sys::cwd(), path + "/" + monitor::kHealthCheckFile,
                        json::write(*watch.health), 0600));
  }
  return sys::write_file(sys::cwd(), path + "/" + monitor::kRestartFile,
                         restart_text(watch.restart), 0600);
}

}  // namespace

Watch watch_of(const ContainerDirectory& directory, const RunRequest& request) {
  Watch watch{directory, request.terminal, request.interactive, request.remove};
  watch.restart = request.restart;
  watch.label = request.name.value_or(directory.id().substr(0, 12));
  watch.log = request.log;
  return watch;
}

Result<WatchedStart> WatchedStart::open(const Context& context, Watch watch) {
  TRY(make_monitor_directory(context, watch));
  sys::Pipe report = TRY(sys::make_pipe());
  auto [ours, theirs] = TRY(sys::socket_pair());
  Handed handed{std::move(report.write), std::move(watch.client), std::move(theirs),
                TRY(sys::socket_pair())};
  WatchedStart start(context.log);
  start.holder_ = TRY(spawn_holder(context, watch, handed, {}));
  start.id_ = watch.directory.id();
  start.label_ = watch.label;
  start.caller_ = std::move(ours);
  start.report_ = std::move(report.read);
  return start;
}

WatchedStart::~WatchedStart() {
  if (!holder_) return;
  caller_.reset();  // berth-runtime, holder and monitor see that the start was dropped
  ignore(holder_.wait());
}

// Ignores an error: if berth-runtime has ended already, its report gives the reason.
void WatchedStart::announce() const {
  ignore(sys::send_message(caller_, "d", 1, sys::Fd()));
}

void WatchedStart::go() const {
  ignore(sys::send_message(caller_, "g", 1, sys::Fd()));  // as in announce()
}

Result<std::optional<Ended>> WatchedStart::wait() {
  ReportReader reader(std::move(report_), *log_);
  TRY(reader.read_to_end());
  if (reader.text() == kStarted) {
    holder_.release();  // the system's init reaps it
    return std::optional<Ended>();
  }
  sys::ExitStatus status = TRY(holder_.wait());
  if (reader.text().empty()) {
    return make_error(Kind::interrupted, "berth-monitor ended without a report, status " +
                                             std::to_string(status.shell_code()));
  }
  return std::optional<Ended>(TRY(ended_with(reader.text(), id_, label_)));
}

Result<void> watch_orphan(const Context& context, Watch watch, const record::Start& start) {
  TRY(make_monitor_directory(context, watch));
  Handed handed{sys::Fd(), sys::Fd(), sys::Fd(), TRY(sys::socket_pair())};
  std::string process = std::to_string(start.pid) + ":" + std::to_string(start.start_ticks);
  sys::Process holder =
      TRY(spawn_holder(context, watch, handed, {"--orphan", std::move(process), "--adopt"}));
  holder.release();
  return {};
}

Result<sys::Fd> connect_to_monitor(const Paths& paths, const std::string& id) {
  sys::Fd directory =
      TRY(sys::open_at(sys::cwd(), monitor_directory(paths, id), O_DIRECTORY | O_RDONLY));
  // Through our own descriptor: a socket's path is at most 107 bytes long.
  return sys::connect_unix(sys::fd_path(directory) + "/" + monitor::kAttachSocket,
                           sys::SocketType::messages);
}

Result<void> mark_stopped(const Paths& paths, const std::string& id) {
  auto marked = sys::write_file(
      sys::cwd(), monitor_directory(paths, id) + "/" + monitor::kStoppedFile, "", 0600);
  if (!marked.ok() && marked.error().kind == Kind::not_found) return {};  // it has no monitor
  return marked;
}

Result<void> set_restart_policy(const Paths& paths, const std::string& id,
                                const RestartPolicy& policy) {
  sys::Fd directory =
      TRY(sys::open_at(sys::cwd(), monitor_directory(paths, id), O_DIRECTORY | O_RDONLY));
  return sys::replace_file(directory, monitor::kRestartFile, restart_text(policy), 0600);
}

std::string restart_text(const RestartPolicy& policy) {
  std::string text = to_json_text(policy.when);
  return policy.most > 0 ? text + ":" + std::to_string(policy.most) : text;
}

}  // namespace berth::engine
