// SPDX-License-Identifier: Apache-2.0
#include "gpu/mps/keeper.hpp"

#include <fcntl.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <thread>
#include <vector>

#include "gpu/ledger/ledger.hpp"
#include "gpu/mps/control.hpp"
#include "gpu/mps/modes.hpp"
#include "gpu/mps/share.hpp"
#include "sys/adopt.hpp"
#include "sys/file.hpp"
#include "sys/identity.hpp"
#include "sys/poll.hpp"
#include "sys/signals.hpp"

namespace berth::gpu {
namespace {

using namespace std::chrono_literals;

/// Of a container in the making nobody knows a process that could be waited for.
constexpr std::chrono::milliseconds kSoon = 1s;
constexpr std::chrono::milliseconds kSeldom = 30s;
/// Between two looks, whatever happens.
constexpr std::chrono::milliseconds kPause = 200ms;
constexpr std::chrono::milliseconds kLongestRest = 30s;

class Keeper {
 public:
  Keeper(const std::string& self, const std::string& state_dir, const std::string& name,
         MpsOrder order)
      : state_dir_(state_dir),
        name_(name),
        place_(place_of(state_dir, name)),
        order_(std::move(order)),
        modes_(place_.root, order_),
        daemon_(self, name, place_, order_) {}

  Result<void> start();
  /// Whether a container that runs computes through this share; in doubt it does.
  bool is_used() const;
  /// Until the share has ended.
  Result<void> stay();
  /// While the lock of all shares is held.
  void end();

 private:
  using Users = std::vector<Life>;
  /// The processes of the containers that compute through this share, also of those in the making.
  Result<Users> users() const;
  Result<bool> end_unless_used();
  void start_again();
  void wait(const Result<Users>& users);

  std::string state_dir_;
  std::string name_;
  MpsPlace place_;
  MpsOrder order_;
  Modes modes_;
  MpsDaemon daemon_;
  std::chrono::milliseconds rest_ = kPause;  ///< before the daemon is started again
};

// Anew each time: an administrator may have removed the ledger, and root's next container makes it.
Result<Keeper::Users> Keeper::users() const {
  Users users;
  Ledger ledger = TRY(Ledger::open(order_.ledger, state_dir_));
  Holders holders = TRY(ledger.look());
  for (const KnownLease& one : holders.leases) {
    bool ours = one.user == sys::effective_uid() && one.lease.mps;
    if (ours && one.lease.mps->share == name_) users.push_back(one.lease.life);
  }
  return users;
}

bool Keeper::is_used() const {
  auto now = users();
  return !now.ok() ||
         std::any_of(now->begin(), now->end(), [](const Life& life) { return life.pid > 0; });
}

Result<void> Keeper::start() {
  const std::string ready = place_.directory + "/" + kMpsReady;
  TRY(sys::remove_entry(sys::cwd(), ready));
  TRY(modes_.take());
  TRY(daemon_.start());
  return sys::write_file(sys::cwd(), ready, "", 0600);
}

// Who starts a container takes its lease first and comes for the share then.
Result<bool> Keeper::end_unless_used() {
  const std::string path = place_.root + "/" + kMpsLock;
  sys::Fd lock = TRY(sys::open_at(sys::cwd(), path, O_RDWR | O_CREAT | O_NOFOLLOW, 0600));
  TRY(sys::wait_lock(lock, sys::LockMode::exclusive, path));
  auto left = users();
  if (!left.ok() || !left->empty()) return false;
  end();
  return true;
}

void Keeper::end() {
  daemon_.end();
  modes_.give_back();
  remove_share(place_);
}

// While containers are there nothing of the share is given up: they would compute without limits.
void Keeper::start_again() {
  std::this_thread::sleep_for(rest_);
  rest_ = std::min(2 * rest_, kLongestRest);
  ignore(start());
}

void Keeper::wait(const Result<Users>& users) {
  std::vector<sys::Fd> handles;
  std::vector<pollfd> entries = {{daemon_.process().pidfd().get(), POLLIN, 0}};
  bool known = users.ok();
  for (const Life& life : known ? *users : Users()) {
    auto handle = life.pid > 0 ? sys::open_pidfd(static_cast<pid_t>(life.pid)) : sys::Fd();
    known = known && handle.ok() && *handle;
    if (!handle.ok() || !*handle) continue;
    entries.push_back({handle->get(), POLLIN, 0});
    handles.push_back(std::move(*handle));
  }
  ignore(sys::poll(entries, known ? kSeldom : kSoon));
  std::this_thread::sleep_for(kPause);
}

Result<void> Keeper::stay() {
  while (true) {
    auto looked = users();  // who cannot be told counts as one who is there
    if (looked.ok() && looked->empty() && TRY(end_unless_used())) return {};
    bool runs = daemon_.process() && !TRY(sys::await_end(daemon_.process().pidfd(), 0ms));
    if (!runs) {
      start_again();
      continue;
    }
    wait(looked);
    rest_ = kPause;
  }
}

}  // namespace

Result<void> keep_share(const std::string& self, const std::string& state_dir,
                        const std::string& name, Handed handed) {
  // A session that ends, or a unit that is stopped, is not the end of other containers; nor is it
  // when nobody is left to be told.
  sys::Fd unread = TRY(sys::receive_signals({SIGHUP, SIGINT, SIGTERM, SIGPIPE}));
  TRY(sys::become_subreaper());  // of a guard that was killed
  Keeper keeper(self, state_dir, name, TRY(read_order(place_of(state_dir, name))));
  auto started = keeper.start();
  if (!started.ok()) ignore(sys::write_all(handed.report, to_line(started.error()), "report"));
  if (!started.ok() && !keeper.is_used()) {
    keeper.end();
    return started;
  }
  if (started.ok()) ignore(sys::write_all(handed.report, kMpsBegun, "report"));
  handed.report.reset();
  handed.shares.reset();
  return keeper.stay();
}

}  // namespace berth::gpu
