// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "network/request.hpp"
#include "sys/fd/fd.hpp"

namespace berth::network {

/// The process that has `pid` now: with its start time, so that no later one is taken for it.
/// Errors: not_found.
Result<ProcessName> name_process(int pid);
/// Whether exactly that process lives, not another one that got the same pid.
bool lives(const ProcessName& process);

/// The leases of one state directory, and the lock of a process that changes the network. The
/// directory belongs to one user.
class Leases {
 public:
  /// Makes the directory and waits for the lock, which the destructor releases.
  static Result<Leases> open(const std::string& directory);

  /// Opens the directory without the lock: the caller has the lock already, or needs none.
  static Result<Leases> unlocked(const std::string& directory);

  const sys::Fd& fd() const { return directory_; }
  const std::string& path() const { return path_; }

  /// The leases of living containers. Removes the other files, after ending their helpers.
  Result<std::vector<Lease>> sweep();
  Result<std::optional<Lease>> find(const std::string& id) const;
  Result<void> write(const Lease& lease) const;
  Result<void> remove(const std::string& id) const;

 private:
  std::string path_;
  sys::Fd directory_;
  sys::Fd lock_;
};

/// Kills the helper of `lease`, if one runs, and waits until it has ended.
void end_helper(const Lease& lease);

}  // namespace berth::network
