// SPDX-License-Identifier: Apache-2.0
// Where things lie below --root. Inside this folder only.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "image/store.hpp"

namespace berth::image {

inline std::string blob_file(const Digest& digest) {
  return "blobs/sha256/" + digest.hex();
}

/// Lines "registry/repository": where the blob was had, the latest first.
inline std::string origin_file(const Digest& digest) {
  return "origins/" + digest.hex();
}

/// The name of a layer's directory in layers/. The flavour is part of it: the same layer unpacked
/// for other owners is another directory.
inline std::string layer_name(const Digest& diff_id, LayerFlavor flavor) {
  if (flavor.ownership == Ownership::single) return diff_id.hex() + "-single";
  return diff_id.hex() + (flavor.overlay_xattr == OverlayXattr::user ? "-mapped" : "");
}

/// What lies in a layer's directory, by format.
inline constexpr std::string_view kTreeNames[] = {"fs", "fs.erofs"};

inline constexpr std::string_view kPinsPrefix = "pins-";
inline constexpr std::string_view kClaimPrefix = "claim-";
inline constexpr std::string_view kStagePrefix = "stage-";
inline constexpr std::string_view kTrashPrefix = "trash-";

/// The line of a pins file that keeps an object: its path without "blobs/sha256/" or "layers/".
inline std::string blob_pin(const Digest& digest) {
  return "blob " + digest.hex();
}
inline std::string layer_pin(const Digest& diff_id, LayerFlavor flavor) {
  return "layer " + layer_name(diff_id, flavor);
}

/// What layer.json of layers/`name` says; nothing when that layer is not there.
Result<std::optional<LayerRecord>> read_layer_record(const sys::Fd& root, const std::string& name);

/// Removes what dead processes left in tmp/: entries whose lock nobody holds.
void sweep(const sys::Fd& root);

/// What must stay.
struct Needed {
  std::set<std::string> blobs;   ///< hex
  std::set<std::string> layers;  ///< names of directories
};
/// Adds a manifest, its config, and all of its layers however unpacked.  Errors: corrupt, io.
Result<void> need_manifest(const sys::Fd& root, const Digest& digest, Needed& needed);
/// Adds what running deliveries have pinned. The caller holds the lock exclusively.
Result<void> need_pins(const sys::Fd& root, Needed& needed);

/// What a collection removed: names of layer directories, hex of blobs.
struct Collected {
  std::vector<std::string> layers;
  std::vector<std::string> blobs;
  std::vector<std::string> trash;  ///< paths to remove once the lock is gone
};

/// Moves every object that nothing needs out of sight. The caller holds the lock exclusively and
/// afterwards, without it, removes `trash`.
/// Errors: corrupt (a record or manifest cannot be read, so nobody knows what it needs), io.
Result<Collected> unlink_unneeded(const sys::Fd& root);
void empty_trash(const sys::Fd& root, const Collected& collected);

/// What lies in the store and how much it takes.
struct Sizes {
  std::map<std::string, uint64_t> bytes;  ///< by the path below the root
  /// Of files that several layers have, by hard links: which ones, by the key in `bytes`.
  std::map<std::string, std::set<std::string>> sharers;
};
/// Walks only layers that are said to be linked.  Errors: io.
Result<Sizes> measure(const sys::Fd& root);
/// The part of what is needed that is there.
std::set<std::string> objects_of(const Needed& needed, const Sizes& sizes);
/// What containers and running deliveries need. The caller holds the lock exclusively.
Result<std::set<std::string>> held_objects(const sys::Fd& root, const Sizes& sizes);

/// The manifests that containers use: (container id, manifest digest). The caller holds the lock
/// exclusively.
Result<std::vector<std::pair<std::string, Digest>>> container_uses(const sys::Fd& root);

/// A container that uses the layer `name`, or may, for its manifest cannot be read; empty: none.
/// The caller holds the lock exclusively.
Result<std::string> user_of_layer(const sys::Fd& root, const std::string& name);

}  // namespace berth::image
