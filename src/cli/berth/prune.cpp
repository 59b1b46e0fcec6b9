// SPDX-License-Identifier: Apache-2.0
#include "cli/berth/prune.hpp"

#include "base/text.hpp"
#include "engine/build/buildah_cache.hpp"

namespace berth::cli {
namespace {

constexpr std::string_view kPrunedContainers = "WARNING! This will remove all stopped containers.";
constexpr std::string_view kPrunedVolumes =
    "WARNING! This will remove all local volumes not used by at least one container.";
constexpr std::string_view kDangling = "WARNING! This will remove all dangling images.";
constexpr std::string_view kPrunedImages =
    "WARNING! This will remove all images without at least one container associated to them.";

constexpr std::string_view kBuildCache = "WARNING! This will remove all build cache.";
constexpr std::string_view kDeletedCache = "Deleted build cache objects:";

struct PruneOptions {
  PruneFlags prune;
  bool all = false;
  bool volumes = false;
  bool dry_run = false;
  std::optional<std::string> keep;
  std::string format;
};

FlagTable plain_flags(PruneOptions& o) {
  return prune_flags(o.prune);
}

FlagTable image_flags(PruneOptions& o) {
  FlagTable table = prune_flags(o.prune);
  table.insert(table.begin(),
               {"all", 'a', "", "Remove all unused images, not only dangling ones", &o.all});
  return table;
}

// None of docker's filters applies: no layer of the cache belongs to an image.
FlagTable builder_flags(PruneOptions& o) {
  return {{"all", 'a', "", "No effect: the whole cache is always removed", &o.all},
          {"force", 'f', "", "Do not ask for confirmation", &o.prune.force}};
}

FlagTable system_flags(PruneOptions& o) {
  FlagTable table = image_flags(o);
  table.push_back({"volumes", 0, "", "Also remove unused volumes", &o.volumes});
  table.push_back({"keep", 0, "SIZE",
                   "Instead, remove least recently used images until they fit into SIZE", &o.keep});
  table.push_back({"keep-storage", 0, "SIZE", "The same as --keep", &o.keep});
  table.push_back({"dry-run", 0, "", "With --keep: only show what would be removed", &o.dry_run});
  table.push_back(
      choice_flag("format", "FORMAT", "With --keep: output format", &o.format, {"json"}));
  return table;
}

/// Flags of docker.
constexpr std::string_view kWholeCache = "the build cache is removed as a whole";
constexpr Elsewhere kBuilderElsewhere[] = {
    {"filter", "leave it out", kWholeCache},
    {"keep-storage", "berth system prune --keep SIZE, for images", kWholeCache},
};

/// Prints the result of a verb that removes one kind of object.
int print_all(Session& session, std::string_view title, const engine::Pruned& pruned) {
  print_pruned(session, title, pruned);
  print_reclaimed(session, pruned.bytes);
  return 0;
}

Result<int> prune_containers(Session& session, const PruneOptions& o, Arguments) {
  if (!TRY(confirm(session, o.prune.force, kPrunedContainers))) return 0;
  auto pruned = TRY(engine::prune_containers(session.context, prune_options(o.prune)));
  return print_all(session, "Deleted Containers:", pruned);
}

Result<int> prune_volumes(Session& session, const PruneOptions& o, Arguments) {
  if (!TRY(confirm(session, o.prune.force, kPrunedVolumes))) return 0;
  auto pruned = TRY(engine::prune_volumes(session.context, prune_options(o.prune)));
  return print_all(session, "Deleted Volumes:", pruned);
}

Result<int> prune_images(Session& session, const PruneOptions& o, Arguments) {
  if (!TRY(confirm(session, o.prune.force, o.all ? kPrunedImages : kDangling))) return 0;
  engine::PruneOptions options = prune_options(o.prune);
  options.all_images = o.all;
  auto pruned = TRY(engine::prune_images(session.context, options));
  return print_all(session, "Deleted Images:", pruned);
}

Result<int> prune_builder(Session& session, const PruneOptions& o, Arguments) {
  if (!TRY(confirm(session, o.prune.force, kBuildCache))) return 0;
  auto pruned = TRY(engine::prune_build_cache(session.context));
  return print_all(session, kDeletedCache, pruned);
}

/// Does not remove the cache while a build runs.
engine::Pruned prune_idle_build_cache(Session& session) {
  auto pruned = engine::prune_build_cache(session.context);
  if (pruned.ok()) return std::move(*pruned);
  session.context.log.warn(to_line(pruned.error()) + ", ignoring");
  return {};
}

std::string system_warning(const PruneOptions& o) {
  std::string text = "WARNING! This will remove:\n  - all stopped containers\n";
  text += "  - all networks not used by at least one container\n";
  if (o.volumes) text += "  - all volumes not used by at least one container\n";
  text += o.all ? "  - all images without at least one container associated to them\n"
                : "  - all dangling images\n";
  return text + "  - all build cache\n";
}

json::Value shrunk_value(const engine::Shrunk& shrunk, bool dry_run) {
  json::Array images;
  for (const engine::ShrunkImage& image : shrunk.images) {
    images.emplace_back(json::Object{{"id", image.id},
                                     {"references", json_strings(image.references)},
                                     {"last_used", json_time(image.used_at)},
                                     {"bytes", image.bytes}});
  }
  return json::Object{{"dry_run", dry_run},
                      {"images", std::move(images)},
                      {"layers", json_strings(shrunk.layers)},
                      {"reclaimed_bytes", shrunk.before - shrunk.after},
                      {"kept_bytes", shrunk.after}};
}

void print_shrunk(Session& session, const engine::Shrunk& shrunk, const PruneOptions& o) {
  if (o.format == "json") {
    print_json(session, shrunk_value(shrunk, o.dry_run));
    return;
  }
  engine::Pruned pruned;
  for (const engine::ShrunkImage& image : shrunk.images) {
    for (const std::string& name : image.references) pruned.names.push_back("untagged: " + name);
    pruned.names.push_back("deleted: " + image.id);
  }
  for (const std::string& layer : shrunk.layers) pruned.names.push_back("deleted: " + layer);
  print_pruned(session, o.dry_run ? "Would delete Images:" : "Deleted Images:", pruned);
  print_reclaimed(session, shrunk.before - shrunk.after);
}

Result<int> shrink(Session& session, const PruneOptions& o) {
  auto most = parse_bytes(*o.keep);
  if (!most) return make_error(Kind::usage, "--keep: " + quote(*o.keep) + " is not a size", "50GB");
  if (o.all || o.volumes || !o.prune.filters.empty()) {
    return make_error(Kind::usage,
                      "--keep cannot be used together with --all, --volumes or --filter: it "
                      "selects images only by their last use");
  }
  std::string warning =
      "WARNING! This will remove the least recently used images that no container uses, until "
      "images take at most " +
      human_bytes(*most) + ".";
  if (!TRY(confirm(session, o.prune.force || o.dry_run, warning))) return 0;
  print_shrunk(session, TRY(engine::shrink_images(session.context, {*most, o.dry_run})), o);
  return 0;
}

Result<int> prune_system(Session& session, const PruneOptions& o, Arguments) {
  if (o.keep) return shrink(session, o);
  if (o.dry_run || !o.format.empty()) {
    return make_error(Kind::usage, "--dry-run and --format need --keep");
  }
  engine::PruneOptions options = prune_options(o.prune);
  options.all_images = o.all;
  if (o.volumes && options.filters.has("until")) {
    return make_error(Kind::usage, "the \"until\" filter is not supported with \"--volumes\"",
                      "berth system prune without --volumes");
  }
  if (!TRY(confirm(session, o.prune.force, system_warning(o)))) return 0;
  auto containers = TRY(engine::prune_containers(session.context, options));
  print_pruned(session, "Deleted Containers:", containers);
  print_pruned(session, "Deleted Networks:", TRY(engine::prune_networks(session.context, options)));
  engine::Pruned volumes;
  if (o.volumes) volumes = TRY(engine::prune_volumes(session.context, options));
  print_pruned(session, "Deleted Volumes:", volumes);
  auto images = TRY(engine::prune_images(session.context, options));
  print_pruned(session, "Deleted Images:", images);
  engine::Pruned cache;
  // The cache has neither labels nor one creation time, so with a filter it is kept, as in docker.
  if (options.filters.empty()) cache = prune_idle_build_cache(session);
  print_pruned(session, kDeletedCache, cache);
  print_reclaimed(session, containers.bytes + volumes.bytes + images.bytes + cache.bytes);
  return 0;
}

}  // namespace

FlagTable prune_flags(PruneFlags& flags) {
  Flag filter = filter_flag(flags.filters);
  filter.letter = 0;  // -f is --force here
  return {
      std::move(filter),
      {"force", 'f', "", "Do not ask for confirmation", &flags.force},
  };
}

engine::PruneOptions prune_options(const PruneFlags& flags) {
  engine::PruneOptions options;
  options.filters = engine::Filters(flags.filters);
  options.now =
      std::chrono::nanoseconds(std::chrono::system_clock::now().time_since_epoch()).count();
  return options;
}

Result<bool> confirm(Session& session, bool force, std::string_view warning) {
  if (force) return true;
  std::string prompt = std::string(warning) + "\nAre you sure you want to continue? [y/N] ";
  std::string answer;
  if (session.terminal.input_is_terminal()) {
    answer = TRY(session.terminal.ask(prompt));
  } else {
    print(session, prompt);
    answer = TRY(session.terminal.read_input());
  }
  std::string_view first = trim(std::string_view(answer).substr(0, answer.find('\n')));
  if (to_lower(first) == "y") return true;
  print_reclaimed(session, 0);
  return false;
}

void print_pruned(Session& session, std::string_view title, const engine::Pruned& pruned) {
  if (pruned.names.empty()) return;
  std::string text = std::string(title) + "\n";
  for (const std::string& name : pruned.names) text += escape_controls(name) + "\n";
  print(session, text + "\n");
}

void print_reclaimed(Session& session, uint64_t bytes) {
  print(session, "Total reclaimed space: " + human_bytes(bytes) + "\n");
}

const Verb container_prune_verb{
    .text = {.name = "container prune",
             .summary = "Remove all stopped containers",
             .example = "berth container prune --force --filter until=24h"},
    .needs = engine::Needs::user_namespace,
    .command = [] { return make_command(plain_flags, prune_containers); },
};
const Verb image_prune_verb{
    .text = {.name = "image prune",
             .summary = "Remove dangling images, or all unused images",
             .example = "berth image prune --all --force"},
    .needs = engine::Needs::user_namespace,
    .command = [] { return make_command(image_flags, prune_images); },
};
const Verb volume_prune_verb{
    .text = {.name = "volume prune",
             .summary = "Remove all volumes that no container uses",
             .example = "berth volume prune --force"},
    .needs = engine::Needs::user_namespace,
    .command = [] { return make_command(plain_flags, prune_volumes); },
};
const Verb builder_prune_verb{
    .text = {.name = "builder prune",
             .summary = "Remove the build cache",
             .example = "berth builder prune --force"},
    .needs = engine::Needs::user_namespace,
    .elsewhere = kBuilderElsewhere,
    .command = [] { return make_command(builder_flags, prune_builder); },
};
const Verb system_prune_verb{
    .text = {.name = "system prune",
             .summary = "Remove stopped containers, unused networks and images, and build cache",
             .example = "berth system prune --keep 50GB"},
    .needs = engine::Needs::user_namespace,
    .command = [] { return make_command(system_flags, prune_system); },
};

}  // namespace berth::cli
