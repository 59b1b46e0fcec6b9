// SPDX-License-Identifier: Apache-2.0
// Hooks of CDI files that we do ourselves: the program is not started, and need not exist.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "oci/cdi.hpp"
#include "oci/edit.hpp"

namespace berth::gpu::cdi {

/// What a hook does, as data.
struct KnownHook {
  bool own = false;  ///< berth-cdi-hook: the file is one of ours
  std::vector<oci::Link> links;
  /// The loader is to find what was mounted in these folders, and in its default ones.
  std::vector<std::string> loader_folders;
  bool loader_cache = false;
  /// Libraries mounted in these folders are to have links of their SONAMEs.
  std::vector<std::string> soname_folders;
  std::vector<oci::LoaderLine> loader_entries;
  std::optional<oci::CompatRequest> compat;
  bool freeze_device_nodes = false;
  bool application_profile = false;
};

/// Recognises, by the name of the program and its arguments, hooks of nvidia-cdi-hook, of
/// "nvidia-ctk hook" and our own. Nothing for another program, another hook of these, or a flag
/// that we do not know: that hook is run as the OCI says. `chmod` is recognised where it asks for
/// what the directories of /dev have anyway.
std::optional<KnownHook> recognise(const oci::cdi::Hook& hook);

}  // namespace berth::gpu::cdi
