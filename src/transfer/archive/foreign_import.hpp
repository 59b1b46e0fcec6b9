// SPDX-License-Identifier: Apache-2.0
// squashfs and SIF files as sources of images.
#pragma once

#include <optional>
#include <string>

#include "base/result.hpp"
#include "image/store.hpp"
#include "oci/image_spec.hpp"
#include "sys/fd/fd.hpp"
#include "sys/mount/image_file.hpp"
#include "transfer/tar/outer_archive.hpp"
#include "transfer/work/cancel.hpp"

namespace berth::transfer {

/// A squashfs that Debian's tools can open.
class ForeignImage {
 public:
  /// Opens the image in `file`, open for reading; nothing if it is neither squashfs nor SIF. The
  /// squashfs of a SIF is copied to the store's tmp/, and so is one that only the machine's root
  /// may read.
  /// Errors: those of sys::identify_image(); io, interrupted.
  static Result<std::optional<ForeignImage>> open(const sys::Fd& file, const std::string& name,
                                                  image::Delivery& delivery, const Cancel& cancel);

  /// Writes the whole image as a tar.  Errors: not_found (no sqfs2tar), corrupt, those of `sink`.
  Result<void> write_tar(ByteSink& sink, const Cancel& cancel) const;

  /// The configuration in its files.  Errors: not_found (no rdsquashfs), io.
  Result<oci::ContainerDefaults> describe() const;

 private:
  sys::Fd file_;
  image::Staged staged_;  ///< the copy, if `file_` is one
  uint64_t size_ = 0;
};

}  // namespace berth::transfer
