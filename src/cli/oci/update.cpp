// SPDX-License-Identifier: Apache-2.0
#include "runtime/update.hpp"

#include <algorithm>

#include "cli/oci/verb.hpp"

namespace berth::cli::oci {
namespace {

struct UpdateOptions {
  std::string resources_file;
  std::string devices;
  berth::oci::Resources resources;  ///< resources as set by the flags
  std::optional<uint64_t> blkio_weight;
  std::optional<int64_t> pids_limit;
  std::string l3_cache_schema;
  std::string mem_bw_schema;
};

/// "512m", or "-1" for no limit.
ReadValue read_limit(std::optional<int64_t>& target) {
  return [&target](std::string_view text) -> Result<void> {
    if (text == "-1") {
      target = -1;
      return {};
    }
    std::optional<uint64_t> bytes;
    TRY(read_bytes(bytes)(text));
    if (*bytes > INT64_MAX) return make_error(Kind::usage, "expected a size such as 512m, or -1");
    target = static_cast<int64_t>(*bytes);
    return {};
  };
}

FlagTable update_flags(UpdateOptions& o) {
  berth::oci::Memory& memory = o.resources.memory.emplace();
  berth::oci::Cpu& cpu = o.resources.cpu.emplace();
  return {
      {"resources", 'r', "FILE", "Read resources from a JSON file; '-' for stdin",
       &o.resources_file},
      {"devices-of", 0, "FILE", "Set the devices to those of a config.json; '-' for stdin",
       &o.devices},
      {"blkio-weight", 0, "N", "Block I/O weight, 10 to 1000", &o.blkio_weight},
      {"cpu-period", 0, "US", "Length of the period for --cpu-quota", &cpu.period},
      {"cpu-quota", 0, "US", "CPU time in each period; -1 for no limit", read_integer(cpu.quota)},
      {"cpu-burst", 0, "US", "Unused quota that may be saved for later periods", &cpu.burst},
      {"cpu-share", 0, "N", "CPU weight relative to others, 2 to 262144", &cpu.shares},
      {"cpu-rt-period", 0, "US", "Length of the period for --cpu-rt-runtime", &cpu.realtime_period},
      {"cpu-rt-runtime", 0, "US", "Real-time CPU time in each period",
       read_integer(cpu.realtime_runtime)},
      {"cpuset-cpus", 0, "LIST", "CPUs to run on, such as 0-3,7", &cpu.cpus},
      {"cpuset-mems", 0, "LIST", "NUMA nodes to use memory of, such as 0-1", &cpu.mems},
      {"memory", 0, "BYTES", "Memory limit; -1 for no limit", read_limit(memory.limit)},
      {"memory-reservation", 0, "BYTES", "Soft memory limit", read_limit(memory.reservation)},
      {"memory-swap", 0, "BYTES", "Limit of memory plus swap; -1 for no limit",
       read_limit(memory.swap)},
      {"cpu-idle", 0, "0|1", "Run only when the CPUs are otherwise idle", read_integer(cpu.idle)},
      {"pids-limit", 0, "N", "Limit the number of processes; -1 for no limit",
       read_integer(o.pids_limit)},
      {"l3-cache-schema", 0, "SCHEMA", "L3 cache schema (Intel RDT)", &o.l3_cache_schema},
      {"mem-bw-schema", 0, "SCHEMA", "Memory bandwidth schema (Intel RDT)", &o.mem_bw_schema}};
}

Result<berth::oci::Resources> wanted(const UpdateOptions& o) {
  if (!o.resources_file.empty()) return runtime::read_resources(o.resources_file);
  berth::oci::Resources resources = o.resources;
  // As in runc, 0 means that the flag is absent.
  if (o.pids_limit.value_or(0) != 0) resources.pids = berth::oci::Pids{*o.pids_limit};
  if (o.blkio_weight.value_or(0) != 0) {
    resources.block_io.emplace().weight =
        static_cast<uint32_t>(std::min<uint64_t>(*o.blkio_weight, UINT32_MAX));
  }
  return resources;
}

Result<int> run_update(Session& session, const UpdateOptions& options, const Arguments& arguments) {
  std::string context = "cannot update container '" + arguments[0] + "'";
  if (!options.l3_cache_schema.empty() || !options.mem_bw_schema.empty()) {
    return make_error(Kind::unsupported,
                      "set a schema of Intel RDT: it is not supported for a running container")
        .with_context(context);
  }
  runtime::Store store = TRY(runtime::Store::open(session.root));
  if (!options.devices.empty()) {
    auto spec = TRY_CTX(runtime::read_wanted_spec(options.devices), context);
    TRY_CTX(runtime::change_devices(store, arguments[0], spec, session.log), context);
    return 0;
  }
  auto resources = TRY_CTX(wanted(options), context);
  TRY_CTX(runtime::update(store, arguments[0], resources, session.log), context);
  return 0;
}

}  // namespace

const Verb update_verb{
    .text = {.name = "update",
             .arguments = "ID",
             .summary = "Change the limits of a container",
             .example = "berth-runtime update --memory 512m web"},
    .arity = {1, 1},
    .command = [] { return make_command(update_flags, run_update); },
};

}  // namespace berth::cli::oci
