// SPDX-License-Identifier: Apache-2.0
#include "runtime/checkpoint.hpp"

#include "cli/oci/verb.hpp"

namespace berth::cli::oci {
namespace {

struct CheckpointOptions {
  runtime::CheckpointRequest request;
  std::vector<std::string> empty_namespaces;
};

FlagTable checkpoint_flags(CheckpointOptions& o) {
  runtime::CheckpointRequest& r = o.request;
  FlagTable table = criu_flags(r.criu);
  table.insert(
      table.end(),
      {{"parent-path", 0, "DIR", "The pre-dump before, relative to --image-path", &r.parent_path},
       {"leave-running", 0, "", "Let the container go on afterwards", &r.leave_running},
       {"pre-dump", 0, "", "Write memory alone, and let the container go on", &r.pre_dump},
       {"page-server", 0, "ADDRESS:PORT", "Send memory to the page server there", &r.page_server},
       {"status-fd", 0, "N", "Told when lazy pages can be asked for", &r.status_fd},
       choice_flag("empty-ns", "NAME", "Accepted: a network namespace is always left empty",
                   &o.empty_namespaces, {"network"})});
  return table;
}

Result<int> run_checkpoint(Session& session, const CheckpointOptions& options,
                           const Arguments& arguments) {
  runtime::Store store = TRY(runtime::Store::open(session.root));
  runtime::CheckpointRequest request = options.request;
  request.id = arguments[0];
  TRY_CTX(runtime::checkpoint(store, request, session.log),
          "cannot checkpoint container '" + arguments[0] + "'");
  return 0;
}

}  // namespace

const Verb checkpoint_verb{
    .text = {.name = "checkpoint",
             .arguments = "ID",
             .summary = "Write a container's processes into files and end it",
             .example = "berth-runtime checkpoint --image-path /srv/saved web"},
    .arity = {1, 1},
    .command = [] { return make_command(checkpoint_flags, run_checkpoint); },
};

}  // namespace berth::cli::oci
