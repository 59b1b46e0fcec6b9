// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "engine/context/context.hpp"
#include "gpu/cdi_index/index.hpp"
#include "gpu/grant/user_mounts.hpp"
#include "json/value.hpp"
#include "oci/edit.hpp"
#include "oci/runtime_spec.hpp"

namespace berth::engine {

/// What a --device names, checked before anything is done: a CDI name.
/// Errors: usage (no name), unsupported (a path of the host: plain devices are not given yet).
Result<void> check_device(const std::string& text);

/// The devices of this machine's CDI files. Errors: io.
Result<gpu::cdi::Index> list_cdi(const Context& context);

/// Whether no CDI file of this machine is about GPUs of NVIDIA.  Errors: io.
Result<bool> has_no_cdi_gpus(const Context& context);

/// Writes the index that berth-runtime reads, and gives its path with it. Errors: io, denied.
struct RefreshedCdi {
  std::string path;
  gpu::cdi::Index index;
};
Result<RefreshedCdi> refresh_cdi(const Context& context);

/// A file as `berth cdi validate` tells of it.
struct CdiFileFacts {
  std::string kind;
  std::string version;         ///< that it declares
  std::string needed_version;  ///< the lowest that its content needs
  size_t devices = 0;
  std::string made_for;  ///< the driver for which we made it; empty: nothing is known of that
  std::string driver;    ///< that is loaded now; empty: none
};

/// Reads one CDI file with every check. Errors: corrupt (naming the place), unsupported (its name
/// ends in neither .json nor .yaml), and those of opening it.
Result<CdiFileFacts> check_cdi_file(const Context& context, const std::string& path);

/// `berth cdi generate` after its flags were read.
struct CdiGenerateRequest {
  std::string vendor = "nvidia";             ///< or "amd", "intel"
  std::string device_class = "gpu";          ///< the kind is <vendor>.com/<class>
  std::vector<std::string> name_strategies;  ///< "index", "uuid", "type-index"; empty: both first
  std::optional<std::string> version;
  std::string format = "yaml";        ///< or "json"
  std::optional<std::string> output;  ///< an absolute path; nothing: the text is given back
};

/// Makes the CDI file of this machine's GPUs; gives its text, which is written to the output (whole
/// or not at all) where one is named. What is worth a warning goes to the log.
/// Errors: those of gpu::cdi::generate(), usage (a word that is no strategy, version or class).
Result<std::string> generate_cdi(const Context& context, const CdiGenerateRequest& request);

/// A device as it would be given: its name, its file, and all edits, resolved.
/// Errors: those of gpu::cdi::edits_of().
Result<json::Value> inspect_cdi(const Context& context, const std::string& name);

/// What of a CDI device a container gets.
enum class CdiParts {
  all,
  nodes,  ///< and variables and groups: for an image that brings its own driver
};

/// Gives the CDI devices `names` to `spec`, and what that were. The inventory is asked only where a
/// file has hooks of NVIDIA's that depend on it. Errors: those of gpu::cdi::edits_of(),
/// gpu::fit_places() and gpu::finish_edits().
Result<oci::ContainerEdits> add_cdi_devices(const Context& context,
                                            const std::vector<std::string>& names, CdiParts parts,
                                            const gpu::RealPath& real_path, oci::Spec& spec);

}  // namespace berth::engine
