// SPDX-License-Identifier: Apache-2.0
// The command line: determines the user, wires the parts together, prints the one error line.
#include <unistd.h>

#include <exception>
#include <optional>

#include "cli/berth/elsewhere.hpp"
#include "cli/berth/verbs.hpp"
#include "engine/container/life.hpp"
#include "engine/container/list.hpp"
#include "engine/container/sweep.hpp"
#include "engine/context/paths.hpp"
#include "engine/image/store.hpp"
#include "gpu/probe/probe.hpp"
#include "sys/file/file.hpp"
#include "sys/mount/null_device.hpp"
#include "sys/process/console.hpp"
#include "sys/process/process.hpp"
#include "sys/process/pty.hpp"

namespace berth {
namespace {

constexpr int kUsageStatus = 125;  // as docker, for invalid flags
constexpr int kArityStatus = 1;    // as docker, for a wrong number of arguments, even of `run`

/// The terminal of this process.
class ProcessTerminal final : public cli::Terminal {
 public:
  bool is_terminal(cli::Stream stream) const override { return sys::is_terminal(fd(stream)); }
  bool input_is_terminal() const override { return sys::is_terminal(STDIN_FILENO); }
  cli::ScreenSize size(cli::Stream stream) const override {
    sys::Fd terminal(fd(stream));
    auto size = sys::window_size(terminal);
    terminal.release();
    bool known = size.ok() && size->columns > 0 && size->rows > 0;
    return known ? cli::ScreenSize{size->columns, size->rows} : cli::ScreenSize{};
  }
  void write_as_is(cli::Stream stream, std::string_view bytes) override {
    auto done = sys::write_stream(fd(stream), bytes);
    // A failed write to stderr cannot be reported anywhere.
    if (!done.ok() && stream == cli::Stream::out && written_.ok()) written_ = done.error();
  }
  Result<void> written() const override { return written_; }
  Result<std::string> ask(std::string_view prompt) override {
    return sys::ask(prompt, sys::Echo::on);
  }
  Result<std::string> ask_secret(std::string_view prompt) override {
    return sys::ask(prompt, sys::Echo::off);
  }
  Result<std::string> read_input() override {
    sys::Fd input(STDIN_FILENO);
    auto text = sys::read_all(input, "standard input");
    input.release();
    return text;
  }

