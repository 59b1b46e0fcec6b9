// SPDX-License-Identifier: Apache-2.0
// The arguments of berth-cdi-hook: written into CDI files, parsed by the program, and by us if the
// CDI file is ours.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "oci/edit.hpp"

namespace berth::gpu::cdi {

inline constexpr std::string_view kOwnHook = "berth-cdi-hook";

/// The tasks of the hook in a container's root.
struct HookRequest {
  std::vector<oci::Link> links{};
  std::vector<oci::LoaderLine> loader_entries{};
  bool freeze_device_nodes = false;  ///< /proc/driver/nvidia/params says ModifyDeviceFiles: 0
};

/// "--link TARGET::LINK", "--loader-entry SONAME::PATH::FLAGS", "--freeze-device-nodes".
std::vector<std::string> to_words(const HookRequest& request);
/// The inverse. Errors: usage.
Result<HookRequest> parse_words(const std::vector<std::string>& words);

/// "target::link", the form of NVIDIA's hooks; the link is an absolute path.
std::optional<oci::Link> link_of(std::string_view text);

}  // namespace berth::gpu::cdi
