// SPDX-License-Identifier: Apache-2.0
#include "engine/request/request.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text.hpp"
#include "engine/context/context.hpp"
#include "engine/request/environment.hpp"
#include "json/fields.hpp"

namespace berth::engine {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using ModeKind = NamespaceMode::Kind;

/// Takes down the names of a table's members.
struct Names {
  std::vector<std::string> names;
  template <class T>
  void required(std::string_view name, T&) {
    names.emplace_back(name);
  }
  template <class T>
  void optional(std::string_view name, T& member) {
    required(name, member);
  }
  template <class T>
  void always(std::string_view name, T& member) {
    required(name, member);
  }
  void strict() {}
};

/// Members of `T` that `value` leaves at their default.
template <class T>
std::vector<std::string> untouched(T value) {
  Names all;
  fields(all, value);
  json::Value given = json::to_value(value);
  json::Value usual = json::to_value(T{});
  std::vector<std::string> out;
  for (const std::string& name : all.names) {
    const json::Value* one = given.find(name);
    const json::Value* other = usual.find(name);
    if (one == nullptr || (other != nullptr && *one == *other)) out.push_back(name);
  }
  return out;
}

Limits full_limits() {
  Limits limits;
  limits.memory_bytes = 1;
  limits.memory_reservation_bytes = 2;
  limits.memory_swap_bytes = -1;
  limits.memory_swappiness = 0;
  limits.oom_kill_disable = true;
  limits.cpu_millis = 1500;
  limits.cpu_shares = 512;
  limits.cpu_period = 100'000;
  limits.cpu_quota = 50'000;
  limits.cpu_rt_period = 1'000'000;
  limits.cpu_rt_runtime = 950'000;
  limits.cpuset_cpus = "0-3,7";
  limits.cpuset_mems = "0";
  limits.pids = -1;
  limits.blkio_weight = 500;
  limits.blkio_weight_device = {{"/dev/sda", 100}};
  limits.device_read_bps = {{"/dev/sda", 1}};
  limits.device_write_bps = {{"/dev/sda", 2}};
  limits.device_read_iops = {{"/dev/sda", 3}};
  limits.device_write_iops = {{"/dev/sda", 4}};
  return limits;
}

Volume full_volume() {
  return {"/data", "/mnt", true, "rslave",   "cache",      true,
          true,    true,   true, {"nosuid"}, Relabel::own, {{"a", "1"}}};
}

Security full_security() {
  Security security;
  security.privileged = true;
  security.cap_add = {"ALL"};
  security.cap_drop = {"CHOWN"};
  security.no_new_privileges = true;
  security.seccomp = "unconfined";
  security.apparmor = "mine";
  security.labels = {"disable"};
  security.unmask = {"ALL"};
  security.mask = {"/proc/uptime"};
  return security;
}

RunRequest full_request() {
  RunRequest r;
  r.image = "debian:12";
  r.image_file = true;
  r.rootfs = "/srv/root";
  r.rootfs_driver = RootfsDriver::copy;
  r.rootfs_reason = "no overlay";
  r.command = {"sh", "-c", "echo \"tea\"\n"};
  r.remove = r.interactive = r.terminal = r.read_only = r.init = true;
  r.name = "c1";
  r.hostname = "box";
  r.domainname = "example.org";
  r.user = "1000:1000";
  r.group_add = {"keep-groups"};
  r.workdir = "/work";
  r.entrypoint = "";
  r.environment = {"A=1", "B"};
  r.inherited = {"B=2"};
  r.labels = {{"a", "1"}};
  r.annotations = {{"b", ""}};
  r.volumes = {full_volume()};
  r.tmpfs = {{"/tmp", {"size=1m"}}};
  r.image_mounts = {{"/data.sqsh", "/data", true, "sha256:0"}};
  r.volumes_from = {"c2:ro"};
  r.network = Network::container;
  r.network_asked = true;
  r.network_container = "f00d";
  r.pid.kind = ModeKind::host;
  r.ipc.kind = ModeKind::shareable;
  r.uts = {ModeKind::container, "f00d"};
  r.userns = {ModeKind::keep_id, "", 1000, 1001};
  r.cgroupns.kind = ModeKind::own;
  r.add_host = {"db:10.0.0.1"};
  r.dns = {"10.0.0.2"};
  r.dns_search = {"example.org"};
  r.dns_option = {"ndots:1"};
  r.expose = {"80/tcp"};
  r.publish.resize(1);
  r.publish_all = true;
  r.networks = {{"app", {"server"}, "10.128.0.9", "02:42:ac:11:00:09"}};
  r.mac_address = "02:42:ac:11:00:09";
  r.limits = full_limits();
  r.shm_bytes = 0;
  r.ulimits = {{"nofile", 1024, -1}};
  r.sysctl = {{"net.core.somaxconn", "512"}};
  r.oom_score_adj = -500;
  r.cgroup_parent = "/jobs";
  r.strict_limits = true;
  r.security = full_security();
  r.gpus = "all";
  r.gpu_driver = policy::DriverMode::volume;
  r.gpus_exclusive = true;
  r.gpus_bind = false;
  r.gpu_memory = GpuMemory{uint64_t{10} << 30, uint64_t{8} << 30};
  r.gpu_cores = 25;
  r.mpi = MpiRequest{MpiMode::host, mpi::Rule::strict, "/opt/mpi/lib", "/ranks"};
  r.wait_gpus = 30'000'000'000;
  r.devices = {"nvidia.com/gpu=0"};
  r.host_devices = {{"/dev/fuse", "/dev/fuse2", "rw"}};
  r.device_cgroup_rules = {"c 195:* rwm"};
  r.program = gpu::Program::nvidia_docker;
  r.stop_signal = "KILL";
  r.stop_timeout = 0;
  r.restart = {Restart::on_failure, 3};
  r.health = {true, "true", 1, 2, 3, 4};
  r.log = {LogDriver::local, 1, 2};
  r.site = {{"A=1", "B"}, {"C=2"}, {}, {}, true, {{"scratch", "x.toml:1", true, "gives mounts"}}};
  r.site.most.memory_bytes = 1 << 20;
  r.site.hooks = {{.stage = "poststop", .path = "/bin/x", .args = {}, .env = {}, .timeout = 3}};
  return r;
}

TEST(RunRequest, is_read_as_it_was_written_whatever_it_says) {
  RunRequest full = full_request();
  EXPECT_THAT(untouched(full), IsEmpty());
  EXPECT_THAT(untouched(full.limits), IsEmpty());
  EXPECT_THAT(untouched(full.security), IsEmpty());
  EXPECT_THAT(untouched(full.volumes[0]), IsEmpty());
  EXPECT_THAT(untouched(full.image_mounts[0]), IsEmpty());
  EXPECT_THAT(untouched(full.health), IsEmpty());
  EXPECT_THAT(untouched(full.restart), IsEmpty());
  EXPECT_THAT(untouched(full.log), IsEmpty());
  EXPECT_THAT(untouched(full.site), IsEmpty());
  auto read = parse_run_request(json::write(full));
  ASSERT_TRUE(read.ok()) << to_line(read.error());
  EXPECT_EQ(*read, full);
  EXPECT_EQ(*parse_run_request(json::write(RunRequest{})), RunRequest{});
}

TEST(RunRequest, is_refused_where_its_file_is_damaged_or_of_another_berth) {
  auto line = [](std::string_view text) {
    auto read = parse_run_request(text);
    if (read.ok()) return std::string("read");
    EXPECT_EQ(read.error().kind, Kind::corrupt) << text;
    return to_line(read.error());
  };
  std::string whole = json::write(full_request());
  for (size_t length = 0; length < whole.size(); ++length) {
    EXPECT_NE(line(whole.substr(0, length)), "read") << length;
  }
  EXPECT_EQ(line("[]"), "request.json: expected an object, got an array");
  EXPECT_EQ(line(R"({"restart":{"when":"sometimes"}})"),
            "request.json: restart.when: expected 'no' or 'on-failure' or 'always' or "
            "'unless-stopped', got 'sometimes'");
  EXPECT_EQ(line(R"({"pid":"container:"})"),
            "request.json: pid: expected 'private' or 'host' or 'none' or 'shareable' or "
            "'keep-id', got 'container:'");
  EXPECT_EQ(line(R"({"restart":{"most":4294967296}})"),
            "request.json: restart.most: 4294967296 is out of range");
  // What takes rights away would otherwise be lost in silence.
  EXPECT_EQ(line(R"({"security":{"drop_all":true}})"),
            "request.json: security.drop_all: unknown member");
  EXPECT_THAT(line(R"({"image":"a","image":"b"})"), HasSubstr("image"));
}

TEST(RunRequest, keeps_the_values_of_variables_that_were_passed_on_by_name) {
  const Environment caller({"HERE=tea", "SET=2", "OTHER=3"});
  EXPECT_THAT(inherited_variables({"HERE", "GONE", "SET=1"}, caller), ElementsAre("HERE=tea"));
}

TEST(MakeCommand, puts_the_arguments_after_the_entrypoint) {
  EXPECT_THAT(*make_command({"/entry"}, {"a"}, std::nullopt, {}), ElementsAre("/entry", "a"));
  EXPECT_THAT(*make_command({"/entry"}, {"a"}, std::nullopt, {"b", "c"}),
              ElementsAre("/entry", "b", "c"));
  EXPECT_THAT(*make_command({}, {"sh"}, std::nullopt, {}), ElementsAre("sh"));
}

TEST(MakeCommand, drops_the_images_arguments_with_its_entrypoint) {
  EXPECT_THAT(*make_command({"/entry"}, {"a"}, "/mine", {}), ElementsAre("/mine"));
  EXPECT_THAT(*make_command({"/entry"}, {"a"}, "/mine", {"b"}), ElementsAre("/mine", "b"));
}

TEST(MakeCommand, clears_the_entrypoint_with_an_empty_one) {
  EXPECT_THAT(*make_command({"/entry"}, {"a"}, "", {"b"}), ElementsAre("b"));
  auto nothing = make_command({"/entry"}, {"a"}, "", {});
  ASSERT_FALSE(nothing.ok());
  EXPECT_EQ(nothing.error().kind, Kind::usage);
}

TEST(MakeCommand, refuses_an_empty_command) {
  EXPECT_FALSE(make_command({}, {}, std::nullopt, {}).ok());
  EXPECT_FALSE(make_command({}, {}, std::nullopt, {""}).ok());
}

}  // namespace
}  // namespace berth::engine
