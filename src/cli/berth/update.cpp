// SPDX-License-Identifier: Apache-2.0
#include "engine/run/update.hpp"

#include "base/text.hpp"
#include "cli/berth/common.hpp"
#include "engine/request/text.hpp"

namespace berth::cli {
namespace {

struct UpdateOptions {
  engine::Changes changes;
};

ReadValue read_new_swap(std::optional<int64_t>& target) {
  return [&target](std::string_view text) -> Result<void> {
    auto bytes = parse_bytes(text);
    if (text == "-1") {
      target = -1;
    } else if (bytes && *bytes <= static_cast<uint64_t>(INT64_MAX)) {
      target = static_cast<int64_t>(*bytes);
    } else {
      return make_error(Kind::usage, "expected a size such as 2g, or -1");
    }
    return {};
  };
}

FlagTable update_flags(UpdateOptions& o) {
  engine::Limits& l = o.changes.limits;
  ReadValue read_cpus = [&l](std::string_view text) -> Result<void> {
    l.cpu_millis = TRY(engine::parse_cpus(text));
    return {};
  };
  ReadValue read_restart = [&o](std::string_view text) -> Result<void> {
    o.changes.restart = TRY(engine::parse_restart(text));
    return {};
  };
  return {
      {"blkio-weight", 0, "NUMBER", "Block I/O weight, 10 to 1000", &l.blkio_weight},
      {"cpu-period", 0, "MICROSECONDS", "Length of the period for --cpu-quota", &l.cpu_period},
      {"cpu-quota", 0, "MICROSECONDS", "Limit CPU time in each --cpu-period",
       read_integer(l.cpu_quota)},
      {"cpu-rt-period", 0, "MICROSECONDS", "Length of the period for --cpu-rt-runtime",
       &l.cpu_rt_period},
      {"cpu-rt-runtime", 0, "MICROSECONDS", "Limit real-time CPU time in each --cpu-rt-period",
       read_integer(l.cpu_rt_runtime)},
      {"cpu-shares", 'c', "NUMBER", "CPU weight relative to other containers (1024)",
       &l.cpu_shares},
      {"cpus", 0, "NUMBER", "Limit the number of CPUs, such as 1.5", std::move(read_cpus)},
      {"cpuset-cpus", 0, "LIST", "CPUs to run on, such as 0-3,7", &l.cpuset_cpus},
      {"cpuset-mems", 0, "LIST", "NUMA nodes to use memory of, such as 0-1", &l.cpuset_mems},
      {"gpus", 0, "GPUS", "Replace the GPUs: all, N, device=LIST, from:CONTAINER or none",
       &o.changes.gpus},
      {"memory", 'm', "BYTES", "Memory limit, such as 512m", read_bytes(l.memory_bytes)},
      {"memory-reservation", 0, "BYTES", "Soft memory limit, for when the host runs short",
       read_bytes(l.memory_reservation_bytes)},
      {"memory-swap", 0, "BYTES", "Limit memory plus swap; -1 for unlimited swap",
       read_new_swap(l.memory_swap_bytes)},
      {"pids-limit", 0, "NUMBER", "Limit the number of processes; -1 for no limit",
       read_integer(l.pids)},
      {"restart", 0, "POLICY", "Restart: no, on-failure[:MAX], always or unless-stopped",
       std::move(read_restart)},
  };
}

Result<int> run_update(Session& session, const UpdateOptions& o, Arguments arguments) {
  if (o.changes.limits == engine::Limits() && !o.changes.restart && !o.changes.gpus) {
    return make_error(Kind::usage, "you must provide one or more flags when using this command",
                      "berth update --help");
  }
  return for_each_argument(session, arguments, [&](const std::string& name) -> Result<void> {
    TRY(engine::update_container(session.context, name, o.changes));
    print(session, name + "\n");
    return {};
  });
}

/// Of docker.
constexpr Elsewhere kUpdateElsewhere[] = {
    {"kernel-memory", "--memory, which counts the kernel's memory too",
     "Linux has had no such limit since 5.16"},
};

}  // namespace

const Verb update_verb{
    .text = {.name = "update",
             .arguments = "CONTAINER [CONTAINER...]",
             .summary = "Change limits, restart policy and GPUs of containers",
             .example = "berth update --memory 2g --restart always web",
             .complete = Complete::container},
    .arity = {1},
    .elsewhere = kUpdateElsewhere,
    .command = [] { return make_command(update_flags, run_update); },
};

}  // namespace berth::cli
