// SPDX-License-Identifier: Apache-2.0
#include "engine/decide/spec.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "oci/config.hpp"
#include "oci/edit.hpp"

namespace berth::engine {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Not;

class MakeSpec : public testing::Test {
 protected:
  oci::Spec make() {
    SpecInputs inputs{
        request_, identity_, "f00d", "/store/containers/f00d", {"/top", "/bottom"}, "box", user_,
        {"sh"},   {"A=1"},   "/work"};
    inputs.store = "/store";
    inputs.in_job = in_job_;
    inputs.ulimits = ulimits_;
    inputs.confinement = *confine(request_.security, {});
    return make_spec(inputs);
  }
  static const oci::Mount* find(const oci::Spec& spec, std::string_view destination) {
    for (const oci::Mount& mount : spec.mounts) {
      if (mount.destination == destination) return &mount;
    }
    return nullptr;
  }
  static std::vector<std::string> namespaces(const oci::Spec& spec) {
    std::vector<std::string> types;
    for (const auto& space : spec.linux_.namespaces) types.push_back(space.type);
    return types;
  }

  RunRequest request_;
  Identity identity_ = Identity::root;
  oci::ContainerUser user_;
  bool in_job_ = false;
  std::vector<Ulimit> ulimits_;
};

TEST_F(MakeSpec, mounts_the_layers_first_highest_first) {
  oci::Spec spec = make();
  ASSERT_FALSE(spec.mounts.empty());
  EXPECT_EQ(spec.mounts[0].destination, "/");
  EXPECT_EQ(spec.mounts[0].type, "overlay");
  EXPECT_EQ(find(spec, "/etc/hosts")->source, "/store/containers/f00d/hosts");
  EXPECT_THAT(spec.mounts[0].options, ElementsAre("lowerdir+=/top", "lowerdir+=/bottom",
                                                  "upperdir=/store/containers/f00d/upper",
                                                  "workdir=/store/containers/f00d/work"));
}

TEST_F(MakeSpec, reads_overlay_marks_of_the_user_in_a_user_namespace) {
  identity_ = Identity::mapped;
  EXPECT_THAT(make().mounts[0].options, Contains("userxattr"));
}

TEST_F(MakeSpec, gives_no_terminal_group_and_no_groups_to_a_single_id) {
  identity_ = Identity::single;
  user_.additional_gids = {44};
  oci::Spec spec = make();
  EXPECT_THAT(find(spec, "/dev/pts")->options, Not(Contains("gid=5")));
  EXPECT_THAT(spec.process->user.additional_gids, IsEmpty());
  identity_ = Identity::mapped;
  spec = make();
  EXPECT_THAT(find(spec, "/dev/pts")->options, Contains("gid=5"));
  EXPECT_THAT(spec.process->user.additional_gids, ElementsAre(44));
}

TEST_F(MakeSpec, shares_the_hosts_network_only_when_asked) {
  EXPECT_THAT(namespaces(make()), Contains("network"));
  request_.network = Network::host;
  EXPECT_THAT(namespaces(make()), Not(Contains("network")));
  EXPECT_EQ(find(make(), "/sys")->type, "sysfs");
  identity_ = Identity::mapped;
  EXPECT_EQ(find(make(), "/sys")->type, "bind");
  EXPECT_THAT(find(make(), "/sys")->options, Contains("rro"));
}

TEST_F(MakeSpec, lets_a_volume_take_the_place_of_a_default_mount) {
  request_.volumes = {{"/my/hosts", "/etc/hosts", true, "rprivate"}};
  oci::Spec spec = make();
  auto count = std::count_if(spec.mounts.begin(), spec.mounts.end(), [](const oci::Mount& mount) {
    return mount.destination == "/etc/hosts";
  });
  EXPECT_EQ(count, 1);
  EXPECT_EQ(find(spec, "/etc/hosts")->source, "/my/hosts");
  EXPECT_THAT(find(spec, "/etc/hosts")->options, ElementsAre("rbind", "rprivate", "ro"));
}

TEST_F(MakeSpec, mounts_parents_before_what_lies_below_them) {
  request_.volumes = {{"/b", "/mnt/a/b", false, "rprivate"}, {"/a", "/mnt", false, "rprivate"}};
  request_.tmpfs = {{"/mnt/a", {"size=1m"}}};
  oci::Spec spec = make();
  std::vector<std::string> last;
  for (const oci::Mount& mount : spec.mounts) {
    if (mount.destination.starts_with("/mnt")) last.push_back(mount.destination);
  }
  EXPECT_THAT(last, ElementsAre("/mnt", "/mnt/a", "/mnt/a/b"));
  EXPECT_THAT(find(spec, "/mnt/a")->options, ElementsAre("nosuid", "nodev", "noexec", "size=1m"));
}

TEST_F(MakeSpec, lays_its_own_files_over_a_volume_at_etc) {
  request_.volumes = {{.destination = "/etc", .name = "settings"}};
  oci::Spec spec = make();
  auto place = [&](std::string_view destination) {
    return std::find_if(spec.mounts.begin(), spec.mounts.end(),
                        [&](const oci::Mount& mount) { return mount.destination == destination; });
  };
  EXPECT_EQ(place("/etc")->source, "/store/volumes/settings/_data");
  EXPECT_LT(place("/etc"), place("/etc/hosts"));
}

TEST_F(MakeSpec, gives_fourteen_capabilities_to_root_and_only_bounds_others) {
  oci::Spec spec = make();
  EXPECT_EQ(spec.process->capabilities->bounding.size(), 14U);
  EXPECT_EQ(spec.process->capabilities->effective.size(), 14U);
  EXPECT_THAT(spec.process->capabilities->inheritable, IsEmpty());
  EXPECT_THAT(spec.process->capabilities->ambient, IsEmpty());
  user_.uid = 1000;
  spec = make();
  EXPECT_EQ(spec.process->capabilities->bounding.size(), 14U);
  EXPECT_THAT(spec.process->capabilities->effective, IsEmpty());
  EXPECT_THAT(spec.process->capabilities->permitted, IsEmpty());
}

TEST_F(MakeSpec, turns_limits_into_resources) {
  request_.limits.memory_bytes = 1 << 20;
  request_.limits.cpu_millis = 1500;
  request_.limits.pids = 7;
  oci::Resources resources = *make().linux_.resources;
  EXPECT_EQ(resources.memory->limit, 1 << 20);
  EXPECT_EQ(resources.memory->swap, 2 << 20);
  EXPECT_EQ(resources.cpu->quota, 150'000);
  EXPECT_EQ(resources.cpu->period, 100'000U);
  EXPECT_EQ(resources.pids->limit, 7);
}

TEST_F(MakeSpec, bounds_swap_but_in_a_users_batch_job_where_the_site_limits_no_memory) {
  identity_ = Identity::mapped;
  request_.limits.memory_bytes = 1 << 20;
  EXPECT_EQ(make().linux_.resources->memory->swap, 2 << 20);
  in_job_ = true;
  EXPECT_FALSE(make().linux_.resources->memory->swap);
  request_.site.most.memory_bytes = 1 << 20;
  EXPECT_EQ(make().linux_.resources->memory->swap, 2 << 20);
}

TEST_F(MakeSpec, takes_zero_for_no_limit) {
  request_.limits.memory_bytes = 0;
  request_.limits.cpu_millis = 0;
  request_.limits.pids = 0;
  oci::Resources resources = *make().linux_.resources;
  EXPECT_FALSE(resources.memory || resources.cpu || resources.pids);
}

TEST_F(MakeSpec, gives_shared_memory_its_size) {
  EXPECT_THAT(find(make(), "/dev/shm")->options, Contains("size=67108864"));
  request_.shm_bytes = 1 << 20;
  EXPECT_THAT(find(make(), "/dev/shm")->options, Contains("size=1048576"));
}

TEST_F(MakeSpec, protects_the_files_of_etc_with_the_root) {
  for (const char* file : {"/etc/hosts", "/etc/hostname", "/etc/resolv.conf"}) {
    request_.read_only = false;
    EXPECT_THAT(find(make(), file)->options, Not(Contains("ro"))) << file;
    request_.read_only = true;
    EXPECT_THAT(find(make(), file)->options, Contains("ro")) << file;
  }
}

TEST_F(MakeSpec, denies_devices_before_it_allows_some_and_only_as_root) {
  auto rules = make().linux_.resources->devices;
  ASSERT_FALSE(rules.empty());
  EXPECT_FALSE(rules[0].allow);
  EXPECT_EQ(rules[0].access, "rwm");
  for (size_t i = 1; i < rules.size(); ++i) EXPECT_TRUE(rules[i].allow);
  identity_ = Identity::single;
  EXPECT_THAT(make().linux_.resources->devices, IsEmpty());
}

TEST_F(MakeSpec, starts_from_the_callers_cgroup_without_root) {
  EXPECT_EQ(make().linux_.cgroups_path, "/berth-f00d");
  identity_ = Identity::mapped;
  EXPECT_EQ(make().linux_.cgroups_path, "berth-f00d");
}

TEST_F(MakeSpec, keeps_to_the_cgroups_of_a_batch_job) {
  auto is_kept = [](const oci::Spec& spec) {
    return spec.annotations.contains(std::string(oci::kCallersCgroupAnnotation));
  };
  EXPECT_FALSE(is_kept(make()));
  in_job_ = true;
  EXPECT_EQ(make().linux_.cgroups_path, "berth-f00d");
  EXPECT_TRUE(is_kept(make()));
  request_.cgroup_parent = "/jobs/7";
  EXPECT_EQ(make().linux_.cgroups_path, "/jobs/7/berth-f00d");
  EXPECT_FALSE(is_kept(make()));
}

TEST_F(MakeSpec, protects_the_host_by_default) {
  oci::Spec spec = make();
  EXPECT_THAT(spec.linux_.masked_paths, Contains("/proc/kcore"));
  EXPECT_THAT(spec.linux_.readonly_paths, Contains("/proc/sys"));
  ASSERT_TRUE(spec.linux_.seccomp);
  EXPECT_EQ(spec.linux_.seccomp->default_action, "SCMP_ACT_ERRNO");
  EXPECT_FALSE(spec.root.readonly);
  request_.read_only = true;
  EXPECT_TRUE(make().root.readonly);
}

TEST_F(MakeSpec, survives_being_written_and_read) {
  request_.volumes = {{"/a", "/mnt", true, "rslave"}};
  std::string text = oci::write_spec(make());
  auto read = oci::parse_spec(text);
  ASSERT_TRUE(read.ok()) << to_line(read.error());
  EXPECT_EQ(oci::write_spec(*read), text);
}

TEST_F(MakeSpec, gives_limits_of_processes_and_the_last_of_two) {
  ulimits_ = {{"nofile", 1, 2}, {"core", -1, -1}, {"nofile", 3, 4}};
  auto limits = make().process->rlimits;
  ASSERT_EQ(limits.size(), 2U);
  EXPECT_EQ(limits[0].type, "RLIMIT_CORE");
  EXPECT_EQ(limits[0].soft, UINT64_MAX);
  EXPECT_EQ(limits[1].type, "RLIMIT_NOFILE");
  EXPECT_EQ(limits[1].hard, 4U);
}

TEST_F(MakeSpec, shares_or_joins_a_namespace_only_when_asked) {
  request_.pid.kind = NamespaceMode::Kind::host;
  request_.uts.kind = NamespaceMode::Kind::host;
  EXPECT_THAT(namespaces(make()), ElementsAre("ipc", "mount", "cgroup", "network"));
  EXPECT_EQ(make().hostname, "");
  EXPECT_EQ(find(make(), "/proc")->type, "proc");
  // The kernel gives a new procfs only to the owner of the pid namespace.
  identity_ = Identity::mapped;
  EXPECT_EQ(find(make(), "/proc")->type, "bind");
}

TEST_F(MakeSpec, takes_the_hosts_shared_memory_with_its_ipc) {
  request_.ipc.kind = NamespaceMode::Kind::host;
  EXPECT_EQ(find(make(), "/dev/shm")->source, "/dev/shm");
  EXPECT_EQ(find(make(), "/dev/mqueue")->source, "/dev/mqueue");
  request_.ipc.kind = NamespaceMode::Kind::none;
  EXPECT_EQ(find(make(), "/dev/shm"), nullptr);
  EXPECT_THAT(namespaces(make()), Contains("ipc"));
}

TEST_F(MakeSpec, hides_nothing_from_the_privileged) {
  request_.security.privileged = true;
  oci::Spec spec = make();
  EXPECT_FALSE(spec.linux_.seccomp);
  EXPECT_THAT(spec.linux_.masked_paths, IsEmpty());
  EXPECT_THAT(spec.linux_.readonly_paths, IsEmpty());
  EXPECT_THAT(find(spec, "/sys")->options, Not(Contains("ro")));
  ASSERT_EQ(spec.linux_.resources->devices.size(), 1U);
  EXPECT_TRUE(spec.linux_.resources->devices[0].allow);
}

TEST_F(MakeSpec, puts_the_cgroup_below_the_parent) {
  request_.cgroup_parent = "/jobs/7/";
  EXPECT_EQ(make().linux_.cgroups_path, "/jobs/7/berth-f00d");
  request_.cgroup_parent = "jobs";
  EXPECT_EQ(make().linux_.cgroups_path, "/jobs/berth-f00d");
  identity_ = Identity::single;
  EXPECT_EQ(make().linux_.cgroups_path, "jobs/berth-f00d");
}

TEST_F(MakeSpec, lets_all_groups_ping_in_an_own_network) {
  EXPECT_EQ(make().linux_.sysctl.at("net.ipv4.ping_group_range"), "0 2147483647");
}

TEST_F(MakeSpec, leaves_the_ports_of_anothers_network_as_they_are) {
  EXPECT_TRUE(make().linux_.sysctl.contains("net.ipv4.ip_unprivileged_port_start"));
  request_.network = Network::container;
  EXPECT_TRUE(make().linux_.sysctl.empty());
  request_.network = Network::none;
  request_.sysctl = {{"net.ipv4.ip_unprivileged_port_start", "1024"}};
  EXPECT_EQ(make().linux_.sysctl.at("net.ipv4.ip_unprivileged_port_start"), "1024");
}

}  // namespace
}  // namespace berth::engine
