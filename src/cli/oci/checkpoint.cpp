// SPDX-License-Identifier: Apache-2.0
#include "runtime/checkpoint/checkpoint.hpp"

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
      {{"parent-path", 0, "DIR", "Directory of an earlier pre-dump, relative to --image-path",
        &r.parent_path},
       {"leave-running", 0, "", "Leave the container running", &r.leave_running},
       {"pre-dump", 0, "", "Save only memory, and leave the container running", &r.pre_dump},
       {"page-server", 0, "ADDRESS:PORT", "Send memory pages to this page server", &r.page_server},
       {"status-fd", 0, "N", "File descriptor that is notified when lazy pages are ready",
        &r.status_fd},
       choice_flag("empty-ns", "NAME", "No effect: network namespaces are always restored empty",
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
             .summary = "Save a container's processes to files and stop it",
             .example = "berth-runtime checkpoint --image-path /srv/saved web"},
    .arity = {1, 1},
    .command = [] { return make_command(checkpoint_flags, run_checkpoint); },
};

}  // namespace berth::cli::oci
