// SPDX-License-Identifier: Apache-2.0
// The leases of this machine's GPUs. The ledger is a directory with a file for each lease and each
// waiting request of all users. A lease counts while a process that works on its container holds
// the file's lock, or while its container lives: the content of the file alone proves nothing. See
// docs/decisions/0152.
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
#include "gpu/ledger/record.hpp"
#include "sys/fd/fd.hpp"

namespace berth::gpu {

/// The ledger of the whole machine; it belongs to root and everybody can write to it. If root has
/// not made it, a ledger below the user's state directory is used, which covers only the containers
/// of that user.
inline constexpr const char* kMachineLedger = "/run/berth-ledger";

struct KnownLease {
  Lease lease;
  uid_t user = 0;    ///< the file's owner
  std::string file;  ///< the name of its file in the ledger
};

/// For people: "container 'web' of user 1000", "pod default/train (berth.dev/gpu)".
std::string holder_text(const KnownLease& known);

struct KnownTicket {
  Ticket ticket;
  uid_t user = 0;
  std::string file;
  uint64_t number = 0;  ///< the lowest is served first
};

/// All leases that count, and the requests in the queue, in order.
struct Holders {
  std::vector<KnownLease> leases;
  std::vector<KnownTicket> queue;
};

/// Fills in the keys of a container's lease, and the group if it shares the GPUs of another
/// container.
/// Errors: busy if the container has to wait.
using Choose = std::function<Result<void>(const Holders& holders, Lease& lease)>;

/// A lease that this process holds: its lock and its file. The destructor removes the file unless
/// leave() was called.
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
  /// From now on other holders of the lock, or the container, keep the lease alive.
  void leave();

 private:
  friend class Ledger;
  void drop();
  /// The present content of the file: other processes that work on this container write it too.
  Lease now() const;

  sys::Fd directory_;
  sys::Fd fd_;
  std::string ledger_;
  std::string file_;
  Lease lease_;
  std::optional<Lease> before_;  ///< set by widen(), until finish()
  std::optional<Lease> after_;
};

class Ledger {
  friend class HeldLease;

 public:
  /// Opens the machine's ledger at `path`; root makes it if it is missing. If it is missing and we
  /// cannot make it, opens the ledger in `state_dir`, and makes it if needed. Errors: denied (its
  /// owner is neither root nor this user, or others can replace it), io (a full or read-only file
  /// system).
  static Result<Ledger> open(const std::string& path, const std::string& state_dir);

  const std::string& path() const { return path_; }

  /// Reads all records, and removes dead ones where permitted. Errors: busy (the ledger's lock is
  /// held), io.
  Result<Holders> look() const;

  /// Calls `choose` to fill `lease` under the ledger's lock, and writes the lease.
  /// Errors: those of `choose`, busy (the ledger's lock is held), io.
  Result<HeldLease> take(Lease lease, const Choose& choose) const;

  struct Patience {
    std::chrono::nanoseconds limit = std::chrono::nanoseconds::max();
    /// Called once with the obstacle, if take_in_turn() has to wait.
    std::function<void(const Error&)> waiting = {};
    /// Becomes readable when the caller gives up; -1: never.
    int give_up = -1;
    /// Called before each try, without the ledger's lock, to collect facts for `choose`.
    std::function<void()> look = {};
  };
  /// Like take(), but waits in a queue while busy: no later request for the GPUs that `ticket`
  /// wants is served before. Errors: those of take(), busy when the limit is reached, interrupted
  /// when the caller gives up.
  Result<HeldLease> take_in_turn(Lease lease, Ticket ticket, const Choose& choose,
                                 const Patience& patience) const;

  /// Takes the lock of the lease in `file` too. If that lease was lost, takes a new one for the
  /// same GPUs.
  /// Errors: busy (others hold one of these GPUs now), corrupt (`file` is not the name of a lease).
  Result<HeldLease> hold_again(const std::string& file, const Lease& lease) const;

  /// Records the process on which the container's life depends.
  Result<void> set_life(HeldLease& lease, Life life) const;
  /// Changes the name for people.  Errors: usage (too long), io.
  Result<void> set_name(HeldLease& lease, std::string name) const;
  /// Adds the GPUs that `choose` picks to the lease until finish() is called; without finish(), the
  /// destructor restores the old GPUs. `choose` gets all holders, this lease included.
  Result<void> widen(HeldLease& lease, const Choose& choose) const;
  enum class Finish { changed, as_before };
  /// Ends widen(): keeps only the newly chosen GPUs, or only the old ones.
  Result<void> finish(HeldLease& lease, Finish how) const;

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

/// A request of the effective user.
struct Asking {
  std::string group;
  std::vector<std::string> wanted;    ///< keys; reservations of others in the queue avoid these if
                                      ///< possible
  uint64_t number = UINT64_MAX;       ///< its number in the queue
  std::string own_lease = {};         ///< the file of the lease that it has already and may keep
  std::vector<Holding> outside = {};  ///< holdings without a lease
  std::string given_by = {};          ///< as in Occupancy
};

/// The obstacles: leases, holdings without a lease, and reservations for earlier requests in the
/// queue.
Occupancy occupancy_of(const Holders& holders, Asking asking);

}  // namespace berth::gpu
