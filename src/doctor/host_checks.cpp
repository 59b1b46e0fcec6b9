// SPDX-License-Identifier: Apache-2.0
// Checks whether and how this user can run containers on this machine.
#include <algorithm>
#include <array>

#include "base/packages.hpp"
#include "doctor/checks.hpp"

namespace berth::doctor {
namespace {

Finding programs(const Facts& facts) {
  const HostFacts& host = facts.host;
  auto missing = [&](const std::vector<std::string>& names) {
    return join(names, ", ") + (names.size() == 1 ? " is" : " are") + " missing in " +
           quote(host.program_directory);
  };
  if (!host.missing_programs.empty()) {
    return problem(missing(host.missing_programs), "install Berth again, or set BERTH_LIBEXEC_DIR");
  }
  if (!host.unfit_program.empty()) {
    return problem("a program cannot start on this system: " + host.unfit_program,
                   "install the Berth that was built for this system, or build it here");
  }
  if (!host.missing_parts.empty()) {
    return warning(missing(host.missing_parts) + ", which this build may have left out",
                   "docs/hacking.md, Building, names the switch of each");
  }
  return ok("all programs are in " + host.program_directory);
}

Finding kernel(const Facts& facts) {
  if (!facts.host.seccomp) {
    return problem("Linux " + facts.host.kernel + " has no seccomp filters",
                   "a kernel with CONFIG_SECCOMP_FILTER");
  }
  return ok("Linux " + facts.host.kernel);
}

Finding user_namespace(const Facts& facts) {
  const HostFacts& host = facts.host;
  if (host.user.machine_root) return not_applicable("root needs none");
  if (host.user.inside_namespace) return ok("already inside of one");
  if (!host.user_namespace.failure) return ok("this user may make one");
  const Error& error = *host.user_namespace.failure;
  return problem(
      "this user cannot make one: " +
          to_line({error.kind, error.sys_errno, error.what, {}, error.context, error.where}),
      error.hint.empty() ? "sysctl user.max_user_namespaces" : error.hint);
}

Finding procfs(const Facts& facts) {
  const Trial& trial = facts.host.procfs;
  if (trial.worked) return ok("a container can have a /proc of its own");
  if (!trial.failure) return not_applicable("root may always, and nothing was tried");
  return problem(
      "a container of this user cannot have a /proc of its own: " + to_line(*trial.failure) +
          ": something is mounted over a part of this machine's",
      "findmnt -R /proc, and unmount it; until then berth run --pid host");
}

std::string usermod(const UserFacts& user) {
  std::string name = user.name.empty() ? std::to_string(user.uid) : user.name;
  return "usermod --add-subuids 100000-165535 --add-subgids 100000-165535 " + name + ", as root";
}

Finding subordinate_ids(const Facts& facts) {
  const HostFacts& host = facts.host;
  if (host.user.machine_root || host.user.inside_namespace) {
    return not_applicable("only an ordinary user needs them");
  }
  const UserFacts& user = host.user;
  const std::string lost = ": files of a container all belong to one id, and --user fails";
  if (user.subordinate_uids == 0 || user.subordinate_gids == 0) {
    return warning("none for " + quote(user.name.empty() ? std::to_string(user.uid) : user.name) +
                       " in " + (user.subordinate_uids == 0 ? "/etc/subuid" : "/etc/subgid") + lost,
                   usermod(user));
  }
  if (!user.map_tools) {
    return warning("newuidmap and newgidmap are not installed" + lost,
                   install_command("uidmap", host.os_release));
  }
  if (host.user_namespace.worked && !host.all_ids) {
    return warning("they could not be used: " + host.user_namespace.note,
                   "check the lines of this user in /etc/subuid and /etc/subgid");
  }
  uint64_t least = std::min(user.subordinate_uids, user.subordinate_gids);
  if (least < 65536) {
    return warning(
        "only " + std::to_string(least) + ": images that use higher ids cannot be unpacked",
        usermod(user));
  }
  return ok(std::to_string(least) + " ids");
}

Finding identity(const Facts& facts) {
  const HostFacts& host = facts.host;
  if (host.user.machine_root) return ok("containers run as root of this machine");
  if (host.user_namespace.failure) {
    return problem("this user cannot run containers", "see host.user-namespace");
  }
  return ok(host.all_ids ? "containers run in a user namespace with subordinate ids"
                         : "containers run in a user namespace with only this user's id");
}

Finding overlay(const Facts& facts) {
  const Trial& trial = facts.host.overlay;
  if (trial.worked) return ok("can be mounted where images are kept");
  if (!trial.failure) return not_applicable("was not tried");
  std::string on = facts.host.root.file_system
                       ? sys::file_system_name(facts.host.root.file_system->type)
                       : std::string("this file system");
  std::string cannot = "cannot be mounted on " + on + ": " + to_line(*trial.failure);
  std::string disk =
      "--root DIR on a local disk (ext4, xfs); as an ordinary user Linux 5.11 or newer";
  if (facts.host.fuse_overlay) {
    return warning(cannot + "; fuse-overlayfs is used instead, slower with every file", disk);
  }
  return warning(cannot + "; each new container is a copy of its image, which takes time and space",
                 disk + "; " + install_command("fuse-overlayfs", facts.host.os_release));
}

// Layer images are optional; by default layers are directories.
Finding layer_images(const Facts& facts) {
  const HostFacts& host = facts.host;
  if (host.layer_images == sys::ErofsWay::kernel) return ok("EROFS, mounted by the kernel");
  if (host.layer_images == sys::ErofsWay::fuse) return ok("EROFS, through FUSE");
  if (!host.no_layer_images) return not_applicable("was not checked");
  return not_applicable("layers are directories: " + to_line(*host.no_layer_images));
}

Finding cgroups(const Facts& facts) {
  const CgroupFacts& cgroups = facts.host.cgroups;
  if (!cgroups.mounted) {
    return warning("none are mounted: --memory, --cpus and --pids-limit fail",
                   "mount -t cgroup2 none /sys/fs/cgroup, as root");
  }
  if (facts.host.user.machine_root) {
    return ok(cgroups.unified ? "cgroup v2" : "cgroup v1, or v1 and v2 together");
  }
  if (!cgroups.writable && !cgroups.manager) {
    return warning("this user may not create any: --memory, --cpus and --pids-limit have no effect",
                   facts.host.systemd && cgroups.unified
                       ? "log in by ssh or a console, or as root: loginctl enable-linger " +
                             facts.host.user.name
                       : "ask for a delegated cgroup v2 directory");
  }
  std::vector<std::string> missing;
  for (const char* name : {"cpu", "memory", "pids"}) {
    const auto& have = cgroups.controllers;
    if (std::ranges::find(have, name) == have.end()) missing.emplace_back(name);
  }
  if (missing.empty() && !cgroups.writable) {
    return ok("this user's systemd makes them, with cpu, memory and pids");
  }
  if (missing.empty()) return ok("delegated to this user, with cpu, memory and pids");
  return warning("delegated to this user without " + join(missing, ", "),
                 facts.host.systemd ? "as root: systemctl edit user@.service, with [Service] "
                                      "Delegate=cpu cpuset io memory pids"
                                    : "enable them in cgroup.subtree_control above, as root");
}

Finding policy(const Facts& facts) {
  const HostFacts& host = facts.host;
  if (host.policy_error) {
    return problem(
        to_line({host.policy_error->kind,
                 host.policy_error->sys_errno,
                 host.policy_error->what,
                 {},
                 host.policy_error->context,
                 host.policy_error->where}),
        host.policy_error->hint.empty() ? "berth policy apply, as root" : host.policy_error->hint);
  }
  if (host.policy_outdated) {
    return warning("policy.toml was changed but not applied", "berth policy apply, as root");
  }
  return ok(host.policy_source.empty() ? "none: defaults are in force"
                                       : "in force: " + quote(host.policy_source));
}

Finding network(const Facts& facts) {
  const HostFacts& host = facts.host;
  if (host.network.empty()) return not_applicable("the default network is not known");
  if (!host.no_network) return ok("containers have '" + host.network + "' by default");
  Error error = *host.no_network;
  error.hint.clear();
  return problem("containers cannot have '" + host.network + "', the default: " + to_line(error),
                 host.no_network->hint);
}

constexpr std::array kHostChecks = {
    Check{"host.identity", identity}, Check{"host.programs", programs},
    Check{"host.kernel", kernel},     Check{"host.user-namespace", user_namespace},
    Check{"host.procfs", procfs},     Check{"host.subordinate-ids", subordinate_ids},
    Check{"host.overlay", overlay},   Check{"host.layer-images", layer_images},
    Check{"host.cgroups", cgroups},   Check{"host.policy", policy},
    Check{"host.network", network},
};

}  // namespace

std::span<const Check> host_checks() {
  return kHostChecks;
}

}  // namespace berth::doctor
