// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/stat.h>

#include <map>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "image/store.hpp"
#include "image/upkeep.hpp"
#include "sys/fd/fd.hpp"
#include "sys/file/mode.hpp"

namespace berth::transfer {

/// Opens a directory of a layer's tree, without following any link.
/// Errors: not_found, denied, io.
Result<sys::Fd> open_in_layer(const sys::Fd& root, const std::string& layer,
                              const std::string& path);

/// Replaces the file at a path by a hard link to the file at the same path in another layer. Both
/// files have to be unchanged since they were examined.
struct LinkPlan {
  std::string from_layer;
  std::string path;  ///< below either tree; the file's only name in its layer
  struct stat from;
  struct stat to;
};

/// Carries out such plans for the files of one layer, in steps during which no container can begin
/// to use the layer. If the process is killed, every name refers to the old or the new file, and
/// directories may have later times, which mend() resets.
class LayerLinks {
 public:
  /// `staged`: an empty directory of the caller in the store's tmp/.
  /// `own`: the caller's delivery, which does not count as a user of the layer.
  LayerLinks(image::Store& store, const sys::Fd& root, const image::Staged& staged,
             const image::Delivery* own = nullptr)
      : store_(store), root_(root), staged_(staged), own_(own) {}

  struct Done {
    uint64_t files = 0;
    uint64_t bytes = 0;  ///< of removed files
    bool used = false;   ///< nothing was done: a container or a delivery uses the layer
  };
  /// Skips files that have changed or cannot have another link.  Errors: io.
  Result<Done> replace(const std::string& layer, const std::vector<LinkPlan>& plans);

  /// Resets directory times to the record, after a process was killed; not while the layer is used.
  /// Errors: io, corrupt (no record).
  Result<void> mend(const std::string& layer);

 private:
  using Times = std::map<std::string, sys::FileTime>;  ///< of directories, by path
  Result<void> replace_all(const std::string& layer, const std::vector<LinkPlan>& plans,
                           Done& done);
  Result<void> replace_file(const std::string& layer, const LinkPlan& plan, Times& times,
                            Done& done);

  image::Store& store_;
  const sys::Fd& root_;
  const image::Staged& staged_;
  const image::Delivery* own_;
};

}  // namespace berth::transfer
