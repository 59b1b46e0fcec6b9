// SPDX-License-Identifier: Apache-2.0
#include "gpu/place/place.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "scan/loader.hpp"
#include "sys/user/identity.hpp"
#include "unit/gpu/driver_tree.hpp"

namespace berth::gpu {
namespace {

namespace fs = std::filesystem;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;
using testing::read_text;
using testing::Scratch;
using testing::write_text;

class Place : public ::testing::Test {
 protected:
  Place() {
    write_text(host("libcuda.so.570.1"), "library");
    write_text(host("nvidia-smi"), "program");
    grant_.files = {
        {FileKind::library, host("libcuda.so.570.1"), "/usr/local/nvidia/lib64/libcuda.so.570.1"},
        {FileKind::binary, host("nvidia-smi"), "/usr/bin/nvidia-smi"}};
    grant_.links = {{"/usr/local/nvidia/lib64/libcuda.so.1", "libcuda.so.570.1"},
                    {"/usr/local/nvidia/lib64/gbm/nvidia-drm_gbm.so", "../libcuda.so.1"}};
    grant_.loader_entries = {{.soname = "libcuda.so.1",
                              .path = "/usr/local/nvidia/lib64/libcuda.so.1",
                              .flags = 0x303,
                              .os_version = 0,
                              .hwcap = 0}};
    grant_.driver_version = "570.1";
    Node node;
    node.path = "/dev/nvidia0";
    node.host_path = "/tree/dev/nvidia0";
    node.major = 195;
    grant_.nodes = {node};
    grant_.env = {"NVIDIA_VISIBLE_DEVICES=GPU-1"};
  }

  std::string host(const std::string& name) const { return scratch_.path() + "/host/" + name; }
  std::string layer(const std::string& name) const { return scratch_.path() + "/layer-" + name; }
  std::string state() const { return scratch_.path() + "/state"; }

