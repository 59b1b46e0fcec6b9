// SPDX-License-Identifier: Apache-2.0
#include "engine/decide/explain.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/gpu/provenance.hpp"

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
  Provenance provenance;
  provenance.sources = {{"NVIDIA_VISIBLE_DEVICES of the image", "all", false, "policy says so"}};
  Explanation explanation = explain(std::move(provenance), {});
  EXPECT_THAT(explanation.sources, SizeIs(1));
  EXPECT_FALSE(explanation.granted());
}

TEST(Explain, tells_whose_mpi_it_is_which_gives_no_gpu) {
  Provenance provenance;
  provenance.mpi = {
      {"mpi", "host", true, "it fits", ""},
      {"mpi-library", "libmpi.so.40", true, "the host's MPI", "/opt/libmpi.so.40.30"}};
  Explanation explanation = explain(std::move(provenance), {});
  ASSERT_NE(find(explanation, "libmpi.so.40"), nullptr);
  EXPECT_FALSE(explanation.granted());
  EXPECT_TRUE(explanation.asks_nothing());
  provenance = {};
  provenance.mpi = {{"node", "/dev/infiniband/uverbs0", true, "of the fabric, for MPI", ""}};
  EXPECT_TRUE(explain(std::move(provenance), {}).granted());
}

TEST(Explain, tells_why_each_edit_of_a_cdi_device_is_there) {
  Provenance provenance;
  provenance.cdi_names = {"vendor.com/gpu=0"};
  oci::DeviceNode node;
  node.path = "/dev/card";
  node.host_path = "/dev/real";
  provenance.cdi.device_nodes = {node};
  oci::Mount mount;
  mount.destination = "/usr/lib/libvendor.so";
  mount.source = "/opt/libvendor.so";
  provenance.cdi.mounts = {mount};
  provenance.cdi.env = {"VENDOR=1"};
  Explanation explanation = explain(std::move(provenance), {});
  EXPECT_TRUE(explanation.granted());
  ASSERT_NE(find(explanation, "/dev/card"), nullptr);
  EXPECT_EQ(find(explanation, "/dev/card")->why, "CDI device vendor.com/gpu=0");
  EXPECT_EQ(find(explanation, "/dev/card")->host_path, "/dev/real");
  EXPECT_EQ(find(explanation, "/usr/lib/libvendor.so")->host_path, "/opt/libvendor.so");
  EXPECT_EQ(find(explanation, "VENDOR=1")->kind, "variable");
}

constexpr const char* kHostLibcuda = "/usr/lib/x86_64-linux-gnu/libcuda.so.570.133.20";

/// A grant of one GPU with the driver's libcuda, by bind.
Provenance nvidia_evidence() {
  Provenance provenance;
  provenance.grant.nodes.resize(1);
  provenance.grant.nodes[0].path = "/dev/nvidia0";
  provenance.grant.driver_version = "570.133.20";
  provenance.grant.files = {
      {gpu::FileKind::library, kHostLibcuda, "/usr/local/nvidia/lib64/libcuda.so.570.133.20"}};
  provenance.grant.loader_entries = {
      {"libcuda.so.1", "/usr/local/nvidia/lib64/libcuda.so.1", 0, 0, 0}};
  return provenance;
}

oci::Spec spec_with(std::string variable) {
  oci::Spec spec;
  spec.process.emplace();
  spec.process->env = {std::move(variable)};
  return spec;
}

gpu::Reason loaded(Provenance provenance, const oci::Spec& spec = {}) {
  Explanation explanation = explain(std::move(provenance), spec);
  for (const gpu::Reason& item : explanation.items) {
    if (item.kind == "loads") return item;
  }
  return {};
}

TEST(Explain, names_the_drivers_libcuda_and_how_the_loader_comes_to_it) {
  gpu::Reason by_cache = loaded(nvidia_evidence());
  EXPECT_EQ(by_cache.object, "libcuda.so.1");
  EXPECT_TRUE(by_cache.given);
  EXPECT_EQ(by_cache.why,
            "the loader's cache leads to /usr/local/nvidia/lib64/libcuda.so.1, the driver's "
            "(570.133.20)");
  EXPECT_EQ(by_cache.host_path, kHostLibcuda);
  gpu::Reason by_variable =
      loaded(nvidia_evidence(), spec_with("LD_LIBRARY_PATH=/opt/none:/usr/local/nvidia/lib64/"));
  EXPECT_EQ(by_variable.why,
            "LD_LIBRARY_PATH leads to /usr/local/nvidia/lib64/libcuda.so.1, the driver's "
            "(570.133.20)");
}

