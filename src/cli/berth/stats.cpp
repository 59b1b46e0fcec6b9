// SPDX-License-Identifier: Apache-2.0
#include "engine/container/stats.hpp"

#include <cstdio>
#include <map>
#include <thread>

#include "base/text.hpp"
#include "cli/berth/common.hpp"
#include "cli/template/listing.hpp"
#include "engine/container/list.hpp"
#include "engine/gpu/use.hpp"

namespace berth::cli {
namespace {

constexpr std::chrono::seconds kStatsInterval{1};
constexpr std::string_view kStatsClear = "\x1b[2J\x1b[H";
constexpr std::string_view kStatsUnknown = "--";

struct StatsOptions {
  bool all = false;
  bool no_stream = false;
  bool no_trunc = false;
  std::string format;
};

FlagTable stats_flags(StatsOptions& o) {
  return {
      {"all", 'a', "", "Include containers that are not running", &o.all},
      template_flag(o.format),
      {"no-stream", 0, "", "Measure once, for one second, and exit", &o.no_stream},
      {"no-trunc", 0, "", "Do not truncate ids", &o.no_trunc},
  };
}

constexpr ListField kStatsFields[] = {
    {"BlockIO", "BLOCK I/O"},
    {"CPUPerc", "CPU %"},
    {"Container", "CONTAINER"},
    {"GPUMemUsage", "GPU MEM USAGE / LIMIT"},
    {"GPUPerc", "GPU %"},
    {"GPUs", "GPUS"},
    {"ID", "CONTAINER ID"},
    {"MemPerc", "MEM %"},
    {"MemUsage", "MEM USAGE / LIMIT"},
    {"Name", "NAME"},
    {"NetIO", "NET I/O"},
    {"PIDs", "PIDS"},
};

constexpr ListKind kUse{
    .fields = kStatsFields,
    .table =
        "{{.ID}}\t{{.Name}}\t{{.CPUPerc}}\t{{.MemUsage}}\t{{.MemPerc}}\t{{.NetIO}}\t"
        "{{.BlockIO}}\t{{.PIDs}}",
};

constexpr ListKind kUseOfGpus{
    .fields = kStatsFields,
    .table =
        "{{.ID}}\t{{.Name}}\t{{.CPUPerc}}\t{{.MemUsage}}\t{{.MemPerc}}\t{{.NetIO}}\t"
        "{{.BlockIO}}\t{{.PIDs}}\t{{.GPUs}}\t{{.GPUPerc}}\t{{.GPUMemUsage}}",
};

std::string percent(std::optional<double> value) {
  if (!value) return std::string(kStatsUnknown);
  char text[32];
  std::snprintf(text, sizeof text, "%.2f%%", *value);
  return text;
}

using Write = std::string (*)(uint64_t);
std::string pair_of(std::optional<uint64_t> first, std::optional<uint64_t> second, Write write) {
  auto text = [&](std::optional<uint64_t> n) { return n ? write(*n) : std::string(kStatsUnknown); };
  return text(first) + " / " + text(second);
}

std::string gpu_percent(const engine::GpuUse& gpu) {
  return gpu.busy_percent ? std::to_string(*gpu.busy_percent) + "%" : std::string(kStatsUnknown);
}

std::string gpu_memory(const engine::GpuUse& gpu) {
  return pair_of(gpu.used_bytes, gpu.total_bytes, binary_bytes);
}

/// Joins one text for each GPU.
template <class Text>
std::string of_each(const std::vector<engine::GpuUse>& gpus, const Text& text) {
  std::vector<std::string> texts;
  for (const engine::GpuUse& gpu : gpus) texts.push_back(text(gpu));
  return join(texts, ", ");
}

/// The requested containers, each with its last two samples.
class UseTable {
 public:
  UseTable(Session& session, const StatsOptions& options, std::vector<std::string> names)
      : session_(session), options_(options), names_(std::move(names)) {}

  /// Errors: not_found (an unknown name; only at the first call), io.
  Result<void> measure() {
    std::vector<engine::ContainerSummary> containers;
    if (names_.empty()) {
      containers = TRY(engine::list_containers(
          session_.context, options_.all ? engine::Which::all : engine::Which::running));
    }
    for (const std::string& name : names_) {
      auto found = engine::get_container(session_.context, name);
      // A requested container that has removed itself since is not an error.
      if (!found.ok() && first_) return std::move(found).error();
      if (found.ok()) containers.push_back(std::move(*found));
    }
    std::map<std::string, engine::Usage> now;
    for (const auto& container : containers) {
      now[container.id] = engine::measure_container(session_.context, container);
      show(container, now[container.id]);
    }
    containers_ = std::move(containers);
    before_ = std::exchange(now_, std::move(now));
    first_ = false;
    return {};
  }