 private:
  static int fd(cli::Stream stream) {
    return stream == cli::Stream::out ? STDOUT_FILENO : STDERR_FILENO;
  }
  Result<void> written_;
};

/// What is known about a call before its verb runs.
struct Prepared {
  std::string container;  ///< a running container whose user namespace is joined, or ""
  std::string replaced;   ///< the container to be replaced, or ""
  engine::NetworkUse networks;
};

/// Enters the user namespace that the verb needs, and returns the identity of this process in it.
/// `context` was made with the earlier identity.
Result<engine::Identity> enter_identity(const cli::Verb& verb, const engine::Context& context,
                                        const Prepared& call) {
  // If several containers are to be started, one of them may already run without a network.
  if (!call.networks.containers.empty()) {
    if (auto among = TRY(engine::join_network_users(context, call.networks))) return *among;
  }
  if (!call.container.empty()) {
    auto process = engine::process_of(context.paths, call.container, context.log);
    if (process) return engine::join_user_namespace(*process);
  }
  if (auto among = TRY(engine::join_network_users(context, call.networks))) return *among;
  // The verb itself reports a container that is not running.
  return engine::enter_identity(call.container.empty() ? verb.needs : engine::Needs::user_namespace,
                                context.log);
}

Result<engine::Context> make_context(const cli::GlobalOptions& globals, const cli::Verb& verb,
                                     const Prepared& call, engine::Environment environment,
                                     Log& log) {
  // The id of the user. In the namespace that enter_identity() may enter it would be 0.
  std::optional<unsigned> user = engine::calling_user();
  engine::Caller caller = engine::who_calls();
  std::string libexec = TRY(sys::program_directory());
  engine::Paths given{.root = globals.root.value_or(""),
                      .state = globals.state.value_or(""),
                      .libexec = std::move(libexec),
                      .driver_root = globals.driver_root.value_or(""),
                      .cdi_directories = globals.cdi_directories,
                      .additional_stores = globals.additional_stores,
                      .config = globals.config_dir.value_or(engine::kSiteDirectory)};
  auto paths = engine::complete_paths(given, environment, user);
  if (!paths.ok() && verb.store != cli::Store::none) return paths.error();
  if (user && paths.ok() && verb.needs == engine::Needs::user_namespace) {
    engine::end_orphans({*paths, engine::Identity::single, environment, log});
  }
  // Done before a user namespace is entered, from which the processes of the container could not be
  // signalled (engine/container/life.hpp).
  if (!call.replaced.empty() && paths.ok()) {
    auto identity = user ? engine::Identity::single : engine::Identity::root;
    TRY(engine::end_replaced({*paths, identity, environment, log}, call.replaced));
  }
  std::vector<std::string> services;
  if (user && paths.ok()) services = gpu::services_of_root(paths->driver_root);
  // Also before a user namespace is entered: in it root and other users have the same overflow uid.
  if (verb.store != cli::Store::none) {
    paths->additional_stores = engine::usable_stores(*paths, log);
  }
  bool foreign = engine::in_foreign_namespace();
  auto before = user ? engine::Identity::single : engine::Identity::root;
  engine::Identity identity =
      TRY(enter_identity(verb, {paths.ok() ? *paths : given, before, environment, log}, call));
  if (verb.store != cli::Store::none) {
    TRY(engine::make_directories(*paths));
  }
  std::string format = globals.layer_format.value_or(
      std::string(environment.get_filled("BERTH_LAYER_FORMAT").value_or("")));
  std::string driver = globals.rootfs_driver.value_or(
      std::string(environment.get_filled("BERTH_ROOTFS_DRIVER").value_or("")));
  return engine::Context{paths.ok() ? *paths : given,
                         identity,
                         std::move(environment),
                         log,
                         std::move(services),
                         std::move(format),
                         std::move(driver),
                         std::move(caller),
                         foreign};
}

Result<int> call_verb(const cli::GlobalOptions& globals, const cli::Call& call,
                      const std::string& program, ProcessTerminal& terminal, cli::Report& report) {
  const cli::Verb& verb = *call.verb;
  cli::Command command = verb.command();
  cli::Parsed parsed = TRY(cli::parse(command.flags, verb.flags_end, call.words, call.command,
                                      cli::flags_elsewhere(verb)));
  if (parsed.help) {
    terminal.write(cli::Stream::out, cli::verb_help("berth", {verb.text, command.flags}));
    if (verb.footnote != nullptr) {
      std::string config = globals.config_dir.value_or(engine::kSiteDirectory);
      terminal.write(cli::Stream::out,
                     "\n" + verb.footnote(engine::Environment::from(environ), config));
    }
    return 0;
  }
  if (verb.arguments_elsewhere != nullptr) {
    if (auto other = verb.arguments_elsewhere(parsed.arguments)) {
      report.error(*other);
      return verb.error_status;
    }
  }
  auto arity =
      cli::check_arity(command.arity ? command.arity() : verb.arity, parsed.arguments.size(),
                       call.command, cli::usage_line("berth", verb.text, !command.flags.empty()));
  if (!arity.ok()) {
    report.error(arity.error());
    return kArityStatus;
  }
  Prepared prepared;
  std::string& container = prepared.container;
  if (command.beside) container = command.beside();
  if (verb.container != nullptr) {
    container = verb.container(parsed.arguments);
  } else if (verb.needs == engine::Needs::container) {
    container = parsed.arguments.empty() ? program : parsed.arguments[0];
  }
  if (command.replaced) prepared.replaced = command.replaced();
  if (command.networks) prepared.networks = command.networks();
  if (verb.networks != nullptr) prepared.networks = verb.networks(parsed.arguments);
  auto context = make_context(globals, verb, prepared, engine::Environment::from(environ), report);
  if (!context.ok()) {
    report.error(context.error());
    return verb.error_status;
  }
  if (verb.store == cli::Store::swept) engine::sweep(*context);
  // Empty if the directory was removed: only a relative -v needs it, and reports that it is
  // missing.
  auto directory = sys::working_directory();
  cli::Session session{*context, terminal, report, directory.ok() ? *directory : "", program};
  auto status = command.run(session, std::move(parsed.arguments));
  if (!status.ok()) {
    report.error(status.error());
    return verb.error_status;
  }
  return status;
}

/// Errors: only usage. Errors of the verb are printed in call_verb(), which knows the exit status.
Result<int> berth_main(const std::string& program, std::vector<std::string> words,
                       ProcessTerminal& terminal, cli::Report& report) {
  cli::GlobalOptions globals;
  cli::Parsed parsed = TRY(cli::parse(cli::global_flags(globals), cli::FlagsEnd::at_first_argument,
                                      words, "berth", cli::kGlobalElsewhere));
  report.configure(globals.log_format == "json" ? cli::LogFormat::json : cli::LogFormat::text,
                   globals.debug ? cli::Verbosity::debug : cli::Verbosity::normal);
  if (globals.version) {
    terminal.write(cli::Stream::out, "berth version " + std::string(cli::berth_version()) + "\n");
    return 0;
  }
  parsed.arguments = TRY(cli::without_help(std::move(parsed.arguments)));
  if (parsed.help || parsed.arguments.empty()) {
    terminal.write(cli::Stream::out, cli::berth_help());
    return 0;
  }
  if (auto help = cli::help_of_group(parsed.arguments)) {
    terminal.write(cli::Stream::out, *help);
    return 0;
  }
  return call_verb(globals, TRY(cli::find_verb(parsed.arguments)), program, terminal, report);
}

}  // namespace
}  // namespace berth

int main(int argc, char** argv) {
  if (!berth::sys::has_standard_streams("berth")) return berth::kUsageStatus;
  berth::ProcessTerminal terminal;
  berth::cli::Report report(terminal, "berth");
  try {
    auto status = berth::berth_main(argc > 0 ? argv[0] : "berth",
                                    {argv + (argc > 0 ? 1 : 0), argv + argc}, terminal, report);
    if (!status.ok()) {
      report.error(status.error());
      return berth::kUsageStatus;
    }
    if (auto written = terminal.written(); !written.ok() && *status == 0) {
      report.error(written.error());
      return 1;
    }
    return *status;
  } catch (const std::exception& exception) {
    report.error(
        berth::make_error(berth::Kind::bug, std::string("unexpected: ") + exception.what()));
    return berth::kUsageStatus;
  }
}
