// SPDX-License-Identifier: Apache-2.0
#include "cli/berth/common.hpp"
#include "cli/berth/document_format.hpp"

namespace berth::cli {
namespace {

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

/// The members of docker's document. Client and server are the same, because there is only one
/// program.
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

/// Flags of docker.
constexpr Elsewhere kVersionElsewhere[] = {
    {"kubeconfig", "kubectl version", "Berth does not connect to a cluster"},
};

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

}  // namespace berth::cli
