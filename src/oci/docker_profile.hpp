// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "oci/default_seccomp.hpp"
#include "oci/runtime_spec.hpp"

namespace berth::oci {

/// The facts that select rules of a profile.
struct ProfileFacts {
  const std::vector<std::string>& capabilities;  ///< of the bounding set, spec names
  Machine machine;
  std::string_view kernel;  ///< "6.1.0-18-amd64", from uname(2)
};

/// Parses a seccomp profile in the form of docker's --security-opt seccomp=FILE: defaultAction,
/// archMap or architectures, and syscalls with rules that may depend on capabilities, architectures
/// and kernel versions through includes and excludes. `document` names the text in errors.
/// Errors: corrupt (not a document of this form; an unknown architecture or kernel version; no
/// defaultAction).
/// Source: moby profiles/seccomp/seccomp.go, the form of its default.json.
Result<Seccomp> parse_docker_profile(std::string_view text, std::string_view document,
                                     const ProfileFacts& facts);

}  // namespace berth::oci
