// SPDX-License-Identifier: Apache-2.0
#include "engine/inspect/inspect.hpp"

#include "base/text.hpp"
#include "cli/berth/common.hpp"
#include "cli/berth/document_format.hpp"
#include "engine/container/volume_store.hpp"
#include "engine/network/network_store.hpp"

namespace berth::cli {
namespace {

struct InspectOptions {
  std::string format;
  bool size = false;
  std::optional<std::string> type;
};

FlagTable inspect_flags(InspectOptions& o) {
  return {
      {"format", 'f', "FORMAT", "Output format: json or a template such as '{{.Id}}'", &o.format},
      {"size", 's', "", "Also show how much a container has written", &o.size},
      choice_flag("type", "TYPE", "Inspect only objects of this type", &o.type,
                  {"container", "image", "network", "volume"})};
}

/// As in docker, a name is looked up first as a container, then as an image, a network, a volume.
Result<std::string> inspect(Session& session, const InspectOptions& o, const std::string& name) {
  if (o.type == "image") return engine::inspect_image(session.context, name);
  if (o.type == "network") return engine::inspect_network(session.context, name);
  if (o.type == "volume") return engine::inspect_volume(session.context, name);
  auto container = engine::inspect_container(session.context, name,
                                             o.size ? engine::Sizes::yes : engine::Sizes::no);
  if (container.ok() || o.type || container.error().kind != Kind::not_found) return container;
  auto image = engine::inspect_image(session.context, name);
  if (image.ok() || image.error().kind != Kind::not_found) return image;
  auto network = engine::inspect_network(session.context, name);
  if (network.ok() || network.error().kind != Kind::not_found) return network;
  auto volume = engine::inspect_volume(session.context, name);
  if (volume.ok() || volume.error().kind != Kind::not_found) return volume;
  return make_error(Kind::not_found, "no such object: " + escape_controls(name),
                    "berth ps --all, berth images, berth network ls, berth volume ls");
}

Result<int> run_inspect(Session& session, const InspectOptions& o, Arguments arguments) {
  std::optional<DocumentFormat> format;
  if (!o.format.empty()) {
    auto made = DocumentFormat::make(o.format);
    if (!made.ok()) {
      session.report.error(made.error());
      return kFormatStatus;
    }
    format = std::move(*made);
  }
  const bool lines = format && !format->is_json();
  json::Array found;
  std::string text;
  int status = for_each_argument(session, arguments, [&](const std::string& name) -> Result<void> {
    std::string document = TRY(inspect(session, o, name));
    found.push_back(TRY(json::parse(document, name)));
    if (lines) text += TRY(format->text(found.back())) + "\n";
    return {};
  });
  // An array at the root, unlike lists: scripts read `docker inspect X | jq '.[0]'`.
  if (lines) {
    print(session, text.empty() ? "\n" : text);
  } else if (format) {
    print(session, json::dump(found) + "\n");
  } else {
    print(session, json::dump(found, 4));
  }
  return status;
}

/// Flags of docker's network inspect.
constexpr Elsewhere kInspectElsewhere[] = {
    {"v", "leave it out", "there is no swarm with tasks to show"},
    {"verbose", "leave it out", "there is no swarm with tasks to show"},
};

}  // namespace

const Verb inspect_verb{
    .text = {.name = "inspect",
             .arguments = "NAME [NAME...]",
             .summary = "Show details of containers, images, networks or volumes as JSON",
             .example = "berth inspect debian:12",
             .complete = Complete::object},
    .arity = {1},
    .elsewhere = kInspectElsewhere,
    .command = [] { return make_command(inspect_flags, run_inspect); },
};

}  // namespace berth::cli
