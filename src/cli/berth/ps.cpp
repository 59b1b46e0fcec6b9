// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/text.hpp"
#include "cli/berth/common.hpp"
#include "cli/core/table.hpp"
#include "cli/core/text_width.hpp"
#include "engine/containers.hpp"
#include "engine/images.hpp"

namespace berth::cli {
namespace {

constexpr size_t kCommandWidth = 20;

struct Options {
  bool all = false;
  bool latest = false;
  std::optional<uint64_t> last;
  bool no_trunc = false;
  bool quiet = false;
  std::string format = "table";
};

FlagTable flags(Options& o) {
  return {
      {"all", 'a', "", "Also those that do not run", &o.all},
      {"latest", 'l', "", "The newest alone, running or not", &o.latest},
      {"last", 'n', "NUMBER", "The newest ones, running or not", &o.last},
      {"no-trunc", 0, "", "Show whole ids and commands", &o.no_trunc},
      {"quiet", 'q', "", "Show ids alone", &o.quiet},
      format_flag(o.format),
  };
}

template <class T>
json::Value json_optional(const std::optional<T>& value) {
  return value ? json::Value(*value) : json::Value();
}

json::Value to_json(const engine::ContainerSummary& c) {
  return json::Object{
      {"id", c.id},
      {"name", c.name},
      {"image", c.image},
      {"image_id", c.image_id},
      {"command", json_strings(c.command)},
      {"state", engine::container_state_name(c.state)},
      {"created_at", json_time(c.created_at)},
      {"finished_at", json_time(c.finished_at)},
      {"exit_code", json_optional(c.exit_code)},
      {"pid", json_optional(c.pid)},
      {"remove", c.remove},
  };
}

/// "Up 5 minutes", "Exited (0) 3 minutes ago", in docker's words.
std::string status_words(const engine::ContainerSummary& c) {
  switch (c.state) {
    case engine::ContainerState::created:
      return "Created";
    case engine::ContainerState::running: {
      std::string since = ago(c.created_at);
      return "Up " + since.substr(0, since.rfind(" ago"));
    }
    case engine::ContainerState::exited:
      return "Exited (" + std::to_string(c.exit_code.value_or(0)) + ") " +
             ago(c.finished_at.value_or(0));
    case engine::ContainerState::dead:
      return "Dead";
  }
  return "";
}

std::string command_text(const engine::ContainerSummary& c, bool whole) {
  std::string text = escape_controls(join(c.command, " "));
  return "\"" + (whole ? text : truncate(text, kCommandWidth)) + "\"";
}

std::string table_of(const std::vector<engine::ContainerSummary>& containers, const Options& o) {
  // PORTS is always empty here; scripts that cut docker's table by its columns need it.
  Table table({"CONTAINER ID", "IMAGE", "COMMAND", "CREATED", "STATUS", "PORTS", "NAMES"});
  for (const auto& c : containers) {
    table.add({shown_id(c.id, o.no_trunc ? Ids::whole : Ids::shortened), engine::familiar(c.image),
               command_text(c, o.no_trunc), ago(c.created_at), status_words(c), "", c.name});
  }
  return table.text();
}

Result<int> run(Session& session, const Options& o, std::vector<std::string>) {
  bool all = o.all || o.latest || o.last;
  auto containers = TRY(
      engine::list_containers(session.context, all ? engine::Which::all : engine::Which::running,
                              o.format == "json" ? engine::Pids::yes : engine::Pids::no));
  uint64_t most = o.latest ? 1 : o.last.value_or(containers.size());
  containers.resize(std::min<uint64_t>(most, containers.size()));
  if (o.format == "json") {
    json::Array list;
    for (const auto& container : containers) list.push_back(to_json(container));
    print_json(session, json::Object{{"containers", std::move(list)}});
  } else if (o.quiet) {
    for (const auto& container : containers) {
      print(session, shown_id(container.id, o.no_trunc ? Ids::whole : Ids::shortened) + "\n");
    }
  } else {
    print(session, table_of(containers, o));
  }
  return 0;
}

}  // namespace

extern const Verb ps_verb;
const Verb ps_verb{
    .text = {.name = "ps", .arguments = "", .summary = "List containers", .example = "berth ps -a"},
    .arity = {0, 0},
    .command = [] { return make_command(flags, run); },
};

}  // namespace berth::cli
