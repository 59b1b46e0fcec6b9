// SPDX-License-Identifier: Apache-2.0
#include "cli/berth/common.hpp"
#include "cli/berth/elsewhere.hpp"
#include "engine/image/images.hpp"

namespace berth::cli {
namespace {

struct PushOptions {
  image::PushRequest request;
  bool all_tags = false;
};

FlagTable push_flags(PushOptions& o) {
  FlagTable table{{"all-tags", 'a', "", "Push all tags of the repository", &o.all_tags},
                  {"quiet", 'q', "", "Print only the image reference", &o.request.quiet}};
  add_registry_flags(table, o.request.access);
  return table;
}

/// "latest" of "host:5000/a/b:latest"; a reference by digest has no tag.
std::string tag_of(std::string_view reference) {
  std::string_view name = reference.substr(0, reference.find('@'));
  size_t colon = name.rfind(':');
  if (colon == std::string_view::npos || name.find('/', colon) != std::string_view::npos) return "";
  return std::string(name.substr(colon + 1));
}

Result<void> push(Session& session, const PushOptions& o, const std::string& reference) {
  image::PushRequest request = o.request;
  request.reference = reference;
  image::TransferResult pushed =
      TRY(transfer_shown(session, request, Stream::out, Direction::push, request.quiet));
  if (request.quiet) {
    print(session, pushed.reference + "\n");
    return {};
  }
  std::string tag = tag_of(pushed.reference);
  print(session, (tag.empty() ? "" : tag + ": ") + "digest: " + pushed.digest +
                     " size: " + std::to_string(pushed.size) + "\n");
  return {};
}

Result<int> run_push(Session& session, const PushOptions& o, Arguments arguments) {
  std::vector<std::string> references = {arguments[0]};
  if (o.all_tags) references = TRY(engine::tags_of(session.context, arguments[0]));
  for (const std::string& reference : references) TRY(push(session, o, reference));
  return 0;
}

/// Flags of docker.
constexpr Elsewhere kPushElsewhere[] = {
    {"disable-content-trust", "leave it out", "signatures are not made"},
};

}  // namespace

const Verb push_verb{
    .text = {.name = "push",
             .arguments = "IMAGE",
             .summary = "Upload an image to a registry",
             .example = "berth push localhost:5000/tools:1",
             .complete = Complete::image},
    .arity = {1, 1},
    .elsewhere = kPushElsewhere,
    .arguments_elsewhere = push_elsewhere,
    .command = [] { return make_command(push_flags, run_push); },
};

}  // namespace berth::cli
