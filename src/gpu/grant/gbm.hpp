// SPDX-License-Identifier: Apache-2.0
// NVIDIA's backend of libgbm: its library under another name, in the directory in which libgbm
// looks. Each distribution chooses this directory when it builds libgbm. Source: Mesa
// src/gbm/main/backend.c, and DEFAULT_BACKENDS_PATH in meson.build: the library directory and
// "gbm".
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace berth::gpu {

inline constexpr std::string_view kGbmLibrary = "libnvidia-allocator.so.1";
inline constexpr std::string_view kGbmBackend = "/nvidia-drm_gbm.so";
/// The first driver with a backend in this library. Source: NVIDIA's release notes of 495.44.
inline constexpr std::string_view kFirstGbmDriver = "495";

/// The directories of libgbm in Debian and Ubuntu; Fedora, RHEL and SUSE; Arch and Alpine.
inline std::vector<std::string> gbm_directories(bool elf32) {
#if defined(__x86_64__)
  constexpr std::string_view kTriplet = "x86_64-linux-gnu", kTriplet32 = "i386-linux-gnu";
#else
  constexpr std::string_view kTriplet = "aarch64-linux-gnu", kTriplet32 = "arm-linux-gnueabihf";
#endif
  std::vector<std::string> paths = {"/usr/lib/" + std::string(elf32 ? kTriplet32 : kTriplet)};
  // /usr/lib has 32-bit libraries in Fedora, 64-bit ones in Arch.
  if (elf32) paths.emplace_back("/usr/lib32");
  if (!elf32) paths.insert(paths.end(), {"/usr/lib64", "/usr/lib"});
  for (std::string& path : paths) path += "/gbm";
  return paths;
}

}  // namespace berth::gpu
