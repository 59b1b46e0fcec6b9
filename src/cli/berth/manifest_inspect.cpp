// SPDX-License-Identifier: Apache-2.0
#include "cli/berth/common.hpp"
#include "engine/node/match.hpp"
#include "json/value.hpp"

namespace berth::cli {
namespace {

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

}  // namespace

const Verb manifest_inspect_verb{
    .text = {.name = "manifest inspect",
             .arguments = "IMAGE",
             .summary = "Show the manifest or index of an image in a registry",
             .example = "berth manifest inspect debian:12"},
    .arity = {1, 1},
    .elsewhere = kManifestElsewhere,
    .command = [] { return make_command(manifest_flags, inspect_manifest); },
};

}  // namespace berth::cli
