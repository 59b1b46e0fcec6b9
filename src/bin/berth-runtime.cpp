// SPDX-License-Identifier: Apache-2.0
// The OCI runtime: wires the parts together, prints the one error line.
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <exception>

#include "base/text.hpp"
#include "cli/oci/verb.hpp"
#include "gpu/inventory/state_directory.hpp"
#include "oci/limit_flags.hpp"
#include "sys/file/file.hpp"
#include "sys/mount/null_device.hpp"
#include "sys/mount/protected_program.hpp"
#include "sys/process/console.hpp"
#include "sys/process/process.hpp"
#include "sys/process/program.hpp"
#include "sys/process/signals.hpp"
#include "sys/user/identity.hpp"

namespace berth {
namespace {

constexpr int kFailed = 1;

/// Writes to standard error and to the file of --log. While --report-fd is open, warnings go to
/// that descriptor and berth prints them. Later warnings have the prefix "berth: ", because the
/// user typed a berth command.
class RuntimeLog final : public Log {
 public:
  explicit RuntimeLog(const sys::Fd& report) : report_(report) {}
  Result<void> configure(const cli::oci::Globals& globals) {
    format_ = globals.log_format;
    debug_ = globals.debug;
    of_berth_ = globals.decided || !globals.report_fd.empty();
    if (globals.log_file.empty()) return {};
    file_ = TRY(sys::open_at(sys::cwd(), globals.log_file, O_WRONLY | O_CREAT | O_APPEND, 0600));
    return {};
  }
  void warn(const std::string& text) override {
    std::string said = of_berth_ ? oci::name_flags(text) : text;
    if (!report_) return write("warning", "warning: " + said, said);
    write_file("warning", said);
    sys::IgnoredSignal reader_gone(SIGPIPE);  // a warning must not end the start
    ignore(sys::write_all(report_, cli::oci::report_warning(said), "--report-fd"));
  }
  void debug(const std::string& text) override {
    if (debug_) write("debug", text, text);
  }
  bool is_debug() const override { return debug_; }
  void error(const Error& error) {
    std::string place;
    if (debug_) {
      place = " (" + std::string(error.where.file) + ":" + std::to_string(error.where.line) + ")";
    }
    write("error", to_line(error) + place, cli::oci::caller_text(error) + place);
  }

 private:
  // A failed write cannot be reported anywhere.
  void write_file(std::string_view level, const std::string& text) {
    if (file_) ignore(sys::write_all(file_, cli::oci::log_line(format_, level, text), "--log"));
  }
  void write(std::string_view level, const std::string& line, const std::string& text) {
    write_file(level, text);
    std::string program = of_berth_ ? "berth: " : "berth-runtime: ";
    ignore(sys::write_stream(STDERR_FILENO, program + escape_controls(line) + "\n"));
  }

