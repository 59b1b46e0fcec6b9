// SPDX-License-Identifier: Apache-2.0
#include "gpu/ledger/outside.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "base/text.hpp"
#include "gpu/grant/select.hpp"
#include "gpu/inventory/kernel.hpp"
#include "json/fields.hpp"
#include "sys/file/file.hpp"
#include "sys/machine/host.hpp"
#include "sys/process/process.hpp"
#include "sys/user/trusted_file.hpp"

namespace berth::gpu {

/// The content of the file with the driver's latest answer.
struct ComputingFile {
  std::string driver_root;
  uint64_t pid_space = 0;
  std::vector<std::string> gpus;
  int64_t told = 0;  ///< when the driver answered, in ns of sys::since_boot()
  std::vector<Computing> processes;
};

void fields(auto& v, Computing& c) {
  v.required("key", c.key);
  v.required("pid", c.pid);
  v.required("start_time", c.start_time);
}

void fields(auto& v, ComputingFile& f) {
  v.required("driver_root", f.driver_root);
  v.required("pid_space", f.pid_space);
  v.required("gpus", f.gpus);
  v.required("told", f.told);
  v.required("processes", f.processes);
}

namespace {

constexpr size_t kLongest = size_t{8} << 20;
constexpr int kMostAncestors = 128;

std::string path_in(const std::string& state_dir) {
  return state_dir + "/gpu/computing.json";
}

/// The key of the GPU or partition of `node`; empty if it is not in `inventory`.
std::string key_in(const Inventory& inventory, const KfdNode& node) {
  for (const Gpu& gpu : inventory.gpus) {
    if (gpu.vendor != Vendor::amd || gpu.pci_address != node.pci_address) continue;
    if (gpu.partitions.empty()) return gpu.pci_address;
    for (const Partition& part : gpu.partitions) {
      if (part.index == node.partition) return key_of({&gpu, nullptr, &part});
    }
  }
  return {};
}

std::string text_of(const Computing& process, const SeenProcess* seen) {
  std::string text = fmt::format("process {}", process.pid);
  if (seen == nullptr) return text + ", which has no lease";
  text += " " + quote(seen->command);
  if (seen->user) text += " of " + user_text(*seen->user);
  return text + ", which has no lease";
}

}  // namespace

std::optional<Computing> computing_now(std::string key, int64_t pid, const SeeProcess& see) {
  auto seen = see(pid);
  if (!seen && !sys::open_pidfd(static_cast<pid_t>(pid)).ok()) return std::nullopt;
  return Computing{std::move(key), pid, seen ? seen->start_time : 0};
}

void add_amd_computing(const Inventory& inventory, const SeeProcess& see,
                       std::vector<Computing>& all) {
  auto is_amd = [](const Gpu& gpu) { return gpu.vendor == Vendor::amd; };
  if (std::ranges::none_of(inventory.gpus, is_amd)) return;
  auto root = DriverRoot::open(inventory.driver_root);
  if (!root.ok()) return;
  for (const KfdProcess& process : read_kfd_processes(*root)) {
    std::string key = key_in(inventory, process.node);
    if (key.empty()) continue;
    auto one = computing_now(std::move(key), process.pid, see);
    if (one) all.push_back(*std::move(one));
  }
}

Asked asked_of(const Inventory& inventory, const Here& here) {
  Asked asked{inventory.driver_root, here.pid_space, {}};
  for (const Gpu& gpu : inventory.gpus) {
    if (gpu.vendor == Vendor::nvidia) asked.gpus.push_back(gpu.pci_address);
  }
  return asked;
}

Result<void> write_computing(const std::string& state_dir, const Asked& asked,
                             const std::vector<Computing>& processes) {
  ComputingFile file{asked.driver_root, asked.pid_space, asked.gpus, sys::since_boot().count(),
                     processes};
  TRY(sys::make_directories(sys::cwd(), state_dir + "/gpu", 0700));
  return sys::replace_file(sys::cwd(), path_in(state_dir), json::write(file), 0600);
}

std::optional<std::vector<Computing>> read_computing(const std::string& state_dir,
                                                     const Asked& asked) {
  const std::string path = path_in(state_dir);
  auto text = sys::read_trusted_file_if_exists(path, kLongest);
  if (!text.ok() || !*text) return std::nullopt;
  auto file = json::read<ComputingFile>(**text, path);
  bool same =
      file.ok() && file->driver_root == asked.driver_root && file->pid_space == asked.pid_space;
  if (!same) return std::nullopt;
  bool all = std::ranges::all_of(asked.gpus, [&](const std::string& gpu) {
    return std::ranges::find(file->gpus, gpu) != file->gpus.end();
  });
  std::chrono::nanoseconds age = sys::since_boot() - std::chrono::nanoseconds(file->told);
  if (!all || age.count() < 0 || age > kBelieved) return std::nullopt;
  return std::move(file->processes);
}

Result<sys::Fd> lock_computing(const std::string& state_dir) {
  constexpr std::chrono::seconds kPatience{10};
  constexpr std::chrono::milliseconds kPause{20};
  const std::string path = state_dir + "/gpu/computing.lock";
  TRY(sys::make_directories(sys::cwd(), state_dir + "/gpu", 0700));
  sys::Fd file = TRY(sys::open_at(sys::cwd(), path, O_RDWR | O_CREAT | O_NOFOLLOW, 0600));
  auto end = std::chrono::steady_clock::now() + kPatience;
  while (!TRY(sys::try_lock(file, sys::LockMode::exclusive, path))) {
    if (std::chrono::steady_clock::now() > end) {
      return make_error(Kind::busy,
                        "find the processes that use GPUs: another process holds the lock",
                        "fuser -v " + path);
    }
    std::this_thread::sleep_for(kPause);
  }
  return file;
}

Outside::Outside(const std::vector<Computing>& processes, const ProcessView& view)
    : pid_space_(view.pid_space) {
  for (const Computing& one : processes) {
    auto seen = view.see(one.pid);
    bool hidden = !seen && one.start_time == 0;
    if (!hidden && (!seen || seen->start_time != one.start_time)) continue;  // it has ended
    processes_.push_back(one);
    int64_t pid = one.pid;
    for (int i = 0; i < kMostAncestors && seen && !seen_.contains(pid); ++i) {
      int64_t parent = seen->parent;
      seen_.emplace(pid, *std::move(seen));
      pid = parent;
      if (pid <= 1) break;
      seen = view.see(pid);
    }
  }
}

std::vector<Holding> Outside::holdings(const std::vector<KnownLease>& leases) const {
  auto see = [this](int64_t pid) -> std::optional<SeenProcess> {
    auto found = seen_.find(pid);
    return found == seen_.end() ? std::nullopt : std::make_optional(found->second);
  };
  const ProcessView view{see, pid_space_};
  std::map<std::string, std::vector<const KnownLease*>> by_key;
  for (const Computing& one : processes_) {
    if (!by_key.contains(one.key)) by_key[one.key] = leases_on(one.key, leases);
  }
  std::vector<Holding> held;
  for (const Computing& one : processes_) {
    bool known =
        std::ranges::any_of(held, [&](const Holding& other) { return other.key == one.key; });
    if (known || lease_of(one.pid, by_key[one.key], view) != nullptr) continue;
    auto seen = seen_.find(one.pid);
    Holding& holding = held.emplace_back();
    holding.key = one.key;
    holding.holder = text_of(one, seen == seen_.end() ? nullptr : &seen->second);
  }
  return held;
}

}  // namespace berth::gpu
