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

/// One --security-opt into `security`. A profile of seccomp is named by its file, which the caller
/// reads in its place: `security.seccomp` is then the path.
/// Errors: usage (an unknown option, a value that is none).
Result<void> parse_security_option(std::string_view text, Security& security);

/// The text of a profile of seccomp. Errors: those of opening it, corrupt (over 4 MiB).
Result<std::string> read_profile(const std::string& path);

/// What a container is confined by.
struct Confinement {
  std::vector<std::string> capabilities;  ///< of its bounding set, spec names by number
  bool no_new_privileges = false;
  std::optional<oci::Seccomp> seccomp;
  std::vector<std::string> masked_paths;
  std::vector<std::string> readonly_paths;
  std::string apparmor;
  std::string selinux;
};

/// What is known about the machine and the caller.
struct ConfinementFacts {
  uint64_t held = 0;   ///< the caller's permitted capabilities, as bits
  std::string kernel;  ///< as uname tells
  bool selinux = false;
};

/// Decides by `security` alone. Pure. Errors: usage (an unknown capability), corrupt (the profile).
Result<Confinement> confine(const Security& security, const ConfinementFacts& facts);

}  // namespace berth::engine
