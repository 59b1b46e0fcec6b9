// SPDX-License-Identifier: Apache-2.0
#include "gpu/place/place.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "scan/loader_cache.hpp"
#include "sys/identity.hpp"
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
    grant_.library_directories = {"/usr/local/nvidia/lib64"};
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

  oci::ContainerEdits place_it(const std::vector<std::string>& layers = {}) {
    return place_all(layers).edits;
  }
  Placement place_all(const std::vector<std::string>& layers = {}) {
    auto edits = place(grant_, {.state_dir = state(), .layers = layers});
    EXPECT_TRUE(edits.ok()) << to_line(edits.error());
    return edits.ok() ? *edits : Placement{};
  }
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
  static scan::LoaderCache cache_of(const oci::ContainerEdits& edits) {
    auto cache = scan::read_loader_cache(read_text(source(edits, "/etc/ld.so.cache")));
    EXPECT_TRUE(cache.ok()) << to_line(cache.error());
    return cache.ok() ? *cache : scan::LoaderCache{};
  }
  static void write_cache(const std::string& root, const std::string& soname,
                          const std::string& path) {
    scan::LoaderCache cache;
    cache.entries = {{.soname = soname, .path = path, .flags = 0x303, .os_version = 0, .hwcap = 0}};
    write_text(root + "/etc/ld.so.cache", scan::write_loader_cache(cache));
  }

  Scratch scratch_;
  Grant grant_;
};

