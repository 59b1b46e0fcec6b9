// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "base/result.hpp"
#include "image/transfer_protocol.hpp"
#include "sys/fd/fd.hpp"
#include "transfer/layer/rules.hpp"
#include "transfer/tar/outer_archive.hpp"

namespace berth::transfer {

/// What overlay marks in a container's own layer: files as any other, or what a layer's tar has for
/// them (".wh.NAME", ".wh..wh..opq").
enum class Marks { plain, layer };

/// What becomes of the holes of a file. A tar with holes is another one, so none is the rule.
enum class Holes {
  filled,
  kept,   ///< as the file system has them
  found,  ///< long runs of zeros in large files, too: of a file system that does not tell
};

/// How much of a file goes along: for others, or for a reader of ours.
enum class Detail {
  usual,
  all,  ///< attributes of any name, and a file that is gone meanwhile is an error
};

struct TreeTarOptions {
  std::string name;  ///< of the first member; empty: what is in the directory, without itself
  Marks marks = Marks::plain;
  image::OverlayXattr overlay = image::OverlayXattr::trusted;  ///< whose marks count
  /// Called a few times at most, of files that shrink meanwhile; without it that is an error.
  std::function<void(const std::string&)> on_warning;
  /// Seconds since 1970: what was changed later was so by whoever made the tree, and gets this
  /// time.
  std::optional<uint64_t> latest = {};
  Holes holes = Holes::filled;
  Detail detail = Detail::usual;
  /// By name of the member: the bytes of a file of the tree that has others; nothing leaves it out.
  std::map<std::string, std::optional<std::string>> instead = {};
  /// Devices that the tree has not, for who made it could not. They belong to root, and those whose
  /// places something else has, or whose directories are gone, are passed over.
  std::vector<LeftOutDevice> left_out = {};
};

/// Writes what `tree` (O_PATH) is open at, and all that is below it, as a pax tar in sorted order:
/// owners, modes, times, hard links, attributes of users and file capabilities. Somebody may change
/// the tree meanwhile: every step is taken from a handle, without following a link, and nothing but
/// regular files is opened for reading. Sockets are left out, and what is in the kernel's own file
/// systems (/proc, /sys).
/// Shape: at most 400 directories deep.
/// Errors: usage (deeper), busy (a file shrinks), unsupported (a layer whose overlay marks say more
/// than a tar can), io.
Result<void> write_tree_tar(const sys::Fd& tree, const TreeTarOptions& options, ByteSink& sink);

}  // namespace berth::transfer
