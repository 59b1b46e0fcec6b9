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

/// How overlay's marks in a container's own layer appear: as plain files, or as a layer's tar
/// expresses them (".wh.NAME", ".wh..wh..opq").
enum class Marks { plain, layer };

/// How holes of a file are written. Holes change the bytes of the tar, so the default is to write
/// zeros.
enum class Holes {
  filled,
  kept,   ///< as the file system has them
  found,  ///< and long runs of zeros in large files: for file systems that do not report holes
};

/// How much of a file's attributes is included: for other programs, or for our own reader.
enum class Detail {
  usual,
  all,  ///< all attributes, and a vanished file is an error
};

struct TreeTarOptions {
  std::string name;  ///< of the first member; empty: only the content of the directory
  Marks marks = Marks::plain;
  image::OverlayXattr overlay = image::OverlayXattr::trusted;  ///< which marks count
  /// Called a few times at most, about files that shrink meanwhile. If it is empty, such a file is
  /// an error.
  std::function<void(const std::string&)> on_warning;
  /// Seconds since 1970: later file times come from making the tree, and are replaced by this time.
  std::optional<uint64_t> latest = {};
  Holes holes = Holes::filled;
  Detail detail = Detail::usual;
  /// By name of the member: the bytes to write instead of those of the file; nullopt omits the
  /// file.
  std::map<std::string, std::optional<std::string>> instead = {};
  /// Devices of the layer that the tree lacks, because its maker could not make them. They belong
  /// to root. A device is skipped if its path is occupied or its directory is missing.
  std::vector<LeftOutDevice> left_out = {};
};

/// Writes the file or directory `tree` (O_PATH), recursively, as a pax tar in sorted order: owners,
/// modes, times, hard links, attributes of users and file capabilities. Others may change the tree
/// meanwhile: every step uses a handle, without following a link, and only regular files are opened
/// for reading. Leaves out sockets and the kernel's own file systems (/proc, /sys).
/// Shape: at most 400 directories deep.
/// Errors: usage (deeper), busy (a file shrinks), unsupported (a layer with overlay marks that a
/// tar cannot express), io.
Result<void> write_tree_tar(const sys::Fd& tree, const TreeTarOptions& options, ByteSink& sink);

}  // namespace berth::transfer
