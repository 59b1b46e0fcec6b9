// SPDX-License-Identifier: Apache-2.0
#include "gpu/mps/join.hpp"

#include <fcntl.h>

#include <array>
#include <chrono>
#include <thread>

#include "base/text.hpp"
#include "gpu/mps/keeper.hpp"
#include "json/fields.hpp"
#include "sys/fd/poll.hpp"
#include "sys/file/file.hpp"
#include "sys/file/mode.hpp"
#include "sys/process/process.hpp"
#include "sys/process/stream.hpp"
#include "sys/user/identity.hpp"

namespace berth::gpu {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr auto kJoinPatience = 30s;
constexpr auto kJoinPause = 20ms;
constexpr size_t kMostReport = 4096;

Result<sys::Fd> lock_shares(const std::string& root) {
  const std::string path = root + "/" + kMpsLock;
  sys::Fd lock = TRY(sys::open_at(sys::cwd(), path, O_RDWR | O_CREAT | O_NOFOLLOW, 0600));
  const auto end = Clock::now() + kJoinPatience;
  while (!TRY(sys::try_lock(lock, sys::LockMode::exclusive, path))) {
    if (Clock::now() > end) {
      return make_error(Kind::busy, "start NVIDIA's MPS daemon: another one is being started",
                        "fuser -v " + path);
    }
    std::this_thread::sleep_for(kJoinPause);
  }
  return lock;
}

/// The lock of the share's keeper; nothing while the keeper lives.
Result<std::optional<sys::Fd>> lock_of_keeper(const MpsPlace& place) {
  const std::string path = place.directory + "/" + kMpsKeeper;
  sys::Fd file = TRY(sys::open_at(sys::cwd(), path, O_RDWR | O_CREAT | O_NOFOLLOW, 0600));
  bool dead = TRY(sys::try_lock(file, sys::LockMode::exclusive, path));
  return dead ? std::optional<sys::Fd>(std::move(file)) : std::nullopt;
}

Result<void> make_open_directory(const std::string& path) {
  TRY(sys::make_directory(sys::cwd(), path, 0700));
  sys::Fd directory = TRY(sys::open_at(sys::cwd(), path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
  return sys::change_mode(directory, 01777, path);
}

/// Makes the share's memory directory in the machine's /dev/shm: that file system has a size limit,
/// and programs may fill it. The link is made first, so that no directory remains without a link to
/// it.
Result<void> make_memory(const MpsPlace& place) {
  if (!TRY(sys::stat_entry(sys::cwd(), place.memory))) {
    const std::string target = std::string(kMpsMemory) + sys::random_hex(16) + "/memory";
    TRY(sys::make_symlink(target, sys::cwd(), place.memory));
  }
  const std::string memory = TRY(sys::read_link(sys::cwd(), place.memory));
  const std::string above = memory.substr(0, memory.rfind('/'));
  auto made = TRY(sys::stat_entry(sys::cwd(), above));
  bool ours = !made || (S_ISDIR(made->st_mode) && made->st_uid == sys::effective_uid());
  if (!ours) return make_error(Kind::denied, quote(above) + " belongs to another user");
  TRY(sys::make_directory(sys::cwd(), above, 0700));
  return make_open_directory(memory);
}

Result<void> make_place(const MpsPlace& place) {
  TRY(sys::make_directories(sys::cwd(), place.directory, 0700));
  // Programs in containers may have other ids and need access. Other users cannot reach the parent
  // directory.
  for (const std::string* path : {&place.pipes, &place.daemon, &place.logs}) {
    TRY(sys::make_directory(sys::cwd(), *path, 0700));
    sys::Fd directory = TRY(sys::open_at(sys::cwd(), *path, O_RDONLY | O_DIRECTORY));
    TRY(sys::change_mode(directory, 0755, *path));
  }
  return make_memory(place);
}

/// Starts a keeper, which inherits both locks.
Result<sys::Fd> start_keeper(const std::string& program, const std::string& state_dir,
                             const std::string& share, const sys::Fd& lock, const sys::Fd& shares) {
  sys::Pipe report = TRY(sys::make_pipe());
  sys::Fd null = TRY(sys::open_at(sys::cwd(), "/dev/null", O_RDWR | O_NOCTTY));
  sys::SpawnOptions spawn;
  spawn.program = program;
  spawn.args = {"berth-mps", "keep", state_dir, share};
  for (int one : {lock.get(), shares.get(), report.write.get()}) {
    spawn.args.push_back(std::to_string(one));
    spawn.keep.push_back(one);
  }
  spawn.in = spawn.out = spawn.err = &null;
  spawn.working_directory = "/";
  spawn.die_with_parent = false;
  spawn.new_session = true;
  TRY(sys::spawn(spawn)).release();
  return std::move(report.read);
}

/// Reads the keeper's report. Errors: unsupported (with the keeper's message), interrupted (the
/// keeper was killed, or takes too long).
Result<void> hear_keeper(const sys::Fd& report) {
  std::string text;
  std::array<char, 1024> chunk;
  const auto end = Clock::now() + kJoinPatience;
  while (text.size() < kMostReport) {
    auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now());
    std::vector<pollfd> entries = {{report.get(), POLLIN, 0}};
    int ready = left.count() > 0 ? TRY(sys::poll(entries, left)) : 0;
    if (ready == 0) return make_error(Kind::interrupted, "NVIDIA's MPS daemon does not answer");
    size_t count = TRY(sys::read_some(report, chunk, "report of berth-mps"));
    if (count == 0) break;
    text.append(chunk.data(), count);
  }
  if (text == kMpsBegun) return {};
  if (text.empty()) return make_error(Kind::interrupted, "berth-mps was killed");
  return make_error(Kind::unsupported, escape_controls(text));
}

/// Waits for a keeper that restarts its dead daemon.
Result<void> wait_until_ready(const MpsPlace& place) {
  const auto end = Clock::now() + kJoinPatience;
  while (!TRY(sys::stat_entry(sys::cwd(), place.directory + "/" + kMpsReady))) {
    if (Clock::now() > end) return make_error(Kind::busy, "NVIDIA's MPS daemon does not answer");
    std::this_thread::sleep_for(kJoinPause);
  }
  return {};
}

/// Ends a share without a keeper, or gives it a new one if containers are left.
Result<void> mend_share(const std::string& state_dir, const std::string& program,
                        const std::string& share, const sys::Fd& shares) {
  const MpsPlace place = place_of(state_dir, share);
  auto keeper = TRY(lock_of_keeper(place));
  if (!keeper) return {};
  auto order = TRY(sys::stat_entry(sys::cwd(), place.directory + "/" + kMpsOrder));
  if (!order) {
    remove_share(place);  // the process that made the share did not finish
    return {};
  }
  // The new keeper ends an unused share.
  TRY(start_keeper(program, state_dir, share, *keeper, shares));
  return {};
}

}  // namespace

Result<void> join_share(const std::string& state_dir, const std::string& program,
                        const MpsOrder& order) {
  const std::string name = name_of(order.share, state_dir, order.ledger);
  const MpsPlace place = place_of(state_dir, name);
  TRY(sys::make_directories(sys::cwd(), place.root, 0700));
  sys::Fd shares = TRY(lock_shares(place.root));
  TRY(make_place(place));
  auto keeper = TRY(lock_of_keeper(place));
  if (!keeper) {
    shares.reset();  // our lease keeps the share alive
    return wait_until_ready(place);
  }
  TRY(sys::replace_file(sys::cwd(), place.directory + "/" + kMpsOrder, json::write(order), 0600));
  sys::Fd report = TRY(start_keeper(program, state_dir, name, *keeper, shares));
  keeper.reset();
  shares.reset();
  return hear_keeper(report);
}

void mend_shares(const std::string& state_dir, const std::string& program) {
  const std::string root = place_of(state_dir, "").root;
  auto names = sys::list_directory(sys::cwd(), root);
  if (!names.ok()) return;  // usually there are no shares
  const std::string path = root + "/" + kMpsLock;
  auto shares = sys::open_at(sys::cwd(), path, O_RDWR | O_CREAT | O_NOFOLLOW, 0600);
  if (!shares.ok()) return;
  auto alone = sys::try_lock(*shares, sys::LockMode::exclusive, path);
  if (!alone.ok() || !*alone) return;
  for (const std::string& name : *names) {
    bool share = name != kMpsLock && !name.starts_with(kMpsMode);
    if (share) ignore(mend_share(state_dir, program, name, *shares));
  }
}

}  // namespace berth::gpu
