// SPDX-License-Identifier: Apache-2.0
#include "gpu/ledger/ledger.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <thread>

#include "base/text.hpp"
#include "gpu/ledger/record.hpp"
#include "sys/file/file.hpp"
#include "sys/file/mode.hpp"
#include "sys/file/remove_tree.hpp"
#include "sys/user/identity.hpp"
#include "sys/user/trusted_file.hpp"

namespace berth::gpu {
namespace {

using namespace std::chrono_literals;

constexpr const char* kLock = "lock";
/// The lock is only held while a few files are read and one is written, so this limit is generous.
constexpr auto kLockPatience = 10s;
/// More files than any machine's containers need: the ledger is being flooded.
constexpr size_t kMostFiles = 16384;
/// The waiting requests of one user that count: far more than in normal use.
constexpr size_t kMostTickets = 512;
/// In a user namespace: the owner id of files of all users that are not mapped, such as root
/// outside.
constexpr uid_t kOverflowUid = 65534;

bool is_root() {
  return sys::effective_uid() == 0 && sys::in_initial_user_namespace();
}

/// Makes the ledger's directory with the lock file already in it, so that no user can put another
/// lock there.
Result<void> make_ledger(const std::string& path, mode_t mode, mode_t lock_mode) {
  size_t slash = path.rfind('/');
  std::string parent = slash == 0 ? "/" : path.substr(0, slash);
  sys::Fd above = TRY(sys::open_at(sys::cwd(), parent, O_RDONLY | O_DIRECTORY));
  sys::TempDir made = TRY(sys::TempDir::make(above, ".berth-ledger-"));
  sys::Fd lock = TRY(sys::open_at(made.fd(), kLock, O_RDWR | O_CREAT | O_EXCL, lock_mode));
  TRY(sys::change_mode(lock, lock_mode, path));
  TRY(sys::change_mode(made.fd(), mode, path));
  auto renamed = sys::rename_new(above, made.name(), above, path.substr(slash + 1));
  if (renamed.ok()) made.release();
  return renamed.ok() || renamed.error().kind == Kind::exists ? Result<void>() : renamed;
}

Error somebody_elses(const std::string& path, uid_t owner) {
  return make_error(Kind::denied,
                    fmt::format("use the GPU ledger {}: it is user {}'s", quote(path), owner),
                    "rm -r " + path + " as root: it is created again");
}

struct Record {
  std::string text;
  uid_t user = 0;  ///< the file's owner
};

/// Nothing if the file is not a record.
Result<std::optional<Record>> read_record(const sys::Fd& file, const std::string& name) {
  struct stat info = TRY(sys::stat_fd(file, name));
  if (!S_ISREG(info.st_mode) || info.st_size > static_cast<off_t>(kRecordSize)) {
    return std::optional<Record>();
  }
  return std::optional<Record>(Record{TRY(sys::read_at(file, 0, kRecordSize, name)), info.st_uid});
}

}  // namespace

// ---- the lock -----------------------------------------------------------------------------------

class Ledger::Lock {
 public:
  explicit Lock(sys::Fd file) : file_(std::move(file)) {}

 private:
  sys::Fd file_;
};

Result<Ledger::Lock> Ledger::lock() const {
  sys::Fd file = TRY(sys::open_at(directory_, kLock, O_RDONLY | O_NOFOLLOW));
  auto end = std::chrono::steady_clock::now() + kLockPatience;
  auto pause = 50us;
  while (!TRY(sys::try_lock(file, sys::LockMode::exclusive, path_))) {
    if (std::chrono::steady_clock::now() > end) {
      return make_error(
          Kind::busy, fmt::format("lock the GPU ledger {}: another process holds it", quote(path_)),
          fmt::format("fuser -v {}/{}", path_, kLock));
    }
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, std::chrono::microseconds(2ms));
  }
  return Lock(std::move(file));
}

// ---- opening ------------------------------------------------------------------------------------

