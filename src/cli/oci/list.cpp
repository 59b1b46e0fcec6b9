// SPDX-License-Identifier: Apache-2.0
#include "cli/core/table.hpp"
#include "cli/oci/verb.hpp"
#include "json/value.hpp"

namespace berth::cli::oci {
namespace {

struct ListOptions {
  std::string format = "table";
  bool quiet = false;
};

FlagTable list_flags(ListOptions& o) {
  return {{"format", 'f', "FORMAT", "Output format: table or json", &o.format, {"table", "json"}},
          {"quiet", 'q', "", "Show only ids", &o.quiet}};
}

json::Value as_json(const runtime::Listed& one) {
  json::Object object;
  object.emplace_back("ociVersion", one.state.oci_version);
  object.emplace_back("id", one.state.id);
  bool ended = one.status == runtime::Status::stopped;
  object.emplace_back("pid", int64_t{ended ? 0 : one.state.pid});
  object.emplace_back("status", std::string(runtime::status_name(one.status)));
  object.emplace_back("bundle", one.state.bundle);
  object.emplace_back("rootfs", one.state.rootfs);
  object.emplace_back("created", one.state.created);
  object.emplace_back("owner", std::to_string(one.state.owner));
  return object;
}

std::string as_table(const std::vector<runtime::Listed>& listed) {
  Table table({"ID", "PID", "STATUS", "BUNDLE", "CREATED", "OWNER"});
  for (const auto& one : listed) {
    bool ended = one.status == runtime::Status::stopped;
    table.add({one.state.id, std::to_string(ended ? 0 : one.state.pid),
               std::string(runtime::status_name(one.status)), one.state.bundle, one.state.created,
               std::to_string(one.state.owner)});
  }
  return table.text();
}

Result<int> run_list(Session& session, const ListOptions& options, const Arguments&) {
  runtime::Store store = TRY(runtime::Store::open(session.root));
  std::vector<runtime::Listed> listed = TRY(runtime::list(store));
  if (options.quiet) {
    for (const auto& one : listed) session.out += one.state.id + "\n";
  } else if (options.format == "json") {
    json::Array array;
    for (const auto& one : listed) array.push_back(as_json(one));
    session.out = json::dump(json::Value(std::move(array))) + "\n";
  } else {
    session.out = as_table(listed);
  }
  return 0;
}

}  // namespace

const Verb list_verb{
    .text = {.name = "list",
             .summary = "List the containers under --root",
             .example = "berth-runtime list --format json"},
    .command = [] { return make_command(list_flags, run_list); },
};

}  // namespace berth::cli::oci
