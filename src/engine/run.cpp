// SPDX-License-Identifier: Apache-2.0
#include "engine/run.hpp"

#include "base/rollback.hpp"
#include "engine/attach.hpp"
#include "engine/bundle.hpp"
#include "engine/cid_file.hpp"
#include "engine/containers.hpp"
#include "engine/dry_run.hpp"
#include "engine/events.hpp"
#include "engine/explain.hpp"
#include "engine/health.hpp"
#include "engine/launch.hpp"
#include "engine/new_container.hpp"
#include "engine/reason.hpp"
#include "engine/rootfs_driver.hpp"
#include "engine/settle.hpp"
#include "engine/site_rules.hpp"
#include "engine/start.hpp"
#include "engine/store.hpp"
#include "engine/sweep.hpp"
#include "engine/volumes.hpp"
#include "engine/watch.hpp"
#include "plan/plan.hpp"
#include "sys/file.hpp"
#include "sys/host_facts.hpp"
#include "sys/umask.hpp"

namespace berth::engine {
namespace {

RunOutcome outcome_of(const std::string& id, Ended ended) {
  return RunOutcome{id, ended.status, std::move(ended.command_error),
                    std::move(ended.stream_error)};
}

/// A container of this call alone: nobody detaches from it, its output is nobody else's, and it is
/// gone with its caller. It needs no monitor (docs/decisions/0008).
bool is_of_this_call(const RunRequest& request, const RunCall& call, const image::Image& image) {
  // Of a container in front of us all streams are ours.
  bool shows_all = is_attached(call, "stdout") && is_attached(call, "stderr");
  // Somebody has to run a check of its health.
  return request.remove && !request.terminal && !call.detach && shows_all &&
         !health_check(request.health, image.config.config);
}

Result<RunOutcome> run_in_front(const Context& context, const RunRequest& request,
                                const RunCall& call, image::Store& store, const image::Image& image,
                                CidFile& cid_file) {
  const std::string id = make_container_id();
  LaunchOptions options{request.interactive, request.terminal,
                        request.name.value_or(id.substr(0, 12)), call.held, call.pmi_descriptor};
  Foreground front = TRY(Foreground::open(context, id, bundle_path(context, request, id), options));
  Making making;
  making.config_written = [&] { front.announce(); };
  NewContainer made =
      TRY(NewContainer::make(context, request, store, image, id, Owner::caller, making));
  Rollback undo;  // after what it refers to
  undo.add([&] { remove_quietly(context, made.directory); });
  TRY(cid_file.write(id));
  Stages stages;
  stages.started = [&] {
    tell_container(context.paths, id, "attach");
    tell_container(context.paths, id, "start");
    keep_reasons(context, made.draft, made.directory.files_fd());
    sweep(context);
  };
  bool exited = false;
  stages.exited = [&](int status) {
    exited = true;
    tell_container(context.paths, id, "die", {{"exitCode", std::to_string(status)}});
    // For those who wait; it is gone in a moment.
    ignore(made.directory.append(ExitRecord{status, nanoseconds_now()}));
    if (call.ended) call.ended(id);
    undo.commit();
    remove_quietly(context, made.directory);
  };
  Ended ended = TRY(front.run(stages));
  if (!exited && !ended.command_error) {
    // berth-runtime was killed: what it would have cleaned up falls to us.
    auto cleaned = call_runtime(context, {"delete", "--force", id});
    if (!cleaned.ok()) context.log.warn(to_line(cleaned.error()) + ", ignoring");
    stages.exited(ended.status);
  }
  auto reason =
      ended.command_error ? std::nullopt : reason_of({ended.status, ended.asked}, ended.printed);
  RunOutcome outcome = outcome_of(id, std::move(ended));
  outcome.reason = std::move(reason);
  return outcome;
}

Result<RunOutcome> run_watched(const Context& context, const RunRequest& request,
                               const RunCall& call, image::Store& store, const image::Image& image,
                               CidFile& cid_file) {
  std::string keys = TRY(detach_keys_of(call.detach_keys));
  const std::string id = make_container_id();
  const AttachOptions attach = attach_options(request, call, keys);
  sys::Fd client;
  std::optional<WatchedStart> start;
  Making making;
  making.directory_made = [&](const ContainerDirectory& directory) -> Result<void> {
    Watch watch = watch_of(directory, request);
    watch.health = health_check(request.health, image.config.config);
    auto slowed = slowed_check(request.health, image.config.config);
    if (slowed) context.log.warn(*slowed);
    if (!call.detach) client = TRY(attach_early(watch, attach));
    start = TRY(WatchedStart::open(context, std::move(watch)));
    return {};
  };
  making.config_written = [&] { start->announce(); };
  // The monitor writes into the directory: it ends before that is removed.
  making.abandoned = [&] { start.reset(); };
  NewContainer made =
      TRY(NewContainer::make(context, request, store, image, id, Owner::monitor, making));
  Rollback undo;  // after what it refers to
  undo.add([&] {
    start.reset();
    remove_quietly(context, made.directory);
  });
  TRY(cid_file.write(id));
  // Now, because the monitor may remove the directory while we would write into it.
  keep_reasons(context, made.draft, made.directory.files_fd());
  start->go();
  sweep(context);  // while the container is made
  if (!call.detach) {
    return run_attached(context, id, std::move(*start), std::move(client), attach, [&] {
      undo.commit();
      made.draft.lease.leave();
    });
  }
  auto failed = TRY(start->wait());
  if (failed) return outcome_of(id, std::move(*failed));
  undo.commit();
  made.draft.lease.leave();
  return RunOutcome{id, 0, std::nullopt, std::nullopt};
}

}  // namespace

Result<RunOutcome> run(const Context& context, const RunRequest& asked, const RunCall& call,
                       const Progress& progress) {
  TRY(check_request(asked));
  TRY(check_call(asked, call));
  CidFile cid_file = TRY(CidFile::create(call.cid_file));
  // Modes below are meant as they are written: the container's root shows them.
  sys::set_umask(022);
  image::Store store = TRY(open_store(context));
  image::Image image = TRY(find_or_pull_image(context, store, asked, call, progress));
  if (call.replace && asked.name) TRY(remove_replaced(context, *asked.name));
  const RunRequest request = TRY(complete_request(context, asked, image));
  bool in_front = is_of_this_call(request, call, image);
  if (call.pmi_descriptor && !in_front) {
    return make_error(Kind::usage,
                      "PMI_FD: the launcher's socket is given to a container that goes with its "
                      "command alone",
                      "--rm, without -t, -d and a health check");
  }
  RunOutcome outcome = TRY(in_front ? run_in_front(context, request, call, store, image, cid_file)
                                    : run_watched(context, request, call, store, image, cid_file));
  if (outcome.command_error) {
    outcome.reason = reason_of_command(*outcome.command_error, image, request.volumes);
  }
  bool own_command = request.command.empty() && !request.entrypoint && is_of_store(request);
  if (outcome.reason && own_command) {
    outcome.reason = with_needs(context, image, std::move(*outcome.reason));
  }
  return outcome;
}

Result<plan::Plan> plan_run(const Context& context, const RunRequest& asked, const RunCall& call,
                            const Progress& progress) {
  TRY(check_request(asked));
  sys::set_umask(022);
  image::Store store = TRY(open_store(context));
  image::Image image = TRY(find_or_pull_image(context, store, asked, call, progress));
  RunRequest request = TRY(complete_request(context, asked, image));
  TRY(complete_volumes(context, image.config.config, request));
  TRY(choose_rootfs_driver(context, request));
  const std::string id = make_container_id();
  Draft draft = TRY(draft_container(context, request, image, id, Leasing::look));

  plan::Container container;
  container.id = id;
  container.bundle = bundle_path(context, request, id);
  container.await_start = call.detach;
  plan::HostFacts facts;
  facts.user_namespace = context.identity != Identity::root;
  facts.tty_group_mapped = sys::is_group_mapped(5);
  facts.has_cgroups = sys::has_cgroups();
  return plan::make(draft.spec, container, facts);
}

Result<Explained> explain_run(const Context& context, const RunRequest& asked, const RunCall& call,
                              const Progress& progress) {
  TRY(check_request(asked));
  sys::set_umask(022);
  image::Store store = TRY(open_store(context));
  image::Image image = TRY(find_or_pull_image(context, store, asked, call, progress));
  RunRequest request = TRY(complete_request(context, asked, image));
  TRY(complete_volumes(context, image.config.config, request));
  TRY(choose_rootfs_driver(context, request));
  Draft draft = TRY(draft_container(context, request, image, make_container_id(), Leasing::look));
  return Explained{"", request.name.value_or(""), request.rootfs.value_or(request.image),
                   explain(std::move(draft.evidence), draft.spec)};
}

}  // namespace berth::engine
