// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "engine/context/context.hpp"
#include "engine/request/request.hpp"
#include "oci/runtime_spec.hpp"

/// Which driver makes the root file systems of new containers here, and which made one that is
/// there (docs/decisions/0141).
namespace berth::engine {

std::string_view rootfs_driver_name(RootfsDriver driver);

/// What makes the roots of new containers here.
struct RootfsChoice {
  RootfsDriver driver = RootfsDriver::overlay;
  std::string reason;  ///< empty: it is what works everywhere
  std::string cost;    ///< what a user who did not ask for it should know
};
/// The driver that --rootfs-driver names, else the first that works.
/// Errors: usage (no such driver), not_found (fuse-overlayfs, by name), io (no space).
Result<RootfsChoice> rootfs_choice(const Context& context);

/// Whether this mount is a root that a driver makes by mounting.
bool is_root(const oci::Mount& mount);

/// Which of them made the root of `spec`; nothing for a directory of the host.
std::optional<RootfsDriver> rootfs_driver_of(const oci::Spec& spec);

/// Of a copied root: the layers that it was made of, highest first.
std::vector<std::string> copied_layers(const oci::Spec& spec);

}  // namespace berth::engine
