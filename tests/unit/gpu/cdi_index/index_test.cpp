// SPDX-License-Identifier: Apache-2.0
#include "gpu/cdi_index/index.hpp"

#include <gtest/gtest.h>

#include "sys/file/file.hpp"
#include "sys/file/mode.hpp"
#include "sys/file/remove_tree.hpp"

namespace berth::gpu::cdi {
namespace {

oci::ContainerEdits env(const std::string& assignment) {
  return {.env = {assignment}};
}

Index two_files() {
  Index index;
  index.files = {{"/etc/cdi/a.json", "v.com/gpu", env("A=common")},
                 {"/etc/cdi/b.json", "v.com/net", env("B=common")}};
  index.devices = {{"v.com/gpu=0", 0, env("A0=1")},
                   {"v.com/gpu=1", 0, env("A1=1")},
                   {"v.com/net=x", 1, env("BX=1")}};
  index.unavailable = {{"v.com/gpu=2", "defined in '/etc/cdi/a.json' and '/etc/cdi/c.json'"}};
  return index;
}

using Names = std::vector<std::string>;

TEST(CdiIndex, gives_edits_in_the_order_of_the_request_and_a_files_own_once) {
  auto edits = edits_of(two_files(), {"v.com/gpu=1", "v.com/net=x", "v.com/gpu=0", "v.com/gpu=1"});
  ASSERT_TRUE(edits.ok()) << to_line(edits.error());
  EXPECT_EQ(edits->env, (Names{"A=common", "A1=1", "B=common", "BX=1", "A0=1"}));
}

TEST(CdiIndex, says_why_a_device_is_not_given) {
  EXPECT_EQ(to_line(edits_of(two_files(), {"v.com/gpu=2"}).error()),
            "device 'v.com/gpu=2': defined in '/etc/cdi/a.json' and '/etc/cdi/c.json'; try: berth "
            "cdi list");
  EXPECT_EQ(to_line(edits_of(two_files(), {"v.com/gpu=7"}).error()),
            "no CDI device 'v.com/gpu=7', did you mean 'v.com/gpu=0'?; try: berth cdi list");
  Index bad = two_files();
  bad.bad_files = {{"/etc/cdi/c.json", "no JSON"}};
  EXPECT_EQ(to_line(edits_of(bad, {"x.org/other=none"}).error()),
            "no CDI device 'x.org/other=none' (1 CDI file could not be read); try: berth cdi list");
  EXPECT_EQ(edits_of(two_files(), {"gpu"}).error().kind, Kind::usage);
  Index none;
  none.directories = {"/etc/cdi", "/var/run/cdi"};
  EXPECT_EQ(to_line(edits_of(none, {"nvidia.com/gpu=all"}).error()),
            "no CDI device 'nvidia.com/gpu=all': no file in /etc/cdi, /var/run/cdi describes these "
            "GPUs; try: --gpus, or berth cdi generate --output /etc/cdi/nvidia.yaml");
  EXPECT_EQ(to_line(edits_of(none, {"vendor.com/net=x"}).error()),
            "no CDI device 'vendor.com/net=x'; try: berth cdi list");
}

class CdiIndexFile : public testing::Test {
 protected:
  void SetUp() override {
    auto made = sys::TempDir::make(*sys::open_at(sys::cwd(), testing::TempDir(), 0), "cdi-index-");
    ASSERT_TRUE(made.ok());
    directory_ = std::move(*made);
    path_ = testing::TempDir() + "/" + directory_.name() + "/index.json";
  }
  void write(const std::string& text, mode_t mode = 0600) {
    ASSERT_TRUE(sys::remove_entry(sys::cwd(), path_).ok());
    ASSERT_TRUE(sys::write_file(sys::cwd(), path_, text, mode).ok());
  }
  std::string error() {
    auto index = read_index(path_);
    EXPECT_FALSE(index.ok());
    return index.ok() ? "" : to_line(index.error());
  }

  sys::TempDir directory_;
  std::string path_;
};

TEST_F(CdiIndexFile, is_read_as_it_was_written) {
  Index index = two_files();
  oci::ContainerEdits& edits = index.devices[0].edits;
  edits.device_nodes = {{.path = "/dev/a", .major = 1, .minor = 2, .owned_by_process = true}};
  edits.mounts = {{.destination = "/m", .type = "bind", .source = "/s", .options = {"ro"}}};
  edits.hooks.create_container = {
      {.path = "/h", .args = {"h"}, .env = std::vector<std::string>{"E=1"}, .timeout = 3}};
  edits.net_devices = {{"eth1", "net0"}};
  edits.intel_rdt = oci::IntelRdt{.clos_id = "c"};
  edits.links = {{"/l", "t"}};
  edits.loader_entries = {{"libx.so", "/x", 771}};
  edits.compat = oci::CompatRequest{"1.2", "12.8", "/compat"};
  edits.freeze_device_nodes = true;
  write(write_index(index));
  auto read = read_index(path_);
  ASSERT_TRUE(read.ok()) << to_line(read.error());
  ASSERT_TRUE(read->has_value());
  EXPECT_EQ(write_index(**read), write_index(index));
  EXPECT_EQ((*read)->devices[0].edits.loader_entries, edits.loader_entries);
  EXPECT_EQ((*read)->devices[0].edits.compat, edits.compat);
}

TEST_F(CdiIndexFile, is_nothing_where_there_is_none) {
  auto read = read_index(path_);
  ASSERT_TRUE(read.ok());
  EXPECT_FALSE(read->has_value());
}

TEST_F(CdiIndexFile, is_refused_when_others_can_write_it_or_it_lies) {
  write(write_index(two_files()), 0600);
  ASSERT_TRUE(sys::change_mode(*sys::open_at(sys::cwd(), path_, 0), 0666, path_).ok());
  EXPECT_EQ(read_index(path_).error().kind, Kind::denied);
  Index index = two_files();
  index.devices[0].file = 2;
  write(write_index(index));
  EXPECT_EQ(error(), path_ + ": 'v.com/gpu=0' is of no file");
  index.format = 99;
  write(write_index(index));
  EXPECT_EQ(error(),
            "'" + path_ + "' was written by another version of Berth; try: berth cdi refresh");
}

TEST_F(CdiIndexFile, knows_when_what_it_was_made_of_has_changed) {
  Index index = two_files();
  write("one");
  index.stamps = {*stamp_of(path_), *stamp_of("/dev/null"), *stamp_of("/no/such/file")};
  EXPECT_EQ(index.stamps[2].stamp, "");
  EXPECT_TRUE(*is_current(index));
  write("other");
  EXPECT_FALSE(*is_current(index));
}

}  // namespace
}  // namespace berth::gpu::cdi
