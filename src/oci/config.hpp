// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"
#include "oci/runtime_spec.hpp"

/// Reads and writes config.json. runtime-spec config.md
namespace berth::oci {

/// Parses a config.json. `name` names it in errors.
/// Errors: corrupt (invalid JSON, a member of a wrong type: "config.json: mounts[3].destination:
/// …"), unsupported (an ociVersion with another major number). Before ociVersion 1.3 a pids.limit
/// of 0 means no limit.
Result<Spec> parse_spec(std::string_view text, std::string_view name = "config.json");

/// Parses a process object, the argument of `exec --process`. Errors: corrupt.
Result<Process> parse_process(std::string_view text, std::string_view name);

/// Parses a resources object, the argument of `update --resources`. Errors: corrupt.
Result<Resources> parse_resources(std::string_view text, std::string_view name);

/// Writes `spec` as compact JSON, including the unknown members that were kept.
std::string write_spec(const Spec& spec);
std::string write_process(const Process& process);

}  // namespace berth::oci
