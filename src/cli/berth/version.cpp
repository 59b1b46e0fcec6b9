// SPDX-License-Identifier: Apache-2.0
#include "cli/berth/common.hpp"

namespace berth::cli {
namespace {

struct Options {
  std::string format = "text";
};

FlagTable flags(Options& o) {
  return {{"format", 0, "FORMAT", "As text or as json", &o.format, {"text", "json"}}};
}

Result<int> run(Session& session, const Options& o, std::vector<std::string>) {
  if (o.format == "json") {
    print_json(session, json::Object{{"version", berth_version()}});
  } else {
    print(session, "berth version " + std::string(berth_version()) + "\n");
  }
  return 0;
}

}  // namespace

std::string_view berth_version() {
  return BERTH_VERSION;
}

extern const Verb version_verb;
const Verb version_verb{
    .text = {.name = "version",
             .arguments = "",
             .summary = "Print the version",
             .example = "berth version --format json"},
    .arity = {0, 0},
    .store = Store::none,
    .command = [] { return make_command(flags, run); },
};

}  // namespace berth::cli
