// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/context.hpp"
#include "image/transfer_protocol.hpp"

/// `berth hub`: a registry front for clients that are not Berth.
namespace berth::engine {

struct HubRequest {
  std::optional<std::string> config;  ///< none: hub.toml of the site's directory, if it is there
  std::vector<std::string> listen;    ///< in the place of the file's
  std::optional<std::string> upstream;
  std::vector<std::string> repositories;  ///< of `upstream`, which has no prefix
  std::optional<std::string> fleet;
  std::optional<std::string> usual;  ///< profile of who names none
  std::optional<std::string> htpasswd;
  std::optional<std::string> tls_certificate;
  std::optional<std::string> tls_key;
  std::optional<std::string> blobs;  ///< "pass", "redirect"
  std::optional<std::string> log;    ///< "text", "json"
  image::RegistryAccess access;
  bool check = false;  ///< reads all files, listens for a moment, and ends
};

/// Becomes berth-hub, so that signals and the exit status are the hub's own; returns only to say
/// why not. Errors: usage, corrupt, not_found (the file, what hub::check() refuses, no program).
Error become_hub(const Context& context, const HubRequest& request);

}  // namespace berth::engine
