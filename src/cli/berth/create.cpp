// SPDX-License-Identifier: Apache-2.0
#include "cli/berth/common.hpp"
#include "cli/berth/request_flags.hpp"
#include "engine/run/start.hpp"

namespace berth::cli {
namespace {

FlagTable create_flags(RequestOptions& o) {
  FlagTable table;
  add_request_flags(table, o);
  sort_flags(table);
  return table;
}

Result<int> run_create(Session& session, const RequestOptions& o, Arguments arguments) {
  engine::Asked asked = TRY(read_request(session, o, std::move(arguments)));
  TransferDisplay display(session, Stream::err, Direction::pull, o.call.quiet);
  std::string id =
      TRY(engine::create_container(session.context, std::move(asked), display.progress()));
  print(session, id + "\n");
  return 0;
}

}  // namespace

const Verb create_verb =
    verb_with_image({.name = "create",
                     .arguments = "IMAGE [COMMAND [ARG...]]",
                     .summary = "Create a container from an image without starting it",
                     .example = "berth create --name web -it debian bash",
                     .complete = Complete::image},
                    [] {
                      return make_command(create_flags, run_create, container_beside, request_arity,
                                          replaced_container);
                    });

}  // namespace berth::cli
