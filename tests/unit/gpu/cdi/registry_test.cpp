// SPDX-License-Identifier: Apache-2.0
#include "gpu/cdi/registry.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "unit/gpu/driver_tree.hpp"

namespace berth::gpu::cdi {
namespace {

using testing::DriverTree;
using testing::Scratch;
using testing::write_text;
using Texts = std::vector<std::string>;

std::string spec(const std::string& kind, const std::string& devices) {
  return R"({"cdiVersion":"0.5.0","kind":")" + kind + R"(","devices":[)" + devices + "]}";
}

std::string device(const std::string& name, const std::string& value) {
  return R"({"name":")" + name + R"(","containerEdits":{"env":["A=)" + value + R"("]}})";
}

class Registry : public ::testing::Test {
 protected:
  std::string low() const { return scratch_.path() + "/low"; }
  std::string high() const { return scratch_.path() + "/high"; }

  Index index(const Texts& names = {}) const {
    auto made = make_index({low(), high()}, names);
    EXPECT_TRUE(made.ok()) << to_line(made.error());
    return made.ok() ? *made : Index{};
  }
  static Texts names_of(const Index& index) {
    Texts names;
    for (const IndexDevice& one : index.devices) names.push_back(one.name);
    return names;
  }
  Texts env_of(const std::string& name) const {
    auto edits = edits_of(index(), {name});
    EXPECT_TRUE(edits.ok()) << to_line(edits.error());
    return edits.ok() ? edits->env : Texts{};
  }

