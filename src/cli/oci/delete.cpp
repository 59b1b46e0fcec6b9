// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"
#include "cli/oci/matching.hpp"

namespace berth::cli::oci {
namespace {

struct DeleteOptions {
  bool force = false;
  bool regex = false;
  std::string oom_file;
};

FlagTable delete_flags(DeleteOptions& o) {
  return {
      {"force", 'f', "", "Kill it first if it runs; ignore a missing container", &o.force},
      {"regex", 'r', "", "Treat ID as a regular expression that matches container ids", &o.regex},
      {"oom-file", 0, "FILE", "Create FILE if the OOM killer killed a process of it", &o.oom_file},
  };
}

Result<int> run_delete(Session& session, const DeleteOptions& options, const Arguments& arguments) {
  runtime::Store store = TRY(runtime::Store::open(session.root));
  runtime::RemoveOptions remove{options.force ? runtime::Force::yes : runtime::Force::no,
                                options.oom_file};
  auto act = [&](const std::string& id) -> Result<void> {
    TRY_CTX(runtime::remove(store, id, remove, session.log),
            "cannot delete container " + quote(id));
    return {};
  };
  if (options.regex) return for_each_id(session, TRY(matching_ids(store, arguments[0])), act);
  TRY(act(arguments[0]));
  return 0;
}

}  // namespace

const Verb delete_verb{
    .text = {.name = "delete",
             .arguments = "ID",
             .summary = "Delete a stopped container",
             .example = "berth-runtime delete --force web"},
    .arity = {1, 1},
    .command = [] { return make_command(delete_flags, run_delete); },
};

}  // namespace berth::cli::oci
