// SPDX-License-Identifier: Apache-2.0
#include "engine/images.hpp"

#include "base/text.hpp"
#include "cli/berth/common.hpp"
#include "cli/core/table.hpp"

namespace berth::cli {
namespace {

struct Options {
  bool all = false;
  bool digests = false;
  bool no_trunc = false;
  bool quiet = false;
  std::string format = "table";
};

FlagTable flags(Options& o) {
  return {
      {"all", 'a', "", "All images; the default, since there are no hidden ones", &o.all},
      {"digests", 0, "", "Show what the registry named", &o.digests},
      {"no-trunc", 0, "", "Show whole ids", &o.no_trunc},
      {"quiet", 'q', "", "Show ids alone", &o.quiet},
      format_flag(o.format),
  };
}

json::Value to_json(const engine::ImageSummary& image) {
  return json::Object{
      {"repository", image.repository},
      {"tag", image.tag},
      {"digest", image.digest.empty() ? json::Value() : image.digest},
      {"id", image.id},
      {"created_at", json_time(image.created_at)},
      {"size_bytes", image.size},
  };
}

/// "NAME" shows all tags of a repository, "NAME:TAG" one, as `docker images` does.
bool is_asked_for(const engine::ImageSummary& image, const std::vector<std::string>& arguments) {
  if (arguments.empty()) return true;
  std::string wanted = engine::familiar(arguments[0]);
  return wanted == image.repository || wanted == image.repository + ":" + image.tag;
}

std::string table_of(const std::vector<engine::ImageSummary>& images, const Options& o) {
  std::vector<std::string_view> titles{"REPOSITORY", "TAG", "IMAGE ID", "CREATED", "SIZE"};
  if (o.digests) titles.insert(titles.begin() + 2, "DIGEST");
  Table table(titles);
  for (const engine::ImageSummary& image : images) {
    std::vector<std::string> cells{image.repository, image.tag,
                                   shown_id(image.id, o.no_trunc ? Ids::whole : Ids::shortened),
                                   ago(image.created_at), human_bytes(image.size)};
    if (o.digests) cells.insert(cells.begin() + 2, image.digest.empty() ? "<none>" : image.digest);
    table.add(std::move(cells));
  }
  return table.text();
}

Result<int> run(Session& session, const Options& o, std::vector<std::string> arguments) {
  std::vector<engine::ImageSummary> images = TRY(engine::list_images(session.context));
  std::erase_if(images, [&](const auto& image) { return !is_asked_for(image, arguments); });
  if (o.format == "json") {
    json::Array list;
    for (const auto& image : images) list.push_back(to_json(image));
    print_json(session, json::Object{{"images", std::move(list)}});
  } else if (o.quiet) {
    for (const auto& image : images) {
      print(session, shown_id(image.id, o.no_trunc ? Ids::whole : Ids::shortened) + "\n");
    }
  } else {
    print(session, table_of(images, o));
  }
  return 0;
}

}  // namespace

extern const Verb images_verb;
const Verb images_verb{
    .text = {.name = "images",
             .arguments = "[REPOSITORY[:TAG]]",
             .summary = "List images",
             .example = "berth images --format json",
             .complete = Complete::image},
    .arity = {0, 1},
    .command = [] { return make_command(flags, run); },
};

}  // namespace berth::cli