Result<Ledger> Ledger::open_at(const std::string& path) {
  sys::Fd directory = TRY(sys::open_at(sys::cwd(), path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
  struct stat info = TRY(sys::stat_fd(directory, path));
  bool roots =
      info.st_uid == 0 || (info.st_uid == kOverflowUid && !sys::in_initial_user_namespace());
  bool ours = info.st_uid == sys::effective_uid();
  if (!roots && !ours) return somebody_elses(path, info.st_uid);
  bool others_replace = (info.st_mode & (S_IWGRP | S_IWOTH)) != 0 && (info.st_mode & S_ISVTX) == 0;
  if (others_replace) {
    return make_error(
        Kind::denied,
        fmt::format("use the GPU ledger {}: others can replace what is in it", quote(path)),
        "chmod 1777 " + path);
  }
  return Ledger(path, std::move(directory));
}

Result<Ledger> Ledger::open(const std::string& path, const std::string& state_dir) {
  // Checks the parent directory: no other user can have made the ledger in it.
  TRY(sys::open_trusted_directory_if_exists(path.substr(0, path.rfind('/'))));
  bool there = TRY(sys::stat_entry(sys::cwd(), path)).has_value();
  if (!there && is_root()) {
    auto made = make_ledger(path, 01777, 0644);  // flock(2) needs read permission only
    // If not even root can make a ledger, there are no others to coordinate with.
    bool nobody_can = !made.ok() && made.error().sys_errno == EROFS;
    if (!made.ok() && !nobody_can) {
      return std::move(made).error().with_context("cannot make the GPU ledger " + quote(path));
    }
    there = made.ok();
  }
  if (there) return open_at(path);
  std::string own = state_dir + "/ledger";
  if (!TRY(sys::stat_entry(sys::cwd(), own))) {
    TRY(sys::make_directories(sys::cwd(), state_dir, 0700));
    TRY_CTX(make_ledger(own, 0700, 0600), "cannot make the GPU ledger " + quote(own));
  }
  return open_at(own);
}

// ---- reading ------------------------------------------------------------------------------------

/// Parses the records one by one and decides whether they count.
class Reading {
 public:
  Reading(const sys::Fd& directory, const Here& here) : directory_(directory), here_(here) {}

  void read(const std::string& name);
  Holders take();

 private:
  void read_lease(const std::string& name, const std::string& text, uid_t user, bool locked);
  void read_ticket(const std::string& name, const std::string& text, uid_t user, bool locked);

  const sys::Fd& directory_;
  const Here& here_;
  Holders found_;
};

void Reading::read(const std::string& name) {
  auto file = sys::open_if_exists(directory_, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
  if (!file.ok() || !*file) return;  // only its owner may open the file: not a record
  auto record = read_record(**file, name);
  if (!record.ok() || !*record) return;
  const auto& [text, user] = **record;
  auto free = sys::try_lock(**file, sys::LockMode::exclusive, name);
  bool locked = !free.ok() || !*free;
  if (name.starts_with(kLeasePrefix)) read_lease(name, text, user, locked);
  if (name.starts_with(kTicketPrefix)) read_ticket(name, text, user, locked);
}

// A dead record of another user is skipped; its owner removes it.
void Reading::read_lease(const std::string& name, const std::string& text, uid_t user,
                         bool locked) {
  auto lease = parse_lease(text);
  if (lease.ok() && (locked || is_alive(lease->life, here_))) {
    found_.leases.push_back({std::move(*lease), user, name});
  } else if (!locked) {
    ignore(sys::remove_entry(directory_, name));
  }
}

void Reading::read_ticket(const std::string& name, const std::string& text, uid_t user,
                          bool locked) {
  if (!locked) return ignore(sys::remove_entry(directory_, name));
  auto ticket = parse_ticket(text);
  auto number = parse_u64(std::string_view(name).substr(kTicketPrefix.size()));
  if (!ticket.ok() || !number || *number > kHighestNumber) return;
  auto same = [&](const KnownTicket& one) { return one.user == user; };
  auto count = std::ranges::count_if(found_.queue, same);
  if (static_cast<size_t>(count) >= kMostTickets) return;
  found_.queue.push_back({std::move(*ticket), user, name, *number});
}

Holders Reading::take() {
  std::ranges::sort(found_.queue,
                    [](const KnownTicket& a, const KnownTicket& b) { return a.number < b.number; });
  // Messages should name a container, not the MPS daemon that serves it.
  std::stable_partition(found_.leases.begin(), found_.leases.end(),
                        [](const KnownLease& one) { return one.lease.engine != kMpsEngine; });
  return std::move(found_);
}

Result<Holders> Ledger::read(const Here& here) const {
  Reading reading(directory_, here);
  std::vector<std::string> names = TRY(sys::list_directory(directory_, ".", kMostFiles));
  for (const std::string& name : names) {
    // A process ended before it could rename this file: only the holder of the lock makes such
    // files.
    if (name.starts_with(kNewPrefix)) ignore(sys::remove_entry(directory_, name));
    if (name.starts_with(kLeasePrefix) || name.starts_with(kTicketPrefix)) reading.read(name);
  }
  return reading.take();
}

Result<Holders> Ledger::look() const {
  Here here = TRY(look_around());
  Lock held = TRY(lock());
  return read(here);
}

// ---- leases -------------------------------------------------------------------------------------

HeldLease& HeldLease::operator=(HeldLease&& other) noexcept {
  if (this == &other) return *this;
  drop();
  directory_ = std::move(other.directory_);
  fd_ = std::move(other.fd_);
  ledger_ = std::move(other.ledger_);
  file_ = std::move(other.file_);
  lease_ = std::move(other.lease_);
  before_ = std::move(other.before_);
  after_ = std::move(other.after_);
  return *this;
}

HeldLease::~HeldLease() {
  drop();
}

void HeldLease::leave() {
  fd_.reset();
}

Lease HeldLease::now() const {
  auto text = sys::read_at(fd_, 0, kRecordSize, file_);
  auto lease = text.ok() ? parse_lease(*text) : std::move(text).error();
  return lease.ok() ? *std::move(lease) : lease_;
}

// If the container survived the attempt to end it, it keeps its GPUs. Its latest Life, which
// berth-runtime writes, is in the file.
void HeldLease::drop() {
  if (!fd_) return;
  if (before_) {
    auto ledger = Ledger::open_at(ledger_);
    if (ledger.ok()) ignore(ledger->finish(*this, Ledger::Finish::as_before));
  }
  auto here = look_around();
  bool ended = here.ok() && !is_alive(now().life, *here);
  if (ended) {
    // Another process that is still starting the container may hold the lease too.
    auto alone = sys::try_lock(fd_, sys::LockMode::exclusive, file_);
    if (alone.ok() && *alone) ignore(sys::remove_entry(directory_, file_));
  }
  fd_.reset();
}

Result<HeldLease> Ledger::write(Lease lease) const {
  lease.since = nanoseconds_since_1970();
  HeldLease held;
  std::string text = TRY(record_text(lease));
  std::string name = std::string(kLeasePrefix) + sys::random_hex(16);
  held.fd_ = TRY_CTX(make_record(directory_, name, text),
                     fmt::format("cannot write to the GPU ledger {}", quote(path_)));
  held.directory_ = TRY(sys::duplicate(directory_));
  held.ledger_ = path_;
  held.file_ = std::move(name);
  held.lease_ = std::move(lease);
  return held;
}

Result<HeldLease> Ledger::take(Lease lease, const Choose& choose) const {
  Here here = TRY(look_around());
  Lock held = TRY(lock());
  Holders holders = TRY(read(here));
  TRY(choose(holders, lease));
  return write(std::move(lease));
}

/// Nothing if the file is missing, belongs to another user, or does not count any more: its GPUs
/// may have been granted to others.
Result<std::optional<HeldLease>> Ledger::find_held(const std::string& file, const Lease& lease,
                                                   const Here& here) const {
  HeldLease held;
  auto opened = TRY(sys::open_if_exists(directory_, file, O_RDWR | O_NOFOLLOW | O_NONBLOCK));
  if (!opened) return std::optional<HeldLease>();
  auto record = TRY(read_record(*opened, file));
  auto known = record ? parse_lease(record->text) : make_error(Kind::corrupt, "read lease");
  bool ours =
      known.ok() && known->container == lease.container && record->user == sys::effective_uid();
  if (!ours) return std::optional<HeldLease>();
  bool free = TRY(sys::try_lock(*opened, sys::LockMode::exclusive, file));
  if (free && !is_alive(known->life, here)) {
    ignore(sys::remove_entry(directory_, file));
    return std::optional<HeldLease>();
  }
  if (free) sys::unlock(*opened);
  if (!TRY(sys::try_lock(*opened, sys::LockMode::shared, file))) {
    return make_error(Kind::busy, "hold lease " + quote(file) + ": another process has locked it",
                      "fuser -v " + path_ + "/" + file);
  }
  held.fd_ = std::move(*opened);
  held.lease_ = std::move(*known);
  held.directory_ = TRY(sys::duplicate(directory_));
  held.ledger_ = path_;
  held.file_ = file;
  return std::optional<HeldLease>(std::move(held));
}

Result<HeldLease> Ledger::hold_again(const std::string& file, const Lease& lease) const {
  bool plain = file.starts_with(kLeasePrefix) && file.find('/') == std::string::npos;
  if (!plain) return make_error(Kind::corrupt, "use lease " + quote(file) + ": no such name");
  Here here = TRY(look_around());
  Lock locked = TRY(lock());
  if (auto held = TRY(find_held(file, lease, here))) return std::move(*held);
  Holders holders = TRY(read(here));
  Occupancy occupancy = occupancy_of(holders, {lease.group, lease.keys, 0});
  for (const std::string& key : lease.keys) {
    const Holding* obstacle = find_obstacle(occupancy, key, lease.exclusive);
    if (obstacle == nullptr) continue;
    return make_error(Kind::busy, fmt::format("GPU {} is held by {} by now", key, obstacle->holder),
                      "berth gpu list");
  }
  Lease anew = lease;
  anew.life = Life();
  return write(std::move(anew));
}

Result<void> Ledger::rewrite(const HeldLease& held, const Lease& lease) const {
  std::string text = TRY(record_text(lease));
  TRY_CTX(sys::write_at(held.fd_, 0, text, held.file_),
          fmt::format("cannot write to the GPU ledger {}", quote(path_)));
  return {};
}

Result<void> Ledger::set_life(HeldLease& held, Life life) const {
  Lock locked = TRY(lock());
  Lease lease = held.now();
  lease.life = std::move(life);
  TRY(rewrite(held, lease));
  held.lease_ = std::move(lease);
  return {};
}

Result<void> Ledger::set_name(HeldLease& held, std::string name) const {
  Lock locked = TRY(lock());
  Lease lease = held.now();
  lease.name = std::move(name);
  TRY(rewrite(held, lease));
  held.lease_ = std::move(lease);
  return {};
}

Result<void> Ledger::widen(HeldLease& held, const Choose& choose) const {
  BERTH_ASSERT(!held.before_);
  Here here = TRY(look_around());
  Lock locked = TRY(lock());
  Holders holders = TRY(read(here));
  Lease before = held.now(), after = before;
  TRY(choose(holders, after));
  Lease both = after;
  for (const std::string& key : before.keys) {
    bool known = std::ranges::find(both.keys, key) != both.keys.end();
    if (!known) both.keys.push_back(key);
  }
  TRY(rewrite(held, both));
  held.lease_ = std::move(both);
  held.before_ = std::move(before);
  held.after_ = std::move(after);
  return {};
}

Result<void> Ledger::finish(HeldLease& held, Finish how) const {
  BERTH_ASSERT(held.before_ && held.after_);
  Lock locked = TRY(lock());
  Lease lease = how == Finish::changed ? *held.after_ : *held.before_;
  lease.life = held.now().life;  // the container may have been started again meanwhile
  TRY(rewrite(held, lease));
  held.lease_ = std::move(lease);
  held.before_.reset();
  held.after_.reset();
  return {};
}

}  // namespace berth::gpu
