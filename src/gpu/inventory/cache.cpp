// SPDX-License-Identifier: Apache-2.0
#include "gpu/inventory/cache.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <set>

#include "base/text.hpp"
#include "gpu/inventory/kernel.hpp"
#include "json/fields.hpp"
#include "sys/file/file.hpp"
#include "sys/process/process.hpp"
#include "sys/user/trusted_file.hpp"

namespace berth::gpu {
namespace {

constexpr size_t kMaxCacheBytes = size_t{4} << 20;

// Whether an inventory has nodes of `driver`.
bool counts(const std::string& driver) {
  static constexpr std::array<std::string_view, 5> kPrefixes = {"nvidia", "gdrdrv", "kfd", "drm",
                                                                "infiniband"};
  return std::ranges::any_of(kPrefixes,
                             [&](std::string_view prefix) { return driver.starts_with(prefix); });
}

// Appends the names below `path`, which change when GPUs and MIG instances appear or disappear.
Result<void> append_names(const DriverRoot& root, const std::string& path, std::string& out) {
  for (const std::string& name : TRY(root.list_machine(path))) out += name + " ";
  return {};
}

// Appends the MIG instances that exist. The file nvidia-caps/mig-minors lists every possible
// instance.
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
  // A character device has no content: only its number and mode may change. The group is left out
  // because it looks different in a user namespace, and processes inside and outside share this
  // cache.
  if (S_ISCHR(s.st_mode)) {
    out += fmt::format("c{:x}:{:o} ", s.st_rdev, s.st_mode);
  } else {
    out += fmt::format("{:x}:{}:{}:{}.{:09} ", s.st_dev, s.st_ino, s.st_size, s.st_mtim.tv_sec,
                       s.st_mtim.tv_nsec);
  }
}

// Empty members take time whenever the file is read, and a missing member means the same.
void drop_empty(json::Value& value) {
  if (auto* array = value.get_if<json::Array>()) {
    for (json::Value& element : *array) drop_empty(element);
  } else if (auto* object = value.get_if<json::Object>()) {
    std::erase_if(*object, [](const auto& member) {
      const json::Value& content = member.second;
      return content.is_null() || (content.string() != nullptr && content.string()->empty()) ||
             (content.array() != nullptr && content.array()->empty());
    });
    for (auto& member : *object) drop_empty(member.second);
  }
}

}  // namespace

std::string cache_name(const std::string& driver_root) {
  if (driver_root == "/") return "inventory.json";
  std::string name = "inventory";
  for (char c : driver_root) {
    bool plain =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.';
    // The encoding is injective, so that two roots never share a file.
    name += c == '/' ? "-"
            : plain  ? std::string(1, c)
                     : fmt::format("_{:02x}", static_cast<unsigned char>(c));
  }
  constexpr size_t kMaxName =
      200;  // NAME_MAX is 255; of a longer name only the end is kept; the content has the full root
  if (name.size() > kMaxName) name = "inventory-" + name.substr(name.size() - kMaxName);
  return name + ".json";
}

std::vector<std::string> sentinels_of(const DriverRoot& root, const Inventory& inventory) {
  std::string base = root.path() == "/" ? "" : root.path();
  std::vector<std::string> out;
  for (const char* path : {"/etc/ld.so.cache", "/etc/ld.so.conf.d",
                           "/run/nvidia-persistenced/socket", "/run/nvidia-fabricmanager/socket"}) {
    out.push_back(base + path);
  }
  for (const char* path : {"/dev/nodes", "/dev/dri", "/dev/nvidia-caps",
                           "/dev/nvidia-caps-imex-channels", "/tmp/nvidia-mps"}) {
    out.push_back(root.machine_path(path));
  }
  // Directories are included because the removal of a file changes its directory.
  std::set<std::string> directories;
  for (const DriverFile& file : inventory.files) {
    if (file.kind == FileKind::library) {
      directories.insert(file.host_path.substr(0, file.host_path.rfind('/')));
    }
    bool first = file.name.starts_with("libcuda.so.") || file.name.starts_with("libnvidia-ml.so.");
    if ((first && !file.elf32) || file.name == "nvidia-smi") out.push_back(file.host_path);
  }
  out.insert(out.end(), directories.begin(), directories.end());
  // A damaged file may be overwritten, which does not change its directory.
  for (const UnusableFile& file : inventory.unusable) out.push_back(file.path);
  for (const Node& node : inventory.control_nodes) out.push_back(root.machine_path(node.path));
  for (const Node& node : inventory.amd_control_nodes) out.push_back(root.machine_path(node.path));
  for (const Gpu& gpu : inventory.gpus) out.push_back(root.machine_path(gpu.node.path));
  for (const DeviceGroup& group : inventory.groups) {
    for (const Node& node : group.nodes) {
      if (group.name != "imex") out.push_back(root.machine_path(node.path));
    }
  }
  return out;
}

Result<std::string> fingerprint(const DriverRoot& root, const std::vector<std::string>& sentinels) {
  std::string boot = TRY(sys::boot_id());
  std::string module = TRY(module_version(root));
  std::string out = fmt::format("boot {}\nmodule {}\nmajors ", boot, module);
  if (auto text = TRY(root.read_machine("/proc/devices"))) {
    for (const auto& [name, number] : parse_majors(*text)) {
      if (counts(name)) out += fmt::format("{}={} ", name, number);
    }
  }
  out += "\ngpus ";
  if (!module.empty()) {
    TRY(append_names(root, "/proc/driver/nvidia/gpus", out));
    TRY(append_instances(root, out));
  }
  auto generation = root.read_machine("/sys/class/kfd/kfd/topology/generation_id");
  if (generation.ok() && *generation) out += "kfd " + std::string(trim(**generation));
  out += "\nfiles ";
  for (const std::string& path : sentinels) append_stamp(path, out);
  return out;
}

std::string write_cached(const CacheHead& head, const Inventory& inventory) {
  json::Value value = json::to_value(inventory);
  drop_empty(value);
  return json::write(head) + "\n" + json::dump(value) + "\n";
}

std::optional<CacheHead> read_cache_head(std::string_view text, std::string_view& inventory) {
  size_t end = text.find('\n');
  if (end == std::string_view::npos) return std::nullopt;
  inventory = text.substr(end + 1);
  auto head = json::read<CacheHead>(text.substr(0, end), "gpu inventory");
  if (!head.ok() || head->format != kCacheFormat) return std::nullopt;
  return std::move(*head);
}

Result<std::optional<Inventory>> find_cached(const sys::Fd& directory, const DriverRoot& root,
                                             const Configured& configured) {
  using Nothing = std::optional<Inventory>;
  auto text = sys::read_trusted_file_if_exists(directory, cache_name(root.path()), kMaxCacheBytes);
  if (!text.ok() && text.error().kind != Kind::io) return Nothing();  // replaced by rename
  if (!text.ok()) return std::move(text).error();
  if (!*text) return Nothing();
  std::string_view rest;
  auto head = read_cache_head(**text, rest);
  if (!head || head->driver_root != root.path() || head->configured != configured) return Nothing();
  if (head->retry_at != 0 && head->retry_at < ::time(nullptr)) return Nothing();
  if (TRY(fingerprint(root, head->sentinels)) != head->fingerprint) return Nothing();
  auto inventory = json::read<Inventory>(rest, "gpu inventory");
  if (!inventory.ok()) return Nothing();
  return Nothing(std::move(*inventory));
}

}  // namespace berth::gpu
