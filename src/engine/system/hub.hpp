// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "engine/context/context.hpp"
#include "hub/config/config.hpp"
#include "image/transfer_protocol.hpp"

/// `berth hub`: a registry proxy for clients other than Berth.
namespace berth::engine {

struct HubRequest {
  std::optional<std::string> config;  ///< none: hub.toml of the site's directory, if present
  hub::Flags flags;
  image::RegistryAccess access;  ///< options that are not in `flags`
  bool check = false;            ///< read all files, listen briefly, and end
};

/// Executes berth-hub in this process, so that signals and the exit status are the hub's own;
/// returns only on failure. Errors: usage, corrupt, not_found (the file, a file that hub::check()
/// needs, the program).
Error become_hub(const Context& context, const HubRequest& request);

}  // namespace berth::engine
