// SPDX-License-Identifier: Apache-2.0
#include "engine/run/update.hpp"

#include "cli/berth/common.hpp"
#include "cli/berth/flag_values.hpp"
#include "cli/berth/request_flags.hpp"
#include "engine/request/text.hpp"

namespace berth::cli {
namespace {

struct UpdateOptions {
  engine::Changes changes;
};

FlagTable update_flags(UpdateOptions& o) {
  engine::Limits& l = o.changes.limits;
  FlagTable table = limit_flags(l);
  table.insert(table.end(),
               {{"blkio-weight", 0, "NUMBER", "Block I/O weight, 10 to 1000", &l.blkio_weight},
                {"cpus", 0, "NUMBER", "Limit the number of CPUs, such as 1.5",
                 read_into(l.cpu_millis, engine::parse_cpus)},
                {"gpus", 0, "GPUS", "Replace the GPUs: all, N, device=LIST, from:CONTAINER or none",
                 &o.changes.gpus},
                {"memory", 'm', "BYTES", "Memory limit, such as 512m", read_bytes(l.memory_bytes)},
                {"pids-limit", 0, "NUMBER", "Limit the number of processes; -1 for no limit",
                 read_integer(l.pids)},
                {"restart", 0, "POLICY", "Restart: no, on-failure[:MAX], always or unless-stopped",
                 read_into(o.changes.restart, engine::parse_restart)}});
  sort_flags(table);
  return table;
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

/// Flags of docker.
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
