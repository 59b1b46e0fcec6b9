// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "base/result.hpp"
#include "transfer/layer/rules.hpp"
#include "transfer/layer/unpack_options.hpp"
#include "transfer/tar/entry.hpp"
#include "transfer/tar/tar.hpp"

namespace berth::transfer {

/// Receives the members of a layer's tar, and decides which members are made, which are whiteouts
/// (they hide files of the layers below), and the order. Subclasses make the members.
/// docs/decisions/0030-layer-entries.md lists what is accepted, changed, left out and refused.
class MemberSink {
 public:
  virtual ~MemberSink() = default;

  /// Makes one member; the content of a file is read from `tar`.
  /// Errors: corrupt (the entry and the reason), those of making it.
  Result<void> add(const TarEntry& entry, TarReader& tar);

  /// Does the work that has to wait until all members exist. Do not call add() afterwards.
  virtual Result<void> finish() = 0;

  uint64_t entries() const { return entries_; }
  uint64_t bytes() const { return bytes_; }  ///< of regular files
  const LeftOut& left_out() const { return left_out_; }

 protected:
  /// The target of an entry: its name in the directory entered last.
  struct Place {
    std::string name;
    std::string path;  ///< below the root, without links
  };

  explicit MemberSink(const UnpackOptions& options) : options_(&options) {}
  MemberSink(MemberSink&&) = default;
  MemberSink& operator=(MemberSink&&) = default;

  /// Makes `directory` the current one, creating missing parts. Returns its path without links.
  virtual Result<std::string> enter(const std::string& directory) = 0;
  virtual Result<void> describe_root(const TarEntry& entry) = 0;
  /// Marks the current directory opaque, for its member `.wh..wh..opq`.
  virtual Result<void> mark_opaque() = 0;
  /// Hides a name of the lower layers, as a character device 0:0, unless this layer has the name.
  /// Implemented by LayerWriter (writer.cpp) and ErofsLayer (erofs.cpp).
  virtual Result<void> hide(const Place& place) = 0;
  virtual Result<void> add_file(const Place& place, const TarEntry& entry, TarReader& tar) = 0;
  virtual Result<void> add_directory(const Place& place, const TarEntry& entry) = 0;
  virtual Result<void> add_symlink(const Place& place, const TarEntry& entry) = 0;
  virtual Result<void> add_hard_link(const Place& place, const TarEntry& entry) = 0;
  virtual Result<void> add_node(const Place& place, const TarEntry& entry) = 0;

  /// Whether a file can have this user or group here.
  virtual bool has_user(uint64_t) const { return true; }
  virtual bool has_group(uint64_t) const { return true; }

  /// Hides a name because the tar has a character device 0:0 there. Such a device may have hard
  /// links.
  Result<void> hide_by_device(const Place& place);
  /// Whether the whiteout at `path`, which has no links in it, came from such a device.
  bool is_device_whiteout(const std::string& path) const {
    return device_whiteouts_.contains(path);
  }

  /// Limits memory that is kept until the end, so that a hostile layer cannot exhaust it. Errors:
  /// corrupt.
  Result<void> charge(size_t bytes);

  const UnpackOptions* options_;
  std::string current_;  ///< the entry being added, for errors
  uint64_t bytes_ = 0;
  LeftOut left_out_;

 private:
  void choose_owner(TarEntry& entry);
  Result<void> add_resolved(const TarEntry& entry, TarReader& tar);
  Result<void> add_member(const std::string& path, const TarEntry& entry, TarReader& tar);
  Result<void> add_whiteout(const Place& place);
  Result<void> add_other(const Place& place, const TarEntry& entry);

  uint64_t entries_ = 0;
  uint64_t tree_bytes_ = 0;
  std::set<std::string> device_whiteouts_;
};

}  // namespace berth::transfer
