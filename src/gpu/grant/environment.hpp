// SPDX-License-Identifier: Apache-2.0
// The variables and labels of an image and its container that NVIDIA defined for requesting GPUs.
// sources.hpp decides whether they are used. Source: NVIDIA container toolkit's documentation,
// "environment variables (OCI spec)".
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

/// The variables of a container, "NAME=value". If a name occurs more than once, the last value
/// counts.
class Variables {
 public:
  /// `over` overrides `under`.
  Variables(const std::vector<std::string>& under, const std::vector<std::string>& over);

  std::optional<std::string> get(std::string_view name) const;
  /// The variables with names that start with `prefix`, sorted by name.
  std::vector<std::pair<std::string, std::string>> starting(std::string_view prefix) const;

 private:
  std::map<std::string, std::string, std::less<>> values_;
};

/// The devices that one value asks for.
struct DeviceWish {
  Request::Want want = Request::Want::none;
  std::vector<std::string> devices;    ///< Want::devices
  std::vector<std::string> cdi_names;  ///< "vendor.com/class=name"; in addition to `want`
};

/// Parses NVIDIA_VISIBLE_DEVICES: "" and "void" (nothing), "none" (the driver's files), "all", or a
/// list of indices, ids, slices and CDI names, without duplicates. "runtime.nvidia.com/<mode>=<id>"
/// is <id>. Never fails: the later lookup reports entries that name nothing.
DeviceWish parse_visible_devices(std::string_view value);

/// Whether `text` is "vendor.com/class=name" with parts that are not empty and have no blanks.
bool is_qualified_name(std::string_view text);

/// CUDA_VERSION without NVIDIA_REQUIRE_CUDA: the image is older than the NVIDIA_REQUIRE_*
/// variables.
bool is_legacy_image(const Variables& variables);
/// "cuda>=8.0" for CUDA_VERSION "8.0.61"; nothing if that is not a version.
std::optional<std::string> legacy_requirement(const Variables& variables);

/// The entries of NVIDIA_DRIVER_CAPABILITIES: the known ones, which include "all", and the unknown
/// ones.
struct CapabilityWords {
  std::vector<std::string> known, unknown;
};
CapabilityWords parse_capabilities(std::string_view value);

/// Like Go's strconv.ParseBool, with which the toolkit reads NVIDIA_DISABLE_REQUIRE.
bool is_true(std::string_view text);

/// Channels of NVIDIA_IMEX_CHANNELS: numbers below 2^20. `refused` has all other entries, "all"
/// included.
struct ImexWords {
  std::vector<uint32_t> channels;
  std::vector<std::string> refused;
};
ImexWords parse_imex_channels(std::string_view value);

/// A mount of /dev/null below this directory requests a device.
inline constexpr std::string_view kVolumeDevices = "/var/run/nvidia-container-devices/";

/// The devices that mounts request by their paths, which are relative to kVolumeDevices: "all",
/// "0", "GPU-…", "cdi/<vendor>/<class>/<name>", "imex/<channel>".
struct VolumeWish {
  DeviceWish devices;
  ImexWords imex;
};
VolumeWish parse_volume_devices(const std::vector<std::string>& paths);

/// Whether the labels of an image made for nvidia-docker 1 say that the image needs the driver.
bool needs_driver_volume(const std::map<std::string, std::string>& labels);

}  // namespace berth::gpu
