// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "oci/cdi.hpp"
#include "oci/edit.hpp"

namespace berth::gpu::cdi {

/// The parts of a CDI file's top-level containerEdits that affect its devices too.
struct Inherited {
  bool loader_cache = false;
  std::vector<std::string> loader_folders;
  std::vector<std::string> soname_folders;
};

struct Resolved {
  oci::ContainerEdits edits;
  std::vector<std::string> nodes;  ///< the host's nodes that were examined
  Inherited inherited;             ///< the inherited parts and those that these edits add
};

/// Converts the edits of a CDI file: fills in missing members of device nodes from the host's
/// nodes, replaces known hooks by their effect, keeps other hooks. Reads the host's ELF
/// files for libraries that a hook wants in the loader's cache.
/// Errors: not_found (a node without type and major that is not on the host), corrupt (a node of
/// another type; a bind of a relative path; a mount over the root).
Result<Resolved> resolve(const oci::cdi::Edits& edits, const Inherited& inherited);

}  // namespace berth::gpu::cdi
