// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "oci/cdi.hpp"
#include "oci/edit.hpp"

namespace berth::gpu::cdi {

/// What a CDI file's own edits say that holds for its devices too.
struct Inherited {
  bool loader_cache = false;
  std::vector<std::string> loader_folders;
  std::vector<std::string> soname_folders;
};

struct Resolved {
  oci::ContainerEdits edits;
  std::vector<std::string> nodes;  ///< of the host: what was looked at
  Inherited inherited;             ///< what was inherited, and what these edits add
};

/// Turns the edits of a CDI file into ours: what is absent of a device node is filled in from the
/// host's, known hooks become what they do, others stay hooks. For libraries that a hook wants in
/// the loader's cache the host's ELF files are read.
/// Errors: not_found (a node that does not say type and major is not on the host), corrupt (a node
/// of another type; a bind of a relative path; a mount over the root).
Result<Resolved> resolve(const oci::cdi::Edits& edits, const Inherited& inherited);

}  // namespace berth::gpu::cdi