TEST(Explain, tells_that_the_drivers_file_is_laid_over_the_images_own) {
  Provenance provenance = nvidia_evidence();
  provenance.image.libraries = {
      {"/opt/own/libcuda.so.1", "/opt/own/libcuda.so.535.1", "535.1", "LD_LIBRARY_PATH", true}};
  provenance.grant.files.push_back(
      {gpu::FileKind::config, kHostLibcuda, "/opt/own/libcuda.so.535.1"});
  gpu::Reason loads = loaded(std::move(provenance));
  EXPECT_EQ(loads.why,
            "LD_LIBRARY_PATH leads to /opt/own/libcuda.so.1, over which the driver's (570.133.20) "
            "is laid");
  EXPECT_EQ(loads.host_path, kHostLibcuda);
}

TEST(Explain, prefers_the_drivers_cache_entry_to_the_images) {
  Provenance provenance = nvidia_evidence();
  provenance.image.libraries = {
      {"/usr/lib/libcuda.so.1", "/usr/lib/libcuda.so.1", "", "a default directory", false}};
  EXPECT_THAT(loaded(provenance).why, HasSubstr("leads to /usr/local/nvidia/lib64/libcuda.so.1"));
  provenance.grant.mode = policy::DriverMode::image;
  provenance.grant.loader_entries.clear();
  EXPECT_EQ(loaded(provenance).why,
            "a default directory leads to /usr/lib/libcuda.so.1, the image's own");
}

TEST(Explain, names_the_compat_package_that_is_loaded) {
  Provenance provenance = nvidia_evidence();
  provenance.image.compat.emplace();
  provenance.image.compat->directory = "/usr/local/cuda/compat";
  provenance.image.compat->version = "575.57.08";
  provenance.grant.loader_entries[0].path = "/usr/local/cuda/compat/libcuda.so.1";
  EXPECT_EQ(
      loaded(std::move(provenance)).why,
      "the loader's cache leads to /usr/local/cuda/compat/libcuda.so.1, of the image's compat "
      "package (575.57.08)");
}

TEST(Explain, says_that_nothing_will_be_loaded) {
  Provenance provenance = nvidia_evidence();
  provenance.grant.mode = policy::DriverMode::none;
  provenance.grant.loader_entries.clear();
  gpu::Reason loads = loaded(std::move(provenance));
  EXPECT_FALSE(loads.given);
  EXPECT_THAT(loads.why, HasSubstr("no file of that name was given"));
}

TEST(Explain, says_what_may_come_before_the_libcuda_of_a_cdi_device) {
  Provenance provenance;
  provenance.cdi.loader_entries = {{"libcuda.so.1", "/usr/local/nvidia/lib64/libcuda.so.1", 0}};
  EXPECT_EQ(loaded(provenance, spec_with("LD_LIBRARY_PATH=/opt/own:/opt/other")).why,
            "the loader's cache leads to /usr/local/nvidia/lib64/libcuda.so.1, of the CDI device; "
            "LD_LIBRARY_PATH is searched before: /opt/own:/opt/other");
}

TEST(Explain, names_the_driver_mode_and_who_chose_it) {
  Provenance provenance = nvidia_evidence();
  provenance.grant.mode = policy::DriverMode::volume;
  provenance.mode_from = "the policy says so";
  Explanation explanation = explain(std::move(provenance), {});
  ASSERT_FALSE(explanation.items.empty());
  EXPECT_EQ(explanation.items[0].kind, "driver-mode");
  EXPECT_EQ(explanation.items[0].object, "volume");
  EXPECT_EQ(explanation.items[0].why,
            "the driver's files are one volume of this version; the policy says so");
  Provenance amd = nvidia_evidence();
  amd.grant.vendor = gpu::Vendor::amd;
  EXPECT_EQ(find(explain(std::move(amd), {}), "bind"), nullptr);
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
