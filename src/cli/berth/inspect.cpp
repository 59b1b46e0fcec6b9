// SPDX-License-Identifier: Apache-2.0
#include "engine/inspect/inspect.hpp"

#include "base/text.hpp"
#include "cli/berth/common.hpp"
#include "cli/berth/document_format.hpp"
#include "engine/container/list.hpp"
#include "engine/container/volume_query.hpp"
#include "engine/inspect/image_document.hpp"
#include "engine/network/query.hpp"
#include "engine/node/match.hpp"
#include "json/value.hpp"

namespace berth::cli {
namespace {

// ---- inspect ------------------------------------------------------------------------------------

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

/// As in docker: of equal names a container precedes an image, that a network, and that a volume.
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

/// Of docker's network inspect.
constexpr Elsewhere kInspectElsewhere[] = {
    {"v", "leave it out", "there is no swarm with tasks to show"},
    {"verbose", "leave it out", "there is no swarm with tasks to show"},
};

// ---- manifest inspect ---------------------------------------------------------------------------

struct ManifestOptions {
  image::RegistryAccess access;
  bool insecure = false;
  bool raw = false;
};

FlagTable manifest_flags(ManifestOptions& o) {
  FlagTable table{
      {"insecure", 0, "", "Allow HTTP or an unverified certificate for IMAGE's registry",
       &o.insecure},
      {"raw", 0, "", "Print the manifest exactly as the registry has it", &o.raw},
  };
  add_registry_flags(table, o.access);
  return table;
}

Result<int> inspect_manifest(Session& session, const ManifestOptions& o, Arguments arguments) {
  image::TransferResult found =
      TRY(engine::look_up_document(session.context, arguments[0], o.access, o.insecure));
  if (o.raw) {
    print(session, found.document);
  } else {
    print_json(session,
               TRY(json::parse(found.document, "the document of " + quote(found.reference))));
  }
  return 0;
}

/// Of docker.
constexpr Elsewhere kManifestElsewhere[] = {
    {"v", "berth match IMAGE, which shows each entry", "only one document is shown"},
    {"verbose", "berth match IMAGE, which shows each entry", "only one document is shown"},
};

// ---- exists -------------------------------------------------------------------------------------
// podman's questions for scripts: the status is the answer, and nothing is printed.

template <class T>
Result<int> answer(Result<T> found) {
  if (found.ok()) return 0;
  if (found.error().kind == Kind::not_found) return 1;
  return std::move(found).error();
}

Result<int> has_image(Session& session, const NoOptions&, Arguments arguments) {
  return answer(engine::inspect_image(session.context, arguments[0]));
}

Result<int> has_container(Session& session, const NoOptions&, Arguments arguments) {
  return answer(engine::get_container(session.context, arguments[0]));
}

Result<int> has_volume(Session& session, const NoOptions&, Arguments arguments) {
  return answer(engine::inspect_volume(session.context, arguments[0]));
}

Result<int> has_network(Session& session, const NoOptions&, Arguments arguments) {
  return answer(engine::inspect_network(session.context, arguments[0]));
}

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
const Verb manifest_inspect_verb{
    .text = {.name = "manifest inspect",
             .arguments = "IMAGE",
             .summary = "Show the manifest or index of an image in a registry",
             .example = "berth manifest inspect debian:12"},
    .arity = {1, 1},
    .elsewhere = kManifestElsewhere,
    .command = [] { return make_command(manifest_flags, inspect_manifest); },
};
const Verb image_exists_verb{
    .text = {.name = "image exists",
             .arguments = "IMAGE",
             .summary = "Check whether an image exists: exit status 0 if it does, else 1",
             .example = "berth image exists debian:12",
             .complete = Complete::image},
    .arity = {1, 1},
    .command = [] { return make_command(no_flags, has_image); },
};
const Verb container_exists_verb{
    .text = {.name = "container exists",
             .arguments = "CONTAINER",
             .summary = "Check whether a container exists: exit status 0 if it does, else 1",
             .example = "berth container exists web",
             .complete = Complete::container},
    .arity = {1, 1},
    .command = [] { return make_command(no_flags, has_container); },
};
const Verb network_exists_verb{
    .text = {.name = "network exists",
             .arguments = "NETWORK",
             .summary = "Check whether a network exists: exit status 0 if it does, else 1",
             .example = "berth network exists app",
             .complete = Complete::network},
    .arity = {1, 1},
    .command = [] { return make_command(no_flags, has_network); },
};
const Verb volume_exists_verb{
    .text = {.name = "volume exists",
             .arguments = "VOLUME",
             .summary = "Check whether a volume exists: exit status 0 if it does, else 1",
             .example = "berth volume exists data",
             .complete = Complete::volume},
    .arity = {1, 1},
    .command = [] { return make_command(no_flags, has_volume); },
};

}  // namespace berth::cli
