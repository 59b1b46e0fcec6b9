// SPDX-License-Identifier: Apache-2.0
#include "engine/run.hpp"

#include <signal.h>

#include <chrono>

#include "base/rollback.hpp"
#include "base/text.hpp"
#include "engine/bundle.hpp"
#include "engine/cid_file.hpp"
#include "engine/containers.hpp"
#include "engine/dry_run.hpp"
#include "engine/explain.hpp"
#include "engine/launch.hpp"
#include "engine/name.hpp"
#include "engine/settle.hpp"
#include "engine/spec.hpp"
#include "engine/store.hpp"
#include "plan/plan.hpp"
#include "sys/file.hpp"
#include "sys/host_facts.hpp"
#include "sys/umask.hpp"

namespace berth::engine {
namespace {

int64_t now() {
  return std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
}

// Of hex digits that we made ourselves.
uint64_t parse_hex(std::string_view digits) {
  uint64_t value = 0;
  for (char c : digits)
    value = value * 16 + static_cast<uint64_t>(c <= '9' ? c - '0' : c - 'a' + 10);
  return value;
}

Error no_such_image(const std::string& name) {
  return make_error(Kind::not_found, "no such image: " + name, "berth pull " + name);
}

Result<void> pull_image(const Context& context, const std::string& reference, const RunCall& call,
                        bool local, const Progress& progress) {
  image::PullRequest pull;
  pull.reference = reference;
  pull.platform = call.platform;
  pull.access = call.registry;
  pull.quiet = call.quiet;
  pull.local = local;
  TRY(transfer(context, std::move(pull), progress));
  return {};
}

Result<image::Image> find_or_pull(const Context& context, const image::Store& store,
                                  const std::string& reference, const RunCall& call,
                                  const Progress& progress) {
  if (call.pull != PullPolicy::always) {
    auto found = TRY(store.find_image_named(reference));
    if (!found) found = TRY(store.find_image(reference));
    if (found && found->unpacked()) return std::move(*found);
    if (!found && call.pull == PullPolicy::never) return no_such_image(reference);
    TRY(pull_image(context, reference, call, found.has_value(), progress));
  } else {
    TRY(pull_image(context, reference, call, false, progress));
  }
  return store.get_image(reference);
}

ContainerRecord make_record(const RunRequest& request, const RunCall& call, const Draft& draft,
                            const image::Image& image) {
  ContainerRecord record;
  record.id = draft.id;
  record.image = request.image;
  record.image_id = image.id.text();
  record.command = draft.command;
  record.created_at = now();
  record.remove = request.remove;
  record.detached = call.detach;
  record.terminal = request.terminal;
  // What an image says is foreign: docker takes TERM for what is no signal.
  auto image_signal = parse_signal(image.config.config.stop_signal);
  record.stop_signal = request.stop_signal.value_or(image_signal.ok() ? *image_signal : SIGTERM);
  return record;
}

/// What the container is called at the `attempt`th try: a name of the user is tried twice.
std::string choose_name(const RunRequest& request, const std::string& id, size_t attempt) {
  if (request.name) return *request.name;
  std::string name = name_from(parse_hex(id.substr(0, 8)) + attempt);
  return attempt < 8 ? name : name + "_" + id.substr(0, 6 + attempt);
}

// The record comes first: whoever is killed between the two leaves no name that nobody can tell.
Result<void> take_name(const Context& context, const RunRequest& request,
                       ContainerDirectory& directory, ContainerRecord& record) {
  const size_t last = request.name ? 1 : 16;
  for (size_t attempt = 0;; ++attempt) {
    record.name = choose_name(request, record.id, attempt);
    TRY(directory.write(record));
    auto reserved = directory.reserve(record.name);
    if (reserved.ok() || reserved.error().kind != Kind::exists || attempt == last) return reserved;
    if (request.name) sweep(context);  // its container may have lost its owner
  }
}

// The outcome of the container is what counts; what stays is swept by the next command.
void remove_quietly(const Context& context, ContainerDirectory& directory) {
  auto removed = directory.remove();
  if (!removed.ok()) context.log.warn(to_line(removed.error()) + ", ignoring");
}

// Nobody's container fails because of it.
void keep_reasons(const Context& context, Draft& draft, const ContainerDirectory& directory) {
  auto kept = keep(explain(std::move(draft.evidence), draft.spec), directory);
  if (!kept.ok()) {
    context.log.warn("cannot keep what 'berth explain' tells: " + to_line(kept.error()) +
                     ", ignoring");
  }
}

std::string bundle_path(const Context& context, const RunRequest& request, const std::string& id) {
  return container_files(context.paths, id, lifetime_of(request)) + "/" +
         std::string(kBundleDirectory);
}

RunOutcome outcome_of(const std::string& id, Ended ended) {
  return RunOutcome{id, ended.status, std::move(ended.command_error),
                    std::move(ended.stream_error)};
}

}  // namespace

Result<RunOutcome> run(const Context& context, const RunRequest& request, const RunCall& call,
                       const Progress& progress) {
  TRY(check_request(request));
  TRY(check_call(request, call));
  CidFile cid_file = TRY(CidFile::create(call.cid_file));
  // Modes below are meant as they are written: the container's root shows them.
  sys::set_umask(022);
  image::Store store = TRY(open_store(context));
  image::Image image = TRY(find_or_pull(context, store, request.image, call, progress));
  const std::string id = sys::random_hex(32);
  LaunchOptions options{request.interactive, request.terminal,
                        request.name.value_or(id.substr(0, 12))};
  std::optional<Foreground> front;
  if (!call.detach)
    front = TRY(Foreground::open(context, id, bundle_path(context, request, id), options));
  Draft draft = TRY(draft_container(context, request, image, id));

  auto directory = TRY(ContainerDirectory::create(context.paths, id, lifetime_of(request)));
  Rollback undo;  // after what it refers to
  undo.add([&] { remove_quietly(context, directory); });
  TRY(write_config(draft, directory));
  if (front) front->announce();
  TRY(store.mark_used(id, image));
  ContainerRecord record = make_record(request, call, draft, image);
  TRY(take_name(context, request, directory, record));
  TRY(write_files(request, draft, directory));
  TRY(cid_file.write(id));

  if (!front) {
    // Now, because the monitor may remove the directory while we would write into it.
    keep_reasons(context, draft, directory);
    auto failed = TRY(run_detached(context, directory, record, options));
    if (failed) return outcome_of(id, std::move(*failed));
    undo.commit();
    sweep(context);
    return RunOutcome{id, 0, std::nullopt, std::nullopt};
  }
  Stages stages;
  stages.started = [&] {
    keep_reasons(context, draft, directory);
    // From now on it has output that somebody may want.
    if (!request.remove) undo.commit();
    sweep(context);
  };
  bool exited = false;
  stages.exited = [&](int status) {
    exited = true;
    auto written = directory.write(ExitRecord{status, now()});
    if (!written.ok() && !request.remove) {
      context.log.warn("cannot keep the exit status: " + to_line(written.error()) + ", ignoring");
    }
    if (!request.remove) return;
    undo.commit();
    remove_quietly(context, directory);
  };
  Ended ended = TRY(front->run(stages));
  if (!exited && !ended.command_error) {
    // berth-runtime was killed: what it would have cleaned up falls to us.
    auto cleaned = call_runtime(context, {"delete", "--force", id});
    if (!cleaned.ok()) context.log.warn(to_line(cleaned.error()) + ", ignoring");
    stages.exited(ended.status);
  }
  return outcome_of(id, std::move(ended));
}

Result<plan::Plan> plan_run(const Context& context, const RunRequest& request, const RunCall& call,
                            const Progress& progress) {
  TRY(check_request(request));
  sys::set_umask(022);
  image::Store store = TRY(open_store(context));
  image::Image image = TRY(find_or_pull(context, store, request.image, call, progress));
  const std::string id = sys::random_hex(32);
  Draft draft = TRY(draft_container(context, request, image, id));

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

Result<Explained> explain_run(const Context& context, const RunRequest& request,
                              const RunCall& call, const Progress& progress) {
  TRY(check_request(request));
  sys::set_umask(022);
  image::Store store = TRY(open_store(context));
  image::Image image = TRY(find_or_pull(context, store, request.image, call, progress));
  Draft draft = TRY(draft_container(context, request, image, sys::random_hex(32)));
  return Explained{"", request.name.value_or(""), request.image,
                   explain(std::move(draft.evidence), draft.spec)};
}

}  // namespace berth::engine
