// SPDX-License-Identifier: Apache-2.0
#include "gpu/inventory/cache.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <ctime>

#include "base/text.hpp"
#include "gpu/inventory/kernel.hpp"
#include "json/fields.hpp"
#include "sys/file.hpp"
#include "sys/process.hpp"

namespace berth::gpu {
namespace {

constexpr size_t kMaxCacheBytes = size_t{4} << 20;

// Names below `path` that programs see come and go with GPUs and MIG instances.
Result<void> append_names(const DriverRoot& root, const std::string& path, std::string& out) {
  for (const std::string& name : TRY(root.list_machine(path))) out += name + " ";
  return {};
}

Result<void> append_instances(const DriverRoot& root, std::string& out) {
  const std::string base = "/proc/driver/nvidia/capabilities";
  for (const std::string& gpu : TRY(root.list_machine(base))) {
    if (!gpu.starts_with("gpu")) continue;
    std::string mig = base + "/" + gpu + "/mig";
    for (const std::string& instance : TRY(root.list_machine(mig))) {
      out += gpu + "/" + instance + ":";
      TRY(append_names(root, mig + "/" + instance, out));
    }
  }
  return {};
}

void append_stamp(const std::string& path, std::string& out) {
  auto info = sys::stat_entry(sys::cwd(), path);
  if (!info.ok() || !*info) {
    out += "- ";
    return;
  }
  const struct stat& s = **info;
  // A character device has no content: its number and its rights are what may change. Not its
  // group, which looks different in a user namespace: both sides share this cache.
  if (S_ISCHR(s.st_mode)) {
    out += fmt::format("c{:x}:{:o} ", s.st_rdev, s.st_mode);
  } else {
    out += fmt::format("{:x}:{}:{}:{}.{:09} ", s.st_dev, s.st_ino, s.st_size, s.st_mtim.tv_sec,
                       s.st_mtim.tv_nsec);
  }
}

}  // namespace

std::string cache_name(const std::string& driver_root) {
  if (driver_root == "/") return "inventory.json";
  std::string name = "inventory";
  for (char c : driver_root) {
    bool plain =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.';
    // Injective, so that two roots never share a file.
    name += c == '/' ? "-"
            : plain  ? std::string(1, c)
                     : fmt::format("_{:02x}", static_cast<unsigned char>(c));
  }
  constexpr size_t kMaxName =
      200;  // NAME_MAX is 255; a longer one keeps its end, and the content says whose it is
  if (name.size() > kMaxName) name = "inventory-" + name.substr(name.size() - kMaxName);
  return name + ".json";
}

std::vector<std::string> sentinels_of(const DriverRoot& root, const Inventory& inventory) {
  std::string base = root.path() == "/" ? "" : root.path();
  std::vector<std::string> out = {base + "/etc/ld.so.cache", base + "/etc/ld.so.conf.d",
                                  base + "/run/nvidia-persistenced/socket",
                                  base + "/run/nvidia-fabricmanager/socket",
                                  root.machine_path("/dev/nodes")};
  for (const DriverFile& file : inventory.files) {
    bool first = file.name.starts_with("libcuda.so.") || file.name.starts_with("libnvidia-ml.so.");
    if (first && !file.elf32) out.push_back(file.host_path);
  }
  for (const Node& node : inventory.control_nodes) out.push_back(root.machine_path(node.path));
  for (const Gpu& gpu : inventory.gpus) out.push_back(root.machine_path(gpu.node.path));
  return out;
}

Result<std::string> fingerprint(const DriverRoot& root, const std::vector<std::string>& sentinels) {
  std::string boot = TRY(sys::boot_id());
  std::string module = TRY(module_version(root));
  std::string out = fmt::format("boot {}\nmodule {}\nmajors ", boot, module);
  if (auto text = TRY(root.read_machine("/proc/devices"))) {
    for (const auto& [name, number] : parse_majors(*text)) {
      if (name.starts_with("nvidia")) out += fmt::format("{}={} ", name, number);
    }
  }
  out += "\ngpus ";
  TRY(append_names(root, "/proc/driver/nvidia/gpus", out));
  TRY(append_instances(root, out));
  out += "\nfiles ";
  for (const std::string& path : sentinels) append_stamp(path, out);
  return out;
}

Result<std::optional<Inventory>> find_cached(const sys::Fd& directory, const DriverRoot& root) {
  auto text = TRY(sys::read_file_if_exists(directory, cache_name(root.path()), kMaxCacheBytes));
  if (!text) return std::optional<Inventory>();
  auto cached = json::read<CachedInventory>(*text, "gpu inventory");
  if (!cached.ok() || cached->format != kCacheFormat ||
      cached->inventory.driver_root != root.path()) {
    return std::optional<Inventory>();  // of another version of Berth, or damaged: made anew
  }
  if (cached->retry_at != 0 && cached->retry_at < ::time(nullptr))
    return std::optional<Inventory>();
  if (TRY(fingerprint(root, cached->sentinels)) != cached->fingerprint)
    return std::optional<Inventory>();
  return std::optional<Inventory>(std::move(cached->inventory));
}

}  // namespace berth::gpu
