// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"
#include "oci/runtime_spec.hpp"

/// config.json, from its text and back. runtime-spec config.md
namespace berth::oci {

/// Reads a config.json. `name` is what errors call the text ("config.json").
/// Errors: corrupt (no JSON, a member of a wrong type: "config.json: mounts[3].destination: …"),
/// unsupported (an ociVersion of another major). A pids.limit of 0 is none before ociVersion 1.3.
Result<Spec> parse_spec(std::string_view text, std::string_view name = "config.json");

/// Reads a process object alone, as `exec --process` takes it. Errors: corrupt.
Result<Process> parse_process(std::string_view text, std::string_view name);

/// Reads a resources object alone, as `update --resources` takes it. Errors: corrupt.
Result<Resources> parse_resources(std::string_view text, std::string_view name);

/// Writes `spec` as compact JSON, the kept unknown members included.
std::string write_spec(const Spec& spec);
std::string write_process(const Process& process);

}  // namespace berth::oci
