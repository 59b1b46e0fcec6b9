// SPDX-License-Identifier: Apache-2.0
#include "engine/container/life.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>

#include <algorithm>
#include <thread>
#include <tuple>

#include "base/text.hpp"
#include "engine/container/launch.hpp"
#include "engine/container/list.hpp"
#include "engine/container/sweep.hpp"
#include "engine/container/volume_store.hpp"
#include "engine/container/watch.hpp"
#include "engine/context/name.hpp"
#include "engine/state/directory.hpp"
#include "engine/state/journal.hpp"
#include "json/fields.hpp"
#include "record/record.hpp"
#include "sys/file/file.hpp"
#include "sys/file/remove_tree.hpp"
#include "sys/process/process.hpp"

namespace berth::engine {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kPollTime{20};
/// A process cannot refuse KILL, but may be inside the kernel for a while.
constexpr std::chrono::seconds kKillTime{10};

/// Waits until the owner releases the lock; nothing at the deadline.
Result<std::optional<ContainerDirectory>> take_when_free(const Context& context,
                                                         const std::string& id,
                                                         std::chrono::milliseconds patience) {
  auto end = Clock::now() + patience;
  while (true) {
    auto taken = ContainerDirectory::take_over(context.paths, id);
    if (!taken.ok() || *taken || Clock::now() >= end) return taken;
    std::this_thread::sleep_for(kPollTime);
  }
}

Result<void> send_signal(const Context& context, const std::string& id, int number) {
  // Reported before the signal is sent, because another process reports the container's end.
  emit_container_event(context.paths, id, "kill", {{"signal", std::to_string(number)}});
  TRY(call_runtime(context, {"kill", id, std::to_string(number)}));
  return {};
}

}  // namespace

Result<std::string> end_for_removal(const Context& context, std::string_view reference,
                                    EndOptions options) {
  std::string id = TRY(resolve_container(context, reference));
  auto taken = ContainerDirectory::take_over(context.paths, id);
  if (!taken.ok()) {
    if (taken.error().kind == Kind::not_found) return no_such_container(reference);
    return std::move(taken).error();
  }
  if (!*taken) {
    auto files = TRY(find_files(context, id));
    // An owner that has written the exit is about to release the lock; a reader holds it only
    // briefly.
    bool ending =
        files && (files->exit || !files->owned) && state_of(*files) != ContainerState::restarting;
    if (!ending && !options.force) {
      return make_error(Kind::busy,
                        "cannot remove container " + quote(reference) + ": container is running",
                        "berth stop " + std::string(reference) + ", or --force");
    }
    // The owner sees the end of its container and releases the lock; with --rm it also removes it.
    TRY(mark_stopped(context.paths, id));
    auto killed = ending ? Result<void>() : send_signal(context, id, SIGKILL);
    if (!killed.ok() && killed.error().kind == Kind::denied) return std::move(killed).error();
    taken = take_when_free(context, id, kKillTime);
    if (!taken.ok() && taken.error().kind == Kind::not_found) return id;
    if (!taken.ok()) return std::move(taken).error();
    if (!*taken) return make_error(Kind::busy, "container " + quote(reference) + " does not end");
  }
  TRY(end_leftovers(context, id));
  return id;
}

Result<void> remove_container(const Context& context, const std::string& id,
                              AnonymousVolumes volumes) {
  auto taken = take_when_free(context, id, kKillTime);
  if (!taken.ok()) {
    return taken.error().kind == Kind::not_found ? Result<void>() : std::move(taken).error();
  }
  if (*taken) {
    ignore(sys::remove_tree(sys::cwd(), monitor_directory(context.paths, id)));
    TRY((*taken)->remove());
    if (volumes == AnonymousVolumes::remove) remove_volumes_of(context, id);
    return {};
  }
  return make_error(Kind::busy,
                    "cannot remove container " + quote(id.substr(0, 12)) + ": it is in use");
}

namespace {

/// The container of this name, even if the name is also a prefix of an id.
Result<std::optional<std::string>> id_of_name(const Context& context, const std::string& name) {
  auto found = get_container(context, name);
  if (found.ok() && found->name == name) return std::optional(found->id);
  if (found.ok() || found.error().kind == Kind::not_found) return std::optional<std::string>();
  return std::move(found).error();
}

}  // namespace

Result<void> end_replaced(const Context& context, const std::string& name) {
  auto id = TRY(id_of_name(context, name));
  if (id) TRY(end_for_removal(context, *id, {.force = true}));
  return {};
}

Result<void> remove_replaced(const Context& context, const std::string& name) {
  auto id = TRY(id_of_name(context, name));
  if (id) TRY(remove_container(context, *id, AnonymousVolumes::remove));
  return {};
}

