// SPDX-License-Identifier: Apache-2.0
#include "cli/oci/verb.hpp"

namespace berth::cli::oci {
namespace {

struct Options {
  bool force = false;
};

FlagTable flags(Options& o) {
  return {{"force", 'f', "", "Kill it first; one that does not exist is fine", &o.force}};
}

Result<int> run(Session& session, const Options& options,
                const std::vector<std::string>& arguments) {
  runtime::Store store = TRY(runtime::Store::open(session.root));
  auto force = options.force ? runtime::Force::yes : runtime::Force::no;
  TRY_CTX(runtime::remove(store, arguments[0], force, session.log),
          "cannot delete container '" + arguments[0] + "'");
  return 0;
}

}  // namespace

const Verb delete_verb{
    .text = {.name = "delete",
             .arguments = "ID",
             .summary = "Remove what is left of a stopped container",
             .example = "berth-runtime delete --force web"},
    .arity = {1, 1},
    .command = [] { return make_command(flags, run); },
};

}  // namespace berth::cli::oci
