// SPDX-License-Identifier: Apache-2.0
#include "image/lease.hpp"

#include <fcntl.h>
#include <linux/magic.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "base/text.hpp"
#include "image/additional_store.hpp"
#include "image/layout.hpp"
#include "sys/file/file.hpp"
#include "sys/file/mode.hpp"
#include "sys/machine/host.hpp"
#include "sys/process/process.hpp"
#include "sys/user/namespace.hpp"

namespace berth::image {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

// Long enough for a restart of the file server, short enough for a waiting user.
constexpr milliseconds kExpiry{30'000};
constexpr int kBeatsToExpiry = 6;
constexpr std::string_view kLeaseWord = "lease ";

// Magic numbers of file systems that no header defines.
constexpr long kLustre = 0x0bd00bd0;
constexpr long kGpfs = 0x47504653;
constexpr long kBeegfs = 0x19830326;
constexpr long kPanfs = 0xaad7aaea;
constexpr long kCifs = 0xff534d42;

bool several_machines_mount(long type) {
  constexpr long kTypes[] = {NFS_SUPER_MAGIC,
                             SMB_SUPER_MAGIC,
                             SMB2_SUPER_MAGIC,
                             CEPH_SUPER_MAGIC,
                             FUSE_SUPER_MAGIC,
                             V9FS_MAGIC,
                             AFS_SUPER_MAGIC,
                             CODA_SUPER_MAGIC,
                             OCFS2_SUPER_MAGIC,
                             kLustre,
                             kGpfs,
                             kBeegfs,
                             kPanfs,
                             kCifs};
  return std::ranges::find(kTypes, type) != std::end(kTypes);
}

/// Can be changed for tests; nothing else needs another expiry time.
milliseconds expiry() {
  const char* given = std::getenv("BERTH_LEASE_SECONDS");
  auto seconds = parse_u64(given == nullptr ? "" : given);
  if (!seconds || *seconds == 0 || *seconds > 3600) return kExpiry;
  return milliseconds(*seconds * 1000);
}

std::string in_tmp(std::string_view name) {
  return "tmp/" + std::string(name);
}

std::string this_boot() {
  auto boot = sys::boot_id();
  return boot.ok() ? *boot : "?";
}

/// The owner of the mark; nothing if there is none.
Result<std::optional<std::string>> owner_of(const sys::Fd& root, const std::string& mark) {
  auto owner = sys::read_link(root, in_tmp(mark));
  if (owner.ok()) return std::optional<std::string>(std::move(*owner));
  if (has_gone(owner.error())) return std::optional<std::string>();
  return std::move(owner).error();
}

/// Takes the mark from a dead owner. A faster process may already hold the mark again; then it is
/// put back. In between the mark has no owner, so two processes may do the same work, which is the
/// only cost of a lost mark.
Result<void> take_away(const sys::Fd& root, const std::string& mark, const std::string& owner) {
  std::string trash = in_tmp(std::string(kTrashPrefix) + sys::random_hex(8));
  auto moved = sys::rename(root, in_tmp(mark), root, trash);
  if (!moved.ok()) return has_gone(moved.error()) ? Result<void>() : std::move(moved);
  auto was = sys::read_link(root, trash);
  if (was.ok() && *was != owner) ignore(sys::make_symlink(*was, root, in_tmp(mark)));
  return sys::remove_entry(root, trash);
}

bool has_ended(Watch::Seen seen) {
  return seen == Watch::Seen::gone || seen == Watch::Seen::expired;
}

/// Makes the kernel forget cached names of a directory that another machine changes.
void refresh(const sys::Fd& root, const std::string& directory) {
  auto opened = sys::open_at(root, directory, O_RDONLY | O_DIRECTORY);
}

}  // namespace

bool uses_leases(const sys::Fd& root) {
  const char* wish = std::getenv("BERTH_STORE_LEASES");
  std::string_view said = wish == nullptr ? "" : wish;
  if (!said.empty()) return said != "0";
  auto type = sys::file_system_type(root, "store");
  return type.ok() && several_machines_mount(*type);
}

bool lacks_locks(const Error& error) {
  constexpr int kReasons[] = {ENOSYS, ENOLCK, EOPNOTSUPP, EINVAL};
  return std::ranges::find(kReasons, error.sys_errno) != std::end(kReasons);
}

std::string lease_line() {
  auto host = sys::host_name();
  auto process = sys::read_link(sys::cwd(), "/proc/self");
  return std::string(kLeaseWord) + this_boot() + " " + escape_controls(host.ok() ? *host : "?") +
         " " + (process.ok() ? *process : "?") + "\n";
}

bool is_of_other_machine(std::string_view text) {
  if (!text.starts_with(kLeaseWord)) return false;
  text.remove_prefix(kLeaseWord.size());
  return text.substr(0, text.find(' ')) != this_boot();
}

Result<std::shared_ptr<Lease>> Lease::begin(const sys::Fd& root, std::string name, Beat beat) {
  std::shared_ptr<Lease> lease(new Lease);
  lease->root_ = TRY(sys::duplicate(root));
  lease->name_ = std::move(name);
  lease->beat();
  if (beat == Beat::background) lease->thread_ = std::thread([raw = lease.get()] { raw->run(); });
  return lease;
}

Lease::~Lease() {
  if (!thread_.joinable()) return;
  {
    std::lock_guard lock(mutex_);
    end_ = true;
  }
  ended_.notify_all();
  thread_.join();
}

void Lease::run() {
  std::unique_lock lock(mutex_);
  while (!ended_.wait_for(lock, expiry() / kBeatsToExpiry, [this] { return end_; })) beat();
}

void Lease::beat() {
  auto now = std::chrono::system_clock::now().time_since_epoch();
  auto seconds = std::chrono::duration_cast<std::chrono::seconds>(now);
  auto rest = std::chrono::duration_cast<std::chrono::nanoseconds>(now - seconds);
  // An error does not matter here: is_lost() checks whether the file still exists.
  auto held = sys::hold_entry(root_, in_tmp(name_));
  sys::FileTime beat{seconds.count(), static_cast<uint32_t>(rest.count())};
  if (held.ok()) ignore(sys::set_modified(*held, beat, name_));
  beaten_at_ = sys::since_boot();
}

Result<void> Lease::renew() {
  auto late = sys::since_boot() - beaten_at_.load();
  if (late > expiry() / 2 || is_lost()) {
    return make_error(Kind::busy,
                      "change the store: this process was delayed for so long that another machine "
                      "may be using the store",
                      "try again");
  }
  if (late > expiry() / kBeatsToExpiry) beat();
  return {};
}

bool Lease::is_lost() const {
  auto there = sys::stat_entry(root_, in_tmp(name_));
  return there.ok() && !*there;
}

Result<void> Lease::take(const std::string& mark, const std::function<bool()>& give_up) {
  Watch watch;
  while (true) {
    beat();  // in each round, as the wait may be long
    auto made = sys::make_symlink(name_, root_, in_tmp(mark));
    if (made.ok() || made.error().kind != Kind::exists) return made;
    auto owner = TRY(owner_of(root_, mark));
    if (!owner) continue;
    if (*owner == name_) return {};  // the network file system has repeated our request
    if (has_ended(watch.look(root_, *owner))) {
      TRY(take_away(root_, mark, *owner));
      continue;
    }
    if (give_up && give_up()) {
      return make_error(Kind::interrupted, "wait for another machine that has " + quote(mark));
    }
    std::this_thread::sleep_for(Watch::pause());
  }
}

void Lease::drop(const std::string& mark) {
  auto owner = sys::read_link(root_, in_tmp(mark));
  if (owner.ok() && *owner == name_) ignore(sys::remove_entry(root_, in_tmp(mark)));
}

Result<void> wait_without(const sys::Fd& root, const std::string& mark) {
  Watch watch;
  while (true) {
    refresh(root, "tmp");
    auto owner = TRY(owner_of(root, mark));
    if (!owner || has_ended(watch.look(root, *owner))) break;
    std::this_thread::sleep_for(Watch::pause());
  }
  for (const char* directory : {"layers", "blobs/sha256", "images"}) refresh(root, directory);
  return {};
}

std::chrono::milliseconds Watch::pause() {
  return std::clamp(expiry() / 60, milliseconds(20), milliseconds(500));
}

Watch::Seen Watch::look(const sys::Fd& root, const std::string& name) {
  if (name.empty() || name.find('/') != std::string::npos) return Seen::gone;
  // Opening the file makes a network file system ask its server.
  auto file = sys::open_if_exists(root, in_tmp(name), O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  bool gone = file.ok() ? !*file : has_gone(file.error());
  if (gone) return Seen::gone;
  std::optional<Moment> now;
  if (file.ok()) {
    auto seen = sys::stat_fd(**file, name);
    if (seen.ok()) now = Moment{seen->st_ino, seen->st_mtim.tv_sec, seen->st_mtim.tv_nsec};
  }
  bool known = name == name_;
  if (known && now == last_) {
    return Clock::now() - since_ >= expiry() ? Seen::expired : Seen::silent;
  }
  name_ = name;
  last_ = now;
  since_ = Clock::now();
  return known ? Seen::alive : Seen::silent;
}

}  // namespace berth::image
