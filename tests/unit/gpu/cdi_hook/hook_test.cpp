// SPDX-License-Identifier: Apache-2.0
#include "gpu/cdi_hook/hook.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "gpu/cdi_hook/root.hpp"
#include "scan/loader.hpp"
#include "sys/file/file.hpp"
#include "unit/gpu/driver_tree.hpp"

namespace berth::gpu::cdi {
namespace {

namespace fs = std::filesystem;
using testing::read_text;
using testing::Scratch;
using testing::write_text;

const oci::LoaderLine kCuda{"libcuda.so.1", "/usr/local/nvidia/lib64/libcuda.so.1", 0x303};

TEST(HookWords, are_read_as_they_are_written) {
  HookRequest request{{{"/a/b", "../c"}}, {kCuda, {"libx.so", "/x", -5}}, true};
  auto again = parse_words(to_words(request));
  ASSERT_TRUE(again.ok()) << to_line(again.error());
  EXPECT_EQ(again->links, request.links);
  EXPECT_EQ(again->loader_entries, request.loader_entries);
  EXPECT_TRUE(again->freeze_device_nodes);
}

TEST(HookWords, that_nobody_understands_are_refused) {
  EXPECT_EQ(to_line(parse_words({"--lnk", "a::/b"}).error()), "unknown flag '--lnk'");
  EXPECT_EQ(to_line(parse_words({"--link"}).error()), "--link needs a value");
  EXPECT_EQ(to_line(parse_words({"--link", "a::b"}).error()), "--link: cannot read 'a::b'");
  for (const char* entry : {"a::/b", "a::b::1", "::/b::1", "a::/b::99999999999", "a::/b::1::2"}) {
    EXPECT_FALSE(parse_words({"--loader-entry", entry}).ok()) << entry;
  }
}

class Hook : public ::testing::Test {
 protected:
  Hook() {
    fs::create_directories(path("root"));
    root_ = std::move(*sys::open_at(sys::cwd(), path("root"), O_PATH | O_DIRECTORY));
  }
  std::string path(const std::string& name) const { return scratch_.path() + "/" + name; }
  std::string in_root(const std::string& name) const { return path("root/" + name); }
  void run(const HookRequest& request) {
    auto done = run_hook(request, root_);
    EXPECT_TRUE(done.ok()) << to_line(done.error());
  }
  scan::LoaderCache cache() const {
    auto read = scan::read_loader_cache(read_text(in_root("etc/ld.so.cache")));
    EXPECT_TRUE(read.ok());
    return read.ok() ? *read : scan::LoaderCache{};
  }

