// SPDX-License-Identifier: Apache-2.0
#include "oci/cdi.hpp"

#include <gtest/gtest.h>

namespace berth::oci::cdi {
namespace {

std::string device(const std::string& edits, const std::string& name = "gpu0") {
  return R"({"name":")" + name + R"(","containerEdits":)" + edits + "}";
}

std::string document(const std::string& edits, const std::string& version = "1.1.0",
                     const std::string& more = "") {
  return R"({"cdiVersion":")" + version + R"(","kind":"vendor.com/gpu","devices":[)" +
         device(edits) + "]" + more + "}";
}

std::string cdi_error(const std::string& text) {
  auto spec = read_json(text, "f.json");
  EXPECT_FALSE(spec.ok()) << text;
  return spec.ok() ? "" : to_line(spec.error());
}

const std::string kEnv = R"({"env":["A=1"]})";

TEST(Cdi, reads_every_member_of_1_1_0) {
  auto spec = read_json(R"({"cdiVersion":"1.1.0","kind":"vendor.com/net.class",
    "annotations":{"vendor.com/what":"x"},
    "containerEdits":{"env":["B=2"]},
    "devices":[{"name":"0:1","annotations":{"a":"b"},"containerEdits":{
      "env":["A=1"],
      "deviceNodes":[{"path":"/dev/a","hostPath":"/dev/b","type":"c","major":1,"minor":0,
                      "fileMode":438,"permissions":"rw","uid":1,"gid":2}],
      "netDevices":[{"hostInterfaceName":"eth1","name":"net0"}],
      "hooks":[{"hookName":"createContainer","path":"/bin/x","args":["x","y"],"env":["C=3"],
                "timeout":5}],
      "mounts":[{"hostPath":"/a","containerPath":"/b","options":["ro"],"type":"bind"}],
      "intelRdt":{"closID":"gpu","l3CacheSchema":"L3:0=f","memBwSchema":"MB:0=10",
                  "schemata":["L2:0=1"],"enableMonitoring":true},
      "additionalGids":[44]}}]})",
                        "f.json");
  ASSERT_TRUE(spec.ok()) << to_line(spec.error());
  const Edits& edits = spec->devices.at(0).edits;
  EXPECT_EQ(edits.device_nodes.at(0).minor, 0);
  EXPECT_EQ(edits.device_nodes.at(0).file_mode, 438u);
  EXPECT_EQ(edits.hooks.at(0).timeout, 5);
  EXPECT_EQ(edits.intel_rdt->schemata.size(), 1u);
  EXPECT_EQ(edits.net_devices.at(0).name, "net0");
  EXPECT_EQ(edits.additional_gids, std::vector<uint32_t>{44});
  EXPECT_EQ(spec->annotations.at("vendor.com/what"), "x");
  // What was read is written again, and read again.
  auto again = from_document(to_document(*spec), "g.json");
  ASSERT_TRUE(again.ok()) << to_line(again.error());
  EXPECT_EQ(json::dump(to_document(*again)), json::dump(to_document(*spec)));
}

TEST(Cdi, refuses_an_unknown_member_wherever_it_is) {
  EXPECT_EQ(cdi_error(document(kEnv, "0.3.0", R"(,"extra":1)")), "f.json: extra: unknown member");
  EXPECT_EQ(cdi_error(document(R"({"envs":["A=1"]})")),
            "f.json: devices[0].containerEdits.envs: unknown member; did you mean 'env'?");
  EXPECT_EQ(
      cdi_error(document(R"({"mounts":[{"hostPath":"/a","containerPath":"/b","option":[]}]})")),
      "f.json: devices[0].containerEdits.mounts[0].option: unknown member; did you mean "
      "'options'?");
  EXPECT_EQ(cdi_error(document(R"({"intelRdt":{"closId":"a"}})")),
            "f.json: devices[0].containerEdits.intelRdt.closId: unknown member; did you mean "
            "'closID'?");
}

TEST(Cdi, refuses_a_member_that_comes_twice) {
  EXPECT_EQ(cdi_error(document(R"({"env":["A=1"],"env":["A=2"]})")),
            "f.json: 'env' is given twice");
}

TEST(Cdi, refuses_members_of_another_type) {
  EXPECT_EQ(cdi_error(document(R"({"env":"A=1"})")),
            "f.json: devices[0].containerEdits.env: expected an array, got a string");
  EXPECT_EQ(cdi_error("[]"), "f.json: expected an object, got an array");
  EXPECT_EQ(cdi_error(document(R"({"additionalGids":[-1]})")),
            "f.json: devices[0].containerEdits.additionalGids[0]: -1 is out of range");
}

