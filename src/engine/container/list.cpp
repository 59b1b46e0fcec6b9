// SPDX-License-Identifier: Apache-2.0
#include "engine/container/list.hpp"

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

#include "base/text.hpp"
#include "base/time.hpp"
#include "engine/container/launch.hpp"
#include "engine/container/sweep.hpp"
#include "json/fields.hpp"
#include "record/record.hpp"
#include "sys/file/file.hpp"

namespace berth::engine {
namespace {

/// The container was started, and no process is left to record its end.
bool is_lost(const ContainerFiles& files) {
  return !files.owned && files.start && !files.exit;
}

// A container that is removed while it is read is absent, not an error.
Result<std::optional<ContainerFiles>> unless_gone(Result<ContainerFiles> files) {
  if (files.ok()) return std::optional<ContainerFiles>(std::move(*files));
  if (files.error().kind == Kind::not_found) return std::optional<ContainerFiles>();
  return std::move(files).error();
}

ContainerSummary summary_of(const ContainerFiles& files) {
  const record::Container& record = *files.record;
  ContainerSummary summary;
  summary.id = record.id;
  summary.name = record.name;
  summary.image = record.image;
  summary.image_id = record.image_id;
  summary.command = record.command;
  summary.state = state_of(files);
  summary.created_ns = record.created_ns;
  summary.created_at = record.created_ns / kNanosecondsPerSecond;
  summary.remove = record.remove;
  summary.watched = record.watched;
  summary.terminal = record.terminal;
  summary.interactive = record.interactive;
  if (files.start) {
    summary.started_ns = files.start->started_ns;
    summary.restarts = files.start->restarts;
    if (is_alive(summary.state)) summary.pid = files.start->pid;
  } else if (!record.watched) {
    summary.started_ns = record.created_ns;
  }
  if (files.exit) {
    summary.finished_ns = files.exit->finished_ns;
    summary.finished_at = files.exit->finished_ns / kNanosecondsPerSecond;
    summary.exit_code = files.exit->exit_code;
    summary.oom_killed = files.exit->oom_killed;
    summary.error = files.exit->error;
  }
  return summary;
}

Result<std::optional<ContainerFiles>> find_recovered(const Context& context,
                                                     const std::string& id) {
  recover(context, id);
  return find_files(context, id);
}

struct RuntimeState {
  std::string status;
  int64_t pid = 0;
};
template <class V>
void fields(V& v, RuntimeState& s) {
  v.required("status", s.status);
  v.optional("pid", s.pid);
}

// The monitor records the pid; a berth in the foreground does not.
bool needs_pid(const ContainerSummary& summary) {
  return summary.state == ContainerState::running && !summary.watched;
}

std::optional<int64_t> running_process(const Context& context, const std::string& id) {
  // Read without recovery: recovery may need this result itself.
  auto files = read_container(context.paths, id);
  if (!files.ok() || !files->record) return std::nullopt;
  if (files->start && !files->exit) {
    return is_alive_now(*files->start) ? std::optional<int64_t>(files->start->pid) : std::nullopt;
  }
  return !files->record->watched && files->owned ? first_process(context, id) : std::nullopt;
}

}  // namespace

ContainerState state_of(const ContainerFiles& files) {
  const record::Container* record = files.record ? &*files.record : nullptr;
  if (files.exit) {
    if (files.exit->restarting && files.owned) return ContainerState::restarting;
    // As with docker: its first start failed, so it never ran.
    if (!files.exit->error.empty() && !files.start) return ContainerState::created;
    return files.exit->exit_code ? ContainerState::exited : ContainerState::dead;
  }
  bool started = files.start || (record != nullptr && !record->watched);
  if (!started) return ContainerState::created;
  if (files.owned) return files.paused ? ContainerState::paused : ContainerState::running;
  if (!files.start) return ContainerState::dead;
  // Its monitor was killed, and no command has replaced it yet.
  if (!is_alive_now(*files.start)) return ContainerState::dead;
  return files.paused ? ContainerState::paused : ContainerState::running;
}

Error no_such_container(std::string_view reference) {
  return make_error(Kind::not_found, "no such container: " + escape_controls(reference),
                    "berth ps --all");
}

Result<std::optional<ContainerFiles>> find_files(const Context& context, const std::string& id) {
  return unless_gone(read_container(context.paths, id));
}

Result<std::string> resolve_container(const Context& context, std::string_view reference) {
  std::string name(reference);
  if (name.starts_with('/')) name.erase(0, 1);
  if (name.empty() || name.find('/') != std::string::npos || name == "." || name == "..") {
    return no_such_container(reference);
  }
  auto by_name = TRY(find_name(context.paths.root, name));
  if (by_name) return std::move(*by_name);
  std::optional<std::string> match;
  for (std::string& id : TRY(container_ids(context.paths.root))) {
    if (!id.starts_with(name)) continue;
    if (match) {
      return make_error(Kind::usage, "several containers have ids that start with " + quote(name));
    }
    match = std::move(id);
  }
  if (!match) return no_such_container(reference);
  return std::move(*match);
}

std::string cannot_read(const std::string& id) {
  return "cannot read container " + quote(id.substr(0, 12));
}

Result<ContainerFiles> get_files(const Context& context, std::string_view reference) {
  std::string id = TRY(resolve_container(context, reference));
  auto files = TRY(find_files(context, id));
  if (files && is_lost(*files)) files = TRY(find_recovered(context, id));
  if (files && files->damage) return std::move(*files->damage).with_context(cannot_read(id));
  if (!files || !files->record) return no_such_container(reference);
  return std::move(*files);
}

std::optional<int64_t> first_process(const Context& context, const std::string& id) {
  auto text = call_runtime(context, {"state", id});
  if (!text.ok()) return std::nullopt;  // it has just ended
  auto state = json::read<RuntimeState>(*text, "state of the container");
  if (!state.ok() || state->pid <= 0) return std::nullopt;
  return state->pid;
}

std::string_view container_state_name(ContainerState state) {
  // In the order of ContainerState.
  constexpr std::array<std::string_view, 6> kNames = {"created",    "running", "paused",
                                                      "restarting", "exited",  "dead"};
  return kNames[static_cast<size_t>(state)];
}

bool is_alive(ContainerState state) {
  return state == ContainerState::running || state == ContainerState::paused ||
         state == ContainerState::restarting;
}

Result<std::vector<ContainerSummary>> list_containers(const Context& context, Which which,
                                                      Pids pids) {
  std::vector<ContainerSummary> summaries;
  AllContainers all = TRY(AllContainers::open(context.paths));
  for (const std::string& id : all.ids()) {
    auto files = TRY(unless_gone(all.read(id)));
    if (files && is_lost(*files)) files = TRY(find_recovered(context, id));
    if (files && files->damage) {
      context.log.warn(cannot_read(id) + ": " + to_line(*files->damage) + ", ignoring");
    }
    if (!files || !files->record) continue;
    ContainerSummary summary = summary_of(*files);
    if (which == Which::running && !is_alive(summary.state)) continue;
    if (needs_pid(summary) && pids == Pids::yes) summary.pid = first_process(context, id);
    summaries.push_back(std::move(summary));
  }
  warn_of_adoptions(context);
  std::ranges::sort(summaries, [](const ContainerSummary& a, const ContainerSummary& b) {
    return std::tie(a.created_ns, a.id) > std::tie(b.created_ns, b.id);
  });
  return summaries;
}

Result<ContainerSummary> get_container(const Context& context, std::string_view reference) {
  ContainerFiles files = TRY(get_files(context, reference));
  ContainerSummary summary = summary_of(files);
  if (needs_pid(summary)) summary.pid = first_process(context, summary.id);
  return summary;
}

std::optional<RunRequest> request_of(const Context& context, std::string_view reference) {
  auto id = resolve_container(context, reference);
  if (!id.ok()) return std::nullopt;
  std::string path = container_files(context.paths, *id, Lifetime::kept) + "/" + kRequestFile;
  auto text = sys::read_file(sys::cwd(), path, kMaxRequest);
  if (!text.ok()) return std::nullopt;
  auto request = parse_run_request(*text);
  return request.ok() ? std::optional(std::move(*request)) : std::nullopt;
}

std::optional<int64_t> process_of(const Paths& paths, std::string_view reference, Log& log) {
  Context context{paths, Identity::single, Environment(), log};
  auto id = resolve_container(context, reference);
  if (!id.ok()) return std::nullopt;
  if (auto process = running_process(context, *id)) return process;
  // The container that the stopped one shares namespaces with.
  auto request = request_of(context, *id);
  std::string joined = request ? joined_container(*request) : "";
  return joined.empty() ? std::nullopt : running_process(context, joined);
}

std::string files_of(const Context& context, const ContainerSummary& summary) {
  return container_files(context.paths, summary.id,
                         summary.remove ? Lifetime::removed : Lifetime::kept);
}

Result<std::optional<RunRequest>> find_request(const Context& context,
                                               const ContainerSummary& summary) {
  const std::string path = files_of(context, summary) + "/" + kRequestFile;
  auto text = TRY(sys::read_file_if_exists(sys::cwd(), path, kMaxRequest));
  if (!text) return std::optional<RunRequest>();
  return std::optional(TRY(parse_run_request(*text)));
}

std::optional<RunRequest> saved_request(const Context& context, const ContainerSummary& summary) {
  const std::string path = files_of(context, summary) + "/" + kRequestFile;
  auto text = sys::read_file_if_exists(sys::cwd(), path);
  if (!text.ok() || !*text) return std::nullopt;
  auto request = parse_run_request(**text);
  if (request.ok()) return std::move(*request);
  context.log.warn("cannot read the options of container " + quote(summary.id.substr(0, 12)) +
                   ": " + to_line(request.error()) + ", ignoring");
  return std::nullopt;
}

}  // namespace berth::engine
