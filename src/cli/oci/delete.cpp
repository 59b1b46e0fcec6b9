// SPDX-License-Identifier: Apache-2.0
#include "cli/oci/verb.hpp"

namespace berth::cli::oci {
namespace {

struct DeleteOptions {
  bool force = false;
  std::string oom_file;
};

FlagTable delete_flags(DeleteOptions& o) {
  return {
      {"force", 'f', "", "Kill it first; one that does not exist is fine", &o.force},
      {"oom-file", 0, "FILE", "Make FILE if the kernel killed some of it for want of memory",
       &o.oom_file},
  };
}

Result<int> run_delete(Session& session, const DeleteOptions& options,
                       const std::vector<std::string>& arguments) {
  runtime::Store store = TRY(runtime::Store::open(session.root));
  runtime::RemoveOptions remove{options.force ? runtime::Force::yes : runtime::Force::no,
                                options.oom_file};
  TRY_CTX(runtime::remove(store, arguments[0], remove, session.log),
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
    .command = [] { return make_command(delete_flags, run_delete); },
};

}  // namespace berth::cli::oci
