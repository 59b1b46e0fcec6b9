// SPDX-License-Identifier: Apache-2.0
// What is accepted of a layer's entries and how it is read, whatever it becomes: pure.
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

/// corrupt: "entry 'path': reason".
Error refuse_entry(const std::string& path, std::string reason);

// Paths below the root, without '/' at either end; that of the root is empty.
std::string parent_of(const std::string& path);
std::string name_of(const std::string& path);
std::string join_path(const std::string& directory, const std::string& name);
bool is_below(std::string_view path, std::string_view directory);

/// "./usr//bin/", "../usr/x/../bin" → "usr/bin". A leading '/' means the layer's root, above which
/// nothing is, as in docker.  Errors: corrupt.
Result<std::string> clean_path(const std::string& path, const UnpackLimits& limits);
Error refuse_depth(const std::string& path, const UnpackLimits& limits);

/// A directory on the way of `entry`, which a link may have named. Errors: corrupt.
Result<void> check_step(const std::string& entry, const std::string& name);

/// Resolves a path in a layer's tree as chroot(2) would: holds the components that are left, and
/// puts a symbolic link's target in front of them.
class PathWalk {
 public:
  PathWalk(const std::string& path, const UnpackLimits& limits);

  bool ended() const { return parts_.empty(); }
  /// The next part; ".." is one.
  std::string take();
  /// Whether there was room for the target: 40 links, as for the kernel, and twice as many parts in
  /// all as a path may be deep, so that no path costs much more than a long one without links.
  bool follow(std::string_view target);

 private:
  void prepend(std::string_view path);

  std::vector<std::string> parts_;  ///< the next one is the last
  size_t parts_left_;
  int links_left_ = 40;
};

/// `count`: entries with this one. Errors: corrupt (too many, an owner that cannot be).
Result<void> check_entry(const TarEntry& entry, uint64_t count, const UnpackLimits& limits);
/// The name that a whiteout hides. Errors: corrupt.
Result<std::string> hidden_name(const std::string& path);
Result<void> check_symlink(const std::string& path, const TarEntry& entry);
Result<void> check_node(const std::string& path, const TarEntry& entry);

/// Attributes that an image may bring. All others belong to the host: overlay's own marks, labels
/// of its security modules.
bool may_keep(std::string_view key);
inline constexpr size_t kMaxAttribute = 65536;
/// Errors: corrupt (over 64 KiB).
Result<void> check_attribute(const std::string& path, std::string_view value);
/// The attribute by which overlay knows an opaque directory; its value is "y".
std::string opaque_key(const UnpackOptions& options);

/// With a single id every file belongs to the caller: a set-id bit that meant somebody else would
/// mean the caller then.
uint32_t usable_mode(const TarEntry& entry, image::Ownership ownership);
/// Whether devices are made at all.
bool makes_devices(const UnpackOptions& options);

/// System errors name the last part of a path only, and some need a word about what to do.
Error explain_entry(Error error, const std::string& path);

/// Whether the size that an entry claims may be counted with those before it: a sparse file needs
/// no bytes for it. Errors: corrupt.
Result<void> check_size(const TarEntry& entry, uint64_t bytes_before, const UnpackLimits& limits);
/// Whether a layer of so many compressed bytes can hold the file; 0 where that is unknown. What is
/// refused here has cost nothing yet. Errors: corrupt.
Result<void> check_ratio(const TarEntry& entry, uint64_t blob_size, const UnpackLimits& limits);

/// A device that a layer has and the user who unpacked it could not make.
struct LeftOutDevice {
  std::string path;     ///< below the root, without links
  uint32_t mode = 0;    ///< with the type
  uint64_t number = 0;  ///< as makedev() has it
};

/// What could not be made and is told of in one line each.
class LeftOut {
 public:
  void add_device(const std::string& path, const TarEntry& entry);
  /// `path` is one more name of the device `target`, if that was left out: then true.
  bool add_link(const std::string& path, const std::string& target);
  void add_attribute(const std::string& key, const std::string& path);
  void add_owner(const TarEntry& entry);
  void warn(const UnpackOptions& options) const;

  /// The first ones, kMostDevices at most; no real image has as many.
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
/// Leaves the access lists that the kernel takes, and the mode that it shows of a file with them.
/// With a single id nobody else is named, and where a list goes its mask must not become the
/// group's.
void settle_acls(TarEntry& entry, const std::string& path, const UnpackOptions& options,
                 LeftOut& left_out);

}  // namespace berth::transfer
