// SPDX-License-Identifier: Apache-2.0
#include "gpu/mps/keeper.hpp"

#include <fcntl.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <map>
#include <thread>

#include "gpu/ledger/ledger.hpp"
#include "gpu/ledger/record.hpp"
#include "gpu/mps/control.hpp"
#include "gpu/mps/share.hpp"
#include "gpu/probe/use.hpp"
#include "sys/fd/poll.hpp"
#include "sys/file/file.hpp"
#include "sys/process/adopt.hpp"
#include "sys/process/signals.hpp"
#include "sys/user/identity.hpp"

namespace berth::gpu {
namespace {

using namespace std::chrono_literals;

using Clock = std::chrono::steady_clock;

/// How soon the ledger is read again while a container is being made: it has no process yet that
/// could be waited for.
constexpr std::chrono::milliseconds kSoon = 1s;
constexpr std::chrono::milliseconds kSeldom = 30s;
/// The pause between two polls.
constexpr std::chrono::milliseconds kKeeperPause = 200ms;
/// The pause before a daemon is restarted that died or did not start. It doubles each time until a
/// daemon has lived for kLongLife.
constexpr std::chrono::milliseconds kShortestRest = 100ms, kLongestRest = 30s;
constexpr auto kLongLife = 1min;

constexpr std::chrono::seconds kModePatience{30};
constexpr size_t kMostNote = 64;

/// Whether a share other than `own` has taken `gpu`.
bool is_taken(const std::string& root, const MpsOrder& own, const std::string& gpu) {
  auto names = sys::list_directory(sys::cwd(), root);
  if (!names.ok()) return false;
  return std::ranges::any_of(*names, [&](const std::string& name) {
    MpsPlace place;
    place.directory = root + "/" + name;
    auto order = read_order(place);
    if (!order.ok() || !order->takes || order->share == own.share) return false;
    const auto& gpus = order->share.gpus;
    return std::ranges::find(gpus, gpu) != gpus.end();
  });
}

/// Sets the compute mode of a share's exclusive GPUs, so that only one process, the server, can
/// compute there. The first share that takes a GPU saves the GPU's old mode in a file next to the
/// shares.
class Modes {
 public:
  /// `root` and `order` have to outlive this object.
  Modes(std::string root, const MpsOrder& order) : root_(std::move(root)), order_(order) {}

  /// Call it under the lock of all shares; it may be called again. Holds the GPUs' nodes open: the
  /// driver forgets modes when no process has a GPU open.
  /// Errors: unsupported (the driver does not report the mode, or does not change it).
  Result<void> take();
  /// Restores the old modes, except for GPUs that another share has taken meanwhile. If the driver
  /// refuses, the mode is left as it is.
  void give_back();

 private:
  using Known = std::map<std::string, std::string>;  ///< modes by id of the GPU
  Result<Known> ask() const;
  std::string note_of(const std::string& gpu) const;

  std::string root_;
  const MpsOrder& order_;
  std::vector<sys::Fd> nodes_;
};

std::string Modes::note_of(const std::string& gpu) const {
  return root_ + "/" + std::string(kMpsMode) + gpu;
}

Result<Modes::Known> Modes::ask() const {
  Known known;
  Uses uses = TRY(ask_nvml_use(order_.probe, order_.nvml, kModePatience));
  for (const Use& use : uses.gpus) known[use.id] = use.compute_mode;
  for (const std::string& gpu : order_.share.gpus) {
    if (!known[gpu].empty()) continue;
    return make_error(Kind::unsupported, "the driver does not report the compute mode of " + gpu);
  }
  return known;
}

Result<void> Modes::take() {
  if (!order_.takes) return {};
  for (const std::string& node : nodes_.empty() ? order_.nodes : std::vector<std::string>()) {
    auto opened = sys::open_at(sys::cwd(), node, O_RDWR | O_NOCTTY | O_NONBLOCK);
    if (opened.ok()) nodes_.push_back(std::move(*opened));
  }
  Known before = TRY(ask());
  std::vector<std::string> others;
  for (const std::string& gpu : order_.share.gpus) {
    auto noted = TRY(sys::stat_entry(sys::cwd(), note_of(gpu)));
    if (!noted) TRY(sys::replace_file(sys::cwd(), note_of(gpu), before[gpu], 0600));
    if (before[gpu] != kExclusiveProcess) others.push_back(gpu);
  }
  if (others.empty()) return {};
  TRY(set_compute_mode(order_.probe, order_.nvml, others, kExclusiveProcess, kModePatience));
  Known after = TRY(ask());
  for (const std::string& gpu : others) {
    if (after[gpu] == kExclusiveProcess) continue;
    return make_error(Kind::unsupported, "the driver does not keep the compute mode of " + gpu,
                      "nvidia-persistenced");
  }
  return {};
}

void Modes::give_back() {
  if (!order_.takes) return;
  std::map<std::string, std::vector<std::string>> back;  // by mode
  for (const std::string& gpu : order_.share.gpus) {
    auto before = sys::read_file_if_exists(sys::cwd(), note_of(gpu), kMostNote);
    bool noted = before.ok() && *before && !is_taken(root_, order_, gpu);
    if (noted) back[**before].push_back(gpu);
  }
  for (const auto& [mode, gpus] : back) {
    if (!set_compute_mode(order_.probe, order_.nvml, gpus, mode, kModePatience).ok()) continue;
    for (const std::string& gpu : gpus) ignore(sys::remove_entry(sys::cwd(), note_of(gpu)));
  }
  nodes_.clear();
}

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

