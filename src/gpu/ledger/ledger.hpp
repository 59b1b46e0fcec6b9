// SPDX-License-Identifier: Apache-2.0
// Who has which of this machine's GPUs. A directory with a file for each lease and for each who
// waits; all of them may be any user's. A lease counts as long as somebody who works on its
// container holds the file's lock, or its container lives: what is written in it is never the truth
// alone. See docs/decisions/0152.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "gpu/grant/occupancy.hpp"
#include "gpu/ledger/alive.hpp"
#include "gpu/ledger/record.hpp"
#include "sys/fd/fd.hpp"

namespace berth::gpu {

/// Of the whole machine: root's, for everybody to write to. Where root has made none, a user's
/// containers are kept apart from each other alone, below his state directory.
inline constexpr const char* kMachineLedger = "/run/berth-ledger";

struct KnownLease {
  Lease lease;
  uid_t user = 0;    ///< who wrote it, as the kernel says
  std::string file;  ///< its name in the ledger
};

struct KnownTicket {
  Ticket ticket;
  uid_t user = 0;
  std::string file;
  uint64_t number = 0;  ///< the lowest is the first in turn
};

/// All that count, and who waits, the first one first.
struct Holders {
  std::vector<KnownLease> leases;
  std::vector<KnownTicket> queue;
};

/// Says what a container gets: fills the keys of its lease, and its group where it shares another
/// one's. Errors: busy where it is to wait.
using Choose = std::function<Result<void>(const Holders& holders, Lease& lease)>;

/// A lease of ours: its lock, and the file, which goes with this object unless it was left.
class HeldLease {
 public:
  HeldLease() = default;
  HeldLease(HeldLease&& other) noexcept = default;
  HeldLease& operator=(HeldLease&& other) noexcept;
  ~HeldLease();

  explicit operator bool() const { return static_cast<bool>(fd_); }
  const Lease& lease() const { return lease_; }
  LeaseNote note() const { return {ledger_, file_, lease_}; }
  const std::string& file() const { return file_; }
  std::string path() const { return ledger_ + "/" + file_; }
  bool is_widened() const { return before_.has_value(); }
  /// Whoever holds the lock, or the container, keeps it from now on.
  void leave();

 private:
  friend class Ledger;
  void drop();
  /// What the file says now: others of this container write it too.
  Lease now() const;

  sys::Fd directory_;
  sys::Fd fd_;
  std::string ledger_;
  std::string file_;
  Lease lease_;
  std::optional<Lease> before_;  ///< of widen(), until settle()
  std::optional<Lease> after_;
};

class Ledger {
  friend class HeldLease;

 public:
  /// The machine's at `path`, which root makes where it is missing; where it is missing and we are
  /// not root, the one in `state_dir`, which we make. Errors: denied (it is not root's and not
  /// ours, or others can replace it), io (a full or read-only file system).
  static Result<Ledger> open(const std::string& path, const std::string& state_dir);

  const std::string& path() const { return path_; }

  /// Removes what is dead, as far as we may. Errors: busy (its lock), io.
  Result<Holders> look() const;

  /// Lets `choose` say what `lease` gets, while nobody else is given anything, and writes it down.
  /// Errors: those of `choose`, busy (somebody keeps the ledger's lock), io.
  Result<HeldLease> take(Lease lease, const Choose& choose) const;

  struct Patience {
    std::chrono::nanoseconds limit = std::chrono::nanoseconds::max();
    /// Called once, when it has to wait: with what stands in the way.
    std::function<void(const Error&)> waiting = {};
    /// Becomes readable when the caller gives up; -1: never.
    int give_up = -1;
    /// Called before each look, without the ledger's lock: for what `choose` is to know.
    std::function<void()> look = {};
  };
  /// take(), but who is busy waits for his turn: nobody who came later, and wants what `ticket`
  /// wants, is served before. Errors: those of take(), and busy when the limit is reached,
  /// interrupted when the caller gives up.
  Result<HeldLease> take_in_turn(Lease lease, Ticket ticket, const Choose& choose,
                                 const Patience& patience) const;

  /// The lease in `file`, held by us too, or, where it has been lost, a new one for the same GPUs.
  /// Errors: busy (somebody else has one of them by now).
  Result<HeldLease> hold_again(const std::string& file, const Lease& lease) const;

  /// Writes down the process that the container lives by.
  Result<void> set_life(HeldLease& lease, Life life) const;
  /// Holds what `choose` says besides what it has, until settle(); this object does that, as
  /// before, when it goes. `choose` is given all holders, this one too.
  Result<void> widen(HeldLease& lease, const Choose& choose) const;
  enum class Settle { changed, as_before };
  /// From now on it has what was chosen, or what it had, alone.
  Result<void> settle(HeldLease& lease, Settle how) const;

 private:
  class Lock;
  Ledger(std::string path, sys::Fd directory)
      : path_(std::move(path)), directory_(std::move(directory)) {}
  static Result<Ledger> open_at(const std::string& path);
  Result<Lock> lock() const;
  Result<Holders> read(const Here& here) const;
  Result<HeldLease> write(Lease lease) const;
  Result<std::optional<HeldLease>> find_held(const std::string& file, const Lease& lease,
                                             const Here& here) const;
  Result<void> rewrite(const HeldLease& held, const Lease& lease) const;

  std::string path_;
  sys::Fd directory_;
};

/// Who asks, as the effective user.
struct Asking {
  std::string group;
  std::vector<std::string> wanted;  ///< keys; of what others wait for these are kept for them last
  uint64_t number = UINT64_MAX;     ///< in the queue
  std::string own_lease = {};       ///< the file of what it has already, which it may keep
  std::vector<Holding> outside = {};  ///< what is held without a lease
};

/// What stands in the way: leases, what is held without one, and what is kept for those who wait
/// before.
Occupancy occupancy_of(const Holders& holders, Asking asking);

}  // namespace berth::gpu
