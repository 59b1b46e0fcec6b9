// SPDX-License-Identifier: Apache-2.0
#include "engine/explain.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::engine {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

const gpu::Reason* find(const Explanation& explanation, const std::string& object) {
  for (const gpu::Reason& item : explanation.items) {
    if (item.object == object) return &item;
  }
  return nullptr;
}

TEST(Explain, says_nothing_about_a_container_that_nothing_asked_gpus_for) {
  Explanation explanation = explain({}, {});
  EXPECT_TRUE(explanation.empty());
  EXPECT_FALSE(explanation.granted());
}

TEST(Explain, keeps_sources_that_do_not_count) {
  Evidence evidence;
  evidence.sources = {{"NVIDIA_VISIBLE_DEVICES of the image", "all", false, "policy says so"}};
  Explanation explanation = explain(std::move(evidence), {});
  EXPECT_THAT(explanation.sources, SizeIs(1));
  EXPECT_FALSE(explanation.granted());
}

TEST(Explain, tells_why_each_edit_of_a_cdi_device_is_there) {
  Evidence evidence;
  evidence.cdi_names = {"vendor.com/gpu=0"};
  oci::DeviceNode node;
  node.path = "/dev/card";
  node.host_path = "/dev/real";
  evidence.cdi.device_nodes = {node};
  oci::Mount mount;
  mount.destination = "/usr/lib/libvendor.so";
  mount.source = "/opt/libvendor.so";
  evidence.cdi.mounts = {mount};
  evidence.cdi.env = {"VENDOR=1"};
  Explanation explanation = explain(std::move(evidence), {});
  EXPECT_TRUE(explanation.granted());
  ASSERT_NE(find(explanation, "/dev/card"), nullptr);
  EXPECT_EQ(find(explanation, "/dev/card")->why, "CDI device vendor.com/gpu=0");
  EXPECT_EQ(find(explanation, "/dev/card")->host_path, "/dev/real");
  EXPECT_EQ(find(explanation, "/usr/lib/libvendor.so")->host_path, "/opt/libvendor.so");
  EXPECT_EQ(find(explanation, "VENDOR=1")->kind, "variable");
}

TEST(Explain, names_the_libcuda_that_will_be_loaded_and_what_may_come_before) {
  Evidence evidence;
  scan::LoaderEntry entry;
  entry.soname = "libcuda.so.1";
  entry.path = "/usr/local/nvidia/lib64/libcuda.so.1";
  evidence.grant.loader_entries = {entry};
  oci::Spec spec;
  spec.process.emplace();
  spec.process->env = {"LD_LIBRARY_PATH=/usr/local/nvidia/lib64:/opt/own:/opt/other"};
  Explanation explanation = explain(std::move(evidence), spec);
  ASSERT_NE(find(explanation, "libcuda.so.1"), nullptr);
  EXPECT_EQ(find(explanation, "libcuda.so.1")->why,
            "the loader's cache leads to /usr/local/nvidia/lib64/libcuda.so.1; LD_LIBRARY_PATH is "
            "searched before: /opt/own:/opt/other");
}

TEST(Explain, reads_back_what_it_keeps) {
  Explanation out;
  out.sources = {{"--gpus", "device=0,1", true, "a flag wins"}, {"label", "", false, "no"}};
  out.items = {{"node", "/dev/nvidia0", true, "GPU 0", ""},
               {"library", "libGL.so.1", false, "capability graphics", "/usr/lib/libGL.so.1"}};
  auto back = parse_explanation(write_explanation(out));
  ASSERT_TRUE(back.ok()) << to_line(back.error());
  EXPECT_EQ(back->sources, out.sources);
  ASSERT_THAT(back->items, SizeIs(2));
  EXPECT_EQ(back->items[1].host_path, "/usr/lib/libGL.so.1");
  EXPECT_FALSE(back->items[1].given);
  EXPECT_TRUE(back->items[0].given);
}

TEST(Explain, keeps_foreign_text_in_its_line_and_member) {
  Explanation out;
  out.sources = {{"NVIDIA_VISIBLE_DEVICES of the image", "0\titem\tyes\n1", false, "no\nno"}};
  auto back = parse_explanation(write_explanation(out));
  ASSERT_TRUE(back.ok());
  ASSERT_THAT(back->sources, SizeIs(1));
  EXPECT_THAT(back->items, IsEmpty());
  EXPECT_EQ(back->sources[0].text, "0\\titem\\tyes\\n1");
}

TEST(Explain, refuses_lines_that_it_has_not_written) {
  for (const char* text : {"item\tyes\tnode\n", "source\n", "other\ta\tb\tc\td\n", "\t\t\t\t\n"}) {
    auto read = parse_explanation(text);
    ASSERT_FALSE(read.ok()) << text;
    EXPECT_EQ(read.error().kind, Kind::corrupt);
    EXPECT_THAT(read.error().what, HasSubstr("line 1"));
  }
}

}  // namespace
}  // namespace berth::engine
