// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "gpu/mps/share.hpp"
#include "sys/process/process.hpp"

namespace berth::gpu {

/// The variable that identifies the processes of a share: its value is the share's name. The
/// daemon's servers inherit it.
inline constexpr const char* kMpsShareVariable = "BERTH_MPS_SHARE";

/// The control daemon of a share. The daemon and its servers have a mount namespace in which, as in
/// the share's containers, the directories of the share are at kMpsPipes and /dev/shm. /tmp has
/// links to the driver's files there, and nothing else.
class MpsDaemon {
 public:
  /// `self`: the path of berth-mps, which makes that mount namespace; `name`: the share's name.
  MpsDaemon(std::string self, std::string name, MpsPlace place, const MpsOrder& order);

  /// Kills the remains of an earlier daemon, starts a new one, waits until it answers, sets the
  /// limits, and then makes its socket visible to the share's containers. The daemon and its
  /// servers die with this process.
  /// Errors: unsupported (the daemon ended or refuses a limit; quotes its last line), interrupted
  /// (it does not answer).
  Result<void> start();
  const sys::Process& process() const { return process_; }
  /// Kills the daemon, its servers and their remains.
  void end();

 private:
  Result<std::string> ask(const std::string& command) const;
  Result<void> send_limits() const;
  Result<void> show_pipes() const;
  sys::SpawnOptions words(const char* verb, const std::vector<std::string>& more) const;
  Error died() const;

  std::string self_;
  std::string name_;
  MpsPlace place_;
  const MpsOrder& order_;
  sys::Process process_;
};

/// A main function of `self`, for a process that guards the daemon: it starts the daemon, and ends
/// when the daemon or our parent ends, which ends all of the daemon's servers. Returns the daemon's
/// exit status. Errors: io.
Result<int> guard_share(const sys::SpawnOptions& daemon);

/// Another main function of `self`: makes the mount namespace that MpsDaemon describes and executes
/// `program` with the arguments `words`. Returns only on failure.
Error enter_share(const MpsPlace& place, const std::string& program,
                  const std::vector<std::string>& words);

}  // namespace berth::gpu
