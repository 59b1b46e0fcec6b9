// SPDX-License-Identifier: Apache-2.0
#include "cli/berth/common.hpp"
#include "cli/berth/elsewhere_arguments.hpp"
#include "cli/berth/flag_values.hpp"
#include "engine/image/images.hpp"
#include "engine/node/match.hpp"
#include "engine/site/rules.hpp"

namespace berth::cli {
namespace {

struct PullOptions {
  image::PullRequest request;
  bool no_scan = false;
  std::string memory_budget;
};

FlagTable pull_flags(PullOptions& o) {
  FlagTable table{
      {"quiet", 'q', "", "Print the reference alone", &o.request.quiet},
      {"platform", 0, "OS/ARCH", "Another platform than this machine's",
       read_platform(o.request.platform)},
      {"force", 0, "", "Also what does not run on this machine", &o.request.force},
      {"strict", 0, "", "Nothing that does not pass: an idle GPU, an unknown axis",
       &o.request.strict},
  };
  table.push_back({"no-scan", 0, "", "Do not look at what the files ask of a machine", &o.no_scan});
  table.push_back({"keep-blobs", 0, "", "Keep the packed layers, too (BERTH_KEEP_BLOBS)",
                   &o.request.keep_blobs});
  table.push_back({"memory-budget", 0, "SIZE",
                   "Memory for layers on their way: 512m (BERTH_MEMORY_BUDGET)", &o.memory_budget});
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
  TRY(engine::check_registry(session.context, request.reference, nullptr));
  engine::judge_by_this_node(session.context, {}, request);
  image::TransferResult pulled =
      TRY(transfer_shown(session, request, Stream::out, Direction::pull, request.quiet));
  if (!request.force) TRY(engine::judge_pulled(session.context, pulled.reference, request.strict));
  if (request.quiet) {
    print(session, pulled.reference + "\n");
    return 0;
  }
  bool news = pulled.status == "downloaded";
  print(session, "Digest: " + pulled.digest + "\nStatus: " +
                     (news ? "Downloaded newer image for " : "Image is up to date for ") +
                     engine::familiar(pulled.reference) + "\n" + pulled.reference + "\n");
  return 0;
}

constexpr std::string_view kOneTag = "a pull is of one tag";
/// Of docker, podman and enroot.
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
