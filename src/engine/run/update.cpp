// SPDX-License-Identifier: Apache-2.0
#include "engine/run/update.hpp"

#include <fcntl.h>

#include <chrono>
#include <thread>

#include "engine/container/launch.hpp"
#include "engine/container/list.hpp"
#include "engine/container/watch.hpp"
#include "engine/run/update_gpus.hpp"
#include "engine/site/effects.hpp"
#include "engine/state/directory.hpp"
#include "engine/state/journal.hpp"
#include "gpu/grant/request.hpp"
#include "json/fields.hpp"
#include "oci/runtime_spec.hpp"
#include "sys/file/file.hpp"

namespace berth::engine {
namespace {

template <class T>
void take(std::optional<T>& target, const std::optional<T>& change) {
  if (change) target = change;
}

void take(std::string& target, const std::string& change) {
  if (!change.empty()) target = change;
}

Error cannot_update(Error error, const ContainerSummary& summary) {
  return std::move(error).with_context("cannot update container '" + summary.name + "'");
}

/// The limits for berth-runtime to set now: only the changed ones, so that other changes to the
/// control group remain.
oci::Resources live_resources(const Limits& before, const Limits& changes) {
  oci::Resources resources;
  add_limits(changes, Swap::as_asked, resources);
  // The order in which memory and swap must be set depends on both values.
  bool memory = changes.memory_bytes.has_value();
  if (memory && resources.memory && !changes.memory_swap_bytes) {
    resources.memory->swap = before.memory_swap_bytes;
  }
  return resources;
}

/// The flags of `berth-runtime update`.
std::vector<std::string> words_of(const oci::Resources& resources) {
  std::vector<std::string> words;
  auto add = [&](const char* flag, const auto& value) {
    if (value) words.insert(words.end(), {flag, std::to_string(*value)});
  };
  auto add_list = [&](const char* flag, const std::string& list) {
    if (!list.empty()) words.insert(words.end(), {flag, list});
  };
  if (resources.memory) {
    add("--memory", resources.memory->limit);
    add("--memory-reservation", resources.memory->reservation);
    add("--memory-swap", resources.memory->swap);
  }
  if (resources.cpu) {
    add("--cpu-share", resources.cpu->shares);
    add("--cpu-period", resources.cpu->period);
    add("--cpu-quota", resources.cpu->quota);
    add("--cpu-rt-period", resources.cpu->realtime_period);
    add("--cpu-rt-runtime", resources.cpu->realtime_runtime);
    add_list("--cpuset-cpus", resources.cpu->cpus);
    add_list("--cpuset-mems", resources.cpu->mems);
  }
  if (resources.pids)
    words.insert(words.end(), {"--pids-limit", std::to_string(resources.pids->limit)});
  if (resources.block_io) add("--blkio-weight", resources.block_io->weight);
  return words;
}

Result<void> update_live(const Context& context, const std::string& id,
                         const oci::Resources& resources) {
  std::vector<std::string> words = words_of(resources);
  if (words.empty()) return {};
  words.insert(words.begin(), "update");
  words.push_back(id);
  auto called = call_runtime(context, std::move(words));
  if (called.ok()) return {};
  // The caller adds context with the container's name, so drop context with its id.
  Error error = std::move(called).error();
  std::erase_if(error.context,
                [&](const std::string& level) { return level.find(id) != level.npos; });
  return error;
}

Result<void> check_gpus(const std::string& text) {
  TRY(gpu::parse_request(text));
  return {};
}

/// `limits` overridden by `changes`. Pure.
Limits merge_limits(Limits limits, const Limits& changes) {
  take(limits.memory_bytes, changes.memory_bytes);
  take(limits.memory_reservation_bytes, changes.memory_reservation_bytes);
  take(limits.memory_swap_bytes, changes.memory_swap_bytes);
  take(limits.cpu_millis, changes.cpu_millis);
  take(limits.cpu_shares, changes.cpu_shares);
  take(limits.cpu_period, changes.cpu_period);
  take(limits.cpu_quota, changes.cpu_quota);
  take(limits.cpu_rt_period, changes.cpu_rt_period);
  take(limits.cpu_rt_runtime, changes.cpu_rt_runtime);
  take(limits.cpuset_cpus, changes.cpuset_cpus);
  take(limits.cpuset_mems, changes.cpuset_mems);
  take(limits.pids, changes.pids);
  take(limits.blkio_weight, changes.blkio_weight);
  return limits;
}

}  // namespace

Result<void> update_container(const Context& context, std::string_view reference,
                              const Changes& changes) {
  ContainerSummary summary = TRY(get_container(context, reference));
  if (summary.remove && changes.restart && changes.restart->when != Restart::no) {
    return cannot_update(
        make_error(Kind::usage,
                   "Restart policy cannot be updated because AutoRemove is enabled for the "
                   "container"),
        summary);
  }
  const std::string path = files_of(context, summary);
  sys::Fd files = TRY(sys::open_at(sys::cwd(), path, O_DIRECTORY | O_RDONLY));
  // Concurrent updates run one after the other, each on the previous result.
  sys::Fd turn = TRY(take_turn(files, summary.name));
  auto request = parse_run_request(TRY(sys::read_file(files, kRequestFile)));
  if (!request.ok()) return cannot_update(std::move(request).error(), summary);
  const Limits before = request->limits;
  request->limits = merge_limits(before, changes.limits);
  auto checked = check_processors(changes.limits);
  if (checked.ok()) checked = check_limits(request->limits);
  if (checked.ok()) checked = check_most(request->site.most, request->limits);
  if (checked.ok() && changes.gpus && request->site.gpus) {
    checked = make_error(Kind::denied, "--gpus: a rule of the site sets its GPUs",
                         "berth explain " + summary.name);
  }
  if (!checked.ok()) return cannot_update(std::move(checked).error(), summary);
  bool runs = summary.state == ContainerState::running || summary.state == ContainerState::paused;
  bool limits_change = !(request->limits == before);
  if (runs && limits_change && changes.gpus) {
    return cannot_update(
        make_error(
            Kind::usage,
            "it runs, and GPUs of a running container cannot be changed together with other values",
            "berth update --gpus, then another berth update for the limits"),
        summary);
  }
  if (runs && limits_change) {
    if (!summary.watched) {
      return cannot_update(
          make_error(Kind::unsupported, "it runs in the foreground of another process"), summary);
    }
    auto updated = update_live(context, summary.id, live_resources(before, changes.limits));
    if (!updated.ok()) return cannot_update(std::move(updated).error(), summary);
  }
  if (changes.restart) request->restart = *changes.restart;
  if (changes.gpus && summary.state == ContainerState::restarting) {
    return cannot_update(make_error(Kind::busy, "it is being started again"), summary);
  }
  if (changes.gpus) {
    request->gpus = *changes.gpus;
    auto given = runs ? update_gpus(context, summary, *request) : check_gpus(*changes.gpus);
    if (!given.ok()) return cannot_update(std::move(given).error(), summary);
  }
  TRY(sys::replace_file(files, kRequestFile, json::write(*request), 0600));
  emit_container_event(context.paths, summary.id, "update");
  if (!changes.restart || !is_alive(summary.state) || !summary.watched) return {};
  return set_restart_policy(context.paths, summary.id, *changes.restart);
}

}  // namespace berth::engine
