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
    none,  ///< "umount:DST": what would be mounted there is not
  };
  Kind kind = Kind::bind;
  std::string source;       ///< of bind; absolute
  std::string destination;  ///< absolute
  bool read_only = false;
  bool recursive = true;
  std::string propagation = "rprivate";
  std::vector<std::string> options;  ///< of tmpfs; of bind: nosuid, nodev, noexec
};

/// "SRC:DST[:FLAGS][,SRC:DST…]", or "SRC" for one place in both; flags are separated by '+'. A
/// source that begins with '.' is taken below `working_directory`. Errors: usage (form, a path that
/// is none, an unknown flag).
Result<std::vector<Mount>> parse_mounts(std::string_view text, std::string_view working_directory);

}  // namespace berth::slurm
