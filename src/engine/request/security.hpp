// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "engine/request/request.hpp"
#include "oci/runtime_spec.hpp"

namespace berth::engine {

/// Adds one --security-opt to `security`. A seccomp profile is named by its file:
/// `security.seccomp` is then the path, and the caller replaces it with the content of the file.
/// Errors: usage (an unknown option, an invalid value).
Result<void> parse_security_option(std::string_view text, Security& security);

/// The content of the file of a seccomp profile. Errors: those of opening the file, corrupt (over 4
/// MiB).
Result<std::string> read_profile(const std::string& path);

/// The confinement of a container.
struct Confinement {
  std::vector<std::string> capabilities;  ///< the bounding set, spec names ordered by number
  bool no_new_privileges = false;
  std::optional<oci::Seccomp> seccomp;
  std::vector<std::string> masked_paths;
  std::vector<std::string> readonly_paths;
  std::string apparmor;
  std::string selinux;
};

/// Facts about the machine and the caller.
struct ConfinementFacts {
  uint64_t held = 0;   ///< the caller's permitted capabilities, as bits
  std::string kernel;  ///< the release that uname(2) returns
  bool selinux = false;
};

/// The confinement that `security` requests. Pure. Errors: usage (an unknown capability), corrupt
/// (the profile).
Result<Confinement> confine(const Security& security, const ConfinementFacts& facts);

}  // namespace berth::engine
