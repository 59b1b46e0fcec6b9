// SPDX-License-Identifier: Apache-2.0
#include "engine/pull/pull.hpp"

#include "cli/berth/common.hpp"
#include "cli/berth/elsewhere.hpp"
#include "cli/berth/flag_values.hpp"
#include "engine/image/images.hpp"

namespace berth::cli {
namespace {

struct PullOptions {
  image::PullRequest request;
  bool no_scan = false;
  std::string memory_budget;
};

FlagTable pull_flags(PullOptions& o) {
  FlagTable table{
      {"quiet", 'q', "", "Print only the image reference", &o.request.quiet},
      {"platform", 0, "OS/ARCH", "Platform to use instead of this machine's",
       read_platform(o.request.platform)},
      {"force", 0, "", "Pull the image even if it cannot run on this machine", &o.request.force},
      {"strict", 0, "", "Fail if any check does not pass, such as an idle GPU", &o.request.strict},
  };
  table.push_back(
      {"no-scan", 0, "", "Do not scan the files for what they require of a machine", &o.no_scan});
  table.push_back({"keep-blobs", 0, "", "Also keep the compressed layers (BERTH_KEEP_BLOBS)",
                   &o.request.keep_blobs});
  table.push_back({"memory-budget", 0, "SIZE",
                   "Memory for layers in transfer (512m; BERTH_MEMORY_BUDGET)", &o.memory_budget});
  add_registry_flags(table, o.request.access);
  return table;
}

Result<int> run_pull(Session& session, const PullOptions& o, Arguments arguments) {
  image::PullRequest request = o.request;
  request.reference = arguments[0];
  request.scan = !o.no_scan;
  if (!o.memory_budget.empty()) {
    request.memory_budget = TRY(engine::parse_memory_budget("--memory-budget", o.memory_budget));
  }
  TransferDisplay display(session, Stream::out, Direction::pull, request.quiet);
  engine::Pulled pulled =
      TRY(engine::pull(session.context, {.request = std::move(request)}, display.progress()));
  display.finish();
  if (o.request.quiet) {
    print(session, pulled.reference + "\n");
    return 0;
  }
  print(session,
        "Digest: " + pulled.digest + "\nStatus: " +
            (pulled.downloaded ? "Downloaded newer image for " : "Image is up to date for ") +
            engine::familiar(pulled.reference) + "\n" + pulled.reference + "\n");
  return 0;
}

constexpr std::string_view kOneTag = "pull takes one tag";
/// Flags of docker, podman and enroot.
constexpr Elsewhere kPullElsewhere[] = {
    {"a", "berth pull NAME:TAG for each tag of berth search --list-tags NAME", kOneTag},
    {"all-tags", "berth pull NAME:TAG for each tag of berth search --list-tags NAME", kOneTag},
    {"disable-content-trust", "leave it out", "signatures are not read"},
    {"tls-verify", "--insecure-registry HOST"},
};

}  // namespace

const Verb pull_verb{
    .text = {.name = "pull",
             .arguments = "IMAGE",
             .summary = "Download an image from a registry",
             .example = "berth pull debian:12",
             .complete = Complete::image},
    .arity = {1, 1},
    .needs = engine::Needs::user_namespace,
    .elsewhere = kPullElsewhere,
    .arguments_elsewhere = pull_elsewhere,
    .command = [] { return make_command(pull_flags, run_pull); },
};

}  // namespace berth::cli
