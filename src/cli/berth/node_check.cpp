// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"
#include "cli/berth/common.hpp"
#include "cli/core/table.hpp"
#include "engine/node/node.hpp"

namespace berth::cli {
namespace {

struct NodeCheckOptions {
  std::string format = "table";
};

FlagTable node_check_flags(NodeCheckOptions& o) {
  return {format_flag(o.format)};
}

json::Value to_json(const std::vector<node::Difference>& differences) {
  json::Array out;
  for (const node::Difference& one : differences) {
    out.push_back(
        json::Object{{"member", one.member}, {"written", one.written}, {"here", one.here}});
  }
  return json::Object{{"differences", std::move(out)}};
}

Result<int> run_node_check(Session& session, const NodeCheckOptions& o, Arguments arguments) {
  const std::string& file = arguments.front();
  auto differences = TRY(engine::compare_node(session.context, file));
  int status = differences.empty() ? 0 : 1;
  if (o.format == "json") {
    print_json(session, to_json(differences));
    return status;
  }
  if (differences.empty()) {
    print(session, escape_controls(file) + ": good: this machine is as it says\n");
    return status;
  }
  Table table({"MEMBER", "WRITTEN", "HERE"});
  for (node::Difference& one : differences) {
    table.add({std::move(one.member), std::move(one.written), std::move(one.here)});
  }
  print(session, table.text());
  return status;
}

}  // namespace

const Verb node_check_verb{
    .text = {.name = "node check",
             .arguments = "FILE",
             .summary = "Check a saved profile for errors, and for changes since it was saved",
             .example = "berth node check nodes/$(hostname).toml",
             .complete = Complete::file},
    .arity = {1, 1},
    .command = [] { return make_command(node_check_flags, run_node_check); },
};

}  // namespace berth::cli
