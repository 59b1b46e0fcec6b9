// SPDX-License-Identifier: Apache-2.0
#include "engine/container/launch.hpp"

#include <fcntl.h>
#include <signal.h>

#include <array>
#include <iterator>

#include "base/text.hpp"
#include "engine/request/request.hpp"
#include "json/fields.hpp"
#include "network/request.hpp"
#include "oci/config.hpp"
#include "oci/limit_flags.hpp"
#include "slurm/hold.hpp"
#include "sys/fd/poll.hpp"
#include "sys/file/file.hpp"
#include "sys/mount/protected_program.hpp"
#include "sys/net/socket.hpp"
#include "sys/process/signals.hpp"
#include "sys/process/stream.hpp"

namespace berth::engine {
namespace {

constexpr size_t kMaxReport = size_t{64} << 10;

struct ReportFields {
  std::string kind;
  int sys_errno = 0;
  std::string what;
  std::string hint;
  std::vector<std::string> context;
  std::string stage;
};
template <class V>
void fields(V& v, ReportFields& r) {
  v.required("kind", r.kind);
  v.optional("errno", r.sys_errno);
  v.required("what", r.what);
  v.optional("hint", r.hint);
  v.optional("context", r.context);
  v.optional("stage", r.stage);
}

// Users know a container by its name or an id prefix, and do not see that a container with a
// monitor is created and started in two steps.
void use_words_of_people(std::string& text, const std::string& id, const std::string& label) {
  size_t at = text.find(id);
  if (at == std::string::npos) return;
  text.replace(at, id.size(), label);
  for (std::string_view step : {"cannot create container ", "cannot start container "}) {
    if (text.starts_with(step)) text.replace(0, step.size(), "cannot run container ");
  }
}

// Terminal keys signal the whole foreground process group, so berth-runtime has received those
// signals already. Returns whether a signal asks for an end.
Result<bool> pass_on(const sys::Fd& signals, const sys::Process& child) {
  bool asked = false;
  while (auto received = TRY(sys::read_signal(signals))) {
    asked = asked || asks_for_end(received->number);
    if (received->from_kernel || received->number == SIGPIPE) continue;
    ignore(child.signal(received->number));  // the child may have just ended
  }
  return asked;
}

/// `berth-runtime WORD…`, which writes its report to `report`.
sys::SpawnOptions reporting_call(const Context& context, const std::vector<std::string>& words,
                                 const sys::Pipe& report) {
  sys::SpawnOptions spawn;
  spawn.program = runtime_program(context);
  spawn.args = {"berth-runtime", "--root", runtime_root(context), "--report-fd",
                std::to_string(report.write.get())};
  spawn.args.insert(spawn.args.end(), words.begin(), words.end());
  spawn.keep = {report.write.get()};
  return spawn;
}

void add_held(const LaunchOptions& options, std::vector<std::string>& words) {
  if (options.pmi_descriptor) words.insert(words.end(), {"--preserve-fds", "1"});
  if (!options.held) return;
  words.insert(words.end(),
               {"--preserve-fds", "1", "--rights-fd", std::to_string(slurm::kRightsFile)});
}

}  // namespace

Error network_error(Error error) {
  // "the createRuntime hook failed with exit code 1: '/…/berth-network': {…}", from
  // runtime/state/hooks.cpp.
  constexpr std::string_view kBefore = "/berth-network': ";
  size_t at = error.what.find(kBefore);
  if (at == std::string::npos) return error;
  auto told = network::read_failure(std::string_view(error.what).substr(at + kBefore.size()));
  return told ? std::move(*told) : std::move(error);
}

Result<Ended> ended_with(std::string_view report_text, const std::string& id,
                         const std::string& label) {
  Report report = TRY(parse_report(report_text));
  use_words_of_people(report.error.what, id, label);
  for (std::string& level : report.error.context) use_words_of_people(level, id, label);
  if (!report.command) return std::move(report.error);
  int status = report.status();
  return Ended{status, std::move(report.error), std::nullopt};
}

Result<bool> ReportReader::read() {
  std::array<char, 4096> chunk;
  size_t count = TRY(sys::read_some(fd_, chunk, "report of berth-runtime"));
  text_.append(chunk.data(), count);
  if (count == 0) fd_.reset();
  say_warnings();
  if (text_.size() > kMaxReport) {
    return make_error(Kind::corrupt, "report of berth-runtime: more than 64 KiB");
  }
  return !fd_;
}

/// Logs the complete warnings, and one that the end of the report cuts short.
void ReportReader::say_warnings() {
  while (text_.starts_with('w')) {
    size_t end = text_.find('\n');
    if (end == text_.npos && fd_) return;
    end = std::min(end, text_.size());
    log_.warn(text_.substr(1, end - 1));
    text_.erase(0, end + 1);
  }
}

Result<void> ReportReader::read_to_end() {
  while (fd_) TRY(read());
  return {};
}

std::string runtime_program(const Context& context) {
  return context.paths.libexec + "/berth-runtime";
}

std::string runtime_root(const Context& context) {
  return context.paths.state + "/runtime";
}

int Report::status() const {
  return command ? command_status(error) : 125;
}

Result<Report> parse_report(std::string_view text) {
  auto fields = TRY(json::read<ReportFields>(text, "report of berth-runtime"));
  Report report;
  report.error.kind = kind_from_name(fields.kind);
  report.error.sys_errno = fields.sys_errno;
  report.error.what = oci::name_flags(std::move(fields.what));
  report.error.hint = oci::name_flags(std::move(fields.hint));
  report.error.context = std::move(fields.context);
  report.error = network_error(std::move(report.error));
  report.command = fields.stage == "command";
  return report;
}

Result<Foreground> Foreground::open(const Context& context, const std::string& id,
                                    const std::string& bundle, const LaunchOptions& options) {
  // The launcher's socket becomes descriptor 3 of berth-runtime. Keep number 3 occupied here, so
  // that no descriptor made now for berth-runtime gets that number.
  sys::Fd third;
  if (options.pmi_descriptor) {
    sys::Fd borrowed(*options.pmi_descriptor);
    auto copy = sys::duplicate(borrowed);
    borrowed.release();
    third = TRY(std::move(copy));
  }
  auto [ours, theirs] = TRY(sys::socket_pair());
  std::vector<std::string> words = {"run", "--caller-fd", std::to_string(theirs.get())};
  add_held(options, words);
  words.insert(words.end(), {"--bundle", bundle, id});
  Foreground front = TRY(start(context, std::move(words), theirs, options));
  front.id_ = id;
  front.caller_ = std::move(ours);
  return front;
}

Result<Foreground> Foreground::open_exec(const Context& context, const std::string& id,
                                         const oci::Process& process,
                                         const LaunchOptions& options) {
  sys::Fd document = TRY(process_document(process));
  std::vector<std::string> words = {"exec"};
  add_held(options, words);
  words.insert(words.end(), {"--process", sys::fd_path(document), id});
  Foreground front = TRY(start(context, std::move(words), document, options));
  front.id_ = id;
  return front;
}

Result<Foreground> Foreground::start(const Context& context, std::vector<std::string> words,
                                     const sys::Fd& kept, const LaunchOptions& options) {
  Foreground front(TRY(Relay::open(options.interactive ? Input::given : Input::none,
                                   options.terminal ? Guard::no : Guard::yes)),
                   context.log);
  front.label_ = options.label;
  std::vector<int> received = sys::forwardable_signals();
  received.push_back(SIGPIPE);  // a container that stops reading must not end this process
  front.signals_ = TRY(sys::receive_signals(received));
  sys::Pipe report = TRY(sys::make_pipe());
  // A container must not overwrite berth-runtime through /proc/PID/exe. berth-runtime would protect
  // itself, but with a second exec.
  auto program = TRY(sys::protect_program(runtime_program(context)));
  sys::SpawnOptions spawn;
  spawn.program = program ? sys::fd_path(*program) : runtime_program(context);
  if (program) spawn.env = sys::environment_beside(context.paths.libexec);
  spawn.args = {"berth-runtime", "--root",      runtime_root(context),
                "--decided",     "--report-fd", std::to_string(report.write.get())};
  spawn.args.insert(spawn.args.end(), std::make_move_iterator(words.begin()),
                    std::make_move_iterator(words.end()));
  spawn.keep = {report.write.get()};
  if (kept) spawn.keep.push_back(kept.get());
  if (options.held) spawn.keep.insert(spawn.keep.end(), {slurm::kHoldSocket, slurm::kRightsFile});
  if (options.pmi_descriptor) {
    spawn.third = *options.pmi_descriptor;
    spawn.keep.push_back(kPmiDescriptor);
  }
  front.relay_.give_to(spawn);
  front.child_ = TRY(sys::spawn(spawn));
  front.relay_.given();
  front.report_ = std::move(report.read);
  return front;
}

// Ignores an error: if berth-runtime has ended already, its status and its report give the reason.
void Foreground::announce() const {
  ignore(sys::send_message(caller_, "d", 1, sys::Fd()));
}

Result<bool> Foreground::start() {
  if (caller_) ignore(sys::send_message(caller_, "g", 1, sys::Fd()));  // as in announce()
  reader_.emplace(std::move(report_), *log_);
  while (!runs_ && !ended_ && reader_->fd() >= 0) TRY(serve());
  return runs_;
}

Result<std::optional<int>> Foreground::exited() {
  while (!code_ && !ended_) TRY(serve());
  return code_;
}

Result<Ended> Foreground::end() {
  while (!ended_) TRY(serve());
  sys::ExitStatus status = TRY(child_.wait());
  TRY(reader_->read_to_end());
  if (!delivered_) delivered_ = relay_.finish(signals_);
  if (!reader_->text().empty()) return ended_with(reader_->text(), id_, label_);
  Ended ended{status.shell_code(), std::nullopt, std::nullopt};
  if (!delivered_->ok()) ended.stream_error = std::move(*delivered_).error();
  if (ended.status != 0) ended.printed = relay_.printed();
  ended.asked = asked_;
  return ended;
}

Result<void> Foreground::serve() {
  std::vector<pollfd> entries = {{signals_.get(), POLLIN, 0},
                                 {child_.pidfd().get(), POLLIN, 0},
                                 {reader_->fd(), POLLIN, 0},
                                 {caller_.get(), POLLIN, 0}};
  size_t first = entries.size();
  if (!delivered_) relay_.add_to(entries);
  TRY(sys::poll(entries, std::nullopt));
  if (entries[0].revents != 0) asked_ = TRY(pass_on(signals_, child_)) || asked_;
  if (!delivered_) relay_.serve(entries, first);
  // The report ended empty: the command was executed.
  if (entries[2].revents != 0 && TRY(reader_->read())) runs_ = reader_->text().empty();
  if (entries[3].revents != 0) code_ = TRY(hear_exit());
  if (code_ && !delivered_) delivered_ = relay_.finish(signals_);
  ended_ = entries[1].revents != 0;
  return {};
}

// berth-runtime then still cleans up for half a millisecond, while this process continues.
Result<std::optional<int>> Foreground::hear_exit() {
  int32_t code = 0;
  sys::Received received = TRY(sys::receive_message(caller_, &code, sizeof code));
  caller_.reset();  // berth-runtime sends nothing more
  if (received.size != sizeof code) return std::optional<int>();
  return std::optional<int>(code);
}

Result<sys::Fd> process_document(const oci::Process& process) {
  return sys::memory_file("process", oci::write_process(process));
}

Result<std::string> call_reporting(const Context& context, std::vector<std::string> words,
                                   const sys::Fd& kept) {
  sys::Pipe report = TRY(sys::make_pipe());
  sys::Fd null = TRY(sys::open_at(sys::cwd(), "/dev/null", O_RDWR | O_NOCTTY));
  sys::SpawnOptions spawn = reporting_call(context, words, report);
  spawn.in = spawn.out = spawn.err = &null;
  spawn.keep.push_back(kept.get());
  sys::Process process = TRY(sys::spawn(spawn));
  report.write.reset();
  ReportReader reader(std::move(report.read), context.log);
  TRY(reader.read_to_end());
  sys::ExitStatus status = TRY(process.wait());
  if (status.shell_code() == 0 || !reader.text().empty()) return reader.text();
  return make_error(Kind::io, "berth-runtime: status " + std::to_string(status.shell_code()));
}

Result<std::string> call_runtime(const Context& context, std::vector<std::string> words,
                                 std::string_view input) {
  constexpr std::chrono::seconds kDeadline{30};
  sys::Pipe report = TRY(sys::make_pipe());
  auto output = TRY(sys::run_command(reporting_call(context, words, report), input, kDeadline));
  report.write.reset();
  ReportReader reader(std::move(report.read), context.log);
  TRY(reader.read_to_end());
  if (output.status.shell_code() == 0) return std::move(output.out);
  if (!reader.text().empty()) {
    Report told = TRY(parse_report(reader.text()));
    return std::move(told.error);
  }
  Kind kind = output.status.signal != 0 ? Kind::interrupted : Kind::io;
  return make_error(kind, "berth-runtime " + words[0] + ": status " +
                              std::to_string(output.status.shell_code()) + ": " +
                              escape_controls(trim(output.err)));
}

}  // namespace berth::engine
