// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "gpu/mps/share.hpp"
#include "sys/process.hpp"

namespace berth::gpu {

/// The variable by which the processes of a share are known: its value is the share's name. The
/// daemon's servers inherit it.
inline constexpr const char* kMpsShareVariable = "BERTH_MPS_SHARE";

/// A share's control daemon. It and its servers see the share's directories at kMpsPipes and
/// /dev/shm, as its containers do, and nothing else of /tmp.
class MpsDaemon {
 public:
  /// `self`: berth-mps, which makes that view; `name`: the share's.
  MpsDaemon(std::string self, std::string name, MpsPlace place, const MpsOrder& order);

  /// Starts it, waits until it answers, tells it the limits, and shows its socket to the share's
  /// containers then. It and its servers die with this process.
  /// Errors: unsupported (it ended, or does not take a limit; with its last line), interrupted (it
  /// does not answer). What is left of one before is killed first.
  Result<void> start();
  const sys::Process& process() const { return process_; }
  /// Kills it and its servers, and what is left of either.
  void end();

 private:
  Result<std::string> ask(const std::string& command) const;
  Result<void> tell_limits() const;
  Result<void> show_pipes() const;
  sys::SpawnOptions words(const char* verb, const std::vector<std::string>& more) const;
  Error died() const;

  std::string self_;
  std::string name_;
  MpsPlace place_;
  const MpsOrder& order_;
  sys::Process process_;
};

/// Kills what bears the share's name, as far as we may look: what guard_share() could not.
/// /proc/PID/environ
void kill_share(const std::string& share);

/// What `self` runs as beside the daemon: starts it, and ends when it does or when whoever started
/// us dies, which ends all of its servers. Gives its status. Errors: io.
Result<int> guard_share(const sys::SpawnOptions& daemon);

/// What `self` runs as: makes the view of MpsDaemon in a mount namespace of its own and executes
/// `program` with `words`. Returns on failure alone.
Error enter_share(const MpsPlace& place, const std::string& program,
                  const std::vector<std::string>& words);

}  // namespace berth::gpu
