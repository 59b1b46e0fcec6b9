// SPDX-License-Identifier: Apache-2.0
#include "plan/plan.hpp"

#include <algorithm>
#include <array>
#include <set>

#include "base/text.hpp"
#include "plan/maker.hpp"

namespace berth::plan {
namespace {

constexpr std::array<std::string_view, 8> kNamespaces = {"cgroup", "ipc",  "mount", "network",
                                                         "pid",    "time", "user",  "uts"};

}  // namespace

const oci::Process Maker::kNoProcess = [] {
  oci::Process process;
  process.cwd = "/";
  return process;
}();

Result<void> Maker::check_process() {
  const auto& process = process_;
  if (process.args.empty()) return usage("process.args: empty");
  if (process.args[0].empty()) return usage("process.args[0]: empty");
  if (!process.cwd.starts_with("/")) {
    return usage("process.cwd: expected an absolute path, got " + quote(process.cwd));
  }
  return {};
}

// Fails for mounts in a shared mount namespace: they would affect other processes, and remain.
Result<void> Maker::check_no_mounts() const {
  const auto& on_linux = spec_.linux_;
  const std::pair<const char*, bool> kMembers[] = {
      {"mounts", !spec_.mounts.empty()},
      {"root.readonly", spec_.root.readonly},
      {"linux.devices", !on_linux.devices.empty()},
      {"linux.maskedPaths", !on_linux.masked_paths.empty()},
      {"linux.readonlyPaths", !on_linux.readonly_paths.empty()},
      {"linux.rootfsPropagation", !on_linux.rootfs_propagation.empty()},
  };
  for (const auto& [name, is_there] : kMembers) {
    if (is_there) return usage(std::string(name) + ": needs a new mount namespace");
  }
  return {};
}

Result<void> Maker::check() {
  // runtime-spec config.md: process is "REQUIRED when start is called", so it may be missing at
  // `create`.
  if (spec_.process) {
    TRY(check_process());
  } else if (!container_.await_start) {
    return usage("process: missing");
  }
  if (spec_.root.path.empty()) return usage("root.path: empty");
  if (!spec_.linux_.mount_label.empty() && !facts_.selinux) {
    return unsupported("linux.mountLabel: SELinux is not enabled on this machine");
  }
  std::set<std::string> seen;
  for (const auto& space : spec_.linux_.namespaces) {
    if (std::ranges::find(kNamespaces, space.type) == kNamespaces.end()) {
      return usage("linux.namespaces: unknown type " + quote(space.type));
    }
    if (!seen.insert(space.type).second) {
      return usage("linux.namespaces: " + quote(space.type) + " is given twice");
    }
  }
  if (!creates("mount")) TRY(check_no_mounts());
  if (!spec_.hostname.empty() && !has_namespace("uts")) {
    return usage("hostname: needs a uts namespace");
  }
  if (!spec_.domainname.empty() && !has_namespace("uts")) {
    return usage("domainname: needs a uts namespace");
  }
  bool mapped = !spec_.linux_.uid_mappings.empty() || !spec_.linux_.gid_mappings.empty();
  if (mapped && !has_namespace("user")) {
    return usage("linux.uidMappings: needs a user namespace");
  }
  if (creates("user") && (spec_.linux_.uid_mappings.empty() || spec_.linux_.gid_mappings.empty())) {
    return usage("linux.uidMappings: missing for a new user namespace");
  }
  return {};
}

std::span<const std::string_view> namespace_types() {
  return kNamespaces;
}

Result<Plan> make(const oci::Spec& spec, const Container& container, const HostFacts& facts) {
  Maker maker(spec, container, facts);
  TRY(maker.check());
  TRY(maker.cgroup());
  maker.oom_score();
  TRY(maker.resctrl());
  TRY(maker.spawn());
  if (maker.has_own_root()) maker.isolate_mounts();
  TRY(maker.clocks());
  TRY(maker.interfaces());
  TRY(maker.kernel_settings());
  if (maker.has_own_root()) TRY(maker.own_root());
  maker.cgroup_namespace();
  TRY(maker.hooks("prestart", spec.hooks.prestart));
  TRY(maker.hooks("createRuntime", spec.hooks.create_runtime));
  TRY(maker.hooks("createContainer", spec.hooks.create_container));
  TRY(maker.labels());
  if (maker.has_own_root()) {
    TRY(maker.enter_root());
  } else {
    maker.shared_root();
  }
  maker.free_affinity();
  maker.place();
  TRY(maker.attributes());
  TRY(maker.limits());
  maker.identity(Missing::made);
  maker.find_program();
  maker.await_start();
  maker.late_filter();
  // These hooks are programs of the image, so they run confined like other programs of the image.
  TRY(maker.hooks("startContainer", spec.hooks.start_container));
  maker.program();
  return maker.take();
}

Result<Plan> make_exec(const oci::Spec& spec, const Container& container, const HostFacts& facts) {
  Maker maker(spec, container, facts);
  TRY(maker.check_process());
  // These two steps use files of the host, so they come before join_container().
  maker.oom_score();
  TRY(maker.labels());
  maker.join_container();
  maker.console(false);
  maker.place();
  TRY(maker.attributes());
  TRY(maker.affinity());
  TRY(maker.limits());
  maker.identity(Missing::refused);
  maker.find_program();
  maker.await_start();  // waits only for a filter with a listener
  maker.late_filter();
  maker.program();
  return maker.take();
}

}  // namespace berth::plan