TEST(Cdi, wants_version_kind_and_devices) {
  EXPECT_EQ(cdi_error("{}"), "f.json: cdiVersion: missing");
  EXPECT_EQ(cdi_error(document(kEnv, "0.2.0")),
            "f.json: cdiVersion: '0.2.0' is none of the versions up to 1.1.0");
  EXPECT_EQ(cdi_error(document(kEnv, "1.2.0")),
            "f.json: cdiVersion: '1.2.0' is none of the versions up to 1.1.0");
  EXPECT_EQ(cdi_error(R"({"cdiVersion":"0.3.0","kind":"a/b","devices":[]})"),
            "f.json: devices: expected at least one");
  for (const char* kind : {"vendor", "/gpu", "vendor/", "1v/gpu", "v/g/h", "v-/g", "v/1", "v/-"}) {
    EXPECT_EQ(cdi_error(R"({"cdiVersion":"0.3.0","kind":")" + std::string(kind) +
                        R"(","devices":[)" + device(kEnv) + "]}"),
              "f.json: kind: '" + std::string(kind) + "' is not of the form vendor/class");
  }
}

TEST(Cdi, checks_the_names_of_devices) {
  for (const char* name : {"", "-a", "a-", "a/b", "a b", "a=b", ":"}) {
    EXPECT_EQ(
        cdi_error(R"({"cdiVersion":"0.5.0","kind":"a/b","devices":[)" + device(kEnv, name) + "]}"),
        "f.json: devices[0].name: '" + std::string(name) + "' is not a valid device name");
  }
  EXPECT_EQ(cdi_error(R"({"cdiVersion":"0.5.0","kind":"a/b","devices":[)" + device(kEnv) + "," +
                      device(kEnv) + "]}"),
            "f.json: devices[1].name: 'gpu0' is given twice");
  EXPECT_EQ(cdi_error(document("{}")),
            "f.json: devices[0].containerEdits: expected at least one edit");
}

TEST(Cdi, checks_every_edit) {
  const std::pair<const char*, const char*> kCases[] = {
      {R"({"env":["A"]})", "env[0]: 'A' is not of the form NAME=VALUE"},
      {R"({"env":["=1"]})", "env[0]: '=1' is not of the form NAME=VALUE"},
      {R"({"deviceNodes":[{"path":""}]})",
       "deviceNodes[0].path: expected an absolute path, got ''"},
      {R"({"deviceNodes":[{"path":"/a","hostPath":"b"}]})",
       "deviceNodes[0].hostPath: expected an absolute path, got 'b'"},
      {R"({"deviceNodes":[{"path":"/a","type":"x"}]})",
       "deviceNodes[0].type: 'x' is none of b, c, u, p"},
      {R"({"deviceNodes":[{"path":"/a","minor":-1}]})", "deviceNodes[0].minor: below 0"},
      {R"({"deviceNodes":[{"path":"/a","permissions":"rx"}]})",
       "deviceNodes[0].permissions: 'rx' is not of r, w and m"},
      {R"({"netDevices":[{"hostInterfaceName":"e","name":"a/b"}]})",
       "netDevices[0].name: 'a/b' names no interface"},
      {R"({"netDevices":[{"hostInterfaceName":"e","name":"a"},{"hostInterfaceName":"e","name":"b"}]})",
       "netDevices[1].hostInterfaceName: 'e' is given twice"},
      {R"({"netDevices":[{"hostInterfaceName":"e","name":"a"},{"hostInterfaceName":"f","name":"a"}]})",
       "netDevices[1].name: 'a' is given twice"},
      {R"({"hooks":[{"hookName":"prestop","path":"/a"}]})",
       "hooks[0].hookName: 'prestop' is not a stage of hooks"},
      {R"({"hooks":[{"hookName":"poststop","path":"a"}]})",
       "hooks[0].path: expected an absolute path, got 'a'"},
      {R"({"hooks":[{"hookName":"poststop","path":"/a","env":["x"]}]})",
       "hooks[0].env[0]: 'x' is not of the form NAME=VALUE"},
      {R"({"hooks":[{"hookName":"poststop","path":"/a","timeout":0}]})",
       "hooks[0].timeout: not above 0"},
      {R"({"mounts":[{"hostPath":"","containerPath":"/a"}]})", "mounts[0].hostPath: empty"},
      {R"({"mounts":[{"hostPath":"/a","containerPath":"b"}]})",
       "mounts[0].containerPath: expected an absolute path, got 'b'"},
      {R"({"intelRdt":{"closID":"a/b"}})", "intelRdt.closID: 'a/b' names no class of service"},
      {R"({"intelRdt":{"closID":".."}})", "intelRdt.closID: '..' names no class of service"},
      {R"({"intelRdt":{"enableCMT":true}})",
       "intelRdt.enableCMT: enableMonitoring took its place in 1.1.0"},
  };
  for (const auto& [edits, error] : kCases) {
    EXPECT_EQ(cdi_error(document(edits)),
              std::string("f.json: devices[0].containerEdits.") + error);
  }
  EXPECT_TRUE(read_json(document(R"({"intelRdt":{"closID":"/"}})"), "f").ok());
  EXPECT_TRUE(read_json(document(R"({"intelRdt":{"enableCMT":true}})", "0.7.0"), "f").ok());
  EXPECT_TRUE(
      read_json(document(R"({"deviceNodes":[{"path":"/a","permissions":"none"}]})"), "f").ok());
}

