// SPDX-License-Identifier: Apache-2.0
#include "cli/oci/verb.hpp"
#include "json/value.hpp"
#include "runtime/state/find.hpp"
#include "runtime/state/process_table.hpp"

namespace berth::cli::oci {
namespace {

struct PsOptions {
  std::string format = "table";
};

FlagTable ps_flags(PsOptions& o) {
  return {{"format", 'f', "FORMAT", "Output format: table or json", &o.format, {"table", "json"}}};
}

std::string as_json(const std::vector<pid_t>& processes) {
  json::Array array;
  for (pid_t pid : processes) array.emplace_back(int64_t{pid});
  return json::dump(json::Value(std::move(array))) + "\n";
}

Result<int> run_ps(Session& session, const PsOptions& options, const Arguments& arguments) {
  runtime::Store store = TRY(runtime::Store::open(session.root));
  runtime::Found found = TRY(runtime::find(store, arguments[0]));
  std::vector<pid_t> processes = TRY(runtime::shown_processes_of(found));
  if (options.format == "json") {
    session.out = as_json(processes);
    return 0;
  }
  session.out = TRY(runtime::process_table(processes, {arguments.begin() + 1, arguments.end()}));
  return 0;
}

}  // namespace

const Verb ps_verb{
    .text = {.name = "ps",
             .arguments = "ID [PS-ARGUMENT...]",
             .summary = "List the processes of a container, as the host's ps shows them",
             .example = "berth-runtime ps web -o pid,args"},
    .arity = {1, SIZE_MAX},
    .command = [] { return make_command(ps_flags, run_ps); },
    .flags_end = FlagsEnd::at_first_argument,
};

}  // namespace berth::cli::oci
