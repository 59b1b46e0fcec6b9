// SPDX-License-Identifier: Apache-2.0
// squashfs and SIF files as what an image is made of.
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
  /// What `file` is open at (for reading); nothing where it is neither squashfs nor SIF. That of a
  /// SIF is copied to the store's tmp/, and so is one that only the machine's root may read.
  /// Errors: those of sys::identify_image(); io, interrupted.
  static Result<std::optional<ForeignImage>> open(const sys::Fd& file, const std::string& name,
                                                  image::Delivery& delivery, const Cancel& cancel);

  /// All of it as a tar.  Errors: not_found (no sqfs2tar), corrupt, those of `sink`.
  Result<void> write_tar(ByteSink& sink, const Cancel& cancel) const;

  /// What it says of itself.  Errors: not_found (no rdsquashfs), io.
  Result<oci::ContainerDefaults> describe() const;

 private:
  sys::Fd file_;
  image::Staged staged_;  ///< what `file_` is open at, where it is a copy
  uint64_t size_ = 0;
};

}  // namespace berth::transfer
