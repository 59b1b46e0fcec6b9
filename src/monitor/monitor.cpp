// SPDX-License-Identifier: Apache-2.0
// Runs as: the caller of berth (root, or root of a user namespace). Hostile: the output of the
// container, which is only copied and quoted.
#include "monitor/monitor.hpp"

#include <fcntl.h>
#include <signal.h>

#include <chrono>
#include <cstring>
#include <iterator>
#include <map>
#include <memory>
#include <thread>

#include "events/journal.hpp"
#include "json/value.hpp"
#include "monitor/clients.hpp"
#include "monitor/health.hpp"
#include "monitor/record.hpp"
#include "monitor/restart.hpp"
#include "monitor/scope_oom.hpp"
#include "monitor/streams.hpp"
#include "sys/fd/poll.hpp"
#include "sys/file/file.hpp"
#include "sys/file/remove_tree.hpp"
#include "sys/mount/protected_program.hpp"
#include "sys/net/packet.hpp"
#include "sys/net/socket.hpp"
#include "sys/process/adopt.hpp"
#include "sys/process/process.hpp"
#include "sys/process/signals.hpp"
#include "sys/process/stream.hpp"

namespace berth::monitor {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr const char* kOomFile = "oom";
constexpr size_t kLongestNote = size_t{16} << 10;
/// How long to wait for the report of berth-holder, which reaps the container's first process and
/// reports at once.
constexpr milliseconds kTold{1000};
/// How often to check, between two starts, whether the user has stopped the container.
constexpr milliseconds kLook{100};

// Locks the lease of the GPUs. Others hold the lock briefly or for long, so the wait is short.
bool lock_soon(const sys::Fd& file, const std::string& name) {
  for (int attempt = 0; attempt < 100; ++attempt) {
    auto locked = sys::try_lock(file, sys::LockMode::shared, name);
    if (!locked.ok() || *locked) return locked.ok();
    std::this_thread::sleep_for(milliseconds(2));
  }
  return false;
}

class Monitor final : public ClientWishes, public Streams::Sink {
 public:
  explicit Monitor(Options options) : options_(std::move(options)) {}

  Result<void> open();
  Result<void> first_start();
  /// Takes over the container of a killed monitor; false if no container is left.
  Result<bool> take_over();
  Result<void> stay();
  /// Records the end of the container. True if it is to be restarted.
  bool finish();
  /// Restarts the container; false if it is not to be restarted after all.
  Result<bool> start_again();
  Result<void> clean_up();
  void linger();
  void report(const Error& error);
  Result<void> delete_container();
  Result<void> remove_files();
  void remove_state();

  void input(std::string_view bytes) override { streams_.input(bytes); }
  void input_end() override { streams_.input_end(); }
  void resize(sys::WindowSize size) override { streams_.resize(size); }
  void signal(int number) override { ignore(init_.signal(number)); }
  void output(FromMonitor stream, std::string_view bytes) override;
  size_t best_piece() const override { return log_ ? log_->best_piece(kMaxData) : kMaxData; }
  bool wants_more() const override { return clients_.are_ready(); }

 private:
  Result<sys::Process> spawn_runtime(sys::SpawnOptions spawn, std::vector<std::string> words);
  Result<void> await_runtime(sys::Process process, const std::string& verb);
  Result<void> call_runtime(std::vector<std::string> words);
  Result<void> start();
  Result<void> open_gate(const sys::Fd& gate);
  Result<void> note_start();
  void begin_again();
  Result<void> hold(pid_t pid);
  void keep_gpus();
  Result<bool> take_orphan();
  std::optional<int> find_exit();
  std::optional<int> received_exit(milliseconds patience);
  bool take_oom();
  Stopped is_stopped() const;
  bool is_wanted_again(std::optional<int> status) const;
  bool wait_before_restart();
  enum class Watch { nobody, process };
  /// Waits for clients, streams and signals for `patience`; with Watch::process returns true when
  /// the process has ended.
  Result<bool> serve(Watch watch, std::optional<milliseconds> patience);
  void hear_signals();
  void watch_health();
  void serve_health();
  void emit(const std::string& action, std::map<std::string, std::string> attributes = {});

