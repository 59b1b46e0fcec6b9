// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include "json/value.hpp"
#include "oci/config.hpp"

namespace berth::oci {
namespace {

constexpr std::string_view kFull = R"({
  "ociVersion": "1.2.0",
  "root": {"path": "rootfs", "readonly": true},
  "mounts": [{"destination": "/proc", "type": "proc", "source": "proc", "options": ["nosuid"],
              "x-vendor": 1}],
  "process": {
    "terminal": true, "consoleSize": {"height": 24, "width": 80},
    "user": {"uid": 1, "gid": 2, "umask": 63, "additionalGids": [3, 4]},
    "args": ["sh"], "env": ["A=b"], "cwd": "/",
    "capabilities": {"bounding": ["CAP_KILL"], "effective": ["CAP_KILL"],
                     "permitted": ["CAP_KILL"]},
    "rlimits": [{"type": "RLIMIT_NOFILE", "soft": 1, "hard": 18446744073709551615}],
    "noNewPrivileges": true, "oomScoreAdj": -5,
    "scheduler": {"policy": "SCHED_DEADLINE", "nice": -5, "priority": 3,
                  "flags": ["SCHED_FLAG_RECLAIM"], "runtime": 1, "deadline": 2, "period": 3},
    "ioPriority": {"class": "IOPRIO_CLASS_BE", "priority": 4},
    "execCPUAffinity": {"initial": "0", "final": "0-1"}
  },
  "hostname": "h", "domainname": "d",
  "hooks": {"poststop": [{"path": "/bin/x", "args": ["x"], "env": ["K=v"], "timeout": 3}]},
  "annotations": {"a": "b"},
  "linux": {
    "namespaces": [{"type": "pid"}, {"type": "network", "path": "/run/netns/x"}],
    "uidMappings": [{"containerID": 0, "hostID": 1000, "size": 1}],
    "gidMappings": [{"containerID": 0, "hostID": 1000, "size": 1}],
    "devices": [{"type": "c", "path": "/dev/x", "major": 195, "minor": 255, "fileMode": 438,
                 "uid": 0, "gid": 0}],
    "cgroupsPath": "/berth/x",
    "resources": {
      "devices": [{"allow": false, "access": "rwm"}],
      "memory": {"limit": 1048576, "swap": -1}, "cpu": {"quota": 50000, "period": 100000},
      "pids": {"limit": 7}, "blockIO": {"weight": 10, "leafWeight": 20,
                  "weightDevice": [{"major": 8, "minor": 0, "weight": 5, "leafWeight": 6}],
                  "throttleReadBpsDevice": [{"major": 8, "minor": 0, "rate": 1}],
                  "throttleWriteBpsDevice": [{"major": 8, "minor": 0, "rate": 2}],
                  "throttleReadIOPSDevice": [{"major": 8, "minor": 0, "rate": 3}],
                  "throttleWriteIOPSDevice": [{"major": 8, "minor": 0, "rate": 4}]},
      "network": {"classID": 1048577, "priorities": [{"name": "eth0", "priority": 5}]},
      "rdma": {"mlx5_0": {"hcaHandles": 3, "hcaObjects": 100}},
      "hugepageLimits": [{"pageSize": "2MB", "limit": 0}], "unified": {"memory.high": "1"}
    },
    "sysctl": {"net.ipv4.ip_forward": "1"},
    "seccomp": {"defaultAction": "SCMP_ACT_ERRNO", "defaultErrnoRet": 1,
                "architectures": ["SCMP_ARCH_X86_64"],
                "syscalls": [{"names": ["read"], "action": "SCMP_ACT_ALLOW"},
                             {"names": ["personality"], "action": "SCMP_ACT_ALLOW",
                              "args": [{"index": 0, "value": 4294967295, "op": "SCMP_CMP_EQ"}]}]},
    "rootfsPropagation": "slave",
    "maskedPaths": ["/proc/kcore"], "readonlyPaths": ["/proc/sys"],
    "timeOffsets": {"monotonic": {"secs": -3, "nanosecs": 4}},
    "netDevices": {"eth0": {"name": "ctr0"}},
    "mountLabel": "system_u:object_r:container_file_t:s0",
    "intelRdt": {"closID": "x", "schemata": ["L3:0=f"], "l3CacheSchema": "L3:0=1",
                 "memBwSchema": "MB:0=20", "enableMonitoring": true, "enableCMT": true},
    "memoryPolicy": {"mode": "MPOL_BIND", "nodes": "0", "flags": ["MPOL_F_STATIC_NODES"]},
    "personality": {"domain": "LINUX32", "flags": ["x"]}
  },
  "vm": {"kernel": {"path": "/k"}}
})";

