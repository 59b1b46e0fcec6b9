// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cstdio>

#include "base/text.hpp"
#include "cli/berth/common.hpp"
#include "cli/berth/document_format.hpp"
#include "cli/berth/verbs.hpp"
#include "engine/system/system_info.hpp"

namespace berth::cli {
namespace {

// ---- version ------------------------------------------------------------------------------------

struct VersionOptions {
  std::string format;
};

FlagTable version_flags(VersionOptions& o) {
  return {{"format", 'f', "FORMAT",
           "Output format: json or a template such as '{{.Client.Version}}'", &o.format}};
}

constexpr std::string_view kArchitecture =
#if defined(__x86_64__)
    "amd64";
#elif defined(__aarch64__)
    "arm64";
#else
    "unknown";
#endif

/// Docker's members. Client and server are the same, because there is one program.
json::Value document() {
  const std::string_view version = berth_version();
  json::Value platform = json::Object{{"Name", "Berth"}};
  json::Object client{{"Platform", platform},    {"Version", version},    {"ApiVersion", ""},
                      {"DefaultAPIVersion", ""}, {"GitCommit", ""},       {"GoVersion", ""},
                      {"Os", "linux"},           {"Arch", kArchitecture}, {"BuildTime", ""},
                      {"Context", "default"},    {"Experimental", false}};
  json::Object server{
      {"Platform", platform},
      {"Components", json::Array{json::Object{
                         {"Name", "Engine"}, {"Version", version}, {"Details", json::Object{}}}}},
      {"Version", version},
      {"ApiVersion", ""},
      {"MinAPIVersion", ""},
      {"GitCommit", ""},
      {"GoVersion", ""},
      {"Os", "linux"},
      {"Arch", kArchitecture},
      {"KernelVersion", ""},
      {"BuildTime", ""}};
  return json::Object{{"Client", std::move(client)}, {"Server", std::move(server)}};
}

std::string text_of() {
  const std::string version(berth_version());
  const std::string platform = "linux/" + std::string(kArchitecture);
  return "Client:\n Version:           " + version + "\n OS/Arch:           " + platform +
         "\n\nServer:\n Engine:\n  Version:          " + version +
         "\n  OS/Arch:          " + platform + "\n";
}

Result<int> run_version(Session& session, const VersionOptions& o, Arguments) {
  if (o.format.empty()) {
    print(session, text_of());
    return 0;
  }
  auto format = DocumentFormat::make(o.format);
  if (!format.ok()) {
    session.report.error(format.error());
    return kFormatStatus;
  }
  print(session, TRY(format->text(document())) + "\n");
  return 0;
}

/// Of docker.
constexpr Elsewhere kVersionElsewhere[] = {
    {"kubeconfig", "kubectl version", "Berth does not connect to a cluster"},
};

// ---- info ---------------------------------------------------------------------------------------

struct InfoOptions {
  std::string format;
};

FlagTable info_flags(InfoOptions& o) {
  return {{"format", 'f', "FORMAT", "Output format: json or a template such as '{{.Driver}}'",
           &o.format}};
}

/// Docker's members, as far as they make sense without a daemon, and then our own.
json::Value document(const engine::Context& context, const engine::SystemInfo& info) {
  return json::Object{
      {"ID", ""},
      {"Containers", info.running + info.paused + info.stopped},
      {"ContainersRunning", info.running},
      {"ContainersPaused", info.paused},
      {"ContainersStopped", info.stopped},
      {"Images", info.images},
      {"Driver", info.rootfs_driver},
      {"DriverStatus", json::Array{}},
      {"Plugins", json::Object{{"Volume", json::Array{"local"}},
                               {"Network", json::Array{"bridge", "host", "none"}},
                               {"Authorization", nullptr},
                               {"Log", json::Array{"json-file", "local", "none"}}}},
      {"Debug", false},
      {"LoggingDriver", "json-file"},
      {"CgroupDriver", "cgroupfs"},
      {"CgroupVersion", std::to_string(info.cgroup_version)},
      {"KernelVersion", info.kernel},
      {"OperatingSystem", info.system},
      {"OSType", "linux"},
      {"Architecture", info.architecture},
      {"NCPU", info.processors},
      {"MemTotal", info.memory_bytes},
      {"DockerRootDir", context.paths.root},
      {"Name", info.host},
      {"Labels", json::Array{}},
      {"ExperimentalBuild", false},
      {"ServerVersion", berth_version()},
      {"Runtimes", json::Object{{"berth-runtime", json::Object{{"path", context.paths.libexec +
                                                                            "/berth-runtime"}}}}},
      {"DefaultRuntime", "berth-runtime"},
      {"LiveRestoreEnabled", true},
      {"InitBinary", ""},
      {"SecurityOptions", json_strings(info.security)},
      {"Warnings", nullptr},
      {"ClientInfo", json::Object{{"Debug", false},
                                  {"Context", "default"},
                                  {"Plugins", json::Array{}},
                                  {"Warnings", nullptr}}},
      {"Berth", json::Object{{"State", context.paths.state},
                             {"DriverRoot", context.paths.driver_root},
                             {"Programs", context.paths.libexec},
                             {"DefaultNetwork", info.default_network},
                             {"Identity", engine::identity_name(context.identity)}}},
  };
}

/// "23.54GiB", as docker writes memory.
std::string memory_words(uint64_t bytes) {
  std::array<char, 32> text;
  double gibibytes = static_cast<double>(bytes) / (1 << 30);
  bool small = gibibytes < 1;
  int length = std::snprintf(text.data(), text.size(), "%.4g%s",
                             small ? gibibytes * 1024 : gibibytes, small ? "MiB" : "GiB");
  return std::string(text.data(), static_cast<size_t>(length));
}

std::string text_of(const engine::Context& context, const engine::SystemInfo& info) {
  auto number = [](uint64_t value) { return std::to_string(value); };
  std::string security;
  for (const std::string& option : info.security) {
    security += "  " + option.substr(5, option.find(',') - 5) + "\n";
  }
  // docker's lines in docker's order: scripts parse them.
  return "Client:\n Context:    default\n Debug Mode: false\n\nServer:\n Containers: " +
         number(info.running + info.paused + info.stopped) +
         "\n  Running: " + number(info.running) + "\n  Paused: " + number(info.paused) +
         "\n  Stopped: " + number(info.stopped) + "\n Images: " + number(info.images) +
         "\n Server Version: " + std::string(berth_version()) +
         "\n Storage Driver: " + info.rootfs_driver +
         "\n Logging Driver: json-file\n Cgroup Driver: cgroupfs\n"
         " Cgroup Version: " +
         std::to_string(info.cgroup_version) +
         "\n Plugins:\n  Volume: local\n  Network: bridge host none\n  Log: json-file local none\n"
         " Runtimes: berth-runtime\n Default Runtime: berth-runtime\n Security Options:\n" +
         security + " Kernel Version: " + escape_controls(info.kernel) +
         "\n Operating System: " + escape_controls(info.system) +
         "\n OSType: linux\n Architecture: " + info.architecture +
         "\n CPUs: " + number(info.processors) +
         "\n Total Memory: " + memory_words(info.memory_bytes) +
         "\n Name: " + escape_controls(info.host) +
         "\n Docker Root Dir: " + escape_controls(context.paths.root) +
         "\n State Dir: " + escape_controls(context.paths.state) +
         "\n Default Network: " + info.default_network +
         "\n GPU Driver Root: " + escape_controls(context.paths.driver_root) +
         "\n Programs: " + escape_controls(context.paths.libexec) +
         "\n Identity: " + std::string(engine::identity_name(context.identity)) + "\n";
}

Result<int> run_info(Session& session, const InfoOptions& o, Arguments) {
  std::optional<DocumentFormat> format;
  if (!o.format.empty()) {
    auto made = DocumentFormat::make(o.format);
    if (!made.ok()) {
      session.report.error(made.error());
      return kFormatStatus;
    }
    format = std::move(*made);
  }
  const engine::SystemInfo info = TRY(engine::system_info(session.context));
  if (!format) {
    print(session, text_of(session.context, info));
    return 0;
  }
  print(session, TRY(format->text(document(session.context, info))) + "\n");
  return 0;
}

// ---- completion ---------------------------------------------------------------------------------

Result<int> run_completion(Session& session, const NoOptions&, Arguments arguments) {
  GlobalOptions globals;
  CompletionInput input = completion_input(globals);
  const std::string& shell = arguments[0];
  if (shell == "bash") {
    print(session, bash_completion(input));
  } else if (shell == "zsh") {
    print(session, zsh_completion(input));
  } else if (shell == "fish") {
    print(session, fish_completion(input));
  } else {
    return unknown_word("shell", shell, {"bash", "zsh", "fish"}, "berth completion");
  }
  return 0;
}

// ---- man ----------------------------------------------------------------------------------------

Result<int> run_man(Session& session, const NoOptions&, Arguments arguments) {
  if (arguments.empty()) {
    for (const Verb* verb : all_verbs()) print(session, std::string(verb->text.name) + "\n");
    return 0;
  }
  GlobalOptions globals;
  FlagTable program_flags = global_flags(globals);
  Call call = TRY(find_verb(arguments));
  if (!call.words.empty()) {
    return make_error(Kind::usage, quote("berth man") + " takes one verb; see 'berth man --help'");
  }
  VerbPage page{call.verb->text, call.verb->command().flags};
  print(session, man_page("berth", berth_version(), page, program_flags));
  return 0;
}

}  // namespace

std::string_view berth_version() {
  return BERTH_VERSION;
}

const Verb version_verb{
    .text = {.name = "version",
             .summary = "Print the version",
             .example = "berth version --format json"},
    .store = Store::none,
    .elsewhere = kVersionElsewhere,
    .command = [] { return make_command(version_flags, run_version); },
};
const Verb info_verb{
    .text = {.name = "info",
             .summary = "Show information about this installation",
             .example = "berth info --format json"},
    .needs = engine::Needs::user_namespace,
    .store = Store::swept,
    .command = [] { return make_command(info_flags, run_info); },
};
const Verb completion_verb{
    .text = {.name = "completion",
             .arguments = "bash|zsh|fish",
             .summary = "Print the shell completion script",
             .example = "source <(berth completion bash)",
             .words = "bash zsh fish"},
    .arity = {1, 1},
    .store = Store::none,
    .command = [] { return make_command(no_flags, run_completion); },
};
const Verb man_verb{
    .text = {.name = "man",
             .arguments = "[VERB]",
             .summary = "Print the manual page of a verb, or the names of all verbs",
             .example = "berth man run | man -l -",
             .complete = Complete::verb},
    .arity = {0, 2},
    .store = Store::none,
    .command = [] { return make_command(no_flags, run_man); },
};

}  // namespace berth::cli
