// SPDX-License-Identifier: Apache-2.0
#include "engine/run/run.hpp"

#include "base/rollback.hpp"
#include "engine/container/attach.hpp"
#include "engine/container/container_volumes.hpp"
#include "engine/container/containers.hpp"
#include "engine/container/health.hpp"
#include "engine/container/launch.hpp"
#include "engine/container/rootfs_driver.hpp"
#include "engine/container/sweep.hpp"
#include "engine/container/watch.hpp"
#include "engine/context/moment.hpp"
#include "engine/draft/bundle.hpp"
#include "engine/draft/explain.hpp"
#include "engine/draft/have_image.hpp"
#include "engine/draft/reason.hpp"
#include "engine/draft/settle.hpp"
#include "engine/image/store.hpp"
#include "engine/request/cid_file.hpp"
#include "engine/run/dry_run.hpp"
#include "engine/run/new_container.hpp"
#include "engine/run/start.hpp"
#include "engine/site/rules.hpp"
#include "engine/state/directory.hpp"
#include "engine/state/journal.hpp"
#include "plan/plan.hpp"
#include "record/record.hpp"
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
  Foreground front =
      TRY(Foreground::open(context, id, bundle_path(context.paths, request, id), options));
  Making making;
  making.config_written = [&] { front.announce(); };
  NewContainer made =
      TRY(NewContainer::make(context, request, store, image, id, Owner::caller, making));
  Rollback undo;  // after what it refers to
  undo.add([&] { remove_quietly(context, made.directory); });
  TRY(cid_file.write(id));
  Stages stages;
  stages.started = [&] {
    emit_container_event(context.paths, id, "attach");
    emit_container_event(context.paths, id, "start");
    save_explanation(context, made.draft, made.directory.files_fd());
    sweep(context);
  };
  bool exited = false;
  stages.exited = [&](int status) {
    exited = true;
    emit_container_event(context.paths, id, "die", {{"exitCode", std::to_string(status)}});
    // For those who wait; it is gone in a moment.
    ignore(made.directory.append(record::Exit{status, nanoseconds_now()}));
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
  save_explanation(context, made.draft, made.directory.files_fd());
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
    return make_error(
        Kind::usage,
        "PMI_FD: only a container that ends with its command can have the launcher's socket",
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
  container.bundle = bundle_path(context.paths, request, id);
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
