// SPDX-License-Identifier: Apache-2.0
#include "engine/system/metrics.hpp"

#include <array>
#include <charconv>
#include <map>
#include <set>

#include "base/text.hpp"
#include "sys/file/file.hpp"

namespace berth::engine {
namespace {

using Labels = std::vector<std::pair<std::string_view, std::string>>;

std::string escaped(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (c == '\\' || c == '"') out += '\\';
    if (c == '\n') {
      out += "\\n";
    } else {
      out += c;
    }
  }
  return out;
}

std::string number(double value) {
  std::array<char, 64> text{};
  auto [end, error] = std::to_chars(text.data(), text.data() + text.size(), value);
  return {text.data(), end};
}

/// One metric; all its lines stay together.
class Family {
 public:
  Family(std::string_view name, std::string_view type, std::string_view help)
      : name_(name), type_(type), help_(help) {}

  void add(const Labels& labels, double value) {
    std::vector<std::string> words;
    for (const auto& [key, text] : labels) {
      words.push_back(std::string(key) + "=\"" + escaped(escape_controls(text)) + "\"");
    }
    std::string series = words.empty() ? "" : "{" + join(words, ",") + "}";
    if (!known_.insert(series).second) return;  // a user may write a lease twice
    lines_ += "berth_" + std::string(name_) + series + " " + number(value) + "\n";
  }
  template <class T>
  void add(const Labels& labels, const std::optional<T>& value, double divisor = 1) {
    if (value) add(labels, static_cast<double>(*value) / divisor);
  }

  std::string text() const {
    if (lines_.empty()) return {};
    const std::string name = "berth_" + std::string(name_);
    return "# HELP " + name + " " + std::string(help_) + "\n# TYPE " + name + " " +
           std::string(type_) + "\n" + lines_;
  }

 private:
  std::string_view name_, type_, help_;
  std::set<std::string> known_;
  std::string lines_;
};

template <size_t N>
std::string text_of(const std::array<Family, N>& families) {
  std::string text;
  for (const Family& one : families) text += one.text();
  return text;
}

std::string states_text(const std::vector<ContainerSummary>& containers) {
  std::map<std::string, int> counts;
  for (const ContainerSummary& one : containers)
    ++counts[std::string(container_state_name(one.state))];
  Family family("containers", "gauge", "Containers of this store by state.");
  for (const auto& [state, count] : counts) family.add({{"state", state}}, count);
  return family.text();
}

std::string containers_text(const Measured& measured) {
  constexpr double kPerSecond = 1e9;
  std::array families = {
      Family("container_cpu_seconds_total", "counter", "Processor time of all its processes."),
      Family("container_memory_bytes", "gauge", "Memory in use."),
      Family("container_memory_limit_bytes", "gauge", "Its limit, at most the machine's memory."),
      Family("container_network_receive_bytes_total", "counter", "Of all devices but lo."),
      Family("container_network_transmit_bytes_total", "counter", "Of all devices but lo."),
      Family("container_disk_read_bytes_total", "counter", "Read from disks."),
      Family("container_disk_written_bytes_total", "counter", "Written to disks."),
      Family("container_processes", "gauge", "Processes and threads."),
  };
  for (const auto& [container, use] : measured.running) {
    const Labels labels = {
        {"id", container.id}, {"name", container.name}, {"image", container.image}};
    auto* family = families.begin();
    (family++)->add(labels, use.cpu_ns, kPerSecond);
    (family++)->add(labels, use.memory_bytes);
    (family++)->add(labels, use.memory_limit_bytes);
    (family++)->add(labels, use.received_bytes);
    (family++)->add(labels, use.sent_bytes);
    (family++)->add(labels, use.read_bytes);
    (family++)->add(labels, use.written_bytes);
    (family++)->add(labels, use.processes);
  }
  return text_of(families);
}

/// GPU memory by container, if known.
std::map<std::string, uint64_t> memory_by_container(const std::vector<GpuProcess>& processes) {
  std::map<std::string, uint64_t> sums;
  for (const GpuProcess& one : processes) {
    if (one.lease && one.used_bytes) sums[one.lease->container] += *one.used_bytes;
  }
  return sums;
}

std::string gpus_text(const GpuTop& top) {
  constexpr double kPercent = 100, kMilli = 1000;
  std::array families = {
      Family("gpu_info", "gauge", "GPUs, and slices of them."),
      Family("gpu_busy_ratio", "gauge", "Part of the time in which something ran."),
      Family("gpu_memory_used_bytes", "gauge", "Memory in use by all."),
      Family("gpu_memory_total_bytes", "gauge", "Memory that there is."),
      Family("gpu_temperature_celsius", "gauge", "Of the chip."),
      Family("gpu_power_watts", "gauge", "Drawn at this moment."),
      Family("gpu_processes", "gauge", "Processes that have it open."),
      Family("gpu_lease", "gauge", "Who has it."),
      Family("container_gpu_memory_bytes", "gauge", "Memory of its processes on a GPU."),
      Family("gpu_waiting", "gauge", "Containers that wait for GPUs."),
  };
  for (const GpuState& gpu : top.gpus) {
    const Labels labels = {{"gpu", gpu.index}};
    std::optional<uint64_t> used, total;
    if (gpu.memory) {
      used = gpu.memory->used;
      total = gpu.memory->total;
    }
    auto* family = families.begin();
    (family++)->add({{"gpu", gpu.index}, {"id", gpu.id}, {"model", gpu.model}}, 1);
    (family++)->add(labels, gpu.busy_percent, kPercent);
    (family++)->add(labels, used);
    (family++)->add(labels, total);
    (family++)->add(labels, gpu.celsius);
    (family++)->add(labels, gpu.milliwatts, kMilli);
    std::optional<size_t> count;
    if (gpu.processes) count = gpu.processes->size();
    (family++)->add(labels, count);
    for (const gpu::KnownLease& one : gpu.leases) {
      family->add({{"gpu", gpu.index},
                   {"id", one.lease.container},
                   {"name", container_of(one.lease)},
                   {"engine", one.lease.engine},
                   {"user", std::to_string(one.user)},
                   {"exclusive", one.lease.exclusive ? "true" : "false"}},
                  1);
    }
    ++family;
    if (!gpu.processes) continue;
    for (const auto& [id, bytes] : memory_by_container(*gpu.processes)) {
      family->add({{"gpu", gpu.index}, {"id", id}}, static_cast<double>(bytes));
    }
  }
  if (!top.gpus.empty()) families.back().add({}, top.waiting);
  return text_of(families);
}

}  // namespace

Result<Measured> measure_all(const Context& context) {
  Measured measured;
  measured.containers = TRY(list_containers(context, Which::all));
  for (const ContainerSummary& one : measured.containers) {
    if (is_alive(one.state)) measured.running.emplace_back(one, measure_container(context, one));
  }
  auto gpus = gpu_top(context);
  if (gpus.ok()) {
    measured.gpus = *std::move(gpus);
  } else {
    context.log.warn("cannot read the use of GPUs: " + to_line(gpus.error()) + ", ignoring");
  }
  return measured;
}

std::string metrics_text(const Measured& measured) {
  return states_text(measured.containers) + containers_text(measured) + gpus_text(measured.gpus);
}

Result<void> write_metrics(const Context& context, const std::string& path) {
  Measured measured = TRY(measure_all(context));
  return sys::replace_file(sys::cwd(), path, metrics_text(measured), 0644);
}

}  // namespace berth::engine
