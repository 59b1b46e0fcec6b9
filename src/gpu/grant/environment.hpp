// SPDX-License-Identifier: Apache-2.0
// What the variables and labels of an image and its container say: NVIDIA's image contract. Whether
// any of it counts is decided in sources.hpp.
// Source: NVIDIA container toolkit's documentation, "environment variables (OCI spec)".
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "gpu/grant/request.hpp"

namespace berth::gpu {

/// The variables of a container, "NAME=value": the last of equal names counts.
class Variables {
 public:
  /// `over` wins over `under`.
  Variables(const std::vector<std::string>& under, const std::vector<std::string>& over);

  std::optional<std::string> get(std::string_view name) const;
  /// Of those whose name starts so, sorted by name.
  std::vector<std::pair<std::string, std::string>> starting(std::string_view prefix) const;

 private:
  std::map<std::string, std::string, std::less<>> values_;
};

/// What one value asks for.
struct DeviceWish {
  Request::Want want = Request::Want::none;
  std::vector<std::string> devices;    ///< Want::devices
  std::vector<std::string> cdi_names;  ///< "vendor.com/class=name"; beside any `want`
};

/// Reads NVIDIA_VISIBLE_DEVICES: "", "void": nothing; "none": the driver's files; "all"; else a
/// list of indices, ids, slices and CDI names, each once. "runtime.nvidia.com/<mode>=<id>" is <id>.
/// Never fails: what names nothing is found out when it is looked up.
DeviceWish parse_visible_devices(std::string_view value);

/// "vendor.com/class=name", the parts not empty and without blanks.
bool is_qualified_name(std::string_view text);

/// CUDA_VERSION without NVIDIA_REQUIRE_CUDA: an image from before the contract.
bool is_legacy_image(const Variables& variables);
/// "cuda>=8.0" of CUDA_VERSION "8.0.61"; nothing when it is no version.
std::optional<std::string> legacy_requirement(const Variables& variables);

/// Words of NVIDIA_DRIVER_CAPABILITIES, "all" among them, and those that nobody knows.
struct CapabilityWords {
  std::vector<std::string> known, unknown;
};
CapabilityWords parse_capabilities(std::string_view value);

/// Go's strconv.ParseBool, which is what the toolkit reads NVIDIA_DISABLE_REQUIRE with.
bool is_true(std::string_view text);

/// Channels of NVIDIA_IMEX_CHANNELS: numbers below 2^20; `refused` are the other words, "all" among
/// them.
struct ImexWords {
  std::vector<uint32_t> channels;
  std::vector<std::string> refused;
};
ImexWords parse_imex_channels(std::string_view value);

/// /dev/null mounted here asks for a device.
inline constexpr std::string_view kVolumeDevices = "/var/run/nvidia-container-devices/";

/// What the paths of such mounts ask for, relative to kVolumeDevices: "all", "0", "GPU-…",
/// "cdi/<vendor>/<class>/<name>", "imex/<channel>".
struct VolumeWish {
  DeviceWish devices;
  ImexWords imex;
};
VolumeWish parse_volume_devices(const std::vector<std::string>& paths);

/// Whether an image that was made for nvidia-docker 1 says that it needs the driver.
bool needs_driver_volume(const std::map<std::string, std::string>& labels);

}  // namespace berth::gpu
