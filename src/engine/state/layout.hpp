// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

/// The names in the directory of a container (directory.hpp).
namespace berth::engine {

inline constexpr std::string_view kUpperDirectory = "upper";
inline constexpr std::string_view kWorkDirectory = "work";
inline constexpr std::string_view kBundleDirectory = "bundle";
inline constexpr std::string_view kRootDirectory = "rootfs";  ///< below the bundle
inline constexpr std::string_view kHostsFile = "hosts";
inline constexpr std::string_view kHostnameFile = "hostname";
inline constexpr std::string_view kResolverFile = "resolv.conf";
inline constexpr std::string_view kPasswdFile = "passwd";
inline constexpr std::string_view kGroupFile = "group";
/// The copied root of a container with the driver `copy`.
inline constexpr std::string_view kCopyDirectory = "root";

}  // namespace berth::engine
