// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cstdio>

#include "base/text.hpp"
#include "cli/berth/common.hpp"
#include "cli/berth/document_format.hpp"
#include "engine/system/system_info.hpp"

namespace berth::cli {
namespace {

struct InfoOptions {
  std::string format;
};

FlagTable info_flags(InfoOptions& o) {
  return {{"format", 'f', "FORMAT", "Output format: json or a template such as '{{.Driver}}'",
           &o.format}};
}

/// The members of docker's document, as far as they make sense without a daemon, then Berth's
/// members.
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
  // The same lines in the same order as in docker: scripts parse them.
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

}  // namespace

const Verb info_verb{
    .text = {.name = "info",
             .summary = "Show information about this installation",
             .example = "berth info --format json"},
    .needs = engine::Needs::user_namespace,
    .store = Store::swept,
    .command = [] { return make_command(info_flags, run_info); },
};

}  // namespace berth::cli
