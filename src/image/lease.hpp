// SPDX-License-Identifier: Apache-2.0
// Coordination of several machines on one store, where a file lock may not be visible to other
// machines. Only for this folder.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "base/result.hpp"
#include "sys/fd/fd.hpp"

/// A lease is a file in tmp/; its owner updates the file's time at short intervals. A mark is a
/// symbolic link in tmp/ to the lease of the mark's owner. Clocks of machines are never compared: a
/// waiter checks whether the time has changed, and measures the interval by its own clock.
namespace berth::image {

inline constexpr std::string_view kMarkPrefix = "lease-";
/// The mark of the process that decides which objects the store keeps.
inline constexpr const char* kStoreMark = "lease-store";

/// Whether other machines may write to this store: it is on a file system that several can mount.
/// BERTH_STORE_LEASES=1 or 0 overrides this.
bool uses_leases(const sys::Fd& root);

/// Whether flock(2) failed because the file system does not support it.
bool lacks_locks(const Error& error);

/// The first line of a lease: the machine, its boot id, and the process.
std::string lease_line();
/// Whether another machine wrote this lease: its locks may be invisible here.
bool is_of_other_machine(std::string_view text);

class Lease {
 public:
  enum class Beat {
    background,  ///< in a thread, until the end
    on_request,  ///< by renew()
  };
  /// Makes the file `name` in tmp/, which exists, a lease.
  static Result<std::shared_ptr<Lease>> begin(const sys::Fd& root, std::string name, Beat beat);
  Lease(Lease&&) = delete;
  ~Lease();

  const std::string& name() const { return name_; }
  /// Waits until no living process holds the mark, then takes it. Calls `give_up` while waiting.
  /// Errors: interrupted (`give_up` returned true), io.
  Result<void> take(const std::string& mark, const std::function<bool()>& give_up = {});
  void drop(const std::string& mark);
  /// Updates the time of a lease with Beat::on_request; call it often.
  /// Errors: busy (it was called so late that other machines may have declared this lease dead).
  Result<void> renew();
  /// Whether another machine has declared this lease dead: what it protected may be gone.
  bool is_lost() const;

 private:
  Lease() = default;
  void beat();
  void run();

  sys::Fd root_;
  std::string name_;
  /// By the boot clock, which includes suspended time: other machines go on waiting meanwhile.
  std::atomic<std::chrono::nanoseconds> beaten_at_{};
  std::mutex mutex_;
  std::condition_variable ended_;
  bool end_ = false;
  std::thread thread_;
};

/// Waits until no living process holds the mark.
Result<void> wait_without(const sys::Fd& root, const std::string& mark);

/// Observes a lease from outside.
class Watch {
 public:
  enum class Seen { gone, alive, silent, expired };
  /// Checks the lease `name`. alive: its time has changed since the last check. expired: it has not
  /// changed for the whole expiry time.
  Seen look(const sys::Fd& root, const std::string& name);
  /// How long to sleep before the next check.
  static std::chrono::milliseconds pause();

 private:
  std::string name_;
  struct Moment {
    uint64_t inode = 0;
    int64_t seconds = 0;
    int64_t nanoseconds = 0;
    bool operator==(const Moment&) const = default;
  };
  std::optional<Moment> last_;
  std::chrono::steady_clock::time_point since_;
};

}  // namespace berth::image
