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

/// A share's control daemon. In its view, and its servers', the share's directories are at
/// kMpsPipes and /dev/shm, as in its containers, and /tmp has nothing else.
class MpsDaemon {
 public:
  /// `self`: berth-mps, which makes that view; `name`: the share's name.
  MpsDaemon(std::string self, std::string name, MpsPlace place, const MpsOrder& order);

  /// Kills remains of an earlier daemon, starts a new one, waits until it answers, sets the limits,
  /// and then shows its socket to the share's containers. It and its servers die with this process.
  /// Errors: unsupported (it ended, or refuses a limit; with its last line), interrupted (it does
  /// not answer).
  Result<void> start();
  const sys::Process& process() const { return process_; }
  /// Kills it, its servers, and what is left of either.
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

/// The main function of `self` beside the daemon: starts it, and ends when the daemon or our parent
/// does, which ends all of its servers. Returns the daemon's status. Errors: io.
Result<int> guard_share(const sys::SpawnOptions& daemon);

/// Another main function of `self`: makes the view of MpsDaemon in its own mount namespace and
/// executes `program` with `words`. Returns only on failure.
Error enter_share(const MpsPlace& place, const std::string& program,
                  const std::vector<std::string>& words);

}  // namespace berth::gpu