  const sys::Fd& report_;
  sys::Fd file_;
  std::string format_ = "text";
  bool debug_ = false;
  bool of_berth_ = false;
};

std::vector<std::string> environment() {
  std::vector<std::string> entries;
  for (char** entry = environ; *entry != nullptr; ++entry) entries.emplace_back(*entry);
  return entries;
}

Result<sys::Fd> take_report(const std::string& text) {
  if (text.empty()) return sys::Fd();
  auto number = parse_u64(text);
  if (!number || *number < 3 || *number > 65535) {
    return make_error(Kind::usage, "--report-fd: expected the number of an open descriptor");
  }
  sys::Fd given(static_cast<int>(*number));
  auto taken = sys::duplicate(given);  // close-on-exec, which the inherited descriptor is not
  if (taken.ok()) return taken;
  given.release();
  return taken;
}

Result<int> call_verb(const cli::oci::Globals& globals, std::vector<std::string> words,
                      RuntimeLog& log, runtime::Report& report, int& failed) {
  const cli::oci::Verb* verb = TRY(cli::oci::find_verb(words[0]));
  failed = verb->failed;
  std::string command_name = "berth-runtime " + words[0];
  words.erase(words.begin());
  cli::oci::Command command = verb->command();
  cli::Parsed parsed = TRY(cli::parse(command.flags, verb->flags_end, words, command_name));
  if (parsed.help) {
    TRY(sys::write_stream(STDOUT_FILENO,
                          cli::verb_help("berth-runtime", {verb->text, command.flags})));
    return 0;
  }
  TRY(cli::check_arity(verb->arity, parsed.arguments.size(), command_name,
                       cli::usage_line("berth-runtime", verb->text, !command.flags.empty())));
  auto print = [](const std::string& text) { return sys::write_stream(STDOUT_FILENO, text); };
  cli::oci::Session session{globals.root,
                            log,
                            report,
                            cli::oci::cgroup_manager(globals),
                            {globals.config_dir, globals.state_dir, environment(), globals.decided},
                            {},
                            print};
  int status = TRY(command.run(session, parsed.arguments));
  if (!session.out.empty()) TRY(sys::write_stream(STDOUT_FILENO, session.out));
  return status;
}

bool makes_process(const cli::Parsed& parsed) {
  if (parsed.help || parsed.arguments.empty()) return false;
  auto verb = cli::oci::find_verb(parsed.arguments[0]);
  return verb.ok() && (*verb)->makes_process;
}

/// Executes this program again through a protected handle, so that no container can write to the
/// program's file. Called before anything is opened that the exec would close.
Result<void> protect_program(const std::vector<std::string>& words) {
  constexpr const char* kOnce = "BERTH_RUNTIME_PROTECTED";
  bool again = std::getenv(kOnce) != nullptr;
  ::unsetenv(kOnce);
  auto program = TRY(sys::protect_program("/proc/self/exe"));
  if (!program) return {};
  if (again) return make_error(Kind::bug, "protect the program: its copy is not protected");
  std::vector<std::string> args{"berth-runtime"};
  args.insert(args.end(), words.begin(), words.end());
  std::string directory = TRY(sys::program_directory());
  std::vector<std::string> env = sys::environment_beside(directory);
  env.push_back(std::string(kOnce) + "=1");
  return sys::execute(sys::fd_path(*program), args, env);
}

/// `failed` is the exit code for the error that is returned.
Result<int> runtime_main(const char* program, const std::vector<std::string>& words,
                         RuntimeLog& log, runtime::Report& report, int& failed) {
  cli::oci::Globals globals;
  cli::Parsed parsed = TRY(cli::parse(cli::oci::global_flags(globals),
                                      cli::FlagsEnd::at_first_argument, words, "berth-runtime"));
  if (makes_process(parsed)) TRY(protect_program(words));
  TRY(log.configure(globals));
  report.fd = TRY(take_report(globals.report_fd));
  if (globals.version) {
    TRY(sys::write_stream(STDOUT_FILENO, cli::oci::version_text(program)));
    return 0;
  }
  if (parsed.help || parsed.arguments.empty()) {
    TRY(sys::write_stream(STDOUT_FILENO, cli::oci::program_help()));
    return 0;
  }
  if (globals.root.empty()) {
    // Rootless podman calls us as root of a user namespace, so the uid outside of it counts.
    globals.root =
        cli::oci::default_root(gpu::calling_user().value_or(0), std::getenv("XDG_RUNTIME_DIR"));
  }
  return call_verb(globals, std::move(parsed.arguments), log, report, failed);
}

void report_failure(const Error& error, RuntimeLog& log, runtime::Report& report) {
  if (report.fd) {
    // The caller prints the report. If the caller has ended, a failed write does not matter.
    ignore(sys::write_all(report.fd, cli::oci::report_text(error, report.stage), "--report-fd"));
  } else {
    log.error(error);
  }
}

}  // namespace
}  // namespace berth

int main(int argc, char** argv) {
  if (!berth::sys::has_standard_streams("berth-runtime")) return berth::kFailed;
  // This program may have been executed as /proc/self/fd/N; users search for its name.
  berth::sys::set_process_name("berth-runtime");
  berth::runtime::Report report;
  berth::RuntimeLog log(report.fd);
  int failed = berth::kFailed;
  try {
    auto status = berth::runtime_main(
        argc > 0 ? argv[0] : "", {argv + (argc > 0 ? 1 : 0), argv + argc}, log, report, failed);
    if (status.ok()) return *status;
    berth::report_failure(status.error(), log, report);
  } catch (const std::exception& exception) {
    berth::report_failure(
        berth::make_error(berth::Kind::bug, std::string("unexpected: ") + exception.what()), log,
        report);
  }
  return failed;
}