  Scratch scratch_;
  sys::Fd root_;
};

TEST_F(Hook, makes_links_with_their_directories_and_replaces_what_is_there) {
  write_text(in_root("usr/lib/old"), "x");
  run({.links = {{"/usr/lib/libcuda.so", "libcuda.so.1"}, {"/usr/lib/old", "new"}}});
  EXPECT_EQ(fs::read_symlink(in_root("usr/lib/libcuda.so")), "libcuda.so.1");
  EXPECT_EQ(fs::read_symlink(in_root("usr/lib/old")), "new");
  run({.links = {{"/usr/lib/libcuda.so", "libcuda.so.1"}}});
  EXPECT_EQ(std::distance(fs::directory_iterator(in_root("usr/lib")), {}), 2);
}

TEST_F(Hook, leaves_a_directory_that_has_the_name_of_a_link) {
  write_text(in_root("usr/lib/libcuda.so/keep"), "x");
  auto done = run_hook({.links = {{"/usr/lib/libcuda.so", "t"}}}, root_);
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(std::distance(fs::directory_iterator(in_root("usr/lib")), {}), 1);
}

TEST_F(Hook, never_leaves_the_root_whatever_the_image_has_there) {
  write_text(path("host/ld.so.cache"), "host");
  fs::create_directories(in_root("usr"));
  fs::create_symlink(path("host"), in_root("etc"));
  fs::create_symlink("../../../../../../../.." + path("host"), in_root("usr/lib"));
  // Both lead to places of the root that do not exist.
  EXPECT_FALSE(run_hook({.links = {{"/usr/lib/x", "t"}}}, root_).ok());
  EXPECT_FALSE(run_hook({.loader_entries = {kCuda}}, root_).ok());
  EXPECT_EQ(read_text(path("host/ld.so.cache")), "host");
  EXPECT_EQ(std::distance(fs::directory_iterator(path("host")), {}), 1);
  // And where they exist there, that is what is meant.
  fs::create_directories(in_root(path("host").substr(1)));
  run({.links = {{"/usr/lib/x", "t"}}, .loader_entries = {kCuda}});
  EXPECT_TRUE(fs::is_symlink(in_root(path("host").substr(1)) + "/x"));
  EXPECT_EQ(std::distance(fs::directory_iterator(path("host")), {}), 1);
}

TEST_F(Hook, writes_a_cache_that_has_the_images_entries_too) {
  scan::LoaderCache image;
  image.entries = {{.soname = "libharbour.so.1",
                    .path = "/opt/libharbour.so.1",
                    .flags = 0x303,
                    .os_version = 0,
                    .hwcap = 0},
                   {.soname = "libcuda.so.1",
                    .path = "/opt/libcuda.so.1",
                    .flags = 0x303,
                    .os_version = 0,
                    .hwcap = 0}};
  write_text(in_root("etc/ld.so.cache"), scan::write_loader_cache(image));
  run({.loader_entries = {kCuda}});
  auto merged = cache().entries;
  ASSERT_EQ(merged.size(), 2u);
  for (const scan::LoaderEntry& entry : merged) {
    EXPECT_EQ(entry.path, entry.soname == "libcuda.so.1" ? kCuda.path : "/opt/libharbour.so.1");
  }
}

TEST_F(Hook, tells_an_ldconfig_of_the_containers_own_and_linkers) {
  oci::LoaderLine plain{"libcuda.so", kCuda.path, kCuda.flags};
  run({.loader_entries = {kCuda, plain}});
  EXPECT_EQ(read_text(in_root("etc/ld.so.conf.d/00-berth.conf")),
            kCuda.path.substr(0, kCuda.path.rfind('/')) + "\n");
  EXPECT_EQ(read_text(in_root("etc/ld.so.conf")), scan::kMainConfigurationText);
  EXPECT_FALSE(fs::exists(in_root("usr/lib")));  // where there is none, no linker looks
  fs::create_directories(in_root("usr/lib"));
  write_text(in_root("etc/ld.so.conf"), "/opt/lib\n");
  run({.loader_entries = {kCuda, plain}});
  EXPECT_EQ(fs::read_symlink(in_root("usr/lib/libcuda.so")), kCuda.path);
  EXPECT_EQ(read_text(in_root("etc/ld.so.conf")), "/opt/lib\n");
}

TEST_F(Hook, takes_a_cache_that_it_cannot_read_for_none) {
  for (const std::string& text : {std::string("glibc-ld.so.cache1.1") + std::string(99, '\xff'),
                                  std::string(), std::string(70000, 'x')}) {
    write_text(in_root("etc/ld.so.cache"), text);
    run({.loader_entries = {kCuda}});
    EXPECT_EQ(cache().entries.size(), 1u);
  }
  fs::remove(in_root("etc/ld.so.cache"));
  ASSERT_EQ(::mkfifo(in_root("etc/ld.so.cache").c_str(), 0600), 0);
  run({.loader_entries = {kCuda}});
  EXPECT_EQ(cache().entries.size(), 1u);
}

TEST_F(Hook, replaces_a_link_of_that_name_and_not_what_it_leads_to) {
  write_text(in_root("etc/other"), "other");
  fs::create_symlink("other", in_root("etc/ld.so.cache"));
  run({.loader_entries = {kCuda}});
  EXPECT_EQ(read_text(in_root("etc/other")), "other");
  EXPECT_TRUE(fs::is_regular_file(fs::symlink_status(in_root("etc/ld.so.cache"))));
}

TEST_F(Hook, tells_musl_the_directories_where_the_image_has_it) {
#if defined(__x86_64__)
  run({.loader_entries = {kCuda}});
  EXPECT_FALSE(fs::exists(in_root("etc/ld-musl-x86_64.path")));
  write_text(in_root("lib/ld-musl-x86_64.so.1"), "");
  run({.loader_entries = {kCuda}});
  EXPECT_EQ(read_text(in_root("etc/ld-musl-x86_64.path")),
            "/usr/local/nvidia/lib64\n/lib:/usr/local/lib:/usr/lib\n");
#endif
}

TEST_F(Hook, finds_the_root_in_the_state_of_the_container) {
  write_text(path("config.json"),
             R"({"ociVersion":"1.0.2","root":{"path":"root"},"process":{"cwd":"/"}})");
  write_text(in_root("marker"), "here");
  auto root = open_container_root(R"({"id":"x","bundle":")" + scratch_.path() + R"("})");
  ASSERT_TRUE(root.ok()) << to_line(root.error());
  EXPECT_EQ(*sys::read_file(*root, "marker"), "here");
  EXPECT_FALSE(open_container_root("{}").ok());
  EXPECT_FALSE(open_container_root("").ok());
  EXPECT_FALSE(open_container_root(R"({"bundle":"/no/such/bundle"})").ok());
}

}  // namespace
}  // namespace berth::gpu::cdi
