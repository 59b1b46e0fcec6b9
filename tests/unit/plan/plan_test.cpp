// SPDX-License-Identifier: Apache-2.0
#include "plan/plan.hpp"

#include <gtest/gtest.h>
#include <linux/mount.h>
#include <sys/resource.h>

#include <algorithm>

namespace berth::plan {
namespace {

const Container kContainer{"c1", "/bundle", false};

oci::Spec base() {
  oci::Spec spec;
  spec.root.path = "rootfs";
  spec.process.emplace();
  spec.process->args = {"sh"};
  spec.process->env = {"PATH=/bin"};
  spec.process->cwd = "/";
  spec.linux_.namespaces = {{"pid", ""}, {"mount", ""}, {"network", ""}, {"ipc", ""}, {"uts", ""}};
  return spec;
}

Plan plan_of(const oci::Spec& spec, const HostFacts& facts = {}, Container container = kContainer) {
  auto plan = make(spec, container, facts);
  EXPECT_TRUE(plan.ok()) << to_line(plan.error());
  return plan.ok() ? *plan : Plan{};
}

std::string error_of(const oci::Spec& spec, const HostFacts& facts = {}) {
  auto plan = make(spec, kContainer, facts);
  return plan.ok() ? "no error" : to_line(plan.error());
}

std::vector<std::string> texts(const Plan& plan) {
  std::vector<std::string> lines;
  for (const auto& step : plan.steps) lines.push_back(describe(step).text);
  return lines;
}

size_t position(const Plan& plan, std::string_view name) {
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    if (describe(plan.steps[i]).name == name) return i;
  }
  ADD_FAILURE() << "no step " << name;
  return 0;
}

TEST(Plan, makes_the_links_of_annotations_after_the_mounts_and_before_the_root_is_entered) {
  oci::Spec spec = base();
  spec.annotations = {{"dev.berth.link:/opt//a/../b", "target"}, {"dev.berth.link", "no path"}};
  Plan plan = plan_of(spec);
  const auto* link = find<ReplaceLink>(plan);
  ASSERT_NE(link, nullptr);
  EXPECT_EQ(link->path, "/opt/b");
  EXPECT_EQ(link->text, "target");
  EXPECT_LT(position(plan, "bind_root"), position(plan, "replace_link"));
  EXPECT_LT(position(plan, "make_node"), position(plan, "replace_link"));
  EXPECT_LT(position(plan, "replace_link"), position(plan, "enter_root"));
}

TEST(Plan, ignores_a_link_that_is_none_of_the_root) {
  for (const char* path : {"", "/", "rel", "/a/", "/proc/x", "/a/../sys/x", "/.."}) {
    oci::Spec spec = base();
    spec.annotations[std::string("dev.berth.link:") + path] = "target";
    Plan plan = plan_of(spec);
    EXPECT_EQ(find<ReplaceLink>(plan), nullptr) << path;
    ASSERT_EQ(plan.warnings.size(), 1U) << path;
    EXPECT_TRUE(plan.warnings[0].ends_with("ignoring"));
  }
}

TEST(Plan,
     reads_what_the_image_holds_when_the_rights_are_gone_and_before_it_looks_for_the_program) {
  oci::Spec spec = base();
  spec.process->no_new_privileges = true;
  spec.linux_.seccomp.emplace();
  spec.annotations["dev.berth.loader-cache"] = "libcuda.so.1\t/n/libcuda.so.1\t771\nbroken\n";
  Plan plan = plan_of(spec);
  ASSERT_EQ(find<FillLoaderFiles>(plan)->entries.size(), 1U);
  EXPECT_LT(position(plan, "place_loader_files"), position(plan, "enter_root"));
  EXPECT_LT(position(plan, "set_identity"), position(plan, "fill_loader_files"));
  EXPECT_LT(position(plan, "set_capabilities"), position(plan, "fill_loader_files"));
  EXPECT_LT(position(plan, "fill_loader_files"), position(plan, "load_seccomp"));
  EXPECT_LT(position(plan, "fill_loader_files"), position(plan, "find_program"));
  EXPECT_EQ(find<FillLoaderFiles>(*make_exec(spec, {}, {})), nullptr);
}

TEST(Plan, keeps_the_groups_of_root_for_the_engine_alone_and_a_users_for_the_annotation) {
  oci::Spec spec = base();
  spec.process->user.additional_gids = {7};
  for (const char* word : {"", "0", "yes"}) {
    spec.annotations["run.oci.keep_original_groups"] = word;
    Plan plan = plan_of(spec);
    EXPECT_FALSE(find<SetIdentity>(plan)->keep_groups) << word;
    EXPECT_EQ(find<SetIdentity>(plan)->groups, std::vector<uint32_t>{7}) << word;
  }
  spec.annotations["run.oci.keep_original_groups"] = "1";
  EXPECT_FALSE(find<SetIdentity>(plan_of(spec))->keep_groups);
  EXPECT_FALSE(find<SetIdentity>(*make_exec(spec, {}, {}))->keep_groups);
  HostFacts of_user;
  of_user.user_namespace = true;
  EXPECT_TRUE(find<SetIdentity>(plan_of(spec, of_user))->keep_groups);
  Container ours = kContainer;
  ours.of_engine = true;
  Plan plan = plan_of(spec, {}, ours);
  EXPECT_TRUE(find<SetIdentity>(plan)->keep_groups);
  EXPECT_TRUE(find<SetIdentity>(plan)->groups.empty());
  EXPECT_TRUE(find<SetIdentity>(*make_exec(spec, ours, {}))->keep_groups);
}

TEST(Plan, prefers_a_place_for_the_first_process_and_for_those_of_exec) {
  oci::Spec spec = base();
  spec.annotations = {{"dev.berth.processors", "4-6,9"}, {"dev.berth.memory-nodes", "1"}};
  spec.process->exec_cpu_affinity = oci::ExecCpuAffinity{"", "5"};
  spec.linux_.memory_policy = oci::MemoryPolicy{"MPOL_BIND", "0", {}};
  Plan first = plan_of(spec);
  ASSERT_NE(find<PreferPlace>(first), nullptr);
  EXPECT_EQ(find<PreferPlace>(first)->processors, (std::vector<unsigned>{4, 5, 6, 9}));
  EXPECT_EQ(find<PreferPlace>(first)->memory_nodes, std::vector<unsigned>{1});
  EXPECT_EQ(find<SetAffinity>(first), nullptr) << "the member is for exec";
  Plan later = *make_exec(spec, {}, {});
  // The last one counts.
  EXPECT_LT(position(later, "prefer_place"), position(later, "set_affinity"));
  EXPECT_LT(position(later, "prefer_place"), position(later, "set_memory_policy"));
}

TEST(Plan, gives_back_the_processors_that_a_foreign_engine_keeps_for_itself) {
  oci::Spec spec = base();
  Container ours = kContainer;
  ours.of_engine = true;
  EXPECT_EQ(find<ResetAffinity>(plan_of(spec)), nullptr) << "it stays in its caller's cgroup";
  spec.linux_.cgroups_path = "berth-c1";
  EXPECT_EQ(find<ResetAffinity>(plan_of(spec)), nullptr) << "so does this one";
  spec.linux_.cgroups_path = "system.slice:docker:c1";
  EXPECT_NE(find<ResetAffinity>(plan_of(spec)), nullptr);
  spec.linux_.cgroups_path = "/docker/c1";
  EXPECT_NE(find<ResetAffinity>(plan_of(spec)), nullptr);
  EXPECT_NE(find<ResetAffinity>(*make_exec(spec, kContainer, {})), nullptr);
  EXPECT_EQ(find<ResetAffinity>(plan_of(spec, {}, ours)), nullptr);
  EXPECT_EQ(find<ResetAffinity>(*make_exec(spec, ours, {})), nullptr);
  spec.process->exec_cpu_affinity = oci::ExecCpuAffinity{"", ""};
  EXPECT_NE(find<ResetAffinity>(*make_exec(spec, kContainer, {})), nullptr);
  spec.process->exec_cpu_affinity = oci::ExecCpuAffinity{"0", ""};
  EXPECT_EQ(find<ResetAffinity>(*make_exec(spec, kContainer, {})), nullptr);
  EXPECT_NE(find<ResetAffinity>(plan_of(spec)), nullptr) << "the member is for exec";
  spec.annotations = {{"dev.berth.processors", "0"}};
  EXPECT_EQ(find<ResetAffinity>(plan_of(spec)), nullptr);
}

TEST(Plan, runs_on_all_of_a_cpuset_that_is_asked_for) {
  oci::Spec spec = base();
  Container ours = kContainer;
  ours.of_engine = true;
  spec.linux_.resources.emplace().cpu.emplace().cpus = "2-3";
  for (const Container& one : {kContainer, ours}) {
    Plan plan = plan_of(spec, {}, one);
    ASSERT_NE(find<PreferPlace>(plan), nullptr);
    EXPECT_EQ(find<PreferPlace>(plan)->processors, (std::vector<unsigned>{2, 3}));
    EXPECT_EQ(find<ResetAffinity>(plan), nullptr);
  }
  spec.linux_.resources->cpu->cpus = "all of them";
  EXPECT_EQ(find<PreferPlace>(plan_of(spec, {}, ours)), nullptr) << "the cgroup says what is wrong";
}

TEST(Plan, passes_over_a_place_that_it_cannot_read) {
  oci::Spec spec = base();
  spec.annotations = {{"dev.berth.processors", "0-"}, {"dev.berth.memory-nodes", "0"}};
  Plan plan = plan_of(spec);
  ASSERT_NE(find<PreferPlace>(plan), nullptr);
  EXPECT_TRUE(find<PreferPlace>(plan)->processors.empty());
  EXPECT_EQ(plan.warnings,
            std::vector<std::string>{
                "annotations: 'dev.berth.processors': no list of numbers, ignoring"});
  EXPECT_EQ(texts(plan)[position(plan, "prefer_place")], "prefer to take memory of nodes 0");
  EXPECT_EQ(find<PreferPlace>(plan_of(base())), nullptr);
}

TEST(Plan, without_a_mount_namespace_neither_links_nor_covers_anything) {
  oci::Spec spec = base();
  std::erase_if(spec.linux_.namespaces, [](const auto& space) { return space.type == "mount"; });
  spec.annotations = {{"dev.berth.link:/a", "b"},
                      {"dev.berth.loader-cache", "libcuda.so.1\t/n/libcuda.so.1\t771\n"}};
  Plan plan = plan_of(spec);
  EXPECT_EQ(find<ReplaceLink>(plan), nullptr);
  EXPECT_EQ(find<PlaceLoaderFiles>(plan), nullptr);
  EXPECT_EQ(find<FillLoaderFiles>(plan), nullptr);
}

TEST(Plan, of_a_small_config_is_these_steps_in_this_order) {
  oci::Spec spec = base();
  spec.hostname = "h";
  spec.mounts = {{"/proc", "proc", "proc", {"nosuid", "nodev", "noexec"}},
                 {"/data", "", "/srv/data", {"rbind", "ro", "rprivate"}}};
  spec.linux_.masked_paths = {"/proc//./kcore"};
  spec.linux_.readonly_paths = {"/sys/../proc/sys"};
  spec.process->no_new_privileges = true;
  spec.process->oom_score_adj = 7;
  spec.root.readonly = true;
  EXPECT_EQ(texts(plan_of(spec)),
            (std::vector<std::string>{
                "make cgroup '/berth-c1'",
                "set the out-of-memory score to 7",
                "start a process in new namespaces: pid, mount, network, ipc, uts",
                "make a session keyring",
                "keep mounts from spreading to the host",
                "bring up the loopback interface",
                "set host name 'h'",
                "use '/bundle/rootfs' as the root",
                "mount proc at '/proc' (nosuid,nodev,noexec)",
                "bind '/srv/data' at '/data' (ro,rprivate)",
                "make device '/dev/null' (c 1:3, mode 0666)",
                "make device '/dev/zero' (c 1:5, mode 0666)",
                "make device '/dev/full' (c 1:7, mode 0666)",
                "make device '/dev/random' (c 1:8, mode 0666)",
                "make device '/dev/urandom' (c 1:9, mode 0666)",
                "make device '/dev/tty' (c 5:0, mode 0666)",
                "link '/dev/ptmx' to 'pts/ptmx'",
                "link '/dev/fd' to '/proc/self/fd'",
                "link '/dev/core' to '/proc/kcore'",
                "link '/dev/stdin' to '/proc/self/fd/0'",
                "link '/dev/stdout' to '/proc/self/fd/1'",
                "link '/dev/stderr' to '/proc/self/fd/2'",
                "make read-only /proc/sys",
                "hide /proc/kcore",
                "enter the root, read-only",
                "limit capabilities to none",
                "enter directory '/'",
                "become user 0:0",
                "keep capabilities: none",
                "set umask 0022",
                "forbid new privileges",
                "wait to be in the cgroup",
                "wait for limits, device rules and the seccomp filter",
                "find program 'sh'",
                "set HOME to that of user 0",
                "execute sh",
            }));
}

TEST(Plan, loads_the_filter_last_with_no_new_privs_and_before_the_rights_go_without) {
  oci::Spec spec = base();
  spec.linux_.seccomp.emplace();
  spec.linux_.seccomp->default_action = "SCMP_ACT_ALLOW";
  spec.process->no_new_privileges = true;
  Plan last = plan_of(spec);
  EXPECT_EQ(position(last, "load_seccomp") + 1, position(last, "execute"));
  spec.process->no_new_privileges = false;
  Plan early = plan_of(spec);
  EXPECT_LT(position(early, "load_seccomp"), position(early, "limit_capabilities"));
}

TEST(Plan, waits_for_start_only_when_asked) {
  EXPECT_EQ(find<AwaitStart>(plan_of(base())), nullptr);
  Plan waiting = plan_of(base(), {}, {"c1", "/bundle", true});
  EXPECT_LT(position(waiting, "find_program"), position(waiting, "await_start"));
}

TEST(Plan, waits_once_for_the_cgroup_before_what_needs_it) {
  oci::Spec spec = base();
  spec.linux_.namespaces.push_back({"cgroup", ""});
  spec.linux_.seccomp.emplace().default_action = "SCMP_ACT_ALLOW";
  spec.process->no_new_privileges = true;  // the filter is loaded last
  Plan plan = plan_of(spec);
  EXPECT_EQ(position(plan, "await_cgroup") + 1, position(plan, "enter_cgroup_namespace"));
  EXPECT_EQ(position(plan, "await_confinement") + 1, position(plan, "find_program"));
  auto count = std::count_if(plan.steps.begin(), plan.steps.end(), [](const Step& step) {
    return std::holds_alternative<AwaitCgroup>(step) ||
           std::holds_alternative<AwaitConfinement>(step);
  });
  EXPECT_EQ(count, 2);
}

TEST(Plan, makes_the_root_of_a_first_mount_at_the_root) {
  oci::Spec spec = base();
  spec.mounts = {{"/",
                  "overlay",
                  "overlay",
                  {"lowerdir+=/l/b", "lowerdir+=/l/a", "upperdir=/u", "workdir=/w", "userxattr"}}};
  Plan plan = plan_of(spec);
  const auto* root = find<MountOverlayRoot>(plan);
  ASSERT_NE(root, nullptr);
  EXPECT_EQ(root->target, "/bundle/rootfs");
  EXPECT_EQ(root->lower, (std::vector<std::string>{"/l/b", "/l/a"}));
  EXPECT_EQ(root->upper, "/u");
  EXPECT_EQ(root->options, (std::vector<std::string>{"userxattr"}));
  EXPECT_EQ(find<BindRoot>(plan), nullptr);
  spec.mounts.push_back(spec.mounts[0]);
  EXPECT_EQ(error_of(spec),
            "config.json: mounts[1].destination: '/' is for the first mount "
            "only");
}

TEST(Plan, binds_devices_where_nodes_cannot_be_made) {
  oci::Spec spec = base();
  spec.linux_.devices = {{"c", "/dev/gpu0", 195, 0}, {"c", "/dev/null", 1, 3}};
  spec.annotations["dev.berth.device-source:/dev/gpu0"] = "/driver/dev/gpu0";
  Plan plan = plan_of(spec, {.user_namespace = true});
  EXPECT_EQ(find<MakeNode>(plan), nullptr);
  std::vector<std::string> sources;
  for (const auto& step : plan.steps) {
    if (const auto* node = std::get_if<BindNode>(&step)) sources.push_back(node->source);
  }
  EXPECT_EQ(sources,
            (std::vector<std::string>{"/dev/zero", "/dev/full", "/dev/random", "/dev/urandom",
                                      "/dev/tty", "/driver/dev/gpu0", "/dev/null"}));
  const auto* made = find<MakeNode>(plan_of(spec));
  ASSERT_NE(made, nullptr);
}

TEST(Plan, makes_no_devices_in_a_dev_that_is_the_hosts) {
  oci::Spec spec = base();
  spec.mounts = {{"/dev", "bind", "/dev", {"rbind"}}};
  Plan plan = plan_of(spec);
  EXPECT_EQ(find<MakeNode>(plan), nullptr);
  EXPECT_EQ(find<MakeLink>(plan), nullptr);
}

TEST(Plan, leaves_out_the_tty_group_where_it_is_not_mapped) {
  oci::Spec spec = base();
  spec.mounts = {{"/dev/pts", "devpts", "devpts", {"newinstance", "gid=5", "mode=0620"}}};
  HostFacts facts{.user_namespace = true, .tty_group_mapped = false};
  Plan plan = plan_of(spec, facts);
  EXPECT_EQ(find<MountFilesystem>(plan)->data,
            (std::vector<std::string>{"newinstance", "mode=0620"}));
}

TEST(Plan, binds_the_hosts_sysfs_read_only_without_a_network_namespace_of_its_own) {
  oci::Spec spec = base();
  spec.mounts = {{"/sys", "sysfs", "sysfs", {"nosuid", "noexec", "nodev", "ro"}}};
  std::erase_if(spec.linux_.namespaces, [](const auto& space) { return space.type == "network"; });
  Plan plan = plan_of(spec, {.user_namespace = true});
  const auto* bind = find<MountBind>(plan);
  ASSERT_NE(bind, nullptr);
  EXPECT_EQ(bind->source, "/sys");
  EXPECT_TRUE(bind->recursive);
  EXPECT_TRUE(bind->attributes.recursive_set & MOUNT_ATTR_RDONLY);
  EXPECT_NE(find<MountFilesystem>(plan_of(spec)), nullptr);
}

TEST(Plan, mounts_the_kernels_file_systems_on_real_directories_only) {
  oci::Spec spec = base();
  spec.mounts = {{"/proc", "proc", "proc", {}}, {"/run", "tmpfs", "tmpfs", {}}};
  Plan plan = plan_of(spec);
  std::vector<bool> exact;
  for (const auto& step : plan.steps) {
    if (const auto* mount = std::get_if<MountFilesystem>(&step)) exact.push_back(mount->exact);
  }
  EXPECT_EQ(exact, (std::vector<bool>{true, false}));
}

TEST(Plan, lets_nothing_lie_over_procfs_but_what_no_one_believes) {
  oci::Spec spec = base();
  spec.mounts = {{"/proc/self/attr", "bind", "/x", {"bind"}}};
  EXPECT_EQ(error_of(spec),
            "config.json: mounts[0].destination: nothing may be mounted over procfs at "
            "'/proc/self/attr'");
  spec.mounts = {{"/sys/.././proc//self/", "tmpfs", "tmpfs", {}}};
  EXPECT_EQ(
      error_of(spec),
      "config.json: mounts[0].destination: nothing may be mounted over procfs at '/proc/self'");
  spec.mounts = {{"/proc/driver/nvidia/params", "bind", "/x", {"bind"}}};
  EXPECT_NE(find<MountBind>(plan_of(spec)), nullptr);
}

TEST(Plan, sets_only_sysctls_of_namespaces_that_are_new) {
  oci::Spec spec = base();
  spec.linux_.sysctl = {{"net.ipv4.ip_forward", "1"}, {"kernel.shmmax", "1"}};
  EXPECT_EQ(find<SetSysctl>(plan_of(spec))->key, "kernel.shmmax");
  spec.linux_.sysctl = {{"kernel.panic", "1"}};
  EXPECT_EQ(
      error_of(spec),
      "config.json: linux.sysctl: 'kernel.panic' does not belong to a namespace of the container");
  spec.linux_.sysctl = {{"net.ipv4/../../kernel/panic", "1"}};
  EXPECT_EQ(error_of(spec),
            "config.json: linux.sysctl: 'net.ipv4/../../kernel/panic' does not belong to a "
            "namespace of the container");
  spec.linux_.sysctl = {{"net.x", "1"}};
  std::erase_if(spec.linux_.namespaces, [](const auto& space) { return space.type == "network"; });
  EXPECT_EQ(error_of(spec),
            "config.json: linux.sysctl: 'net.x' does not belong to a namespace of the container");
}

TEST(Plan, warns_of_unknown_capabilities_and_goes_on) {
  oci::Spec spec = base();
  spec.process->capabilities.emplace();
  spec.process->capabilities->effective = {"CAP_KILL", "CAP_SING"};
  Plan plan = plan_of(spec);
  EXPECT_EQ(plan.warnings,
            (std::vector<std::string>{
                "process.capabilities.effective: unknown capability 'CAP_SING', ignoring"}));
  EXPECT_EQ(find<SetCapabilities>(plan)->effective, uint64_t{1} << 5);
}

TEST(Plan, refuses_a_config_that_contradicts_itself) {
  auto broken = [](auto change) {
    oci::Spec spec = base();
    change(spec);
    return error_of(spec);
  };
  EXPECT_EQ(broken([](auto& s) { s.process->args.clear(); }), "config.json: process.args: empty");
  EXPECT_EQ(broken([](auto& s) { s.process->cwd = "tmp"; }),
            "config.json: process.cwd: expected an absolute path, got 'tmp'");
  EXPECT_EQ(broken([](auto& s) {
              s.linux_.namespaces.push_back({"pid", ""});
            }),
            "config.json: linux.namespaces: 'pid' is given twice");
  EXPECT_EQ(broken([](auto& s) {
              s.linux_.namespaces.push_back({"moon", ""});
            }),
            "config.json: linux.namespaces: unknown type 'moon'");
  EXPECT_EQ(broken([](auto& s) { s.linux_.namespaces = {{"pid", ""}}; }), "no error");
  EXPECT_EQ(broken([](auto& s) {
              s.linux_.uid_mappings = {{0, 0, 1}};
            }),
            "config.json: linux.uidMappings: needs a user namespace");
  EXPECT_EQ(broken([](auto& s) {
              s.process->rlimits = {{"RLIMIT_LUCK", 1, 1}};
            }),
            "config.json: process.rlimits: unknown type 'RLIMIT_LUCK'");
  EXPECT_EQ(broken([](auto& s) {
              s.process->rlimits = {{"RLIMIT_NOFILE", 1, 1}, {"RLIMIT_NOFILE", 2, 2}};
            }),
            "config.json: process.rlimits: 'RLIMIT_NOFILE' is given twice");
  EXPECT_EQ(broken([](auto& s) { s.process->apparmor_profile = "x"; }),
            "config.json: process.apparmorProfile: AppArmor is not enabled on this machine");
  EXPECT_EQ(
      broken([](auto& s) {
        s.mounts = {{"/x", "bind", "/y", {"bind", "idmap"}}};
      }),
      "config.json: mounts[0].options: idmap needs uidMappings and gidMappings, of the mount or "
      "of linux");
  EXPECT_EQ(broken([](auto& s) {
              s.hooks.prestart = {{"hook", {}, {}, {}}};
            }),
            "config.json: hooks.prestart: expected an absolute path, got 'hook'");
  EXPECT_EQ(broken([](auto& s) {
              s.linux_.devices = {{"x", "/dev/x"}};
            }),
            "config.json: linux.devices: unknown type 'x'");
}

TEST(Plan, asks_for_no_cgroup_where_there_are_none) {
  oci::Spec spec = base();
  spec.mounts = {{"/sys/fs/cgroup", "cgroup", "cgroup", {"ro"}}};
  Plan plan = plan_of(spec, {.has_cgroups = false});
  EXPECT_EQ(find<MakeCgroup>(plan), nullptr);
  EXPECT_EQ(find<MountCgroups>(plan), nullptr);
  EXPECT_EQ(plan.warnings.size(), 1u);
}

TEST(Plan, enters_the_cgroup_namespace_before_its_cgroups_are_shown) {
  oci::Spec spec = base();
  spec.linux_.namespaces.push_back({"cgroup", ""});
  Plan without = plan_of(spec);
  EXPECT_LT(position(without, "enter_cgroup_namespace"), position(without, "enter_root"));
  spec.mounts = {{"/sys/fs/cgroup", "cgroup", "cgroup", {"ro"}}};
  Plan with = plan_of(spec);
  EXPECT_EQ(position(with, "enter_cgroup_namespace") + 1, position(with, "mount_cgroups"));
  EXPECT_EQ(std::count_if(with.steps.begin(), with.steps.end(),
                          [](const Step& step) {
                            return std::holds_alternative<EnterCgroupNamespace>(step);
                          }),
            1);
}

TEST(Plan, maps_the_ids_of_a_mount_by_its_own_maps_or_by_the_containers) {
  oci::Spec spec = base();
  spec.mounts = {{"/x", "bind", "/y", {"rbind", "ridmap"}, {{0, 1000, 1}}, {{0, 2000, 1}}}};
  Plan plan = plan_of(spec);
  const auto* own = find<MountBind>(plan);
  ASSERT_TRUE(own != nullptr && own->id_map.has_value());
  EXPECT_EQ(own->id_map->uids[0].host_id, 1000u);
  EXPECT_EQ(own->id_map->gids[0].host_id, 2000u);
  EXPECT_TRUE(own->id_map->recursive);

  spec.linux_.namespaces.push_back({"user", ""});
  spec.linux_.uid_mappings = spec.linux_.gid_mappings = {{0, 100000, 65536}};
  spec.mounts = {{"/x", "tmpfs", "tmpfs", {"idmap"}}};
  Plan second = plan_of(spec);
  const auto* containers = find<MountFilesystem>(second);
  ASSERT_TRUE(containers != nullptr && containers->id_map.has_value());
  EXPECT_EQ(containers->id_map->uids[0].host_id, 100000u);
  EXPECT_FALSE(containers->id_map->recursive);

  spec.linux_.uid_mappings.clear();
  spec.linux_.gid_mappings.clear();
  spec.linux_.namespaces.back().path = "/proc/1/ns/user";
  Plan third = plan_of(spec);
  EXPECT_EQ(find<MountFilesystem>(third)->id_map->user_namespace, "/proc/1/ns/user");
}

TEST(Plan, refuses_id_maps_and_copies_that_cannot_be) {
  oci::Spec spec = base();
  spec.mounts = {{"/x", "bind", "/y", {"bind"}, {{0, 1000, 1}}, {}}};
  EXPECT_EQ(error_of(spec),
            "config.json: mounts[0].uidMappings: uidMappings and gidMappings need each other");
  spec.mounts = {{"/x", "", "", {"remount", "bind", "idmap"}, {{0, 1, 1}}, {{0, 1, 1}}}};
  EXPECT_EQ(error_of(spec), "config.json: mounts[0].options: idmap is for a new mount");
  spec.mounts = {{"/x", "bind", "/y", {"bind", "tmpcopyup"}}};
  EXPECT_EQ(error_of(spec), "config.json: mounts[0].options: tmpcopyup is for a tmpfs");
}

TEST(Plan, makes_a_tmpfs_read_only_when_all_is_made_in_it) {
  oci::Spec spec = base();
  spec.mounts = {{"/dev", "tmpfs", "tmpfs", {"ro"}},
                 {"/a", "tmpfs", "tmpfs", {"ro"}},
                 {"/b", "tmpfs", "tmpfs", {"ro"}},
                 {"/b/c", "bind", "/y", {"bind"}}};
  Plan plan = plan_of(spec);
  std::vector<bool> at_once;
  std::vector<std::string> later;
  for (const auto& step : plan.steps) {
    if (const auto* mount = std::get_if<MountFilesystem>(&step)) {
      at_once.push_back(mount->attributes.set & MOUNT_ATTR_RDONLY);
    }
    if (const auto* change = std::get_if<ChangeMount>(&step)) later.push_back(change->target);
  }
  EXPECT_EQ(at_once, (std::vector<bool>{false, true, false}));
  EXPECT_EQ(later, (std::vector<std::string>{"/dev", "/b"}));
  EXPECT_LT(position(plan, "make_link"), position(plan, "change_mount"));
}

TEST(Plan, keeps_a_bind_a_peer_of_the_host_only_for_a_shared_root) {
  oci::Spec spec = base();
  spec.mounts = {{"/x", "bind", "/y", {"rbind", "rshared"}}};
  EXPECT_FALSE(find<MountBind>(plan_of(spec))->peer);
  spec.linux_.rootfs_propagation = "rshared";
  EXPECT_TRUE(find<MountBind>(plan_of(spec))->peer);
  spec.mounts[0].options = {"rbind", "rprivate"};
  EXPECT_FALSE(find<MountBind>(plan_of(spec))->peer);
  spec.mounts[0].options = {"rbind"};
  spec.linux_.namespaces.push_back({"user", ""});
  spec.linux_.uid_mappings = spec.linux_.gid_mappings = {{0, 0, 1}};
  EXPECT_FALSE(find<MountBind>(plan_of(spec))->peer);
}

TEST(Plan, moves_interfaces_before_a_sysctl_may_name_them) {
  oci::Spec spec = base();
  spec.linux_.net_devices = {{"eth0", {}}, {"eth1", {"lan%d"}}};
  spec.linux_.sysctl = {{"net.ipv4.conf.eth0.forwarding", "1"}};
  Plan plan = plan_of(spec);
  const auto* step = find<MoveInterfaces>(plan);
  ASSERT_NE(step, nullptr);
  EXPECT_EQ(step->interfaces[0].to, "eth0");
  EXPECT_EQ(step->interfaces[1].to, "lan%d");
  EXPECT_LT(position(plan, "move_interfaces"), position(plan, "set_sysctl"));
}

TEST(Plan, refuses_names_that_no_interface_can_have) {
  auto error_with = [](std::map<std::string, oci::NetDevice> devices) {
    oci::Spec spec = base();
    spec.linux_.net_devices = std::move(devices);
    return error_of(spec);
  };
  for (const char* name : {"", "a b", "a/b", "a:b", "..", "x%d", "sixteen-letters-"}) {
    EXPECT_EQ(error_with({{name, {}}}), "config.json: linux.netDevices: '" + std::string(name) +
                                            "' is not the name of an interface");
  }
  for (const char* name : {"a b", "..", "%s", "a%d%d", "a%", "sixteen-letters-"}) {
    EXPECT_EQ(error_with({{"eth0", {name}}}), "config.json: linux.netDevices.eth0.name: '" +
                                                  std::string(name) +
                                                  "' is not the name of an interface");
  }
  EXPECT_EQ(error_with({{"eth0", {"lan"}}, {"eth1", {"lan"}}}),
            "config.json: linux.netDevices.eth1.name: 'lan' is given twice");
  oci::Spec spec = base();
  spec.linux_.net_devices = {{"eth0", {}}};
  std::erase_if(spec.linux_.namespaces, [](const auto& space) { return space.type == "network"; });
  EXPECT_EQ(error_of(spec), "config.json: linux.netDevices: needs a network namespace");
}

}  // namespace
}  // namespace berth::plan