  /// Errors: those of engine::gpu_use().
  Result<void> look_at_gpus() {
    gpus_ = TRY(engine::gpu_use(session_.context, containers_));
    return {};
  }
  bool has_gpus() const { return !gpus_.empty(); }

  std::vector<ListRow> rows() const {
    std::vector<ListRow> rows;
    for (const auto& container : containers_) rows.push_back(row_of(container));
    return rows;
  }

 private:
  ListRow row_of(const engine::ContainerSummary& c) const {
    const engine::Usage& use = now_.at(c.id);
    auto last = before_.find(c.id);
    std::optional<double> cpu;
    if (last != before_.end()) cpu = engine::cpu_percent(last->second, use);
    std::optional<double> memory;
    if (use.memory_bytes && use.memory_limit_bytes && *use.memory_limit_bytes > 0) {
      memory = 100.0 * static_cast<double>(*use.memory_bytes) /
               static_cast<double>(*use.memory_limit_bytes);
    }
    auto with_gpus = gpus_.find(c.id);
    const std::vector<engine::GpuUse> gpus =
        with_gpus == gpus_.end() ? std::vector<engine::GpuUse>{} : with_gpus->second;
    std::string id = shown_id(c.id, options_.no_trunc ? Ids::whole : Ids::shortened);
    return {{pair_of(use.read_bytes, use.written_bytes, human_bytes), percent(cpu),
             names_.empty() ? id : asked_for(c), of_each(gpus, gpu_memory),
             of_each(gpus, gpu_percent), of_each(gpus, [](const auto& gpu) { return gpu.name; }),
             id, percent(memory), pair_of(use.memory_bytes, use.memory_limit_bytes, binary_bytes),
             c.name, pair_of(use.received_bytes, use.sent_bytes, human_bytes),
             use.processes ? std::to_string(*use.processes) : std::string(kStatsUnknown)}};
  }

  /// In {{.Container}} docker prints the name as the user typed it.
  std::string asked_for(const engine::ContainerSummary& c) const {
    for (const std::string& name : names_) {
      if (name == c.name || c.id.starts_with(name)) return name;
    }
    return c.name;
  }

  void show(const engine::ContainerSummary& c, const engine::Usage& use) {
    if (!use.from_processes || told_) return;
    told_ = true;
    session_.report.warn("no control group counts for container " + quote(c.name) +
                         ": its memory and processor time are the sums over its processes in "
                         "/proc, using these instead");
  }

  Session& session_;
  const StatsOptions& options_;
  std::vector<std::string> names_;
  std::vector<engine::ContainerSummary> containers_;
  std::map<std::string, engine::Usage> before_;
  std::map<std::string, engine::Usage> now_;
  std::map<std::string, std::vector<engine::GpuUse>> gpus_;
  bool first_ = true;
  bool told_ = false;
};

Result<int> run_stats(Session& session, const StatsOptions& o, Arguments arguments) {
  const std::string format = format_or_usual(session, o.format, "statsFormat");
  const Listing usual = TRY(Listing::make(kUse, {.text = format}));
  const Listing with_gpus = TRY(Listing::make(kUseOfGpus, {.text = format}));
  const bool asks =
      with_gpus.uses("GPUs") || with_gpus.uses("GPUPerc") || with_gpus.uses("GPUMemUsage");
  UseTable table(session, o, std::move(arguments));
  TRY(table.measure());
  while (true) {
    std::this_thread::sleep_for(kStatsInterval);
    TRY(table.measure());
    if (asks) TRY(table.look_at_gpus());
    const Listing& listing = table.has_gpus() ? with_gpus : usual;
    std::string text = TRY(listing.text(table.rows()));
    if (o.no_stream) {
      print(session, text);
      return 0;
    }
    session.terminal.write_as_is(Stream::out, kStatsClear);
    print(session, text);
    TRY(session.terminal.written());  // fails if the reader has disconnected
  }
}

}  // namespace

const Verb stats_verb{
    .text = {.name = "stats",
             .arguments = "[CONTAINER...]",
             .summary = "Show a live view of the resources that containers use",
             .example = "berth stats --no-stream web",
             .complete = Complete::container},
    .arity = {0},
    .command = [] { return make_command(stats_flags, run_stats); },
};

}  // namespace berth::cli