  /// Whether any container computes through this share or is about to; true if in doubt.
  bool is_used();
  /// Whether a container that computes through this share runs; true if in doubt.
  bool has_running();
  Result<void> start();
  /// Runs until the share has ended.
  void stay();
  /// Call it under the lock of all shares.
  void end();

 private:
  struct User {
    Life life;
    sys::Fd handle;  ///< pidfd of its first process
  };

  /// Reads the ledger, and keeps users seen before that are still alive, because the ledger may
  /// have been removed.
  Result<void> look();
  Result<void> hold_gpus();
  Result<void> begin();
  bool end_unless_used();
  bool is_running() const;
  void start_again();
  void wait();

  std::string state_dir_;
  std::string name_;
  MpsPlace place_;
  MpsOrder order_;
  Modes modes_;
  MpsDaemon daemon_;
  HeldLease lease_;  ///< the lease of exclusive GPUs, held until their compute modes are restored
  std::vector<User> users_;
  bool in_the_making_ = false;  ///< some users have no process yet
  bool in_doubt_ = false;       ///< the ledger could not be read
  std::chrono::milliseconds rest_ = kShortestRest;
  Clock::time_point next_start_;
  Clock::time_point started_;
};

Result<void> Keeper::look() {
  std::erase_if(users_, [](const User& one) {
    auto ended = sys::await_end(one.handle, 0ms);
    return ended.ok() && *ended;
  });
  in_doubt_ = true;
  in_the_making_ = false;
  // The ledger is opened again each time: if it was removed, the next container of root makes a new
  // one.
  Ledger ledger = TRY(Ledger::open(order_.ledger, state_dir_));
  Holders holders = TRY(ledger.look());
  for (const KnownLease& one : holders.leases) {
    bool ours = one.user == sys::effective_uid() && one.lease.mps &&
                one.lease.mps->share == name_ && one.lease.engine != kMpsEngine;
    if (!ours) continue;
    const Life& life = one.lease.life;
    bool known = std::ranges::any_of(users_, [&](const User& user) { return user.life == life; });
    if (known) continue;
    auto handle = life.pid > 0 ? sys::open_pidfd(static_cast<pid_t>(life.pid)) : sys::Fd();
    bool held = handle.ok() && *handle;
    if (held) users_.push_back({life, std::move(*handle)});
    in_the_making_ = in_the_making_ || !held;
  }
  in_doubt_ = false;
  return {};
}

bool Keeper::is_used() {
  ignore(look());
  return in_doubt_ || in_the_making_ || !users_.empty();
}

bool Keeper::has_running() {
  ignore(look());
  return in_doubt_ || !users_.empty();
}

// Leases exclusive GPUs for the share. The lease depends on its lock alone, so the GPUs are free
// when this process is killed.
Result<void> Keeper::hold_gpus() {
  if (!order_.takes || lease_) return {};
  Here here = TRY(look_around());
  Ledger ledger = TRY(Ledger::open(order_.ledger, state_dir_));
  Lease lease;
  lease.container = "mps-" + name_;
  lease.name = "MPS";
  lease.engine = kMpsEngine;
  lease.group = order_.group;
  lease.keys = order_.keys;
  lease.exclusive = true;
  lease.life.pid_space = here.pid_space;
  lease.life.boot = here.boot;
  const MpsLimits& limits = order_.share.limits;
  lease.mps = MpsUse{name_, limits.cores_percent, limits.memory_bytes};
  lease_ =
      TRY(ledger.take(std::move(lease), [](const Holders&, Lease&) { return Result<void>(); }));
  return {};
}

Result<void> Keeper::begin() {
  TRY(hold_gpus());
  TRY(modes_.take());
  TRY(daemon_.start());
  return sys::write_file(sys::cwd(), place_.directory + "/" + kMpsReady, "", 0600);
}

Result<void> Keeper::start() {
  ignore(sys::remove_entry(sys::cwd(), place_.directory + "/" + kMpsReady));
  auto begun = begin();
  if (!begun.ok()) daemon_.end();
  started_ = Clock::now();
  return begun;
}

bool Keeper::is_running() const {
  if (!daemon_.process()) return false;
  auto ended = sys::await_end(daemon_.process().pidfd(), 0ms);
  return ended.ok() && !*ended;
}

// A process that starts a container takes its lease before it joins the share, so is_used() sees
// the lease even if the process waits for the lock that is taken here.
bool Keeper::end_unless_used() {
  const std::string path = place_.root + "/" + kMpsLock;
  auto lock = sys::open_at(sys::cwd(), path, O_RDWR | O_CREAT | O_NOFOLLOW, 0600);
  if (!lock.ok() || !sys::wait_lock(*lock, sys::LockMode::exclusive, path).ok()) return false;
  if (is_used()) return false;
  end();
  return true;
}

void Keeper::end() {
  daemon_.end();
  modes_.give_back();
  lease_ = HeldLease();
  remove_share(place_);
}

// While containers exist, nothing of the share is given up: otherwise they would compute without
// limits.
void Keeper::start_again() {
  ignore(sys::remove_entry(sys::cwd(), place_.directory + "/" + kMpsReady));
  if (Clock::now() - started_ > kLongLife) rest_ = kShortestRest;
  if (Clock::now() < next_start_) return;
  ignore(start());
  next_start_ = Clock::now() + rest_;
  rest_ = std::min(2 * rest_, kLongestRest);
}

void Keeper::wait() {
  bool runs = is_running();
  std::vector<pollfd> entries = {{runs ? daemon_.process().pidfd().get() : -1, POLLIN, 0}};
  for (const User& one : users_) entries.push_back({one.handle.get(), POLLIN, 0});
  auto limit = in_doubt_ || in_the_making_ ? kSoon : kSeldom;
  if (!runs) limit = std::min(limit, rest_);
  ignore(sys::poll(entries, limit));
  if (entries[0].revents == 0) std::this_thread::sleep_for(kKeeperPause);
}

void Keeper::stay() {
  while (is_used() || !end_unless_used()) {
    if (!is_running()) start_again();
    wait();
  }
}

}  // namespace

Result<void> keep_share(const std::string& self, const std::string& state_dir,
                        const std::string& name, Handed handed) {
  // Neither a hangup of the terminal nor a closed pipe may end the keeper.
  sys::Fd unread = TRY(sys::receive_signals({SIGHUP, SIGINT, SIGTERM, SIGPIPE}));
  TRY(sys::become_subreaper());  // the children of a killed guard become ours
  Keeper keeper(self, state_dir, name, TRY(read_order(place_of(state_dir, name))));
  if (!keeper.is_used()) {
    keeper.end();  // its previous keeper was killed
    return {};
  }
  auto started = keeper.start();
  if (!started.ok()) ignore(sys::write_all(handed.report, to_line(started.error()), "report"));
  if (!started.ok() && !keeper.has_running()) {
    keeper.end();
    return started;
  }
  if (started.ok()) ignore(sys::write_all(handed.report, kMpsBegun, "report"));
  handed.report.reset();
  handed.shares.reset();
  keeper.stay();
  return {};
}

}  // namespace berth::gpu
