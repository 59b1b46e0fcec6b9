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

/// Checks before anything else is done that the value of a --device is a CDI name.
/// Errors: usage (no name), unsupported (a path; parse_host_device() takes those).
Result<void> check_device(const std::string& text);

/// The devices of this machine's CDI files. Errors: io.
Result<gpu::cdi::Index> list_cdi(const Context& context);

/// Whether no CDI file of this machine defines an NVIDIA GPU.  Errors: io.
Result<bool> has_no_cdi_gpus(const Context& context);

struct RefreshedCdi {
  std::string path;
  gpu::cdi::Index index;
};
/// Writes the index that berth-runtime reads, and returns it with its path. Errors: io, denied.
Result<RefreshedCdi> refresh_cdi(const Context& context);

/// The facts about a CDI file that `berth cdi validate` prints.
struct CdiFileFacts {
  std::string kind;
  std::string version;         ///< as declared
  std::string needed_version;  ///< the lowest version with all features of its content
  size_t devices = 0;
  std::string made_for;  ///< the driver that Berth made it for; empty: unknown
  std::string driver;    ///< the loaded driver; empty: none
};

/// Reads one CDI file with all checks. Errors: corrupt (the error names the place), unsupported
/// (its name ends in neither .json nor .yaml), and those of opening it.
Result<CdiFileFacts> check_cdi_file(const Context& context, const std::string& path);

/// The options of `berth cdi generate`.
struct CdiGenerateRequest {
  std::string vendor = "nvidia";             ///< or "amd", "intel"
  std::string device_class = "gpu";          ///< the kind is <vendor>.com/<class>
  std::vector<std::string> name_strategies;  ///< "index", "uuid", "type-index"; empty: first two
  std::optional<std::string> version;
  std::string format = "yaml";        ///< or "json"
  std::optional<std::string> output;  ///< an absolute path; nothing: only return the text
};

/// Makes the CDI file of this machine's GPUs and returns its text; writes it atomically to the
/// output if one is named. Logs warnings.
/// Errors: those of gpu::cdi::generate(), usage (an unknown strategy, version or class).
Result<std::string> generate_cdi(const Context& context, const CdiGenerateRequest& request);

/// A device as a container would get it: the name, the CDI file, and all edits, resolved.
/// Errors: those of gpu::cdi::edits_of().
Result<json::Value> inspect_cdi(const Context& context, const std::string& name);

/// The parts of a CDI device that a container gets.
enum class CdiParts {
  all,
  nodes,  ///< also variables and groups; for an image with its own driver
};

/// Applies the CDI devices `names` to `spec`, and returns their edits. Reads the inventory only if
/// a file has NVIDIA hooks that depend on it. Errors: those of gpu::cdi::edits_of(),
/// gpu::fit_places() and gpu::finish_edits().
Result<oci::ContainerEdits> add_cdi_devices(const Context& context,
                                            const std::vector<std::string>& names, CdiParts parts,
                                            const gpu::RealPath& real_path, oci::Spec& spec);

}  // namespace berth::engine
