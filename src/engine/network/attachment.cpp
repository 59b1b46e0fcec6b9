// SPDX-License-Identifier: Apache-2.0
#include "engine/network/attachment.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "engine/network/network_store.hpp"
#include "engine/request/text.hpp"
#include "network/address.hpp"

namespace berth::engine {

Result<network::Attachment> attachment_of(const Context& context, const JoinedNetwork& joined,
                                          const std::optional<std::string>& name,
                                          const std::string& id) {
  network::Attachment made;
  made.name = joined.name;
  made.mac = joined.mac;
  if (joined.name == kDefaultNetwork) return made;
  auto record = TRY(find_network(context, joined.name));
  if (!record) return no_network(joined.name);
  made.network = record->id;
  made.name = record->name;
  made.subnet = record->subnet;
  made.gateway = record->gateway;
  made.range = record->range;
  made.internal = record->internal;
  made.address = joined.address;
  if (name) made.names.push_back(*name);
  made.names.insert(made.names.end(), joined.aliases.begin(), joined.aliases.end());
  made.names.push_back(id.substr(0, 12));
  return made;
}

Result<std::vector<network::Attachment>> attachments_of(const Context& context,
                                                        const RunRequest& request,
                                                        const std::string& id) {
  std::vector<network::Attachment> made;
  for (const JoinedNetwork& one : request.networks) {
    made.push_back(TRY(attachment_of(context, one, request.name, id)));
  }
  return made;
}

Result<void> check_network_alias(std::string_view alias) {
  bool good =
      !alias.empty() && alias.size() <= 253 && std::ranges::all_of(alias, is_name_character);
  if (good) return {};
  return make_error(Kind::usage, "expected a name of letters, digits, '.', '_' and '-', not " +
                                     quote(alias.substr(0, 255)));
}

Result<std::string> read_mac(std::string_view text) {
  return network::mac_text(TRY(network::parse_mac(text)));
}

Result<JoinedNetwork> parse_joined_network(const Context& context, std::string_view text) {
  JoinedNetwork joined;
  if (text.find('=') == text.npos) {
    joined.name = text;
  } else {
    for (std::string_view part : split(text, ',')) {
      size_t equals = std::min(part.find('='), part.size());
      std::string_view key = part.substr(0, equals);
      std::string value(part.substr(std::min(equals + 1, part.size())));
      if (key == "name") {
        joined.name = value;
      } else if (key == "alias") {
        TRY_CTX(check_network_alias(value), "--network " + quote(text));
        joined.aliases.push_back(std::move(value));
      } else if (key == "ip") {
        joined.address = value;
      } else if (key == "mac-address") {
        joined.mac = TRY_CTX(read_mac(value), "--network " + quote(text));
      } else {
        return make_error(Kind::usage, "--network " + quote(text) +
                                           ": expected only name=, alias=, ip= and mac-address=");
      }
    }
  }
  bool is_default = parse_network(joined.name).ok() && joined.name != "host" &&
                    joined.name != "none" && joined.name != "pasta" && joined.name != "slirp4netns";
  if (is_default) {
    joined.name = kDefaultNetwork;
    return joined;
  }
  if (is_network_keyword(joined.name) || joined.name.starts_with("container:")) {
    return make_error(Kind::usage,
                      "network " + quote(joined.name) + " cannot be combined with another one",
                      "only one --network");
  }
  auto record = TRY(find_network(context, joined.name));
  if (!record) return no_network(joined.name);
  joined.name = record->name;
  return joined;
}

}  // namespace berth::engine
