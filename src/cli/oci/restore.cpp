// SPDX-License-Identifier: Apache-2.0
#include "runtime/checkpoint/restore.hpp"

#include "cli/oci/verb.hpp"

namespace berth::cli::oci {
namespace {

struct RestoreOptions {
  LaunchOptions launch;
  runtime::RestoreRequest request;
  std::vector<std::string> empty_namespaces;
  bool detach = false;
  bool no_subreaper = false;
};

FlagTable restore_flags(RestoreOptions& o) {
  FlagTable table = launch_flags(o.launch);
  FlagTable more = criu_flags(o.request.criu);
  table.insert(table.end(), more.begin(), more.end());
  table.insert(
      table.end(),
      {{"detach", 'd', "", "Do not wait for the container", &o.detach},
       {"no-subreaper", 0, "", "No effect: berth-runtime is never a subreaper", &o.no_subreaper},
       {"lsm-profile", 0, "TYPE:NAME",
        "AppArmor profile or SELinux label, instead of the checkpoint's", &o.request.lsm_profile},
       {"lsm-mount-context", 0, "CONTEXT", "SELinux mount context, instead of the checkpoint's",
        &o.request.lsm_mount_context},
       choice_flag("empty-ns", "NAME", "No effect: network namespaces are always restored empty",
                   &o.empty_namespaces, {"network"})});
  return table;
}

Result<int> run_restore(Session& session, const RestoreOptions& options,
                        const Arguments& arguments) {
  runtime::Store store = TRY(runtime::Store::open(session.root));
  runtime::RestoreRequest request = options.request;
  request.launch = TRY(to_request(session, options.launch, arguments[0]));
  auto detach = options.detach ? runtime::Detach::yes : runtime::Detach::no;
  return TRY_CTX(runtime::restore(store, std::move(request), detach, session.report, session.log),
                 "cannot restore container '" + arguments[0] + "'");
}

}  // namespace

const Verb restore_verb{
    .text = {.name = "restore",
             .arguments = "ID",
             .summary = "Restore a container from a checkpoint",
             .example =
                 "berth-runtime restore --detach --image-path /srv/saved --bundle /srv/web web"},
    .arity = {1, 1},
    .command = [] { return make_command(restore_flags, run_restore); },
};

}  // namespace berth::cli::oci