TEST(Cdi, limits_annotations) {
  EXPECT_EQ(cdi_error(document(kEnv, "0.6.0", R"(,"annotations":{"a b":"x"})")),
            "f.json: annotations['a b']: not a name for an annotation");
  EXPECT_EQ(cdi_error(document(kEnv, "0.6.0",
                               R"(,"annotations":{"a":")" + std::string(256 << 10, 'x') + "\"}")),
            "f.json: annotations: more than 256 KiB");
  EXPECT_TRUE(read_json(document(kEnv, "0.6.0", R"(,"annotations":{"A.b/C_d":"x"})"), "f").ok());
}

TEST(Cdi, knows_which_version_its_content_needs) {
  const std::pair<const char*, const char*> kCases[] = {
      {R"({"env":["A=1"]})", "0.3.0"},
      {R"({"mounts":[{"hostPath":"/a","containerPath":"/b","type":"bind"}]})", "0.4.0"},
      {R"({"deviceNodes":[{"path":"/a","hostPath":"/b"}]})", "0.5.0"},
      {R"({"additionalGids":[1]})", "0.7.0"},
      {R"({"intelRdt":{"closID":"a"}})", "0.7.0"},
      {R"({"intelRdt":{"enableMonitoring":true}})", "1.1.0"},
      {R"({"intelRdt":{"schemata":["a"]}})", "1.1.0"},
      {R"({"netDevices":[{"hostInterfaceName":"e","name":"a"}]})", "1.1.0"},
  };
  for (const auto& [edits, version] : kCases) {
    auto spec = read_json(document(edits, version), "f.json");
    ASSERT_TRUE(spec.ok()) << edits << to_line(spec.error());
    EXPECT_EQ(needed_version(*spec), version) << edits;
    if (std::string_view(version) == "0.3.0") continue;
    EXPECT_EQ(
        cdi_error(document(edits, "0.3.0")),
        "f.json: cdiVersion: '0.3.0' is declared, but the content needs " + std::string(version));
  }
}

TEST(Cdi, counts_names_and_annotations_for_the_version) {
  Spec spec{.version = "1.1.0", .kind = "v.com/gpu", .devices = {{"gpu0", {}, {.env = {"A=1"}}}}};
  EXPECT_EQ(needed_version(spec), "0.3.0");
  spec.devices[0].name = "0";
  EXPECT_EQ(needed_version(spec), "0.5.0");
  spec.kind = "v.com/gpu.big";
  EXPECT_EQ(needed_version(spec), "0.6.0");
  spec.kind = "v.com/gpu";
  spec.annotations = {{"a", "b"}};
  EXPECT_EQ(needed_version(spec), "0.6.0");
  spec.annotations.clear();
  spec.devices[0].annotations = {{"a", "b"}};
  EXPECT_EQ(needed_version(spec), "0.6.0");
  spec.edits.additional_gids = {1};
  EXPECT_EQ(needed_version(spec), "0.7.0");
}

TEST(Cdi, splits_qualified_names) {
  auto name = parse_name("nvidia.com/gpu=GPU-1:2");
  ASSERT_TRUE(name.ok());
  EXPECT_EQ(name->kind, "nvidia.com/gpu");
  EXPECT_EQ(name->device, "GPU-1:2");
  EXPECT_EQ(to_line(parse_name("nvidia.com=0").error()),
            "device 'nvidia.com=0': expected vendor/class=name; try: a name of 'berth cdi list', "
            "such as nvidia.com/gpu=0");
  EXPECT_FALSE(parse_name("nvidia.com/gpu").ok());
  EXPECT_FALSE(parse_name("nvidia.com/gpu=").ok());
  EXPECT_TRUE(looks_qualified("nvidia.com/gpu=0"));
  EXPECT_TRUE(looks_qualified("gpu=0"));
  EXPECT_FALSE(looks_qualified("/dev/a=b"));
  EXPECT_FALSE(looks_qualified("fuse"));
}

}  // namespace
}  // namespace berth::oci::cdi
