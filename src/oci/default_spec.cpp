// SPDX-License-Identifier: Apache-2.0
#include "oci/default_spec.hpp"

#include <array>

namespace berth::oci {
namespace {

constexpr std::array<std::string_view, 12> kMaskedPaths{"/proc/acpi",
                                                        "/proc/asound",
                                                        "/proc/interrupts",
                                                        "/proc/kcore",
                                                        "/proc/keys",
                                                        "/proc/latency_stats",
                                                        "/proc/sched_debug",
                                                        "/proc/scsi",
                                                        "/proc/timer_list",
                                                        "/proc/timer_stats",
                                                        "/sys/devices/virtual/powercap",
                                                        "/sys/firmware"};

constexpr std::array<std::string_view, 5> kReadonlyPaths{"/proc/bus", "/proc/fs", "/proc/irq",
                                                         "/proc/sys", "/proc/sysrq-trigger"};

Process template_process() {
  Process process;
  process.terminal = true;
  process.args = {"sh"};
  process.env = {"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "TERM=xterm"};
  process.cwd = "/";
  Capabilities& sets = process.capabilities.emplace();
  sets.bounding = {"CAP_KILL", "CAP_NET_BIND_SERVICE", "CAP_AUDIT_WRITE"};
  sets.effective = sets.permitted = sets.bounding;
  process.rlimits = {{"RLIMIT_NOFILE", 1024, 1024}};
  process.no_new_privileges = true;
  return process;
}

}  // namespace

std::span<const std::string_view> default_masked_paths() {
  return kMaskedPaths;
}
std::span<const std::string_view> default_readonly_paths() {
  return kReadonlyPaths;
}

Mount make_mount(std::string destination, std::string type, std::string source,
                 std::vector<std::string> options) {
  Mount mount;
  mount.destination = std::move(destination);
  mount.type = std::move(type);
  mount.source = std::move(source);
  mount.options = std::move(options);
  return mount;
}

std::vector<Mount> kernel_mounts(const KernelMounts& choices) {
  std::vector<std::string> pts = {"nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620"};
  if (choices.tty_group) pts.emplace_back("gid=5");
  Mount sysfs = make_mount("/sys", "sysfs", "sysfs", {"nosuid", "noexec", "nodev", "ro"});
  if (choices.bind_sysfs) {
    sysfs =
        make_mount("/sys", "bind", "/sys", {"rbind", "nosuid", "noexec", "nodev", "rro", "rslave"});
  }
  return {
      make_mount("/proc", "proc", "proc", {"nosuid", "noexec", "nodev"}),
      make_mount("/dev", "tmpfs", "tmpfs", {"nosuid", "strictatime", "mode=755", "size=65536k"}),
      make_mount("/dev/pts", "devpts", "devpts", std::move(pts)),
      std::move(sysfs),
      make_mount("/sys/fs/cgroup", "cgroup", "cgroup", {"nosuid", "noexec", "nodev", "ro"}),
      make_mount("/dev/mqueue", "mqueue", "mqueue", {"nosuid", "noexec", "nodev"}),
      make_mount(
          "/dev/shm", "tmpfs", "shm",
          {"nosuid", "noexec", "nodev", "mode=1777", "size=" + std::to_string(choices.shm_bytes)}),
  };
}

Spec template_spec() {
  Spec spec;
  spec.root.path = "rootfs";
  spec.root.readonly = true;
  spec.hostname = "berth";
  spec.process = template_process();
  spec.mounts = kernel_mounts({});
  for (const char* type : {"pid", "network", "ipc", "uts", "mount", "cgroup"}) {
    spec.linux_.namespaces.push_back({type, ""});
  }
  spec.linux_.resources.emplace().devices = {{false, "", {}, {}, "rwm"}};
  auto masked = default_masked_paths();
  auto readonly = default_readonly_paths();
  spec.linux_.masked_paths.assign(masked.begin(), masked.end());
  spec.linux_.readonly_paths.assign(readonly.begin(), readonly.end());
  return spec;
}

Spec template_rootless_spec(uint32_t uid, uint32_t gid) {
  Spec spec = template_spec();
  KernelMounts choices;
  choices.bind_sysfs = true;
  choices.tty_group = false;
  spec.mounts = kernel_mounts(choices);
  std::erase_if(spec.linux_.namespaces,
                [](const Namespace& space) { return space.type == "network"; });
  spec.linux_.namespaces.push_back({"user", ""});
  spec.linux_.uid_mappings = {{0, uid, 1}};
  spec.linux_.gid_mappings = {{0, gid, 1}};
  spec.linux_.resources.reset();
  return spec;
}

}  // namespace berth::oci
