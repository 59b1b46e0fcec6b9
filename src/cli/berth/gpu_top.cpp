// SPDX-License-Identifier: Apache-2.0
#include <thread>

#include "base/text.hpp"
#include "cli/berth/common.hpp"
#include "cli/berth/show/gpu_terms.hpp"
#include "cli/core/table.hpp"
#include "engine/gpu/top.hpp"
#include "engine/system/user_names.hpp"
#include "json/value.hpp"

namespace berth::cli {
namespace {

constexpr std::chrono::seconds kTopInterval{1};
constexpr std::string_view kTopClear = "\x1b[2J\x1b[H";
constexpr std::string_view kTopUnknown = "--";

struct GpuTopOptions {
  bool once = false;
  std::string format = "table";
};

FlagTable gpu_top_flags(GpuTopOptions& o) {
  return {
      {"once", 0, "", "Print once and exit", &o.once},
      format_flag(o.format),
  };
}

template <class T>
std::string or_unknown(const std::optional<T>& value, std::string_view unit) {
  return value ? std::to_string(*value) + std::string(unit) : std::string(kTopUnknown);
}

std::string memory_text(const std::optional<gpu::MemoryUse>& memory) {
  if (!memory) return std::string(kTopUnknown);
  return binary_bytes(memory->used) + " / " + binary_bytes(memory->total);
}

std::string holders_text(const engine::GpuState& gpu) {
  std::vector<std::string> names;
  for (const gpu::KnownLease& one : gpu.leases) {
    names.push_back(engine::container_of(one.lease) + terms_of(one.lease));
  }
  return names.empty() ? "-" : join(names, ", ");
}

std::string name_of(const std::optional<uint32_t>& user, engine::UserNames& users) {
  return user ? users.name(*user) : std::string(kTopUnknown);
}

std::string table_text(const engine::GpuTop& top, engine::UserNames& users) {
  Table gpus({"INDEX", "MODEL", "GPU %", "MEMORY", "TEMP", "POWER", "HELD BY"});
  Table processes({"GPU", "PID", "USER", "CONTAINER", "MEMORY", "COMMAND"});
  bool any = false;
  for (const engine::GpuState& gpu : top.gpus) {
    std::optional<uint32_t> watts;
    if (gpu.milliwatts) watts = (*gpu.milliwatts + 500) / 1000;
    gpus.add({gpu.index, gpu.model.empty() ? "-" : gpu.model, or_unknown(gpu.busy_percent, "%"),
              memory_text(gpu.memory), or_unknown(gpu.celsius, " C"), or_unknown(watts, " W"),
              holders_text(gpu)});
    if (!gpu.processes) continue;
    for (const engine::GpuProcess& one : *gpu.processes) {
      any = true;
      processes.add({gpu.index, std::to_string(one.pid), name_of(one.user, users),
                     one.lease ? engine::container_of(*one.lease) : "-",
                     one.used_bytes ? binary_bytes(*one.used_bytes) : std::string(kTopUnknown),
                     one.command.empty() ? std::string(kTopUnknown) : one.command});
    }
  }
  std::string text = gpus.text();
  if (any) text += "\n" + processes.text();
  if (top.waiting.value_or(0) > 0) text += "\n" + std::to_string(*top.waiting) + " waiting\n";
  if (top.synthetic) text += "\nsynthetic: of a driver made for tests\n";
  return text;
}

template <class T>
json::Value number(const std::optional<T>& value) {
  return value ? json::Value(static_cast<int64_t>(*value)) : json::Value();
}

json::Value or_null(const std::string& text) {
  return text.empty() ? json::Value() : json::Value(text);
}

json::Value to_json(const gpu::KnownLease& one) {
  return json::Object{{"container", one.lease.container},
                      {"name", one.lease.name},
                      {"user", int64_t{one.user}},
                      {"engine", one.lease.engine},
                      {"exclusive", one.lease.exclusive}};
}

json::Value to_json(const engine::GpuProcess& one) {
  return json::Object{{"pid", one.pid},
                      {"command", or_null(one.command)},
                      {"user", number(one.user)},
                      {"container", or_null(one.lease ? one.lease->container : "")},
                      {"name", or_null(one.lease ? one.lease->name : "")},
                      {"used_bytes", number(one.used_bytes)}};
}

json::Value to_json(const engine::GpuState& gpu);

template <class T>
json::Array json_array(const std::vector<T>& values) {
  json::Array out;
  for (const T& value : values) out.push_back(to_json(value));
  return out;
}

json::Value to_json(const engine::GpuState& gpu) {
  std::optional<uint64_t> used, total;
  if (gpu.memory) {
    used = gpu.memory->used;
    total = gpu.memory->total;
  }
  return json::Object{
      {"index", gpu.index},
      {"id", gpu.id},
      {"model", gpu.model},
      {"busy_percent", number(gpu.busy_percent)},
      {"used_bytes", number(used)},
      {"total_bytes", number(total)},
      {"celsius", number(gpu.celsius)},
      {"milliwatts", number(gpu.milliwatts)},
      {"leases", json_array(gpu.leases)},
      {"processes", gpu.processes ? json::Value(json_array(*gpu.processes)) : json::Value()}};
}

json::Value to_json(const engine::GpuTop& top) {
  return json::Object{{"synthetic", top.synthetic},
                      {"gpus", json_array(top.gpus)},
                      {"waiting", number(top.waiting)}};
}

Result<int> run_gpu_top(Session& session, const GpuTopOptions& o, Arguments) {
  engine::UserNames users;
  while (true) {
    engine::GpuTop top = TRY(engine::gpu_top(session.context));
    bool is_json = o.format == "json";
    if (o.once) {
      is_json ? print_json(session, to_json(top)) : print(session, table_text(top, users));
      return 0;
    }
    if (!is_json) session.terminal.write_as_is(Stream::out, kTopClear);
    // As JSON, each sample is one line.
    print(session, is_json ? json::dump(to_json(top)) + "\n" : table_text(top, users));
    TRY(session.terminal.written());  // fails if the reader has disconnected
    std::this_thread::sleep_for(kTopInterval);
  }
}

}  // namespace

const Verb gpu_top_verb{
    .text = {.name = "gpu top",
             .summary = "Show a live view of GPUs: use, containers and processes",
             .example = "berth gpu top --once --format json"},
    .command = [] { return make_command(gpu_top_flags, run_gpu_top); },
};

}  // namespace berth::cli
