// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"
#include "cli/berth/common.hpp"
#include "engine/containers.hpp"
#include "engine/images.hpp"

namespace berth::cli {
namespace {

struct Options {
  std::optional<std::string> type;
};

FlagTable flags(Options& o) {
  return {
      {"type", 0, "TYPE", "Look among containers or images only", &o.type, {"container", "image"}}};
}

/// As docker does: a container of that name hides an image of that name.
Result<std::string> inspect(Session& session, const Options& o, const std::string& name) {
  if (o.type == "image") return engine::inspect_image(session.context, name);
  auto container = engine::inspect_container(session.context, name);
  if (container.ok() || o.type || container.error().kind != Kind::not_found) return container;
  auto image = engine::inspect_image(session.context, name);
  if (!image.ok() && image.error().kind == Kind::not_found) {
    return make_error(Kind::not_found, "no such container or image: " + quoted(name),
                      "berth ps --all, berth images");
  }
  return image;
}

Result<int> run(Session& session, const Options& o, std::vector<std::string> arguments) {
  json::Array found;
  int status = for_each_argument(session, arguments, [&](const std::string& name) -> Result<void> {
    std::string text = TRY(inspect(session, o, name));
    found.push_back(TRY(json::parse(text, name)));
    return {};
  });
  // An array at the root, unlike our other lists: scripts read `docker inspect X | jq '.[0]'`.
  print_json(session, found);
  return status;
}

}  // namespace

extern const Verb inspect_verb;
const Verb inspect_verb{
    .text = {.name = "inspect",
             .arguments = "NAME [NAME...]",
             .summary = "Show all that is known of containers or images, as JSON",
             .example = "berth inspect debian:12",
             .complete = Complete::image},
    .arity = {1},
    .command = [] { return make_command(flags, run); },
};

}  // namespace berth::cli
