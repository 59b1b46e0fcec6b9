// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "network/request.hpp"
#include "sys/fd.hpp"

namespace berth::network {

/// The process that is `pid` now. Errors: not_found.
Result<ProcessName> name_process(int pid);
/// Whether that one lives, and not another one of the same number.
bool lives(const ProcessName& process);

/// The leases of one state directory, and the lock that a process holds while it changes the
/// network. The directory is its user's alone.
class Leases {
 public:
  /// Makes the directory and waits for the lock, which goes with this object.
  static Result<Leases> open(const std::string& directory);

  /// Opens the directory without taking the lock: the caller has it already, or needs none.
  static Result<Leases> unlocked(const std::string& directory);

  const sys::Fd& fd() const { return directory_; }
  const std::string& path() const { return path_; }

  /// All whose containers live. The files of others, and what is none, are removed: their helpers
  /// end first.
  Result<std::vector<Lease>> sweep();
  Result<std::optional<Lease>> find(const std::string& id) const;
  Result<void> write(const Lease& lease) const;
  Result<void> remove(const std::string& id) const;

 private:
  std::string path_;
  sys::Fd directory_;
  sys::Fd lock_;
};

/// Ends the helper of `lease`, if it has one that lives, and waits for its end.
void end_helper(const Lease& lease);

}  // namespace berth::network
