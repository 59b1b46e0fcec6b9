// SPDX-License-Identifier: Apache-2.0
// Waiting for GPUs. A waiting process has a number. It retries when a file of the ledger is
// removed, and also at intervals, because a killed container removes no file.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "gpu/ledger/ledger.hpp"
#include "gpu/ledger/record.hpp"
#include "sys/fd/notify.hpp"
#include "sys/fd/poll.hpp"
#include "sys/file/file.hpp"
#include "sys/user/identity.hpp"

namespace berth::gpu {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

/// This many of the first processes in the queue retry at once after a change; no machine has GPUs
/// for more.
constexpr size_t kAtOnce = 16;
constexpr std::chrono::milliseconds kLook = 100ms;
constexpr std::chrono::milliseconds kSeldomLook = 1s;
/// The maximal number of queue numbers tried: dead files of other users may occupy some.
constexpr uint64_t kMostTries = 512;

/// A place in the queue. The destructor removes its file.
class Place {
 public:
  Place() = default;
  Place(Place&&) = delete;
  ~Place() {
    if (file_) ignore(sys::remove_entry(*directory_, name_));
  }

  explicit operator bool() const { return static_cast<bool>(file_); }
  uint64_t number() const { return number_; }

  /// Takes the number after the last one, under the ledger's lock. A number may be occupied by a
  /// file of a killed process of another user, which we may not remove. If no number is free, takes
  /// none.
  Result<void> take(const sys::Fd& directory, const Holders& holders, const Ticket& ticket) {
    const uint64_t last = holders.queue.empty() ? 0 : holders.queue.back().number;
    std::string text = TRY(record_text(ticket));
    for (uint64_t number = last + 1; number <= std::min(last + kMostTries, kHighestNumber);
         ++number) {
      std::string name = fmt::format("{}{:020}", kTicketPrefix, number);
      if (TRY(sys::stat_entry(directory, name))) continue;
      file_ = TRY(make_record(directory, name, text));
      directory_ = &directory;
      name_ = std::move(name);
      number_ = number;
      break;
    }
    return {};
  }

 private:
  const sys::Fd* directory_ = nullptr;
  sys::Fd file_;
  std::string name_;
  uint64_t number_ = UINT64_MAX;
};

bool contains(const std::vector<std::string>& many, const std::string& one) {
  return std::ranges::find(many, one) != many.end();
}

/// Reserves GPUs that `waiting` could take now, as many as it needs; GPUs that are not in `wanted`
/// first. If there are too few, reserves all of them, so that `waiting` is not overtaken again and
/// again.
void keep_for(const KnownTicket& waiting, const std::vector<std::string>& wanted,
              Occupancy& occupancy) {
  const Ticket& ticket = waiting.ticket;
  Occupancy theirs;
  theirs.group = ticket.group;
  theirs.user = waiting.user;
  theirs.held.swap(occupancy.held);
  std::vector<std::string> free;
  for (const std::string& key : ticket.keys) {
    if (find_obstacle(theirs, key, ticket.exclusive) == nullptr) free.push_back(key);
  }
  theirs.held.swap(occupancy.held);
  if (free.size() > ticket.count) {
    std::stable_partition(free.begin(), free.end(),
                          [&](const std::string& key) { return !contains(wanted, key); });
    free.resize(ticket.count);
  }
  std::string who =
      holder_text(ticket.name, ticket.container, waiting.user) + ", which waits first";
  for (std::string& key : free) {
    occupancy.held.push_back({std::move(key), who, ticket.group, ticket.exclusive, waiting.user});
  }
}

}  // namespace

std::string holder_text(const KnownLease& known) {
  const Lease& lease = known.lease;
  bool is_pod = lease.engine == kKubeletEngine && known.user == 0 && !lease.name.empty();
  return is_pod ? lease.name : holder_text(lease.name, lease.container, known.user);
}

Occupancy occupancy_of(const Holders& holders, Asking asking) {
  Occupancy occupancy;
  occupancy.group = std::move(asking.group);
  occupancy.given_by = std::move(asking.given_by);
  occupancy.user = sys::effective_uid();
  occupancy.all_users = occupancy.user == 0 && sys::in_initial_user_namespace();
  std::vector<Holding> own;
  for (const KnownLease& known : holders.leases) {
    const Lease& lease = known.lease;
    std::string who = holder_text(known);
    bool asks = !asking.own_lease.empty() && known.file == asking.own_lease;
    for (const std::string& key : lease.keys) {
      Holding one{key, who, lease.group, lease.exclusive, known.user};
      (asks ? own : occupancy.held).push_back(std::move(one));
    }
  }
  for (Holding& one : asking.outside) occupancy.held.push_back(std::move(one));
  // The GPUs that the requester holds are not reserved for waiting requests either.
  const size_t others = occupancy.held.size(), with_own = others + own.size();
  std::move(own.begin(), own.end(), std::back_inserter(occupancy.held));
  for (const KnownTicket& waiting : holders.queue) {
    if (waiting.number < asking.number) keep_for(waiting, asking.wanted, occupancy);
  }
  auto at = [&](size_t index) { return occupancy.held.begin() + static_cast<ptrdiff_t>(index); };
  occupancy.held.erase(at(others), at(with_own));
  return occupancy;
}

Result<HeldLease> Ledger::take_in_turn(Lease lease, Ticket ticket, const Choose& choose,
                                       const Patience& patience) const {
  const Clock::time_point begun = Clock::now();
  // If this user has no inotify watch left, a change is noticed a little later.
  auto watch = sys::watch_directory(path_);
  sys::Fd changes = watch.ok() ? std::move(*watch) : sys::Fd();
  ticket.since = nanoseconds_since_1970();
  Place place;
  bool told = false;
  while (true) {
    size_t before = 0;
    if (patience.look) patience.look();
    auto taken = [&]() -> Result<HeldLease> {
      // Only requests ahead of ours matter.
      return take(lease, [&](const Holders& all, Lease& chosen) -> Result<void> {
        Holders ahead{all.leases, all.queue};
        std::erase_if(ahead.queue, [&](const auto& one) { return one.number >= place.number(); });
        before = ahead.queue.size();
        auto given = choose(ahead, chosen);
        bool waits = !given.ok() && given.error().kind == Kind::busy && !place;
        if (waits) TRY(place.take(directory_, all, ticket));
        return given;
      });
    }();
    bool busy = !taken.ok() && taken.error().kind == Kind::busy;
    auto waited = Clock::now() - begun;
    if (!busy || waited >= patience.limit) return taken;
    if (patience.waiting && !told) patience.waiting(taken.error());
    told = true;
    auto left = std::chrono::ceil<std::chrono::milliseconds>(
        std::min<std::chrono::nanoseconds>(patience.limit - waited, 1h));
    // A change wakes only the processes at the front of the queue.
    bool soon = before < kAtOnce;
    std::vector<pollfd> entries = {{soon ? changes.get() : -1, POLLIN, 0},
                                   {patience.give_up, POLLIN, 0}};
    TRY(sys::poll(entries, std::min(left, soon ? kLook : kSeldomLook)));
    if (entries[1].revents != 0) {
      return make_error(Kind::interrupted, "wait for GPUs: the caller has ended");
    }
    if (changes) sys::forget_events(changes);
  }
}

}  // namespace berth::gpu
