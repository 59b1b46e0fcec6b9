// SPDX-License-Identifier: Apache-2.0
// Which of several machines works on what, where file locks do not reach the others. Inside this
// folder only.
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
#include "sys/fd.hpp"

/// A lease is a file in tmp/ whose time its owner changes again and again. A mark is a symbolic
/// link in tmp/ to the lease of its owner. No machine compares its clock with another's: a
/// waiter sees whether the time has changed, and takes as long as its own clock says.
namespace berth::image {

inline constexpr std::string_view kMarkPrefix = "lease-";
/// Of the process that decides what the store has.
inline constexpr const char* kStoreMark = "lease-store";

/// Whether other machines may write to this store: it is on a file system that several can mount.
/// BERTH_STORE_LEASES=1 or 0 has the last word.
bool uses_leases(const sys::Fd& root);

/// Whether flock(2) has failed because the file system has none.
bool lacks_locks(const Error& error);

/// The first line of the file: which boot of which machine, and which process there.
std::string lease_line();
/// Whether this text of a lease was written by another machine, whose locks we may not see.
bool is_of_other_machine(std::string_view text);

class Lease {
 public:
  enum class Beat {
    background,  ///< in a thread, until the end
    on_request,  ///< by renew()
  };
  /// Of the file `name` in tmp/, which is there.
  static Result<std::shared_ptr<Lease>> begin(const sys::Fd& root, std::string name, Beat beat);
  Lease(Lease&&) = delete;
  ~Lease();

  const std::string& name() const { return name_; }
  /// Waits until no living process has the mark, then takes it. `give_up` is asked while waiting.
  /// Errors: interrupted (it said so), io.
  Result<void> take(const std::string& mark, const std::function<bool()>& give_up = {});
  void drop(const std::string& mark);
  /// For Beat::on_request: call it often.
  /// Errors: busy (so late that others may have taken this one for dead).
  Result<void> renew();
  /// Another machine has taken this one for dead: what it had kept may be gone.
  bool is_lost() const;

 private:
  Lease() = default;
  void beat();
  void run();

  sys::Fd root_;
  std::string name_;
  /// Since the boot: sleep is time in which others wait.
  std::atomic<std::chrono::nanoseconds> beaten_at_{};
  std::mutex mutex_;
  std::condition_variable ended_;
  bool end_ = false;
  std::thread thread_;
};

/// Waits until no living process has the mark.
Result<void> wait_without(const sys::Fd& root, const std::string& mark);

/// Looks at a lease from outside.
class Watch {
 public:
  enum class Seen { gone, alive, silent, expired };
  /// Of the lease `name`. alive: its time has changed since the last look. expired: it has not for
  /// as long as anybody waits.
  Seen look(const sys::Fd& root, const std::string& name);
  /// How long to sleep before another look.
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
