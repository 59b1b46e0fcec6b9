// SPDX-License-Identifier: Apache-2.0
#include "cli/berth/common.hpp"
#include "engine/container/list.hpp"
#include "engine/container/volume_store.hpp"
#include "engine/inspect/inspect.hpp"
#include "engine/network/network_store.hpp"

namespace berth::cli {
namespace {

// podman's `exists` verbs for scripts: the exit status is the answer, and nothing is printed.

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
