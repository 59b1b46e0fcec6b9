// SPDX-License-Identifier: Apache-2.0
// The paths below --root, and the records of images. Only for this folder.
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

/// The file that lists sources of the blob: lines "registry/repository", the first known first.
inline std::string origin_file(const Digest& digest) {
  return "origins/" + digest.hex();
}

inline constexpr size_t kMaxOrigins = 4096;  ///< maximal size of such a file in bytes

/// The name of a layer's directory in layers/. The name depends on the LayerFlavor: the same
/// layer unpacked for other owners is another directory. An EROFS image contains the original
/// owners and marks, no matter which user writes it, and all users share it: the mount maps the
/// owners for each user.
inline std::string layer_name(const Digest& diff_id, LayerFlavor flavor) {
  if (flavor.format == LayerFormat::erofs) return diff_id.hex();
  if (flavor.ownership == Ownership::single) return diff_id.hex() + "-single";
  return diff_id.hex() + (flavor.overlay_xattr == OverlayXattr::user ? "-mapped" : "");
}

/// The name of the tree in a layer's directory, by format.
inline constexpr std::string_view kTreeNames[] = {"fs", "fs.erofs"};
inline std::string tree_name(LayerFormat format) {
  return std::string(kTreeNames[static_cast<size_t>(format)]);
}

struct AdditionalLayer {
  LayerRecord record;
  std::string directory;  ///< absolute; as sys::open_layer() takes it
};

/// The read bits for group and others of `directory` in the store. Files that are published in the
/// directory get the same bits, so the modes of its directories decide which users can read a
/// store.
Result<mode_t> readers_of(const sys::Fd& root, const std::string& directory);

inline constexpr std::string_view kPinsPrefix = "pins-";
inline constexpr std::string_view kClaimPrefix = "claim-";
inline constexpr std::string_view kStagePrefix = "stage-";
/// Prefix of the lease of a process that has an exclusive StoreLock, where leases are used.
inline constexpr std::string_view kHolderPrefix = "holder-";
inline constexpr std::string_view kTrashPrefix = "trash-";

/// The line of a pins file that keeps an object: "blob" or "layer", and the name of the object in
/// blobs/sha256/ or layers/.
inline std::string blob_pin(const Digest& digest) {
  return "blob " + digest.hex();
}
inline std::string layer_pin(std::string_view name) {
  return "layer " + std::string(name);
}

/// Reads layer.json of layers/`name`; nothing if that layer does not exist.
Result<std::optional<LayerRecord>> read_layer_record(const sys::Fd& root, const std::string& name);

/// The names in layers/ that a process which unpacks as `flavor` can use, in order of preference:
/// the directory that was unpacked so, then an EROFS image.
inline std::vector<std::string> layer_names(const Digest& diff_id, LayerFlavor flavor) {
  flavor.format = LayerFormat::directory;
  std::string own = layer_name(diff_id, flavor);
  if (own == diff_id.hex()) return {own};
  return {own, diff_id.hex()};
}

/// The record of the layer that a process which unpacks as `flavor` uses; nothing if there is none.
Result<std::optional<LayerRecord>> find_layer_record(const sys::Fd& root, const Digest& diff_id,
                                                     LayerFlavor flavor);

/// The objects that must be kept.
struct Needed {
  std::set<std::string> blobs;   ///< hex
  std::set<std::string> layers;  ///< names of directories
};
/// Adds a manifest, its config, and all of its layers in every unpacked form.  Errors: corrupt, io.
Result<void> need_manifest(const sys::Fd& root, const Digest& digest, Needed& needed);
/// Adds the pins of running deliveries. The caller holds the lock of the store exclusively. A
/// caller that is going to remove unneeded objects passes `lock`. Then a live delivery of another
/// machine is an error, because the objects that it will need next are unknown here, and a delivery
/// that seems dead is ended. Without `lock` a delivery of another machine counts like those of this
/// machine. `but_for`: the name of a delivery to ignore.
/// Errors: busy (another machine has a live delivery), io.
Result<void> need_pins(const sys::Fd& root, Needed& needed, StoreLock* lock,
                       std::string_view but_for = {});

/// The objects that a collection removed: names of layer directories, hex of blobs.
struct Collected {
  std::vector<std::string> layers;
  std::vector<std::string> blobs;
  std::vector<std::string> trash;  ///< paths to remove after releasing the lock
};

/// Moves every unneeded object into tmp/. The caller holds `lock` exclusively, then releases it,
/// and then removes the paths in `trash`.
/// Errors: corrupt (a record or manifest is unreadable, so its needs are unknown), busy (as
/// need_pins(); the lock was held for too long), io.
Result<Collected> unlink_unneeded(const sys::Fd& root, StoreLock& lock);
void empty_trash(const sys::Fd& root, const Collected& collected);

/// The objects of the store and their sizes.
struct Sizes {
  std::map<std::string, uint64_t> bytes;  ///< by the path below the root
  /// For files that several layers share through hard links: the names of the layers, by the key in
  /// `bytes`.
  std::map<std::string, std::set<std::string>> sharers;
};
/// Walks only layers that are marked as linked.  Errors: io.
Result<Sizes> measure(const sys::Fd& root);
/// The needed objects that exist.
std::set<std::string> objects_of(const Needed& needed, const Sizes& sizes);
/// The objects that containers and running deliveries need, even if no image needs them. The caller
/// holds the lock exclusively, and passes it as to need_pins().
Result<std::set<std::string>> held_objects(const sys::Fd& root, const Sizes& sizes,
                                           StoreLock* lock);

/// The manifests that containers use: (container id, manifest digest). The caller holds the lock
/// exclusively.
Result<std::vector<std::pair<std::string, Digest>>> container_uses(const sys::Fd& root);

/// The id of a container that uses the layer `name`, or may use it because the manifest of its
/// image is unreadable; empty: none. The caller holds the lock exclusively.
Result<std::string> user_of_layer(const sys::Fd& root, const std::string& name);

/// All readable records, sorted by file name; adds the names of damaged files to `damaged`.
Result<std::vector<ImageRecord>> read_records(const sys::Fd& root,
                                              std::vector<std::string>& damaged);

/// The record of exactly this name. Errors: corrupt (damaged).
Result<std::optional<ImageRecord>> read_record(const sys::Fd& root, const Reference& reference);

/// Writes `record`. If another image loses its last name by this, it is kept under its digest. If
/// the image had no name before, its record under the digest is removed. The caller holds the
/// store's lock exclusively.
/// Errors: usage (the name is too long for a file name), io.
Result<void> put_record(const sys::Fd& root, const ImageRecord& record);

Result<void> unlink_record(const sys::Fd& root, const ImageRecord& record);

/// Adds those of `more` that `sources` lacks.
void add_sources(const std::vector<Reference>& more, std::vector<Reference>& sources);

/// Whether two records are the same file.
bool same_record(const ImageRecord& a, const ImageRecord& b);

}  // namespace berth::image
