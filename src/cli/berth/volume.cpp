// SPDX-License-Identifier: Apache-2.0
#include "cli/berth/common.hpp"
#include "cli/berth/show/list_rows.hpp"
#include "engine/container/volume_store.hpp"

namespace berth::cli {
namespace {

// ---- create -------------------------------------------------------------------------------------

struct CreateOptions {
  std::string driver = "local";
  std::string name;
  std::map<std::string, std::string> labels;
  std::vector<std::string> options;
};

FlagTable create_flags(CreateOptions& o) {
  return {
      {"driver", 'd', "NAME", "Volume driver: only local", &o.driver},
      {"label", 0, "K[=V]", "Set a label", read_label(o.labels)},
      {"name", 0, "NAME", "The same as the argument", &o.name},
      {"opt", 'o', "K=V", "Driver option (the local driver has none)", &o.options},
  };
}

std::map<std::string, std::string> pairs_of(const std::vector<std::string>& texts) {
  std::map<std::string, std::string> pairs;
  for (const std::string& text : texts) {
    size_t equals = text.find('=');
    pairs[text.substr(0, equals)] = equals == text.npos ? "" : text.substr(equals + 1);
  }
  return pairs;
}

Result<int> create(Session& session, const CreateOptions& o, Arguments arguments) {
  if (!arguments.empty() && !o.name.empty()) {
    return make_error(Kind::usage,
                      "conflicting options: either specify --name or provide "
                      "positional arg, not both");
  }
  engine::VolumeRecord wish;
  wish.driver = o.driver;
  wish.name = arguments.empty() ? o.name : arguments[0];
  wish.labels = o.labels;
  wish.options = pairs_of(o.options);
  print(session, TRY(engine::make_volume(session.context, wish)).name + "\n");
  return 0;
}

// ---- ls -----------------------------------------------------------------------------------------

struct ListOptions {
  std::vector<engine::Filter> filters;
  std::string format;
  bool quiet = false;
};

FlagTable list_flags(ListOptions& o) {
  return {
      filter_flag(o.filters),
      template_flag(o.format),
      {"quiet", 'q', "", "Show only names", &o.quiet},
  };
}

constexpr ListKind kVolumes{
    .fields = kVolumeFields,
    .table = "{{.Driver}}\t{{.Name}}",
    .quiet = "{{.Name}}",
    .raw = "name: {{.Name}}\ndriver: {{.Driver}}\n",
    .labels = true,
};

Result<int> list(Session& session, const ListOptions& o, Arguments) {
  // -q prints ids, whatever the default format is.
  const std::string format =
      o.quiet ? o.format : format_or_usual(session, o.format, "volumesFormat");
  Listing listing = TRY(Listing::make(kVolumes, {.text = format, .quiet = o.quiet}));
  std::vector<ListRow> rows;
  engine::Filters filters(o.filters);
  for (const auto& volume : TRY(engine::query_volumes(session.context, filters))) {
    rows.push_back(volume_row(session, volume));
  }
  print(session, TRY(listing.text(rows)));
  return 0;
}

// ---- rm -----------------------------------------------------------------------------------------

struct RemoveOptions {
  bool force = false;
};

FlagTable remove_flags(RemoveOptions& o) {
  return {{"force", 'f', "", "Ignore missing ones", &o.force}};
}

Result<int> remove(Session& session, const RemoveOptions& o, Arguments arguments) {
  return for_each_argument(session, arguments, [&](const std::string& name) -> Result<void> {
    auto removed = engine::remove_volume(session.context, name);
    bool missing = !removed.ok() && removed.error().kind == Kind::not_found;
    if (!missing || !o.force) TRY(std::move(removed));
    print(session, name + "\n");
    return {};
  });
}

}  // namespace

const Verb volume_create_verb{
    .text = {.name = "volume create",
             .arguments = "[NAME]",
             .summary = "Create a volume, which containers mount by its name",
             .example = "berth volume create --label kind=cache models"},
    .arity = {0, 1},
    .needs = engine::Needs::user_namespace,
    .command = [] { return make_command(create_flags, create); },
};
const Verb volume_ls_verb{
    .text = {.name = "volume ls",
             .summary = "List volumes",
             .example = "berth volume ls --filter dangling=true -q"},
    .command = [] { return make_command(list_flags, list); },
};
const Verb volume_rm_verb{
    .text = {.name = "volume rm",
             .arguments = "NAME [NAME...]",
             .summary = "Remove volumes",
             .example = "berth volume rm models",
             .complete = Complete::volume},
    .arity = {1},
    .needs = engine::Needs::user_namespace,
    .command = [] { return make_command(remove_flags, remove); },
};

}  // namespace berth::cli
