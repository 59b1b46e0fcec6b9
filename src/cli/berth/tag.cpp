// SPDX-License-Identifier: Apache-2.0
#include "cli/berth/common.hpp"
#include "engine/image/images.hpp"

namespace berth::cli {
namespace {

Result<int> run_tag(Session& session, const NoOptions&, Arguments arguments) {
  TRY(engine::tag_image(session.context, arguments[0], arguments[1]));
  return 0;
}

}  // namespace

const Verb tag_verb{
    .text = {.name = "tag",
             .arguments = "SOURCE TARGET",
             .summary = "Add a name to an image",
             .example = "berth tag debian:12 localhost:5000/debian:12",
             .complete = Complete::image},
    .arity = {2, 2},
    .command = [] { return make_command(no_flags, run_tag); },
};

}  // namespace berth::cli
