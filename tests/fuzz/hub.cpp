// SPDX-License-Identifier: Apache-2.0
// All that a hub reads of others itself: a request's line and headers, and its files.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "hub/caller.hpp"
#include "hub/config/address.hpp"
#include "hub/config/config.hpp"
#include "hub/htpasswd.hpp"
#include "hub/route.hpp"

namespace {

constexpr std::string_view kNameCharacters =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789./_-:";

/// What becomes a part of an upstream's URL.
void check_name(std::string_view name) {
  bool clean = name.find_first_not_of(kNameCharacters) == name.npos &&
               name.find("..") == name.npos && name.find("//") == name.npos;
  if (!clean) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace hub = berth::hub;
  std::string_view text(reinterpret_cast<const char*>(data), size);

  hub::Route route = hub::route_of("GET", text);
  if (const auto* manifest = std::get_if<hub::ManifestRoute>(&route)) check_name(manifest->name);
  if (const auto* blob = std::get_if<hub::BlobRoute>(&route)) check_name(blob->name);
  if (const auto* tags = std::get_if<hub::TagsRoute>(&route)) check_name(tags->name + tags->last);
  hub::accepts({std::string(text)}, "application/vnd.oci.image.manifest.v1+json");
  if (hub::plain_range(text).find_first_of(",\r\n") != std::string::npos) std::abort();
  if (auto login = hub::read_basic(text)) {
    hub::read_login_name(login->name, [](std::string_view name) { return name == "a"; });
  }
  berth::ignore(hub::parse_network(text));
  berth::ignore(hub::parse_endpoint(text));
  berth::ignore(hub::Htpasswd::parse(text, "htpasswd"));
  auto config = hub::read_config(text, "hub.toml");
  if (config.ok()) berth::ignore(hub::check(*config));

  // Axes of a login name.
  hub::Nodes::Caller caller;
  caller.login = "m/" + std::string(text.substr(0, 200));
  caller.name = hub::read_login_name(*caller.login, [](std::string_view) { return false; });
  auto nodes = hub::Nodes::make({}, {});
  if (nodes.ok()) berth::ignore(nodes->node_of(caller));
  return 0;
}
