// SPDX-License-Identifier: Apache-2.0
#include "engine/run/run.hpp"

#include <utility>

#include "engine/container/attach.hpp"
#include "engine/container/health_settings.hpp"
#include "engine/container/launch.hpp"
#include "engine/container/life.hpp"
#include "engine/container/sweep.hpp"
#include "engine/container/watch.hpp"
#include "engine/context/time.hpp"
#include "engine/decide/decide.hpp"
#include "engine/decide/reason.hpp"
#include "engine/run/bundle.hpp"
#include "engine/run/new_container.hpp"
#include "engine/run/owner.hpp"
#include "engine/run/start.hpp"
#include "engine/state/directory.hpp"
#include "engine/state/journal.hpp"
#include "json/fields.hpp"
#include "record/record.hpp"

namespace berth::engine {
namespace {

RunOutcome outcome_of(const std::string& id, Ended ended) {
  return RunOutcome{id, ended.status, std::move(ended.command_error),
                    std::move(ended.stream_error)};
}

Result<void> check_launcher(const Resolved& resolved) {
  if (!resolved.call().pmi_descriptor || owner_of(resolved) == Owner::caller) return {};
  return make_error(
      Kind::usage,
      "PMI_FD: only a container that ends with its command can have the launcher's socket",
      "--rm, without -t, -d and a health check");
}

/// Runs the container with berth-runtime, already started by `front`, as its only owner.
Result<RunOutcome> carry_out(const Context& context, const Resolved& resolved, Decision& decision,
                             NewContainer& made, Foreground& front, CidFile& cid_file) {
  const std::string id = made.id();
  TRY(write_config(decision, made.directory()));
  front.announce();
  TRY(made.write(decision));
  TRY(cid_file.write(id));
  if (TRY(front.start())) {
    emit_container_event(context.paths, id, "attach");
    emit_container_event(context.paths, id, "start");
    save_explanation(context, decision, made.directory().files_fd());
    sweep(context);
  }
  auto finish = [&](int status) {
    emit_container_event(context.paths, id, "die", {{"exitCode", std::to_string(status)}});
    // For processes that wait for the container, which is removed next.
    ignore(made.directory().append(record::Exit{status, nanoseconds_now()}));
    if (resolved.call().ended) resolved.call().ended(id);
    made.remove();
  };
  std::optional<int> status = TRY(front.exited());
  if (status) finish(*status);
  Ended ended = TRY(front.end());
  if (!status && !ended.command_error) {
    // berth-runtime was killed, so do its clean-up here.
    auto cleaned = call_runtime(context, {"delete", "--force", id});
    if (!cleaned.ok()) context.log.warn(to_line(cleaned.error()) + ", ignoring");
    finish(ended.status);
  }
  auto reason =
      ended.command_error ? std::nullopt : reason_of({ended.status, ended.asked}, ended.printed);
  RunOutcome outcome = outcome_of(id, std::move(ended));
  outcome.reason = std::move(reason);
  return outcome;
}

Result<RunOutcome> run_in_front(const Context& context, const Resolved& resolved,
                                CidFile& cid_file) {
  NewContainer made = TRY(NewContainer::begin(context, resolved, Owner::caller));
  const RunRequest& request = resolved.request();
  LaunchOptions options{request.interactive, request.terminal,
                        request.name.value_or(made.id().substr(0, 12)), resolved.call().held,
                        resolved.call().pmi_descriptor};
  // Declared first, so that a lease that berth-runtime holds too is released after its end.
  Decision decision;
  // Before the decision is made, so that berth-runtime starts in parallel.
  Foreground front = TRY(Foreground::open(context, made.id(),
                                          bundle_path(context.paths, request, made.id()), options));
  decision = TRY(decide(context, resolved, made.id(), Leasing::take));
  return carry_out(context, resolved, decision, made, front, cid_file);
}

/// Runs the container with berth-monitor, already started by `start`, as its owner; `client`, from
/// attach_early(), is set if we attach.
Result<RunOutcome> carry_out(const Context& context, Decision& decision, NewContainer& made,
                             WatchedStart& start, sys::Fd client, const AttachOptions& attach,
                             CidFile& cid_file) {
  const std::string id = made.id();
  TRY(write_config(decision, made.directory()));
  start.announce();
  TRY(made.write(decision));
  TRY(cid_file.write(id));
  // Save it now: after go() the monitor may remove the directory.
  save_explanation(context, decision, made.directory().files_fd());
  start.go();
  sweep(context);  // while the container is being created
  if (client) emit_container_event(context.paths, id, "attach");
  auto failed = TRY(start.wait());
  if (failed) return outcome_of(id, std::move(*failed));
  made.keep();
  decision.lease.leave();
  if (client) return stay_with(context, id, std::move(client), attach);
  return RunOutcome{id, 0, std::nullopt, std::nullopt};
}

Result<RunOutcome> run_watched(const Context& context, const Resolved& resolved,
                               CidFile& cid_file) {
  const RunRequest& request = resolved.request();
  const RunCall& call = resolved.call();
  std::string keys = TRY(detach_keys_of(call.detach_keys));
  const AttachOptions attach = attach_options(request, call, keys);
  NewContainer made = TRY(NewContainer::begin(context, resolved, Owner::monitor));
  Watch watch = watch_of(made.directory(), request);
  const oci::ContainerDefaults& defaults = resolved.image().config.config;
  watch.health = health_check(request.health, defaults);
  auto slowed = slowed_check(request.health, defaults);
  if (slowed) context.log.warn(*slowed);
  sys::Fd client;
  if (!call.detach) client = TRY(attach_early(watch, attach));
  Decision decision;
  // Before the decision is made, so that monitor and berth-runtime start in parallel. Declared
  // after `made` and `decision`, so that both end before the directory is removed, into which the
  // monitor writes, and before the lease is released, which they hold too.
  WatchedStart start = TRY(WatchedStart::open(context, std::move(watch)));
  decision = TRY(decide(context, resolved, made.id(), Leasing::take));
  return carry_out(context, decision, made, start, std::move(client), attach, cid_file);
}

}  // namespace

Result<RunOutcome> run(const Context& context, Asked asked, const Progress& progress) {
  CidFile cid_file = TRY(CidFile::create(asked.call.cid_file));
  const Resolved resolved = TRY(resolve(context, std::move(asked), progress));
  const RunRequest& request = resolved.request();
  TRY(check_launcher(resolved));
  if (resolved.call().replace && request.name) TRY(remove_replaced(context, *request.name));
  RunOutcome outcome =
      TRY(owner_of(resolved) == Owner::caller ? run_in_front(context, resolved, cid_file)
                                              : run_watched(context, resolved, cid_file));
  if (outcome.command_error) {
    outcome.reason = reason_of_command(*outcome.command_error, resolved.image(), request.volumes);
  }
  bool own_command = request.command.empty() && !request.entrypoint && is_of_store(request);
  if (outcome.reason && own_command) {
    outcome.reason = with_needs(context, resolved.image(), std::move(*outcome.reason));
  }
  return outcome;
}

Result<PlannedRun> plan_run(const Context& context, Asked asked, const Progress& progress) {
  const Resolved resolved = TRY(resolve(context, std::move(asked), progress));
  // Removed at the end of this call: berth-runtime reads the bundle at the path of a real run.
  NewContainer made = TRY(NewContainer::begin(context, resolved, Owner::nobody));
  Decision decision = TRY(decide(context, resolved, made.id(), Leasing::look));
  TRY(write_config(decision, made.directory()));
  const std::string bundle = bundle_path(context.paths, resolved.request(), made.id());
  std::vector<std::string> words = {"--decided", "plan", "--format", "json", "--bundle", bundle};
  // The monitor uses `create` before `start`.
  if (owner_of(resolved) == Owner::monitor) words.emplace_back("--create");
  words.push_back(made.id());
  std::string plan = TRY(call_runtime(context, std::move(words)));
  return json::read<PlannedRun>(plan, "plan of berth-runtime");
}

Result<Explained> explain_run(const Context& context, Asked asked, const Progress& progress) {
  const Resolved resolved = TRY(resolve(context, std::move(asked), progress));
  Decision decision = TRY(decide(context, resolved, make_container_id(), Leasing::look));
  const RunRequest& request = resolved.request();
  return Explained{"", request.name.value_or(""), request.rootfs.value_or(request.image),
                   explain(std::move(decision.provenance), decision.spec)};
}

}  // namespace berth::engine
