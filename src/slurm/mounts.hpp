// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace berth::slurm {

/// One entry of --container-mounts.
struct Mount {
  enum class Kind {
    bind,
    tmpfs,
    none,  ///< "umount:DST": do not mount there
  };
  Kind kind = Kind::bind;
  std::string source;       ///< of bind; absolute
  std::string destination;  ///< absolute
  bool read_only = false;
  bool recursive = true;
  std::string propagation = "rprivate";
  std::vector<std::string> options;  ///< of tmpfs; of bind: nosuid, nodev, noexec
};

/// "SRC:DST[:FLAGS][,SRC:DST…]", or "SRC" for the same path in both; flags are separated by '+'. A
/// source that begins with '.' is relative to `working_directory`. Errors: usage (form, an invalid
/// path, an unknown flag).
Result<std::vector<Mount>> parse_mounts(std::string_view text, std::string_view working_directory);

}  // namespace berth::slurm