  Options options_;
  sys::Fd directory_;
  sys::Fd state_;
  sys::Fd signals_;
  std::optional<logs::Writer> log_;
  std::unique_ptr<Health> health_;  ///< null for most containers
  Streams streams_;
  Clients clients_;
  sys::Fd gpus_;       ///< the lease of the GPUs; without our lock they count as free
  std::string lease_;  ///< the file of the lease; both are empty for most containers
  sys::Process init_;
  ScopeMemory memory_;
  bool own_child_ = true;  ///< init_ is a child of this process, not of berth-holder
  int restarts_ = 0;
  milliseconds pause_{0};
  steady_clock::time_point started_at_;
  std::optional<int> exit_code_;  ///< none: unknown
  std::optional<int> last_exit_;  ///< of the previous run
  bool runtime_reported_ = false;
  bool deleted_ = true;  ///< the container of the previous run was deleted
};

Result<void> Monitor::open() {
  // SIGPIPE: the engine may have ended when we report. The others must not end this process.
  signals_ = TRY(sys::receive_signals({SIGTERM, SIGHUP, SIGINT, SIGQUIT, SIGPIPE, SIGCHLD}));
  // The container's first process becomes our child when `berth-runtime run --detach` has ended.
  TRY(sys::become_subreaper());
  directory_ = TRY(sys::open_at(sys::cwd(), options_.directory, O_DIRECTORY | O_RDONLY));
  state_ = TRY(sys::open_at(sys::cwd(), options_.state, O_DIRECTORY | O_RDONLY));
  if (options_.log) log_ = TRY(logs::Writer::open(directory_, *options_.log));
  clients_.add(std::move(options_.client));
  return clients_.listen(state_);
}

// ---- starting -----------------------------------------------------------------------------------

Result<sys::Process> Monitor::spawn_runtime(sys::SpawnOptions spawn,
                                            std::vector<std::string> words) {
  if (spawn.program.empty()) spawn.program = options_.runtime;
  spawn.args = {"berth-runtime", "--root", options_.runtime_root, "--decided"};
  if (options_.report) {
    spawn.args.insert(spawn.args.end(), {"--report-fd", std::to_string(options_.report.get())});
    spawn.keep.push_back(options_.report.get());
  }
  spawn.args.insert(spawn.args.end(), std::make_move_iterator(words.begin()),
                    std::make_move_iterator(words.end()));
  return sys::spawn(spawn);
}

Result<void> Monitor::await_runtime(sys::Process process, const std::string& verb) {
  sys::ExitStatus status = TRY(process.wait());
  if (status.shell_code() == 0) return {};
  runtime_reported_ = status.signal == 0;
  return make_error(Kind::io,
                    "berth-runtime " + verb + ": status " + std::to_string(status.shell_code()));
}

Result<void> Monitor::call_runtime(std::vector<std::string> words) {
  std::string verb = words[0];
  return await_runtime(TRY(spawn_runtime({}, std::move(words))), verb);
}

Result<void> Monitor::first_start() {
  // Sets the size of the terminal before the command can query it.
  TRY(serve(Watch::nobody, milliseconds(0)));
  TRY(start());
  sys::Fd told = std::move(options_.report);
  ignore(sys::write_all(told, "\n", "report"));  // if the engine has ended, the container runs on
  return {};
}

// berth-runtime makes the container and waits for a message on the socket `gate`. The message is
// sent once the container's end will be observed even if we are killed.
Result<void> Monitor::start() {
  streams_ = TRY(Streams::open(options_.terminal ? Terminal::yes : Terminal::no,
                               options_.keep_stdin ? KeepInput::yes : KeepInput::no, state_));
  auto [gate, theirs] = TRY(sys::socket_pair());
  // Otherwise berth-runtime would protect itself, by executing itself a second time.
  auto program = TRY(sys::protect_program(options_.runtime));
  sys::SpawnOptions spawn;
  if (program) {
    spawn.program = sys::fd_path(*program);
    spawn.env = sys::environment_beside(options_.runtime.substr(0, options_.runtime.rfind('/')));
  }
  std::vector<std::string> words = {
      "run", "--detach", "--gate-fd", std::to_string(theirs.get()), "--bundle", options_.bundle};
  spawn.keep = {theirs.get()};
  if (options_.caller) {
    words.insert(words.end(), {"--caller-fd", std::to_string(options_.caller.get())});
    spawn.keep.push_back(options_.caller.get());
  }
  if (options_.terminal) {
    words.insert(words.end(),
                 {"--console-socket", sys::shared_fd_path(state_) + "/" + kConsoleSocket});
  }
  words.push_back(options_.id);
  streams_.give_to(spawn);
  sys::Process process = TRY(spawn_runtime(std::move(spawn), std::move(words)));
  theirs.reset();
  options_.caller.reset();
  auto opened = open_gate(gate);
  if (!opened.ok() && opened.error().kind != Kind::interrupted) return opened;
  TRY(await_runtime(std::move(process), "run"));
  TRY(std::move(opened));
  started_at_ = steady_clock::now();
  return note_start();
}

/// Waits until the container is made, parks its streams, and lets its program run. Errors:
/// interrupted (berth-runtime failed, and has reported why).
Result<void> Monitor::open_gate(const sys::Fd& gate) {
  int32_t pid = 0;
  sys::Received received = TRY(sys::receive_message(gate, &pid, sizeof pid));
  if (received.size != sizeof pid) return make_error(Kind::interrupted, "berth-runtime has ended");
  TRY(streams_.given(state_));
  own_child_ = true;
  TRY(hold(pid));
  TRY(streams_.park(options_.told, pid));
  return sys::send_message(gate, "g", 1, sys::Fd());
}

Result<void> Monitor::note_start() {
  // Without the line in the record the state would be unknown, so with a full disk the start fails.
  keep_gpus();
  TRY(append_start(options_.files, {init_.pid(), restarts_}));
  emit("start");
  // If the user has stopped the container during the start, there was no process to signal.
  if (is_stopped() == Stopped::yes) ignore(init_.signal(SIGKILL));
  watch_health();
  return {};
}

// Only berth-runtime knows whether the container was started already; it refuses a second start.
void Monitor::begin_again() {
  bool started = call_runtime({"start", options_.id}).ok();
  auto ended = sys::await_end(init_.pidfd(), milliseconds(0));
  if (started || (ended.ok() && !*ended)) ignore(note_start());
}

Result<void> Monitor::hold(pid_t pid) {
  sys::Fd pidfd = TRY(sys::open_pidfd(pid));
  init_ = sys::Process(pid, std::move(pidfd));
  memory_ = ScopeMemory(pid);
  return {};
}

// Our lock on the lease keeps the GPUs between two runs of the container. The process that started
// us holds the lock too, until we have reported that the container runs. berth-runtime replaces a
// lost lease.
void Monitor::keep_gpus() {
  auto text =
      sys::read_file_if_exists(sys::cwd(), options_.bundle + "/" + kGpuLeaseNote, kLongestNote);
  if (!text.ok() || !*text) return;
  auto note = json::parse(**text, kGpuLeaseNote);
  if (!note.ok()) return;
  const json::Value* ledger = note->find("ledger");
  const json::Value* file = note->find("file");
  bool named = ledger != nullptr && file != nullptr && ledger->string() && file->string();
  if (!named) return;
  std::string path = *ledger->string() + "/" + *file->string();
  if (gpus_ && path == lease_) return;
  auto lease = sys::open_at(sys::cwd(), path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  if (!lease.ok() || !lock_soon(*lease, path)) return;
  lease_ = std::move(path);
  gpus_ = std::move(*lease);
}

void Monitor::watch_health() {
  auto text = sys::read_file_if_exists(state_, kHealthCheckFile);
  auto check = text.ok() && *text ? parse_health_check(**text) : std::nullopt;
  if (!check) return;
  Health::Runtime runtime{
      options_.runtime,
      {"berth-runtime", "--root", options_.runtime_root, "exec", "--charge-container", "--pid-file",
       options_.state + "/" + kHealthPidFile, options_.id},
      options_.files};
  health_ = std::make_unique<Health>(std::move(*check), std::move(runtime), state_);
}

void Monitor::serve_health() {
  auto before = health_->status();
  health_->serve();
  if (health_->status() != before) emit("health_status: " + std::string(health_->status()));
}

// How far the previous, killed monitor came shows in the packet that it parked (Streams::park()).
Result<bool> Monitor::take_over() {
  options_.report.reset();
  ignore(sys::write_file(state_, kAdoptedFile, "", 0600));  // only used for a message to the user
  own_child_ = false;
  auto parked = TRY(Streams::adopt(options_.parked));
  if (parked) {
    streams_ = std::move(parked->streams);
    Known known = read_lines(options_.files, parked->pid);
    restarts_ = known.restarts;
    exit_code_ = received_exit(milliseconds(0));
    if (exit_code_) return true;
    if (!hold(parked->pid).ok()) return true;  // the process has ended; this has just been reported
    keep_gpus();
    if (known.started) watch_health();
    if (!known.started) begin_again();
    started_at_ = steady_clock::now();
    return true;
  }
  if (options_.orphan) return take_orphan();
  Known known = read_lines(options_.files, 0);
  restarts_ = known.restarts;
  return known.restarting ? start_again() : Result<bool>(false);
}

Result<bool> Monitor::take_orphan() {
  restarts_ = read_lines(options_.files, options_.orphan->pid).restarts;
  if (!hold(options_.orphan->pid).ok()) return true;
  auto ticks = sys::process_start_time(options_.orphan->pid);
  if (!ticks.ok() || *ticks != options_.orphan->start_ticks) init_.release();
  keep_gpus();
  if (init_) watch_health();
  started_at_ = steady_clock::now();
  return true;
}

// ---- while it runs ------------------------------------------------------------------------------

void Monitor::output(FromMonitor stream, std::string_view bytes) {
  if (log_)
    log_->add(stream == FromMonitor::errors ? logs::Stream::error : logs::Stream::out, bytes);
  clients_.show(stream, bytes);
}

void Monitor::hear_signals() {
  while (true) {
    auto received = sys::read_signal(signals_);
    if (!received.ok() || !*received) return;
    if ((*received)->number == SIGTERM) ignore(init_.signal(SIGTERM));
    if ((*received)->number == SIGCHLD)
      sys::reap_others(init_.pid(), health_ ? health_->pid() : -1);
  }
}

Result<bool> Monitor::serve(Watch watch, std::optional<milliseconds> patience) {
  bool process = watch == Watch::process && init_;
  std::vector<pollfd> entries = {{signals_.get(), POLLIN, 0},
                                 {process ? init_.pidfd().get() : -1, POLLIN, 0},
                                 {memory_.changes(), POLLIN, 0}};
  size_t streams = entries.size();
  // While a client that must see all output is behind, the container waits, as with a full pipe.
  using Output = Streams::Output;
  streams_.add_to(entries, clients_.are_ready() ? Output::wanted : Output::full);
  size_t clients = entries.size();
  clients_.add_to(entries, streams_.is_full() ? Clients::Input::full : Clients::Input::wanted);
  size_t health = entries.size();
  if (health_) {
    health_->add_to(entries);
    patience = std::min(patience.value_or(health_->patience()), health_->patience());
  }
  TRY(sys::poll(entries, patience));
  if (entries[2].revents != 0) memory_.look();
  if (entries[0].revents != 0) hear_signals();
  std::vector<pollfd> of_streams(entries.begin(), entries.begin() + static_cast<long>(clients));
  if (health_) serve_health();
  entries.resize(health);
  // Clients are served first, so that a client that attaches before output arrives gets it.
  clients_.serve(entries, clients, *this);
  streams_.serve(of_streams, streams, *this);
  streams_.park_again(options_.told, options_.parked, init_.pid());
  return entries[1].revents != 0;
}

Result<void> Monitor::stay() {
  if (!init_) return {};  // the process had ended before we took over
  while (!TRY(serve(Watch::process, std::nullopt))) {
  }
  return {};
}

// ---- its end ------------------------------------------------------------------------------------

std::optional<int> Monitor::received_exit(milliseconds patience) {
  struct {
    int32_t pid;
    int32_t status;
  } ended;
  std::array<char, sizeof ended> bytes;
  auto end = steady_clock::now() + patience;
  while (true) {
    auto packet = sys::take_packet(options_.told, bytes, sys::Take::peek);
    if (!packet.ok()) return std::nullopt;
    if (!*packet) {
      auto left = std::chrono::duration_cast<milliseconds>(end - steady_clock::now());
      std::vector<pollfd> entries = {{options_.told.get(), POLLIN, 0}};
      if (left.count() <= 0 || !sys::poll(entries, left).ok()) return std::nullopt;
      continue;
    }
    std::memcpy(&ended, bytes.data(), sizeof ended);
    if (ended.pid == init_.pid() || read_lines(options_.files, ended.pid).started) {
      return sys::exit_status(ended.status).shell_code();
    }
    ignore(sys::take_packet(options_.told, bytes));  // another orphan of the container
  }
}

std::optional<int> Monitor::find_exit() {
  if (exit_code_) return exit_code_;
  if (own_child_ && init_) {
    auto status = sys::look_at_exit(init_.pid());
    if (status) return status->shell_code();
  }
  if (!own_child_ && !options_.orphan) {
    if (auto told = received_exit(kTold)) return told;
  }
  auto status = init_ ? sys::exit_of(init_.pidfd()) : std::nullopt;
  return status ? std::optional<int>(status->shell_code()) : std::nullopt;
}

/// Whether the deleted container ran out of memory.
bool Monitor::take_oom() {
  auto found = sys::stat_entry(state_, kOomFile);
  if (!found.ok() || !*found) return memory_.had_oom_kill();
  ignore(sys::remove_entry(state_, kOomFile));
  return true;
}

Stopped Monitor::is_stopped() const {
  auto found = sys::stat_entry(state_, kStoppedFile);
  return found.ok() && *found ? Stopped::yes : Stopped::no;
}

bool Monitor::finish() {
  memory_.look();
  health_.reset();
  exit_code_ = find_exit();
  streams_.drain(*this);
  if (log_) log_->finish();
  deleted_ = delete_container().ok();  // the next command removes what is left
  const bool oom_killed = take_oom();
  bool again = is_wanted_again(exit_code_);
  // Recorded before the process is reaped: until then berth-holder can report the end.
  ignore(append_exit(options_.files, {exit_code_,
                                      again ? Restarting::yes : Restarting::no,
                                      oom_killed,
                                      {},
                                      is_stopped() == Stopped::yes}));
  if (oom_killed) emit("oom");
  if (exit_code_) emit("die", {{"exitCode", std::to_string(*exit_code_)}});
  if (!exit_code_) emit("die");
  if (own_child_ && init_) ignore(init_.wait());
  init_.release();
  Streams::forget(options_.parked);
  Streams::forget(options_.told);
  streams_ = Streams();
  if (again) clients_.send_exit(exit_code_.value_or(-1));
  last_exit_ = exit_code_;
  exit_code_.reset();
  return again;
}

// Waits for the pause before a restart. True if the user has stopped the container meanwhile.
bool Monitor::wait_before_restart() {
  using std::chrono::seconds;
  auto lived = std::chrono::duration_cast<seconds>(steady_clock::now() - started_at_);
  pause_ = next_pause(pause_, lived);
  auto end = steady_clock::now() + pause_;
  while (is_stopped() == Stopped::no) {
    auto left = std::chrono::duration_cast<milliseconds>(end - steady_clock::now());
    if (left.count() <= 0) return false;
    ignore(serve(Watch::nobody, std::min(left, kLook)));
  }
  return true;
}

Result<bool> Monitor::start_again() {
  while (true) {
    if (wait_before_restart()) {
      TRY(append_exit(options_.files, {last_exit_, Restarting::no}));
      return false;
    }
    ++restarts_;
    auto started = start();
    if (started.ok()) return true;
    ignore(delete_container());
    started_at_ = steady_clock::now();
    bool again = is_wanted_again(std::nullopt);
    TRY(append_exit(options_.files, {std::nullopt, again ? Restarting::yes : Restarting::no, false,
                                     to_line(started.error())}));
    if (!again) return false;
  }
}

bool Monitor::is_wanted_again(std::optional<int> status) const {
  auto policy = sys::read_file_if_exists(state_, kRestartFile, 256);
  return policy.ok() && *policy &&
         is_to_restart(restart_policy(**policy), status, restarts_, is_stopped());
}

Result<void> Monitor::delete_container() {
  return call_runtime(
      {"delete", "--force", "--oom-file", options_.state + "/" + kOomFile, options_.id});
}

void Monitor::remove_state() {
  ignore(sys::remove_tree(sys::cwd(), options_.state));
}

Result<void> Monitor::clean_up() {
  // The state is removed last: a process that finds it checks whether the rest is gone.
  auto removed = options_.remove ? remove_files() : Result<void>();
  // A container that could not be deleted keeps its GPUs: other processes check the lease.
  if (gpus_ && deleted_) ignore(sys::remove_entry(sys::cwd(), lease_));
  remove_state();
  // Unlocks for all copies of the descriptor; berth-holder has one.
  sys::unlock(options_.lock);
  return removed;
}

Result<void> Monitor::remove_files() {
  // If our container was removed by force, the name may belong to another container.
  const std::string name = read_name(options_.files);
  const std::string link = options_.names + "/" + name;
  auto holder = sys::read_link(sys::cwd(), link);
  bool ours = holder.ok() && !holder->empty() && options_.id.starts_with(*holder);
  if (!name.empty() && ours) TRY(sys::remove_entry(sys::cwd(), link));
  TRY(sys::remove_tree(sys::cwd(), options_.files));
  TRY(sys::remove_tree(sys::cwd(), options_.directory));
  if (!name.empty()) emit("destroy");
  return {};
}

// Stays until clients have read the last output. A client that is told of the end finds the
// container removed.
void Monitor::linger() {
  clients_.send_exit(last_exit_.value_or(-1));
  while (!clients_.none()) {
    if (!serve(Watch::nobody, std::nullopt).ok()) return;
  }
}

void Monitor::emit(const std::string& action, std::map<std::string, std::string> attributes) {
  ignore(
      events::append(options_.journal, {"container", action, options_.id, std::move(attributes)}));
}

void Monitor::report(const Error& error) {
  // If berth-runtime failed, it has written the report.
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
  bool adopt = options.adopt;
  bool remove = options.remove;
  Monitor monitor(std::move(options));
  auto begun = monitor.open();
  bool there = true;
  if (begun.ok() && !adopt) begun = monitor.first_start();
  if (begun.ok() && adopt) {
    auto taken = monitor.take_over();
    there = taken.ok() && *taken;
    if (!taken.ok()) begun = std::move(taken).error();
  }
  if (!begun.ok() || !there) {
    if (!begun.ok()) monitor.report(begun.error());
    ignore(monitor.delete_container());
    // The engine removes the files too, unless it was killed.
    if (remove) ignore(monitor.remove_files());
    monitor.remove_state();
    return begun;
  }
  while (true) {
    TRY(monitor.stay());
    if (!monitor.finish()) break;
    if (!TRY(monitor.start_again())) break;
  }
  auto cleaned = monitor.clean_up();
  monitor.linger();
  return cleaned;
}

}  // namespace berth::monitor
