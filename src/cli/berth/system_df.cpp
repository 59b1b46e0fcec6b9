// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"
#include "cli/berth/common.hpp"
#include "cli/template/listing.hpp"
#include "engine/prune.hpp"

namespace berth::cli {
namespace {

struct Options {
  std::string format;
};

FlagTable flags(Options& o) {
  return {template_flag(o.format)};
}

constexpr ListField kFields[] = {{"Active", "ACTIVE"},
                                 {"Reclaimable", "RECLAIMABLE"},
                                 {"Size", "SIZE"},
                                 {"TotalCount", "TOTAL"},
                                 {"Type", "TYPE"}};
constexpr ListKind kUsage{
    .fields = kFields,
    .table = "{{.Type}}\t{{.TotalCount}}\t{{.Active}}\t{{.Size}}\t{{.Reclaimable}}",
    .quiet = "{{.Type}}",
};

ListRow row_of(std::string_view type, const engine::Usage& usage) {
  std::string reclaimable = human_bytes(usage.reclaimable);
  if (usage.bytes > 0) {
    reclaimable += " (" + std::to_string(usage.reclaimable * 100 / usage.bytes) + "%)";
  }
  return {{std::to_string(usage.active), reclaimable, human_bytes(usage.bytes),
           std::to_string(usage.total), std::string(type)}};
}

Result<int> run(Session& session, const Options& o, std::vector<std::string>) {
  Listing listing = TRY(Listing::make(kUsage, {.text = o.format}));
  engine::DiskUsage usage = TRY(engine::disk_usage(session.context));
  // Nothing is built here, so nothing is cached; scripts count four lines.
  print(session,
        TRY(listing.text({row_of("Images", usage.images), row_of("Containers", usage.containers),
                          row_of("Local Volumes", usage.volumes), row_of("Build Cache", {})})));
  return 0;
}

}  // namespace

extern const Verb system_df_verb;
const Verb system_df_verb{
    .text = {.name = "system df",
             .arguments = "",
             .summary = "Show how much images, containers and volumes take",
             .example = "berth system df --format json"},
    .arity = {0, 0},
    .needs = engine::Needs::user_namespace,
    .command = [] { return make_command(flags, run); },
};

}  // namespace berth::cli
