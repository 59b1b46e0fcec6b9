// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <set>

#include "base/text.hpp"
#include "plan/attributes.hpp"
#include "plan/cgroup.hpp"
#include "plan/maker.hpp"

namespace berth::plan {
namespace {

/// The namespace that a sysctl belongs to; "" if setting it would change the host.
std::string_view namespace_of_sysctl(std::string_view key) {
  static constexpr std::array<std::string_view, 8> kIpc = {
      "kernel.msgmax", "kernel.msgmnb", "kernel.msgmni", "kernel.sem",
      "kernel.shmall", "kernel.shmmax", "kernel.shmmni", "kernel.shm_rmid_forced"};
  if (std::ranges::find(kIpc, key) != kIpc.end()) return "ipc";
  if (key.starts_with("fs.mqueue.")) return "ipc";
  if (key.starts_with("net.")) return "network";
  return key == "kernel.domainname" ? "uts" : "";
}

// The same check as the kernel's dev_valid_name(). "%d" means a number in a pattern.
bool is_interface_name(std::string_view name) {
  constexpr size_t kMost = 15;
  return !name.empty() && name.size() <= kMost && name != "." && name != ".." &&
         std::ranges::none_of(name,
                              [](char c) { return c == '/' || c == ':' || c <= ' ' || c == 0x7f; });
}

bool is_interface_pattern(std::string_view name) {
  size_t number = name.find("%d");
  std::string rest(name);
  if (number != std::string::npos) rest.replace(number, 2, "0");
  return is_interface_name(name) && rest.find('%') == std::string::npos;
}

}  // namespace

Result<void> Maker::cgroup() {
  if (!facts_.has_cgroups || !container_.make_cgroup) return {};
  const std::string& path = spec_.linux_.cgroups_path;
  MakeCgroup step;
  if (container_.systemd == SystemdManager::none) {
    step.path = path.empty() ? "/berth-" + container_.id : path;
    step.below_caller = container_.of_engine && says(oci::kCallersCgroupAnnotation, "yes");
    step.scope = container_.scope;
  } else {
    step.scope = TRY_CTX(parse_systemd_scope(path, container_.id, container_.systemd),
                         "config.json: linux.cgroupsPath");
  }
  if (step.scope) {
    for (const auto& device : spec_.linux_.devices) {
      if (device.type == "p") continue;
      step.nodes.push_back({host_path(device), device.type == "b" ? "b" : "c",
                            static_cast<uint32_t>(device.major),
                            static_cast<uint32_t>(device.minor)});
    }
  }
  if (spec_.linux_.resources) step.resources = *spec_.linux_.resources;
  step.owner = cgroup_owner(spec_);
  add(std::move(step));
  return {};
}

Result<void> Maker::spawn() {
  Spawn step;
  for (const auto& space : spec_.linux_.namespaces) {
    if (space.path.empty()) {
      step.created.push_back(space.type);
    } else if (!space.path.starts_with("/")) {
      return usage("linux.namespaces: expected an absolute path, got " + quote(space.path));
    } else {
      step.joined.push_back(space);
    }
  }
  if (creates("user")) {  // a joined user namespace has its mappings already
    step.uid_mappings = spec_.linux_.uid_mappings;
    step.gid_mappings = spec_.linux_.gid_mappings;
    step.keep_ids = keeps_ids();
  }
  add(std::move(step));
  if (container_.new_keyring) add(MakeKeyring{});
  return {};
}

void Maker::cgroup_namespace() {
  if (!creates("cgroup") || !facts_.has_cgroups) return;
  if (!std::exchange(in_cgroup_namespace_, true)) add(EnterCgroupNamespace{});
}

// runtime-spec config-linux.md "Network Devices": "The runtime MUST ... move the network interface
// to the container's network namespace", and sysctls may name it.
Result<void> Maker::interfaces() {
  const auto& devices = spec_.linux_.net_devices;
  if (devices.empty()) return {};
  if (!has_namespace("network")) return usage("linux.netDevices: needs a network namespace");
  MoveInterfaces step;
  std::set<std::string> names;
  for (const auto& [from, device] : devices) {
    const std::string& to = device.name.empty() ? from : device.name;
    if (!is_interface_name(from) || from.find('%') != std::string::npos) {
      return usage("linux.netDevices: " + quote(from) + " is not the name of an interface");
    }
    if (!is_interface_pattern(to)) {
      return usage("linux.netDevices." + from + ".name: " + quote(to) +
                   " is not the name of an interface");
    }
    if (to.find('%') == std::string::npos && !names.insert(to).second) {
      return usage("linux.netDevices." + from + ".name: " + quote(to) + " is given twice");
    }
    step.interfaces.push_back({from, to});
  }
  add(std::move(step));
  return {};
}

Result<void> Maker::kernel_settings() {
  if (creates("network")) add(RaiseLoopback{});
  if (!spec_.hostname.empty()) add(SetHostname{spec_.hostname});
  if (!spec_.domainname.empty()) add(SetDomainname{spec_.domainname});
  for (const auto& [name, value] : spec_.linux_.sysctl) {
    std::string key = name;
    if (key.find('.') == std::string::npos) std::ranges::replace(key, '/', '.');
    std::string space(namespace_of_sysctl(key));
    if (key.find("..") != std::string::npos || key.find('/') != std::string::npos ||
        !has_namespace(space)) {
      return usage("linux.sysctl: " + quote(name) +
                   " does not belong to a namespace of the container");
    }
    bool is_domain = key == "kernel.domainname" && !spec_.domainname.empty();
    if (is_domain && value != spec_.domainname) {
      return usage("linux.sysctl: " + quote(name) + ": domainname says " + quote(spec_.domainname) +
                   ", this says " + quote(value));
    }
    add(SetSysctl{std::move(key), value, std::move(space)});
  }
  return {};
}

Result<void> Maker::clocks() {
  const auto& offsets = spec_.linux_.time_offsets;
  if (!offsets.empty() && !creates("time")) {
    return usage("linux.timeOffsets: needs a new time namespace");
  }
  for (const auto& [clock, offset] : offsets) {
    if (clock != "monotonic" && clock != "boottime") {
      return usage("linux.timeOffsets: unknown clock " + quote(clock));
    }
    if (offset.nanosecs >= 1'000'000'000) {
      return usage("linux.timeOffsets[" + quote(clock) +
                   "].nanosecs: expected less than 10^9, got " + std::to_string(offset.nanosecs));
    }
  }
  if (creates("time")) add(EnterTimeNamespace{offsets});
  return {};
}

Result<void> Maker::resctrl() {
  if (!spec_.linux_.intel_rdt) return {};
  JoinResctrl step = TRY(resctrl_step(*spec_.linux_.intel_rdt, container_.id));
  if (!facts_.resctrl) {
    return unsupported("linux.intelRdt: '/sys/fs/resctrl' is not mounted on this machine");
  }
  add(std::move(step));
  return {};
}

}  // namespace berth::plan
