// SPDX-License-Identifier: Apache-2.0
#include "cli/berth/common.hpp"
#include "cli/berth/elsewhere_arguments.hpp"
#include "cli/berth/request_flags.hpp"
#include "cli/berth/request_options.hpp"
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

std::string beside_create(const RequestOptions& o) {
  return container_beside(o);
}

}  // namespace

const Verb create_verb{
    .text = {.name = "create",
             .arguments = "IMAGE [COMMAND [ARG...]]",
             .summary = "Create a container from an image without starting it",
             .example = "berth create --name web -it debian bash",
             .complete = Complete::image},
    .arity = {1},
    .needs = engine::Needs::user_namespace,
    .flags_end = FlagsEnd::at_first_argument,
    .elsewhere = kRequestElsewhere,
    .arguments_elsewhere = run_elsewhere,
    .error_status = 125,
    .footnote = network_footnote,
    .command =
        [] {
          return make_command(create_flags, run_create, beside_create, request_arity,
                              replaced_container);
        },
};

}  // namespace berth::cli