  oci::ContainerEdits place_it() { return place_all().edits; }
  Placement place_all(bool musl = false) {
    auto edits = place(grant_, {.state_dir = state(), .volume_dir = volumes(), .musl = musl});
    EXPECT_TRUE(edits.ok()) << to_line(edits.error());
    return edits.ok() ? *edits : Placement{};
  }
  std::string volumes() const { return scratch_.path() + "/volumes"; }
  static std::vector<std::string> destinations(const oci::ContainerEdits& edits) {
    std::vector<std::string> out;
    for (const oci::Mount& mount : edits.mounts) out.push_back(mount.destination);
    return out;
  }
  static std::string source(const oci::ContainerEdits& edits, const std::string& destination) {
    for (const oci::Mount& mount : edits.mounts) {
      if (mount.destination == destination) return mount.source;
    }
    return {};
  }
  Scratch scratch_;
  Grant grant_;
};

TEST_F(Place, mounts_the_skeleton_first_and_each_library_over_its_placeholder) {
  auto edits = place_it();
  EXPECT_THAT(destinations(edits),
              ElementsAre("/usr/local/nvidia", "/usr/local/nvidia/lib64/libcuda.so.570.1",
                          "/usr/bin/nvidia-smi"));
  for (const oci::Mount& mount : edits.mounts) {
    EXPECT_EQ(mount.type, "bind");
    EXPECT_THAT(mount.options, ElementsAre("bind", "ro", "nosuid", "nodev"));
  }
  std::string skeleton = edits.mounts[0].source;
  EXPECT_TRUE(fs::is_empty(skeleton + "/lib64/libcuda.so.570.1"));
  EXPECT_EQ(fs::read_symlink(skeleton + "/lib64/libcuda.so.1"), "libcuda.so.570.1");
  EXPECT_EQ(fs::read_symlink(skeleton + "/lib64/gbm/nvidia-drm_gbm.so"), "../libcuda.so.1");
  EXPECT_THAT(edits.env, ElementsAre("NVIDIA_VISIBLE_DEVICES=GPU-1"));
}

TEST_F(Place, every_user_of_the_container_can_read_it_whatever_our_umask) {
  mode_t before = ::umask(0077);
  auto edits = place_it();
  ::umask(before);
  struct stat info {};
  for (const std::string& path : {edits.mounts[0].source, edits.mounts[0].source + "/lib64",
                                  edits.mounts[0].source + "/lib64/gbm"}) {
    ASSERT_EQ(::stat(path.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0755U) << path;
  }
}

TEST_F(Place, what_is_built_is_used_again_and_nothing_else_is_left) {
  auto first = place_it();
  auto second = place_it();
  EXPECT_EQ(first.mounts[0].source, second.mounts[0].source);
  size_t entries = 0;
  for (const auto& entry : fs::directory_iterator(state() + "/gpu")) {
    ++entries;
    EXPECT_THAT(entry.path().filename().string(), Not(::testing::StartsWith("building-")));
  }
  EXPECT_EQ(entries, 2U);  // the skeleton and the mount points
}

TEST_F(Place, leaves_the_loader_cache_to_the_container) {
  auto edits = place_it();
  ASSERT_EQ(edits.loader_entries.size(), 1U);
  EXPECT_EQ(edits.loader_entries[0].soname, "libcuda.so.1");
  EXPECT_EQ(edits.loader_entries[0].path, "/usr/local/nvidia/lib64/libcuda.so.1");
  EXPECT_EQ(edits.loader_entries[0].flags, 0x303);
}

TEST_F(Place, a_volume_has_all_and_its_programs_are_mounted_over_those_of_the_image) {
  grant_.mode = policy::DriverMode::volume;
  grant_.files[1].container_path = "/usr/local/nvidia/bin/nvidia-smi";
  grant_.volume_programs = {{"/usr/bin/nvidia-smi", "/usr/local/nvidia/bin/nvidia-smi"}};
  auto placed = place(grant_, {.state_dir = state(), .volume_dir = volumes()});
  ASSERT_TRUE(placed.ok()) << to_line(placed.error());
  EXPECT_TRUE(fs::is_regular_file(placed->mountpoint_layer + "/usr/bin/nvidia-smi"));
  auto edits = place_it();
  EXPECT_THAT(destinations(edits), ElementsAre("/usr/local/nvidia", "/usr/bin/nvidia-smi"));
  std::string volume = edits.mounts[0].source;
  EXPECT_THAT(volume, ::testing::StartsWith(volumes() + "/nvidia_driver_570.1/"));
  EXPECT_EQ(edits.mounts[1].source, volume + "/bin/nvidia-smi");
  EXPECT_EQ(read_text(volume + "/lib64/libcuda.so.570.1"), "library");
  EXPECT_EQ(read_text(volume + "/bin/nvidia-smi"), "program");
  EXPECT_EQ(fs::read_symlink(volume + "/lib64/libcuda.so.1"), "libcuda.so.570.1");
  EXPECT_EQ(place_it().mounts[0].source, volume);
}

TEST_F(Place, the_volume_of_an_older_driver_is_removed) {
  write_text(volumes() + "/nvidia_driver_535.1/0123/lib64/libcuda.so.535.1", "old");
  grant_.mode = policy::DriverMode::volume;
  place_it();
  EXPECT_FALSE(fs::exists(volumes() + "/nvidia_driver_535.1"));
}

TEST_F(Place, the_volume_of_an_older_driver_stays_when_somebody_keeps_it) {
  write_text(volumes() + "/nvidia_driver_535.1/0123/lib64/libcuda.so.535.1", "old");
  write_text(volumes() + "/nvidia_driver_550.1/0123/lib64/libcuda.so.550.1", "old");
  grant_.mode = policy::DriverMode::volume;
  PlaceOptions options{.state_dir = state(), .volume_dir = volumes()};
  options.keeps_volume = [](const std::string& name) { return name == "nvidia_driver_535.1"; };
  ASSERT_TRUE(place(grant_, options).ok());
  EXPECT_TRUE(fs::exists(volumes() + "/nvidia_driver_535.1/0123/lib64/libcuda.so.535.1"));
  EXPECT_FALSE(fs::exists(volumes() + "/nvidia_driver_550.1"));
}

TEST_F(Place, a_changed_file_makes_another_volume) {
  grant_.mode = policy::DriverMode::volume;
  std::string before = place_it().mounts[0].source;
  fs::remove(host("libcuda.so.570.1"));
  write_text(host("libcuda.so.570.1"), "patched library");
  std::string after = place_it().mounts[0].source;
  EXPECT_NE(before, after);
  EXPECT_EQ(read_text(after + "/lib64/libcuda.so.570.1"), "patched library");
}

TEST_F(Place, copies_are_listed_and_mount_nothing) {
  grant_.mode = policy::DriverMode::copy;
  auto placed = place_all();
  EXPECT_THAT(destinations(placed.edits), IsEmpty());
  ASSERT_EQ(placed.copies.size(), 2U);
  EXPECT_EQ(placed.copies[1].path, "/usr/bin/nvidia-smi");
  EXPECT_EQ(placed.copies[1].mode, 0555U);
  EXPECT_EQ(placed.copied_links.size(), 2U);
}

TEST_F(Place, removes_what_a_killed_builder_left) {
  write_text(state() + "/gpu/building-0123/half", "");
  place_it();
  for (const auto& entry : std::filesystem::directory_iterator(state() + "/gpu")) {
    EXPECT_FALSE(entry.path().filename().string().starts_with("building-")) << entry.path();
  }
}

TEST_F(Place, musl_has_a_mount_point_of_its_own) {
  EXPECT_FALSE(fs::exists(place_all().mountpoint_layer + "/etc/ld-musl-x86_64.path"));
  EXPECT_TRUE(fs::exists(place_all(true).mountpoint_layer + "/etc/ld-musl-x86_64.path"));
}

TEST_F(Place, a_socket_that_is_gone_is_left_out_and_a_library_that_is_gone_an_error) {
  grant_.files.push_back({FileKind::socket, host("no-socket"), "/run/nvidia-persistenced/socket"});
  EXPECT_THAT(destinations(place_it()), Not(Contains("/run/nvidia-persistenced/socket")));
  fs::remove(host("libcuda.so.570.1"));
  auto edits = place(grant_, {.state_dir = state(), .volume_dir = volumes()});
  ASSERT_FALSE(edits.ok());
  EXPECT_EQ(to_line(edits.error()), "driver file '" + host("libcuda.so.570.1") +
                                        "' is gone; try: berth gpu list --refresh");
}

TEST_F(Place, a_directory_has_a_directory_as_mount_point) {
  grant_.files.push_back({FileKind::config, host("nvidia-smi"), "/tmp/nvidia-mps"});
  std::string as_file = place_all().mountpoint_layer;
  EXPECT_TRUE(fs::is_regular_file(as_file + "/tmp/nvidia-mps"));
  fs::create_directories(host("mps"));
  grant_.files.back() = {FileKind::directory, host("mps"), "/tmp/nvidia-mps"};
  auto placed = place_all();
  EXPECT_TRUE(fs::is_directory(placed.mountpoint_layer + "/tmp/nvidia-mps"));
  EXPECT_EQ(source(placed.edits, "/tmp/nvidia-mps"), host("mps"));
}

TEST_F(Place, nodes_alone_need_no_volume) {
  grant_.mode = policy::DriverMode::volume;
  grant_.files.clear();
  grant_.links.clear();
  EXPECT_THAT(destinations(place_it()), IsEmpty());
}

TEST_F(Place, a_layer_below_the_images_has_every_mount_point) {
  mode_t before = ::umask(0077);
  auto placed = place_all();
  ::umask(before);
  const std::string& layer = placed.mountpoint_layer;
  EXPECT_TRUE(fs::is_empty(layer + "/usr/local/nvidia"));
  EXPECT_TRUE(fs::is_empty(layer + "/usr/bin/nvidia-smi"));
  size_t entries = 0;
  for (const auto& entry : fs::recursive_directory_iterator(layer)) {
    ++entries;
    bool open = (entry.status().permissions() & fs::perms::others_read) != fs::perms::none;
    EXPECT_TRUE(open || !entry.is_directory()) << entry.path();
  }
  EXPECT_EQ(entries, 5U);  // usr, usr/local, usr/local/nvidia, usr/bin and the file
  EXPECT_EQ(place_all().mountpoint_layer, layer);
}

TEST_F(Place, one_directory_is_all_that_is_seen_of_the_drivers_procfs) {
  grant_.proc = {{"nvidia/params", "ModifyDeviceFiles: 0\n"},
                 {"nvidia/gpus/0000:1b:00.0/information", "Model: one\n"}};
  auto edits = place_it();
  std::string proc = source(edits, "/proc/driver");
  EXPECT_EQ(read_text(proc + "/nvidia/params"), "ModifyDeviceFiles: 0\n");
  EXPECT_EQ(read_text(proc + "/nvidia/gpus/0000:1b:00.0/information"), "Model: one\n");
  size_t entries = 0;
  for (const auto& entry : fs::recursive_directory_iterator(proc)) entries += !entry.path().empty();
  EXPECT_EQ(entries, 5U);
}

// Groups are given by root of the machine alone; in another user namespace this test could not
// pass.
TEST_F(Place, nodes_keep_their_numbers_and_bring_their_group) {
  if (!sys::in_initial_user_namespace()) GTEST_SKIP() << "in a user namespace";
  grant_.nodes[0].gid = 44;
  grant_.nodes[0].mode = 0660;
  auto edits = place_it();
  ASSERT_EQ(edits.device_nodes.size(), 1U);
  EXPECT_EQ(edits.device_nodes[0].path, "/dev/nvidia0");
  EXPECT_EQ(edits.device_nodes[0].host_path, "/tree/dev/nvidia0");
  EXPECT_EQ(edits.device_nodes[0].major, 195);
  EXPECT_EQ(edits.device_nodes[0].file_mode, 0660U);
  EXPECT_THAT(edits.additional_gids, ElementsAre(44));
  grant_.nodes[0].gid = 65534;  // not mapped here
  EXPECT_THAT(place_it().additional_gids, IsEmpty());
}

TEST_F(Place, an_empty_grant_changes_nothing) {
  auto edits = place(Grant{}, {.state_dir = state(), .volume_dir = volumes()});
  ASSERT_TRUE(edits.ok());
  EXPECT_THAT(edits->edits.mounts, IsEmpty());
  EXPECT_EQ(edits->mountpoint_layer, "");
  EXPECT_FALSE(fs::exists(state()));
}

}  // namespace
}  // namespace berth::gpu
