// SPDX-License-Identifier: Apache-2.0
#include "cli/berth/common.hpp"
#include "cli/berth/show/container_words.hpp"
#include "cli/berth/show/list_rows.hpp"
#include "engine/inspect/container_query.hpp"

namespace berth::cli {
namespace {

struct PsOptions {
  bool all = false;
  bool latest = false;
  std::optional<int64_t> last;
  bool no_trunc = false;
  bool quiet = false;
  bool size = false;
  std::vector<engine::Filter> filters;
  std::string format;
};

FlagTable ps_flags(PsOptions& o) {
  return {
      {"all", 'a', "", "Include containers that are not running", &o.all},
      filter_flag(o.filters),
      template_flag(o.format),
      {"last", 'n', "NUMBER", "Show the newest NUMBER containers, running or not",
       read_integer(o.last)},
      {"latest", 'l', "", "Show only the newest container, running or not", &o.latest},
      {"no-trunc", 0, "", "Do not truncate ids and commands", &o.no_trunc},
      {"quiet", 'q', "", "Show only ids", &o.quiet},
      {"size", 's', "", "Show how much each container has written", &o.size},
  };
}

constexpr ListKind kContainers{
    .fields = kContainerFields,
    .table =
        "{{.ID}}\t{{.Image}}\t{{.Command}}\t{{.RunningFor}}\t{{.Status}}\t{{.Ports}}\t"
        "{{.Names}}",
    .raw =
        "container_id: {{.ID}}\nimage: {{.Image}}\ncommand: {{.Command}}\n"
        "created_at: {{.CreatedAt}}\nstate: {{.State}}\nstatus: {{.Status}}\n"
        "names: {{.Names}}\nlabels: {{.Labels}}\nports: {{.Ports}}\n",
    .raw_quiet = "container_id: {{.ID}}",
    .labels = true,
};

constexpr ListKind kContainersWithSize{
    .fields = kContainerFields,
    .table =
        "{{.ID}}\t{{.Image}}\t{{.Command}}\t{{.RunningFor}}\t{{.Status}}\t{{.Ports}}\t"
        "{{.Names}}\t{{.Size}}",
    .raw =
        "container_id: {{.ID}}\nimage: {{.Image}}\ncommand: {{.Command}}\n"
        "created_at: {{.CreatedAt}}\nstate: {{.State}}\nstatus: {{.Status}}\n"
        "names: {{.Names}}\nlabels: {{.Labels}}\nports: {{.Ports}}\nsize: {{.Size}}\n",
    .raw_quiet = "container_id: {{.ID}}",
    .labels = true,
};

bool needs_details(const Listing& listing) {
  for (std::string_view field : {"Labels", "Label", "Mounts", "LocalVolumes", "Networks"}) {
    if (listing.uses(field)) return true;
  }
  return false;
}

Result<int> run_ps(Session& session, const PsOptions& o, Arguments) {
  // -q prints ids, whatever the default format is.
  const std::string format = o.quiet ? o.format : format_or_usual(session, o.format, "psFormat");
  Listing listing = TRY(Listing::make(o.size ? kContainersWithSize : kContainers,
                                      {.text = format, .quiet = o.quiet}));
  engine::ContainerQuery query{.all = o.all,
                               .newest = {},
                               .filters = engine::Filters(o.filters),
                               .details = needs_details(listing),
                               .ports = listing.uses("Ports"),
                               .sizes = o.size || listing.uses("Size")};
  if (o.last && *o.last > 0) query.newest = static_cast<uint64_t>(*o.last);
  if (o.latest) query.newest = 1;
  std::vector<ListRow> rows;
  const Now now = std::chrono::system_clock::now();
  for (const auto& container : TRY(engine::query_containers(session.context, query))) {
    rows.push_back(container_row(container, o.no_trunc ? Text::whole : Text::shortened, now));
  }
  print(session, TRY(listing.text(rows)));
  return 0;
}

/// Flags of podman and enroot.
constexpr Elsewhere kPsElsewhere[] = {
    {"sort", "berth ps | sort", "the newest container comes first"},
};

}  // namespace

const Verb ps_verb{
    .text = {.name = "ps",
             .summary = "List containers",
             .example = "berth ps -a --filter name=web"},
    .elsewhere = kPsElsewhere,
    .command = [] { return make_command(ps_flags, run_ps); },
};

}  // namespace berth::cli