Result<void> kill_container(const Context& context, std::string_view reference, int number) {
  ContainerFiles files = TRY(get_files(context, reference));
  if (!is_alive(state_of(files))) {
    return make_error(Kind::usage,
                      "cannot kill container " + quote(reference) + ": container is not running");
  }
  const std::string& id = files.record->id;
  // A container that the user ends is not restarted.
  bool ends = number == SIGKILL || number == SIGTERM || number == files.record->stop_signal;
  if (ends) TRY(mark_stopped(context.paths, id));
  TRY(send_signal(context, id, number));
  return {};
}

Result<void> stop_container(const Context& context, std::string_view reference,
                            std::optional<int64_t> grace) {
  constexpr int64_t kUsual = 10, kYear = 365 * 24 * 3600;
  ContainerFiles files = TRY(get_files(context, reference));
  const std::string& id = files.record->id;
  ContainerState state = state_of(files);
  if (!is_alive(state)) return {};
  int64_t seconds = grace.value_or(files.record->stop_timeout.value_or(kUsual));
  if (seconds < 0 || seconds > kYear) seconds = kYear;
  TRY(mark_stopped(context.paths, id));
  // The container may have ended already.
  ignore(send_signal(context, id, files.record->stop_signal));
  // A frozen process receives no signals.
  if (state == ContainerState::paused) TRY(unpause_container(context, reference));
  auto freed = take_when_free(context, id, std::chrono::seconds(seconds));
  if (freed.ok() && !*freed) {
    ignore(send_signal(context, id, SIGKILL));
    freed = take_when_free(context, id, kKillTime);
  }
  if (!freed.ok()) {
    if (freed.error().kind == Kind::not_found) return {};  // started with --rm
    return std::move(freed).error();
  }
  if (!*freed) return make_error(Kind::busy, "container " + quote(reference) + " does not end");
  emit_container_event(context.paths, id, "stop");
  return {};
}

Result<void> pause_container(const Context& context, std::string_view reference) {
  ContainerFiles files = TRY(get_files(context, reference));
  ContainerState state = state_of(files);
  std::string what = "cannot pause container " + quote(reference);
  if (state == ContainerState::paused) return make_error(Kind::usage, what + ": it is paused");
  if (state != ContainerState::running) {
    return make_error(Kind::usage, what + ": container is not running");
  }
  TRY(call_runtime(context, {"pause", files.record->id}));
  emit_container_event(context.paths, files.record->id, "pause");
  return append_to_record(context.paths, files.record->id, json::write(record::Pause{true}));
}

Result<void> unpause_container(const Context& context, std::string_view reference) {
  ContainerFiles files = TRY(get_files(context, reference));
  if (state_of(files) != ContainerState::paused) {
    return make_error(Kind::usage,
                      "cannot unpause container " + quote(reference) + ": container is not paused");
  }
  TRY(call_runtime(context, {"resume", files.record->id}));
  emit_container_event(context.paths, files.record->id, "unpause");
  return append_to_record(context.paths, files.record->id, json::write(record::Pause{false}));
}

Result<void> rename_container(const Context& context, std::string_view reference,
                              std::string_view name) {
  ContainerFiles files = TRY(get_files(context, reference));
  std::string wish(name.starts_with('/') ? name.substr(1) : name);
  TRY(check_name(wish));
  const std::string& id = files.record->id;
  const std::string& before = files.record->name;
  if (wish == before) {
    return make_error(Kind::usage, "renaming a container with the same name as its current name");
  }
  const std::string& root = context.paths.root;
  TRY(reserve_name(root, wish, id));
  // The old name is removed last: a killed rename leaves a container with two names.
  auto written = append_to_record(context.paths, id, json::write(record::Name{wish}));
  if (!written.ok()) {
    ignore(release_name(root, wish, id));
    return written;
  }
  emit_container_event(context.paths, id, "rename", {{"oldName", before}, {"name", wish}});
  return release_name(root, before, id);
}

Result<int> wait_container(const Context& context, std::string_view reference) {
  std::string id = TRY(resolve_container(context, reference));
  auto waiter = ExitWaiter::open(context.paths, id);
  if (!waiter.ok() && waiter.error().kind == Kind::not_found) return no_such_container(reference);
  ExitWaiter exit = TRY(std::move(waiter));
  ContainerFiles files = TRY(exit.wait());
  if (files.damage) return std::move(*files.damage).with_context(cannot_read(id));
  if (!files.exit || !files.exit->exit_code) {
    return make_error(Kind::not_found, "container " + quote(reference) +
                                           " lost its monitor: its exit status is not known");
  }
  return *files.exit->exit_code;
}

Result<void> adopt_container(const Context& context, std::string_view reference) {
  return adopt(context, TRY(resolve_container(context, reference)));
}

}  // namespace berth::engine
