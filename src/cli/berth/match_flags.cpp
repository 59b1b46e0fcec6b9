// SPDX-License-Identifier: Apache-2.0
#include "cli/berth/match_flags.hpp"

#include "cli/berth/show/match_text.hpp"

namespace berth::cli {

FlagTable match_flags(MatchOptions& o) {
  FlagTable table{
      file_flag("node", 0, "Use a saved profile instead of this machine", &o.request.node),
      choice_flag("gpu-driver", "MODE", "How to add the driver: bind, volume, copy, image or none",
                  &o.driver_mode, {"bind", "volume", "copy", "image", "none"}),
      {"local", 0, "", "Look only in the store, not at a registry", &o.local},
      format_flag(o.format),
  };
  add_registry_flags(table, o.request.access);
  return table;
}

Result<void> finish_match_request(MatchOptions& options, const std::string& reference) {
  options.request.reference = reference;
  options.request.look_up = options.local ? engine::LookUp::store : engine::LookUp::registry;
  if (options.driver_mode) {
    options.request.driver_mode = TRY(parse_enum<policy::DriverMode>(*options.driver_mode));
  }
  return {};
}

Result<MatchFound> find_match(Session& session, MatchOptions options,
                              const std::string& reference) {
  TRY(finish_match_request(options, reference));
  MatchFound found;
  found.offer = TRY(engine::look_up(session.context, options.request));
  found.answer = TRY(engine::match_node(session.context, options.request, found.offer));
  return found;
}

Result<int> show_match(Session& session, const MatchOptions& o, const std::string& reference) {
  MatchFound found = TRY(find_match(session, o, reference));
  if (o.format == "json") {
    print_json(session, match_json(found.offer, found.answer));
  } else {
    print(session, match_table(found.answer));
  }
  return match_status(found.answer.ranking);
}

}  // namespace berth::cli