std::string spec_error(std::string_view text) {
  auto spec = parse_spec(text);
  return spec.ok() ? "no error" : to_line(spec.error());
}

/// The first place of `wanted` that `got` has differently, or "".
std::string missing(const json::Value& wanted, const json::Value& got, const std::string& place) {
  if (const auto* object = wanted.object()) {
    for (const auto& [key, value] : *object) {
      const json::Value* other = got.find(key);
      std::string here = place + "." + key;
      std::string found = other == nullptr ? here : missing(value, *other, here);
      if (!found.empty()) return found;
    }
    return "";
  }
  const auto* array = wanted.array();
  if (array == nullptr) return json::dump(wanted) == json::dump(got) ? "" : place;
  if (got.array() == nullptr || got.array()->size() != array->size()) return place;
  for (size_t i = 0; i < array->size(); ++i) {
    std::string found = missing((*array)[i], (*got.array())[i], place + "[]");
    if (!found.empty()) return found;
  }
  return "";
}

TEST(RuntimeSpec, loses_nothing_when_it_is_read_and_written) {
  auto spec = parse_spec(kFull);
  ASSERT_TRUE(spec.ok()) << to_line(spec.error());
  auto again = parse_spec(write_spec(*spec));
  ASSERT_TRUE(again.ok()) << to_line(again.error());
  EXPECT_EQ(write_spec(*again), write_spec(*spec));
  auto value = json::parse(write_spec(*spec), "written");
  ASSERT_TRUE(value.ok());
  EXPECT_EQ(missing(*json::parse(kFull, "full"), *value, ""), "");
}

TEST(RuntimeSpec, reads_every_member) {
  auto spec = parse_spec(kFull);
  ASSERT_TRUE(spec.ok());
  EXPECT_TRUE(spec->root.readonly);
  EXPECT_EQ(spec->process->user.umask, 63u);
  EXPECT_EQ(spec->process->user.additional_gids, (std::vector<uint32_t>{3, 4}));
  EXPECT_EQ(spec->process->rlimits[0].hard, UINT64_MAX);
  EXPECT_EQ(spec->process->oom_score_adj, -5);
  EXPECT_EQ(spec->process->console_size->width, 80u);
  EXPECT_EQ(spec->hooks.poststop[0].timeout, 3);
  EXPECT_EQ(spec->linux_.namespaces[1].path, "/run/netns/x");
  EXPECT_EQ(spec->linux_.devices[0].minor, 255);
  EXPECT_EQ(spec->linux_.resources->pids->limit, 7);
  EXPECT_FALSE(spec->linux_.resources->devices[0].major.has_value());
  EXPECT_EQ(spec->linux_.seccomp->syscalls[1].args[0].value, 4294967295u);
}

TEST(RuntimeSpec, names_the_place_of_a_wrong_member) {
  EXPECT_EQ(spec_error(R"({"ociVersion":"1.0.2","mounts":[{"destination":"/a"},{"type":"x"}]})"),
            "config.json: mounts[1].destination: missing");
  EXPECT_EQ(spec_error(R"({"ociVersion":"1.0.2","process":{"cwd":"/","args":"sh"}})"),
            "config.json: process.args: expected an array, got a string");
  EXPECT_EQ(spec_error(R"({"ociVersion":"1.0.2","process":{"cwd":"/","user":{"uid":-1,"gid":0}}})"),
            "config.json: process.user.uid: -1 is out of range");
}

TEST(RuntimeSpec, takes_a_pids_limit_of_zero_for_none_before_1_3) {
  auto pids_of = [](const std::string& version) {
    auto spec = parse_spec(R"({"ociVersion":")" + version +
                           R"(","linux":{"resources":{"pids":{"limit":0}}}})");
    return spec->linux_.resources->pids.has_value();
  };
  for (const char* old : {"1.0.0", "1.0.2-dev", "1.2.1", "1."}) EXPECT_FALSE(pids_of(old)) << old;
  for (const char* now : {"1.3.0", "1.3.0-rc.1", "1.10.0"}) EXPECT_TRUE(pids_of(now)) << now;
}

TEST(RuntimeSpec, refuses_another_major) {
  EXPECT_EQ(spec_error(R"({"ociVersion":"2.0.0"})"),
            "config.json: ociVersion: expected 1.x, got '2.0.0'");
  EXPECT_EQ(spec_error(R"({"ociVersion":"10.0.0"})"),
            "config.json: ociVersion: expected 1.x, got '10.0.0'");
}

}  // namespace
}  // namespace berth::oci
