// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "base/text.hpp"
#include "node/gather/parts.hpp"
#include "sys/machine/host_facts.hpp"

namespace berth::node {
namespace {

constexpr size_t kMaxKernelText = size_t{64} << 10;

struct FileSystemModule {
  const char* name;
  const char* module;  ///< below /lib/modules/<release>/kernel/fs
};
constexpr std::array<FileSystemModule, 3> kFileSystems = {{
    {"overlay", "overlayfs/overlay"},
    {"erofs", "erofs/erofs"},
    {"squashfs", "squashfs/squashfs"},
}};

class Machine {
 public:
  explicit Machine(const gpu::DriverRoot& root) : root_(root) {
    kernel_.release = text("/proc/sys/kernel/osrelease");
    std::string table = text("/proc/filesystems");
    for (std::string_view line : split(table, '\n')) {
      auto words = split_blank(line);
      if (!words.empty()) file_systems_.emplace_back(words.back());
    }
  }

  std::string text(const std::string& path) const {
    return std::string(trim(start_of(root_, path, kMaxKernelText)));
  }
  bool exists(const std::string& path) const { return root_.stat_machine(path).has_value(); }

  bool has_file_system(const FileSystemModule& one) const {
    if (std::ranges::find(file_systems_, one.name) != file_systems_.end()) {
      return true;
    }
    for (const char* ending : {".ko", ".ko.xz", ".ko.zst", ".ko.gz"}) {
      std::string path = "/lib/modules/" + kernel_.release + "/kernel/fs/" + one.module + ending;
      if (exists(path)) return true;
    }
    return false;
  }

  /// Whether users may make user namespaces. The last two sysctls may be missing.
  bool gives_user_namespaces() const {
    std::string most = text("/proc/sys/user/max_user_namespaces");
    return !most.empty() && most != "0" &&
           text("/proc/sys/kernel/unprivileged_userns_clone") != "0" &&
           text("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") != "1";
  }

  /// Mainline kernels allow this since 5.11. Only a mount would prove it, and that would need a
  /// user namespace.
  bool mounts_overlay_for_users() const {
    auto parts = split(kernel_.release, '.');
    if (parts.size() < 2) return false;
    std::string_view minor = parts[1].substr(0, parts[1].find_first_not_of("0123456789"));
    auto first = parse_u64(parts[0]);
    auto second = parse_u64(minor);
    return first && second && (*first > 5 || (*first == 5 && *second >= 11));
  }

  void add(const char* ability, bool there) {
    if (there) kernel_.abilities.emplace_back(ability);
  }
  bool has(std::string_view ability) const {
    return std::ranges::find(kernel_.abilities, ability) != kernel_.abilities.end();
  }
  Kernel take() {
    std::ranges::sort(kernel_.abilities);
    return std::move(kernel_);
  }

 private:
  const gpu::DriverRoot& root_;
  Kernel kernel_;
  std::vector<std::string> file_systems_;
};

}  // namespace

Kernel gather_kernel(const gpu::DriverRoot& root, bool running) {
  Machine machine(root);
  for (const FileSystemModule& one : kFileSystems) {
    machine.add(one.name, machine.has_file_system(one));
  }
  machine.add("fuse", machine.exists("/dev/fuse"));
  machine.add("userns", machine.gives_user_namespaces());
  machine.add("user-overlay", machine.has("overlay") && machine.has("userns") &&
                                  machine.mounts_overlay_for_users());
  machine.add("cgroup2", machine.exists("/sys/fs/cgroup/cgroup.controllers"));
  std::string actions = machine.text("/proc/sys/kernel/seccomp/actions_avail");
  auto words = split_blank(actions);
  machine.add("seccomp", !words.empty());
  machine.add("seccomp-notify", std::ranges::find(words, "user_notif") != words.end());
  machine.add("landlock", running && sys::has_landlock());
  machine.add("io_uring", running && sys::has_io_uring());
  return machine.take();
}

}  // namespace berth::node