  Scratch scratch_;
};

TEST_F(Registry, is_empty_where_there_are_no_directories) {
  Index made = index();
  EXPECT_TRUE(made.devices.empty());
  EXPECT_TRUE(made.bad_files.empty());
  EXPECT_TRUE(*is_current(made));
  write_text(high() + "/a.json", spec("v.com/gpu", device("0", "1")));
  EXPECT_FALSE(*is_current(made));
}

TEST_F(Registry, reads_json_and_yaml_but_no_other_files_and_no_directories_below) {
  write_text(low() + "/a.json", spec("v.com/gpu", device("0", "1")));
  write_text(low() + "/b.yaml",
             "cdiVersion: 0.5.0\nkind: v.com/net\ndevices:\n- name: 1\n"
             "  containerEdits:\n    env:\n    - B=2\n");
  write_text(low() + "/c.yml", "?");
  write_text(low() + "/d.json.bak", "?");
  write_text(low() + "/below/e.json", spec("v.com/gpu", device("5", "1")));
  Index made = index();
  EXPECT_EQ(names_of(made), (Texts{"v.com/gpu=0", "v.com/net=1"}));
  EXPECT_TRUE(made.bad_files.empty());
}

TEST_F(Registry, believes_the_later_directory) {
  write_text(low() + "/a.json", spec("v.com/gpu", device("0", "low") + "," + device("1", "low")));
  write_text(high() + "/z.json", spec("v.com/gpu", device("0", "high")));
  EXPECT_EQ(env_of("v.com/gpu=0"), Texts{"A=high"});
  EXPECT_EQ(env_of("v.com/gpu=1"), Texts{"A=low"});
}

TEST_F(Registry, gives_no_device_that_two_files_of_one_directory_define) {
  write_text(low() + "/a.json", spec("v.com/gpu", device("0", "a") + "," + device("1", "a")));
  write_text(low() + "/b.json", spec("v.com/gpu", device("0", "b")));
  Index made = index();
  EXPECT_EQ(names_of(made), Texts{"v.com/gpu=1"});
  ASSERT_EQ(made.unavailable.size(), 1u);
  EXPECT_EQ(made.unavailable[0].object, "v.com/gpu=0");
  EXPECT_EQ(made.unavailable[0].text,
            "defined in both '" + low() + "/a.json' and '" + low() + "/b.json'");
  write_text(high() + "/c.json", spec("v.com/gpu", device("0", "c")));
  EXPECT_EQ(env_of("v.com/gpu=0"), Texts{"A=c"});
}

TEST_F(Registry, lets_a_bad_file_break_no_other) {
  write_text(low() + "/a.json", spec("v.com/gpu", device("0", "1")));
  write_text(low() + "/b.json", "{");
  write_text(low() + "/c.yaml", "a: &x 1");
  ASSERT_EQ(::mkfifo((low() + "/d.json").c_str(), 0600), 0);
  write_text(low() + "/e.json/x", "");
  Index made = index();
  EXPECT_EQ(names_of(made), Texts{"v.com/gpu=0"});
  ASSERT_EQ(made.bad_files.size(), 4u);
  EXPECT_EQ(made.bad_files[0].object, low() + "/b.json");
  EXPECT_EQ(made.bad_files[1].text, low() + "/c.yaml: line 1, column 4: anchors are not allowed");
  EXPECT_EQ(made.bad_files[2].text, "'" + low() + "/d.json' is not a file");
}

TEST_F(Registry, believes_no_file_that_others_have_or_can_write) {
  write_text(low() + "/theirs.json", spec("v.com/gpu", device("0", "theirs")));
  ASSERT_EQ(::chmod((low() + "/theirs.json").c_str(), 0666), 0);
  Index made = index();
  EXPECT_TRUE(made.devices.empty());
  ASSERT_EQ(made.bad_files.size(), 1U);
  EXPECT_NE(made.bad_files[0].text.find("writable by others"), std::string::npos);
  if (::geteuid() != 0) return;
  ASSERT_EQ(::chmod((low() + "/theirs.json").c_str(), 0644), 0);
  ASSERT_EQ(::chown((low() + "/theirs.json").c_str(), 1000, 1000), 0);
  made = index();
  EXPECT_TRUE(made.devices.empty());
  ASSERT_EQ(made.bad_files.size(), 1U);
  EXPECT_NE(made.bad_files[0].text.find("belongs to another user"), std::string::npos);
}

TEST_F(Registry, resolves_only_what_is_asked_for) {
  write_text(low() + "/a.json", spec("v.com/gpu", device("0", "1") + "," + device("1", "1")));
  write_text(low() + "/b.json", spec("v.com/net", device("0", "1")));
  Index made = index({"v.com/gpu=1"});
  EXPECT_EQ(names_of(made), Texts{"v.com/gpu=1"});
  EXPECT_EQ(made.files.size(), 1u);
}

TEST_F(Registry, fills_in_what_a_node_does_not_say) {
  write_text(low() + "/a.json", spec("v.com/gpu", R"({"name":"n","containerEdits":{"deviceNodes":[
               {"path":"/dev/gpu","hostPath":"/dev/null"},
               {"path":"/dev/null","permissions":"r"},
               {"path":"/dev/none","type":"c","major":9,"minor":8},
               {"path":"/dev/fifo","type":"p"}]}})"));
  auto edits = edits_of(index(), {"v.com/gpu=n"});
  ASSERT_TRUE(edits.ok()) << to_line(edits.error());
  const auto& nodes = edits->device_nodes;
  EXPECT_EQ(nodes[0].type, "c");
  EXPECT_EQ(nodes[0].major, 1);
  EXPECT_EQ(nodes[0].minor, 3);
  EXPECT_EQ(nodes[0].file_mode, 0666u);
  EXPECT_EQ(nodes[0].permissions, "rwm");
  EXPECT_EQ(nodes[0].host_path, "/dev/null");
  EXPECT_TRUE(nodes[0].owned_by_process);
  EXPECT_EQ(nodes[1].permissions, "r");
  EXPECT_EQ(nodes[2].major, 9);
  EXPECT_FALSE(nodes[2].file_mode.has_value());
}

TEST_F(Registry, makes_a_device_unavailable_that_is_not_there_and_no_other) {
  write_text(low() + "/a.json",
             spec("v.com/gpu", device("ok", "1") +
                                   R"(,{"name":"gone","containerEdits":{"deviceNodes":[
               {"path":"/dev/no-such-gpu"}]}},{"name":"file","containerEdits":{"deviceNodes":[
               {"path":"/etc/passwd"}]}},{"name":"block","containerEdits":{"deviceNodes":[
               {"path":"/dev/null","type":"b"}]}})"));
  Index made = index();
  EXPECT_EQ(names_of(made), Texts{"v.com/gpu=ok"});
  ASSERT_EQ(made.unavailable.size(), 3u);
  EXPECT_EQ(made.unavailable[0].text,
            "cannot give device '/dev/no-such-gpu': open '/dev/no-such-gpu': No such file or "
            "directory");
  EXPECT_EQ(made.unavailable[1].text, "'/etc/passwd' is not a device");
  EXPECT_EQ(made.unavailable[2].text, "'/dev/null' is of type c");
}

