// SPDX-License-Identifier: Apache-2.0
#include "doctor/gather.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <iterator>

#include "base/text.hpp"
#include "gpu/inventory/driver_root.hpp"
#include "json/fields.hpp"
#include "policy/policy.hpp"
#include "sys/file/file.hpp"
#include "sys/file/remove_tree.hpp"
#include "sys/mount/layer.hpp"
#include "sys/mount/mount.hpp"
#include "sys/mount/overlay.hpp"
#include "sys/process/process.hpp"
#include "sys/process/program.hpp"
#include "sys/user/identity.hpp"
#include "sys/user/user_namespace.hpp"

namespace berth::doctor {
namespace {

constexpr std::array kPrograms = {"berth-runtime", "berth-monitor",  "berth-holder",
                                  "berth-init",    "berth-hold",     "berth-transfer",
                                  "berth-mps",     "berth-cdi-hook", "berth-gpu-probe"};
constexpr std::array kParts = {"berth-hub", "berth-network", "berth-erofs", "berth-scope"};
// Programs that are linked dynamically; the others are static.
constexpr std::array kWithLibraries = {"berth-transfer", "berth-gpu-probe", "berth-hub",
                                       "berth-network", "berth-scope"};
constexpr size_t kSmallFile = size_t{64} << 10;

class Quiet final : public Log {
 public:
  void warn(const std::string& text) override { last = text; }
  void debug(const std::string&) override {}
  std::string last;
};

bool usable(const std::string& path, int mode) {
  return sys::check_access(sys::cwd(), path, mode).ok();
}

std::string read_small(const std::string& path) {
  auto text = sys::read_file_if_exists(sys::cwd(), path, kSmallFile);
  return text.ok() && *text ? std::string(trim(**text)) : std::string();
}

uint64_t subordinate_count(const std::vector<sys::IdRange>& ranges) {
  uint64_t count = 0;
  for (size_t i = 1; i < ranges.size(); ++i) count += ranges[i].count;  // the first is the user
  return count;
}

UserFacts gather_user() {
  UserFacts user;
  auto who = sys::identity();
  if (!who.ok()) return user;
  user.uid = who->uid;
  user.gid = who->gid;
  user.groups.assign(who->groups.begin(), who->groups.end());
  user.machine_root = who->effective_uid == 0 && who->initial_user_namespace;
  user.inside_namespace = who->effective_uid == 0 && !who->initial_user_namespace;
  if (who->effective_uid == 0) return user;
  user.name = sys::user_name(who->uid);
  auto mapping = sys::plan_mapping(who->uid, who->gid, user.name);
  if (mapping.ok()) {
    user.subordinate_uids = subordinate_count(mapping->uids);
    user.subordinate_gids = subordinate_count(mapping->gids);
  }
  user.map_tools = usable("/usr/bin/newuidmap", X_OK) && usable("/usr/bin/newgidmap", X_OK);
  return user;
}

std::string parent_of(const std::string& path) {
  size_t slash = path.rfind('/');
  return slash == 0 || slash == std::string::npos ? "/" : path.substr(0, slash);
}

Place gather_place(const std::string& path) {
  Place place;
  place.path = path;
  place.existing = path;
  while (place.existing != "/" && !usable(place.existing, F_OK)) {
    place.existing = parent_of(place.existing);
  }
  auto info = sys::file_system_of(place.existing);
  if (info.ok()) place.file_system = *info;
  auto access = sys::check_access(sys::cwd(), place.existing, W_OK | X_OK);
  if (!access.ok()) place.unusable = access.error();
  return place;
}

CgroupFacts gather_cgroups(uid_t uid) {
  CgroupFacts cgroups;
  auto at = sys::file_system_of("/sys/fs/cgroup");
  if (!at.ok()) return cgroups;
  cgroups.unified = at->type == CGROUP2_SUPER_MAGIC;
  cgroups.mounted = cgroups.unified || at->type == TMPFS_MAGIC;
  std::string base = cgroups.unified ? "/sys/fs/cgroup" : "/sys/fs/cgroup/unified";
  std::string own = read_small("/proc/self/cgroup");
  for (std::string_view line : split(own, '\n')) {
    if (line.starts_with("0::")) cgroups.own = line.substr(3);
  }
  std::string place = base + cgroups.own;
  std::string controllers = read_small(place + "/cgroup.controllers");
  for (std::string_view word : split_blank(controllers)) {
    cgroups.controllers.emplace_back(word);
  }
  cgroups.writable = usable(place, W_OK) && usable(place + "/cgroup.procs", W_OK);
  if (cgroups.writable || !cgroups.unified) return cgroups;
  std::string number = std::to_string(uid);
  std::string manager = base + "/user.slice/user-" + number + ".slice/user@" + number + ".service";
  cgroups.manager = usable(manager, W_OK);
  if (!cgroups.manager) return cgroups;
  cgroups.controllers.clear();
  std::string handed = read_small(manager + "/cgroup.controllers");
  for (std::string_view word : split_blank(handed)) cgroups.controllers.emplace_back(word);
  return cgroups;
}

void gather_policy(const std::string& config_dir, HostFacts& host) {
  auto compiled = policy::read_compiled(config_dir);
  if (!compiled.ok()) {
    host.policy_error = compiled.error();
    return;
  }
  host.policy_source = compiled->source;
  auto written = sys::stat_entry(sys::cwd(), config_dir + "/policy.toml");
  auto in_force = sys::stat_entry(sys::cwd(), config_dir + "/" + policy::kCompiledName);
  if (!written.ok() || !*written) return;
  host.policy_outdated =
      !in_force.ok() || !*in_force || (*in_force)->st_mtim.tv_sec < (*written)->st_mtim.tv_sec;
}

Result<void> try_overlay(const std::string& parent, bool user_xattr) {
  sys::Fd directory = TRY(sys::open_at(sys::cwd(), parent, O_RDONLY | O_DIRECTORY));
  sys::TempDir place = TRY(sys::TempDir::make(directory, "doctor-"));
  return sys::try_overlay(place.fd(), user_xattr);
}

void try_namespace(HostFacts& host) {
  auto mapping = sys::plan_mapping(host.user.uid, host.user.gid, host.user.name);
  if (!mapping.ok()) {
    host.user_namespace.failure = mapping.error();
    return;
  }
  Quiet log;
  auto entered = sys::enter_user_namespace(*mapping, log);
  host.user_namespace.note = log.last;
  if (!entered.ok()) {
    host.user_namespace.failure = entered.error();
    return;
  }
  host.user_namespace.worked = true;
  host.all_ids = *entered == sys::UserNamespaceKind::mapped;
}

}  // namespace

HostFacts gather_host(const Inputs& inputs) {
  HostFacts host;
  host.kernel = read_small("/proc/sys/kernel/osrelease");
  host.user = gather_user();
  host.all_ids = host.user.machine_root || (host.user.subordinate_uids > 0 &&
                                            host.user.subordinate_gids > 0 && host.user.map_tools);
  host.no_home = inputs.no_home;
  host.network = inputs.network;
  host.no_network = inputs.no_network;
  if (!host.no_home) {
    host.root = gather_place(inputs.root);
    host.state = gather_place(inputs.state);
  }
  host.program_directory = inputs.libexec;
  auto missing = [&](const char* name) { return !usable(inputs.libexec + "/" + name, X_OK); };
  std::ranges::copy_if(kPrograms, std::back_inserter(host.missing_programs), missing);
  std::ranges::copy_if(kParts, std::back_inserter(host.missing_parts), missing);
  for (const char* name : kWithLibraries) {
    if (!host.unfit_program.empty()) break;
    host.unfit_program = sys::loader_complaint(inputs.libexec + "/" + name);
  }
  host.cgroups = gather_cgroups(host.user.uid);
  host.os_release = read_small("/etc/os-release");
  host.seccomp = usable("/proc/sys/kernel/seccomp/actions_avail", F_OK);
  host.job = inputs.job;
  auto images = sys::check_erofs();
  if (images.ok()) host.layer_images = *images;
  if (!images.ok()) host.no_layer_images = images.error();
  gather_policy(inputs.config_dir, host);
  return host;
}

void try_out(const Inputs& inputs, HostFacts& host) {
  bool ordinary = !host.user.machine_root && !host.user.inside_namespace;
  if (ordinary) try_namespace(host);
  if (host.user_namespace.failure || inputs.no_home || host.root.unusable) return;
  if (ordinary) {
    auto procfs = sys::try_procfs();
    host.procfs.worked = procfs.ok();
    if (!procfs.ok()) host.procfs.failure = procfs.error();
  }
  auto mounted = try_overlay(host.root.existing, !host.user.machine_root);
  host.overlay.worked = mounted.ok();
  if (mounted.ok()) return;
  host.overlay.failure = mounted.error();
  host.fuse_overlay = sys::check_fuse_overlay().ok();
}

Facts gather(const Inputs& inputs) {
  Facts facts;
  facts.host = gather_host(inputs);
  // A synthetic tree stands for a machine, including its init.
  if (auto root = gpu::DriverRoot::open(inputs.driver_root); root.ok()) {
    facts.host.systemd = root->stat_machine("/run/systemd/system").has_value();
    auto enforcing = root->read_machine("/sys/fs/selinux/enforce");
    facts.host.selinux_enforcing = enforcing.ok() && *enforcing && trim(**enforcing) == "1";
  }
  facts.gpu = gather_gpu(inputs);
  if (inputs.scope == Scope::everything) try_out(inputs, facts.host);
  return facts;
}

}  // namespace berth::doctor
