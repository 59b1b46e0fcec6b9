// SPDX-License-Identifier: Apache-2.0
// Hooks of CDI files that we carry out ourselves. The program of the hook is not started and need
// not exist.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "oci/cdi.hpp"
#include "oci/edit.hpp"

namespace berth::gpu::cdi {

/// What a hook does, as data.
struct KnownHook {
  bool own = false;  ///< the hook is berth-cdi-hook: we made the CDI file
  std::vector<oci::Link> links;
  /// Folders of mounted files that the loader shall search, in addition to its default ones.
  std::vector<std::string> loader_folders;
  bool loader_cache = false;
  /// Folders in which mounted libraries shall get symbolic links named by their SONAMEs.
  std::vector<std::string> soname_folders;
  std::vector<oci::LoaderLine> loader_entries;
  std::optional<oci::CompatRequest> compat;
  bool freeze_device_nodes = false;
  bool application_profile = false;
};

/// Recognises, by program name and arguments, the hooks of nvidia-cdi-hook, of "nvidia-ctk hook"
/// and of berth-cdi-hook. Returns nothing for another program, an unknown subcommand or an unknown
/// flag: such a hook is run as the OCI says. `chmod` is recognised if it asks for modes that the
/// directories of /dev have anyway.
std::optional<KnownHook> recognise(const oci::cdi::Hook& hook);

}  // namespace berth::gpu::cdi
