// SPDX-License-Identifier: Apache-2.0
// The rules for a layer's entries, the same for all targets of unpacking: pure.
// docs/decisions/0030-layer-entries.md is the table.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "transfer/layer/unpack_options.hpp"
#include "transfer/tar/entry.hpp"

namespace berth::transfer {

inline constexpr std::string_view kWhiteout = ".wh.";
inline constexpr std::string_view kWhiteoutMeta = ".wh..wh.";
inline constexpr std::string_view kOpaque = ".wh..wh..opq";

/// The error "entry 'path': reason", of kind corrupt.
Error refuse_entry(const std::string& path, std::string reason);

// Paths below the root, without '/' at either end; the path of the root is empty.
std::string parent_of(const std::string& path);
std::string name_of(const std::string& path);
std::string join_path(const std::string& directory, const std::string& name);
bool is_below(std::string_view path, std::string_view directory);

/// "./usr//bin/", "../usr/x/../bin" → "usr/bin". A leading '/' means the layer's root, and ".." at
/// the root stays at the root, as in docker.  Errors: corrupt.
Result<std::string> clean_path(const std::string& path, const UnpackLimits& limits);
Error refuse_depth(const std::string& path, const UnpackLimits& limits);

/// Checks `name`, a directory on the way to `entry`, perhaps from the target of a link.
/// Errors: corrupt.
Result<void> check_step(const std::string& entry, const std::string& name);

/// Resolves a path in a layer's tree as chroot(2) would: holds the remaining components, and puts a
/// symbolic link's target in front of them.
class PathWalk {
 public:
  PathWalk(const std::string& path, const UnpackLimits& limits);

  bool ended() const { return parts_.empty(); }
  /// Removes and returns the next part, which may be "..".
  std::string take();
  /// False if the target exceeds the limits: 40 links, as in the kernel, and in all twice as many
  /// parts as a path may have, so that no path costs much more than a long one without links.
  bool follow(std::string_view target);

 private:
  void prepend(std::string_view path);

  std::vector<std::string> parts_;  ///< in reverse: the next part is the last element
  size_t parts_left_;
  int links_left_ = 40;
};

/// `count`: entries including this one. Errors: corrupt (too many, an impossible owner).
Result<void> check_entry(const TarEntry& entry, uint64_t count, const UnpackLimits& limits);
/// The name that a whiteout hides. Errors: corrupt.
Result<std::string> hidden_name(const std::string& path);
Result<void> check_symlink(const std::string& path, const TarEntry& entry);
Result<void> check_node(const std::string& path, const TarEntry& entry);

/// Whether an image may set this attribute. All others belong to the host: the marks of overlay,
/// and the labels of security modules.
bool may_keep(std::string_view key);
inline constexpr size_t kMaxAttribute = 65536;
/// Errors: corrupt (over 64 KiB).
Result<void> check_attribute(const std::string& path, std::string_view value);
/// The attribute by which overlay marks an opaque directory; its value is "y".
std::string opaque_key(const UnpackOptions& options);

/// The mode without set-id bits that would apply to another user than in the image: with a single
/// id every file belongs to the caller.
uint32_t usable_mode(const TarEntry& entry, image::Ownership ownership);
/// Whether devices are made at all: only if root of the machine unpacks, that is, for trusted
/// xattrs.
bool makes_devices(const UnpackOptions& options);

/// Adds the path, because system errors name only its last part, and to some errors a hint.
Error explain_entry(Error error, const std::string& path);

/// Checks that an entry's claimed size plus those before it fits the limits: a sparse file can
/// claim any size. Errors: corrupt.
Result<void> check_size(const TarEntry& entry, uint64_t bytes_before, const UnpackLimits& limits);
/// Checks that a layer of `blob_size` compressed bytes (0: unknown) can hold the file, before
/// anything of the file is written. Errors: corrupt.
Result<void> check_ratio(const TarEntry& entry, uint64_t blob_size, const UnpackLimits& limits);

/// A device of a layer that the unpacking user could not make.
struct LeftOutDevice {
  std::string path;     ///< below the root, without links
  uint32_t mode = 0;    ///< with the type
  uint64_t number = 0;  ///< as makedev(3) returns it
};

/// Collects entries that could not be made, for one warning of each kind.
class LeftOut {
 public:
  void add_device(const std::string& path, const TarEntry& entry);
  /// Returns true if the device `target` was left out, and records `path` as another name of it.
  bool add_link(const std::string& path, const std::string& target);
  void add_attribute(const std::string& key, const std::string& path);
  void add_owner(const TarEntry& entry);
  void warn(const UnpackOptions& options) const;

  /// The first devices, at most kMostDevices; no real image has as many.
  const std::vector<LeftOutDevice>& devices() const { return devices_; }
  static constexpr size_t kMostDevices = 4096;

 private:
  uint64_t device_count_ = 0;
  std::vector<LeftOutDevice> devices_;
  uint64_t attributes_ = 0;
  std::string first_attribute_;
  uint64_t owners_ = 0;
  std::string first_owner_;
};

bool has_acl(const TarEntry& entry);
/// Keeps the access lists that the kernel accepts, and sets the mode that it shows for a file with
/// such a list; with a single id, drops all lists. If a list is dropped, the group gets its own
/// permissions instead of those of the list's mask.
void apply_acls(TarEntry& entry, const std::string& path, const UnpackOptions& options,
                LeftOut& left_out);

}  // namespace berth::transfer