TEST_F(Registry, makes_mounts_binds_and_keeps_other_types) {
  write_text(low() + "/a.json",
             R"({"cdiVersion":"0.4.0","kind":"v.com/gpu","devices":[{"name":"n","containerEdits":{
               "mounts":[{"hostPath":"/a","containerPath":"/b"},
                         {"hostPath":"/a","containerPath":"/c","options":["ro","bind"]},
                         {"hostPath":"tmpfs","containerPath":"/d","type":"tmpfs"}]}},
               {"name":"bad","containerEdits":{"mounts":[{"hostPath":"a","containerPath":"/b"}]}},
               {"name":"root","containerEdits":{"mounts":[{"hostPath":"/a","containerPath":"/./"}]}}
               ]})");
  Index made = index();
  auto mounts = edits_of(made, {"v.com/gpu=n"})->mounts;
  EXPECT_EQ(mounts[0].type, "bind");
  EXPECT_EQ(mounts[0].options, Texts{"rbind"});
  EXPECT_EQ(mounts[1].options, (Texts{"ro", "bind"}));
  EXPECT_EQ(mounts[2].type, "tmpfs");
  ASSERT_EQ(made.unavailable.size(), 2u);
  EXPECT_EQ(made.unavailable[0].text, "mount of 'a': not an absolute path");
  EXPECT_EQ(made.unavailable[1].text, "a mount over the container's root");
}

TEST_F(Registry, keeps_an_unknown_hook_as_it_is_and_does_a_known_one) {
  DriverTree tree("one");
  std::string library = tree.libraries() + "/libcuda.so.570.133.20";
  write_text(low() + "/a.json",
             R"({"cdiVersion":"0.5.0","kind":"v.com/gpu","containerEdits":{
               "mounts":[{"hostPath":")" +
                 library + R"(","containerPath":"/usr/lib64/libcuda.so.570.133.20"},
                         {"hostPath":")" +
                 tree.libraries() + R"(/vdpau","containerPath":"/opt/vdpau"},
                         {"hostPath":"/etc/passwd","containerPath":"/usr/lib64/libnone.so.1"}],
               "hooks":[{"hookName":"createContainer","path":"/no/such/nvidia-cdi-hook",
                         "args":["nvidia-cdi-hook","update-ldcache","--folder","/opt/vdpau"]},
                        {"hookName":"createContainer","path":"/no/such/nvidia-cdi-hook",
                         "args":["nvidia-cdi-hook","create-soname-symlinks","--folder","/usr/lib64/"]},
                        {"hookName":"poststart","path":"/own","args":["own"],"env":["E=1"],
                         "timeout":2}]},
               "devices":[{"name":"0","containerEdits":{"env":["A=1"]}}]})");
  auto edits = edits_of(index(), {"v.com/gpu=0"});
  ASSERT_TRUE(edits.ok()) << to_line(edits.error());
  EXPECT_TRUE(edits->hooks.create_container.empty());
  ASSERT_EQ(edits->hooks.poststart.size(), 1u);
  EXPECT_EQ(edits->hooks.poststart[0].env, Texts{"E=1"});
  EXPECT_EQ(edits->hooks.poststart[0].timeout, 2);
  EXPECT_EQ(edits->links,
            (std::vector<oci::Link>{{"/usr/lib64/libcuda.so.1", "libcuda.so.570.133.20"}}));
  ASSERT_EQ(edits->loader_entries.size(), 2u);
  EXPECT_EQ(edits->loader_entries[0].soname, "libcuda.so.1");
  EXPECT_EQ(edits->loader_entries[0].path, "/usr/lib64/libcuda.so.1");  // the link
  EXPECT_EQ(edits->loader_entries[1].path, "/opt/vdpau/libvdpau_nvidia.so.1");
}

TEST_F(Registry, makes_no_place_for_links_where_the_file_is_ours) {
  const std::string mounts =
      R"("mounts":[{"hostPath":"tmpfs","containerPath":"/usr/local/nvidia","type":"tmpfs"}])";
  write_text(low() + "/a.json",
             R"({"cdiVersion":"0.5.0","kind":"v.com/gpu","devices":[
               {"name":"ours","containerEdits":{)" +
                 mounts + R"(,"hooks":[{"hookName":"createContainer","path":"/x/berth-cdi-hook",
                 "args":["berth-cdi-hook","--link","a::/usr/local/nvidia/b"]}]}},
               {"name":"other","containerEdits":{)" +
                 mounts + "}}]}");
  EXPECT_TRUE(edits_of(index(), {"v.com/gpu=ours"})->mounts.empty());
  EXPECT_EQ(edits_of(index(), {"v.com/gpu=other"})->mounts.size(), 1u);
}

}  // namespace
}  // namespace berth::gpu::cdi