TEST_F(Place, mounts_the_skeleton_first_and_each_library_over_its_placeholder) {
  auto edits = place_it();
  EXPECT_THAT(destinations(edits),
              ElementsAre("/usr/local/nvidia", "/usr/local/nvidia/lib64/libcuda.so.570.1",
                          "/usr/bin/nvidia-smi", "/etc/ld.so.cache"));
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
  ASSERT_EQ(::stat(source(edits, "/etc/ld.so.cache").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0444U);
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
  EXPECT_EQ(entries, 3U);  // the skeleton, the mount points, the loader cache
}

TEST_F(Place, the_images_own_cache_is_kept_and_ours_wins) {
  write_cache(layer("low"), "libcuda.so.1", "/usr/local/cuda/compat/libcuda.so.1");
  auto overridden = cache_of(place_it({layer("low")}));
  ASSERT_EQ(overridden.entries.size(), 1U);
  EXPECT_EQ(overridden.entries[0].path, "/usr/local/nvidia/lib64/libcuda.so.1");
  write_cache(layer("high"), "libpython.so.3", "/opt/libpython.so.3");
  auto merged = cache_of(place_it({layer("high"), layer("low")}));
  ASSERT_EQ(merged.entries.size(), 2U);
  EXPECT_EQ(merged.entries[0].path, "/opt/libpython.so.3");
}

TEST_F(Place, a_changed_cache_of_an_image_is_noticed) {
  write_cache(layer("a"), "liba.so.1", "/lib/liba.so.1");
  auto first = place_it({layer("a")});
  write_cache(layer("a"), "liblonger.so.1", "/lib/liblonger.so.1");
  auto second = place_it({layer("a")});
  EXPECT_NE(source(first, "/etc/ld.so.cache"), source(second, "/etc/ld.so.cache"));
  EXPECT_EQ(cache_of(second).entries.front().soname, "liblonger.so.1");
}

TEST_F(Place, a_whiteout_hides_the_cache_below_it) {
  write_cache(layer("low"), "liba.so.1", "/lib/liba.so.1");
  fs::create_directories(layer("high") + "/etc");
  if (::mknod((layer("high") + "/etc/ld.so.cache").c_str(), S_IFCHR, 0) != 0) {
    GTEST_SKIP() << "this kernel lets no ordinary user make a whiteout";
  }
  EXPECT_EQ(cache_of(place_it({layer("high"), layer("low")})).entries.size(), 1U);
}

TEST_F(Place, removes_what_a_killed_builder_left) {
  write_text(state() + "/gpu/building-0123/half", "");
  place_it();
  for (const auto& entry : std::filesystem::directory_iterator(state() + "/gpu")) {
    EXPECT_FALSE(entry.path().filename().string().starts_with("building-")) << entry.path();
  }
}

TEST_F(Place, a_damaged_cache_of_an_image_counts_as_none) {
  write_text(layer("a") + "/etc/ld.so.cache", "garbage");
  EXPECT_EQ(cache_of(place_it({layer("a")})).entries.size(), 1U);
}

// What an image could try: a link to a file of the host in the place of its cache.
TEST_F(Place, a_link_in_an_image_does_not_read_the_host) {
  write_cache(scratch_.path() + "/secret", "libsecret.so.1", "/secret");
  fs::create_directories(layer("a") + "/etc");
  fs::create_symlink(scratch_.path() + "/secret/etc/ld.so.cache", layer("a") + "/etc/ld.so.cache");
  fs::create_directories(layer("b"));
  fs::create_symlink(scratch_.path() + "/secret/etc", layer("b") + "/etc");
  for (const char* name : {"a", "b"}) {
    EXPECT_EQ(cache_of(place_it({layer(name)})).entries.size(), 1U) << name;
  }
}

TEST_F(Place, a_fifo_in_the_place_of_a_cache_does_not_stop_us) {
  fs::create_directories(layer("a") + "/etc");
  ASSERT_EQ(::mkfifo((layer("a") + "/etc/ld.so.cache").c_str(), 0644), 0);
  EXPECT_EQ(cache_of(place_it({layer("a")})).entries.size(), 1U);
}

TEST_F(Place, musl_gets_a_path_file) {
  write_text(layer("a") + "/lib/ld-musl-x86_64.so.1", "");
  auto edits = place_it({layer("a")});
  EXPECT_EQ(read_text(source(edits, "/etc/ld-musl-x86_64.path")),
            "/usr/local/nvidia/lib64\n/lib:/usr/local/lib:/usr/lib\n");
  write_text(layer("a") + "/etc/ld-musl-x86_64.path", "/lib\n/opt/lib\n");
  EXPECT_EQ(read_text(source(place_it({layer("a")}), "/etc/ld-musl-x86_64.path")),
            "/usr/local/nvidia/lib64\n/lib\n/opt/lib\n");
}

TEST_F(Place, a_socket_that_is_gone_is_left_out_and_a_library_that_is_gone_an_error) {
  grant_.files.push_back({FileKind::socket, host("no-socket"), "/run/nvidia-persistenced/socket"});
  EXPECT_THAT(destinations(place_it()), Not(Contains("/run/nvidia-persistenced/socket")));
  fs::remove(host("libcuda.so.570.1"));
  auto edits = place(grant_, {.state_dir = state(), .layers = {}});
  ASSERT_FALSE(edits.ok());
  EXPECT_EQ(to_line(edits.error()), "driver file '" + host("libcuda.so.570.1") +
                                        "' is gone; try: berth gpu list --refresh");
}

TEST_F(Place, a_layer_below_the_images_has_every_mount_point) {
  mode_t before = ::umask(0077);
  auto placed = place_all();
  ::umask(before);
  const std::string& layer = placed.placeholder_layer;
  EXPECT_TRUE(fs::is_empty(layer + "/usr/local/nvidia"));
  EXPECT_TRUE(fs::is_empty(layer + "/usr/bin/nvidia-smi"));
  EXPECT_TRUE(fs::is_empty(layer + "/etc/ld.so.cache"));
  size_t entries = 0;
  for (const auto& entry : fs::recursive_directory_iterator(layer)) {
    ++entries;
    bool open = (entry.status().permissions() & fs::perms::others_read) != fs::perms::none;
    EXPECT_TRUE(open || !entry.is_directory()) << entry.path();
  }
  EXPECT_EQ(entries, 7U);  // usr, usr/local, usr/local/nvidia, usr/bin, etc and the two files
  EXPECT_EQ(place_all().placeholder_layer, layer);
}

TEST_F(Place, only_granted_gpus_are_seen_in_procfs) {
  grant_.hide_other_gpus = true;
  grant_.visible_pci_addresses = {"0000:1b:00.0"};
  grant_.params = "ModifyDeviceFiles: 0\n";
  auto edits = place_it();
  EXPECT_THAT(destinations(edits), Contains("/proc/driver/nvidia/gpus/0000:1b:00.0"));
  EXPECT_EQ(source(edits, "/proc/driver/nvidia/gpus/0000:1b:00.0"),
            "/proc/driver/nvidia/gpus/0000:1b:00.0");
  EXPECT_TRUE(fs::is_directory(source(edits, "/proc/driver/nvidia/gpus") + "/0000:1b:00.0"));
  EXPECT_EQ(read_text(source(edits, "/proc/driver/nvidia/params")), "ModifyDeviceFiles: 0\n");
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
  auto edits = place(Grant{}, {.state_dir = state(), .layers = {}});
  ASSERT_TRUE(edits.ok());
  EXPECT_THAT(edits->edits.mounts, IsEmpty());
  EXPECT_EQ(edits->placeholder_layer, "");
  EXPECT_FALSE(fs::exists(state()));
}

}  // namespace
}  // namespace berth::gpu
