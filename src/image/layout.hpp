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

#include "image/image.hpp"
#include "image/store_lock.hpp"

namespace berth::image {

inline constexpr std::string_view kStoreVersion = "1";

inline std::string blob_file(const Digest& digest) {
  return "blobs/sha256/" + digest.hex();
}

/// Lines "registry/repository": where the blob was had, the latest first.
inline std::string origin_file(const Digest& digest) {
  return "origins/" + digest.hex();
}

inline constexpr size_t kMaxOrigins = 4096;  ///< bytes of such a file

/// The name of a layer's directory in layers/. The flavour is part of it: the same layer unpacked
/// for other owners is another directory. An image holds owners and marks as they are, whoever
/// writes it, and is shared: a mount shows each user the right ones.
inline std::string layer_name(const Digest& diff_id, LayerFlavor flavor) {
  if (flavor.format == LayerFormat::erofs) return diff_id.hex();
  if (flavor.ownership == Ownership::single) return diff_id.hex() + "-single";
  return diff_id.hex() + (flavor.overlay_xattr == OverlayXattr::user ? "-mapped" : "");
}

/// What lies in a layer's directory, by format.
inline constexpr std::string_view kTreeNames[] = {"fs", "fs.erofs"};
inline std::string tree_name(LayerFormat format) {
  return std::string(kTreeNames[static_cast<size_t>(format)]);
}

struct AdditionalLayer {
  LayerRecord record;
  std::string directory;  ///< absolute; as sys::open_layer() takes it
};

/// Who beside the owner may read what is published in `directory` of the store: those who may read
/// that directory itself. A store is opened to others by the mode of its directories.
Result<mode_t> readers_of(const sys::Fd& root, const std::string& directory);

inline constexpr std::string_view kPinsPrefix = "pins-";
inline constexpr std::string_view kClaimPrefix = "claim-";
inline constexpr std::string_view kStagePrefix = "stage-";
/// Of the process that has the whole store, where there are leases.
inline constexpr std::string_view kHolderPrefix = "holder-";
inline constexpr std::string_view kTrashPrefix = "trash-";

/// The line of a pins file that keeps an object: its path without "blobs/sha256/" or "layers/".
inline std::string blob_pin(const Digest& digest) {
  return "blob " + digest.hex();
}
inline std::string layer_pin(std::string_view name) {
  return "layer " + std::string(name);
}

/// What layer.json of layers/`name` says; nothing when that layer is not there.
Result<std::optional<LayerRecord>> read_layer_record(const sys::Fd& root, const std::string& name);

/// The names in layers/ of what people of `flavor` can use, the first one that is there: what was
/// unpacked for them, then an image.
inline std::vector<std::string> layer_names(const Digest& diff_id, LayerFlavor flavor) {
  flavor.format = LayerFormat::directory;
  std::string own = layer_name(diff_id, flavor);
  if (own == diff_id.hex()) return {own};
  return {own, diff_id.hex()};
}

/// What is said of a layer that people of `flavor` can use; nothing where there is none.
Result<std::optional<LayerRecord>> find_layer_record(const sys::Fd& root, const Digest& diff_id,
                                                     LayerFlavor flavor);

/// What must stay.
struct Needed {
  std::set<std::string> blobs;   ///< hex
  std::set<std::string> layers;  ///< names of directories
};
/// Adds a manifest, its config, and all of its layers however unpacked.  Errors: corrupt, io.
Result<void> need_manifest(const sys::Fd& root, const Digest& digest, Needed& needed);
/// Adds what running deliveries have pinned. The caller holds the lock of the store, exclusively,
/// and gives it where it is going to remove what is not needed: then one of another machine is an
/// error while it lives, for nobody here can tell what it needs next, and is ended where it seems
/// dead. Else it counts like those of this machine. `but_for`: the name of one that does not count.
/// Errors: busy (as said), io.
Result<void> need_pins(const sys::Fd& root, Needed& needed, StoreLock* lock,
                       std::string_view but_for = {});

/// What a collection removed: names of layer directories, hex of blobs.
struct Collected {
  std::vector<std::string> layers;
  std::vector<std::string> blobs;
  std::vector<std::string> trash;  ///< paths to remove once the lock is gone
};

/// Moves every object that nothing needs out of sight. The caller holds `lock`, exclusively, and
/// afterwards, without it, removes `trash`.
/// Errors: corrupt (a record or manifest cannot be read, so nobody knows what it needs), busy (as
/// need_pins(); the lock was held for too long), io.
Result<Collected> unlink_unneeded(const sys::Fd& root, StoreLock& lock);
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
/// What containers and running deliveries need, whatever becomes of the images. The caller holds
/// the lock exclusively, and gives it as to need_pins().
Result<std::set<std::string>> held_objects(const sys::Fd& root, const Sizes& sizes,
                                           StoreLock* lock);

/// The manifests that containers use: (container id, manifest digest). The caller holds the lock
/// exclusively.
Result<std::vector<std::pair<std::string, Digest>>> container_uses(const sys::Fd& root);

/// A container that uses the layer `name`, or may, for its manifest cannot be read; empty: none.
/// The caller holds the lock exclusively.
Result<std::string> user_of_layer(const sys::Fd& root, const std::string& name);

}  // namespace berth::image
