// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "oci/edit.hpp"
#include "sys/fd/fd.hpp"

namespace berth::gpu::cdi {

// The arguments of berth-cdi-hook. We write them into CDI files; the program parses them, and so do
// we when we read such a CDI file.

inline constexpr std::string_view kOwnHook = "berth-cdi-hook";

/// The tasks of the hook in a container's root.
struct HookRequest {
  std::vector<oci::Link> links{};
  std::vector<oci::LoaderLine> loader_entries{};
  bool freeze_device_nodes = false;  ///< set ModifyDeviceFiles: 0 in /proc/driver/nvidia/params
};

/// The request as options: "--link TARGET::LINK", "--loader-entry SONAME::PATH::FLAGS",
/// "--freeze-device-nodes".
std::vector<std::string> to_words(const HookRequest& request);
/// The inverse of to_words(). Errors: usage.
Result<HookRequest> parse_words(const std::vector<std::string>& words);

/// "target::link", the form of NVIDIA's hooks; the link is an absolute path.
std::optional<oci::Link> link_of(std::string_view text);

/// The root of a container, from the state that an engine passes to a hook on its standard input.
/// Errors: corrupt (not a state, no bundle, no config.json with a root), and those of opening the
/// root.
/// Source: runtime-spec runtime.md "State".
Result<sys::Fd> open_container_root(std::string_view state);

/// Carries out `request` in the container's root: links, the loader's cache (for musl its path
/// file), NVIDIA's parameters. Starts no program. The image's files are parsed in a sandboxed
/// child.
Result<void> run_hook(const HookRequest& request, const sys::Fd& root);

}  // namespace berth::gpu::cdi
