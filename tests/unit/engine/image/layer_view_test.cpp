// SPDX-License-Identifier: Apache-2.0
#include "engine/image/layer_view.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

#include <filesystem>
#include <fstream>
#include <optional>

#include "sys/file/remove_tree.hpp"

namespace berth::engine {
namespace {

namespace fs = std::filesystem;
using Type = LayerView::Type;

class LayerViewTest : public testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::path(testing::TempDir()) / ("layers-" + std::to_string(::getpid()));
    for (const char* layer : {"top", "middle", "bottom"}) fs::create_directories(root_ / layer);
  }
  void TearDown() override { fs::remove_all(root_); }

  void write(const std::string& path, const std::string& text) {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  void link(const std::string& path, const std::string& target) {
    fs::create_directories((root_ / path).parent_path());
    fs::create_symlink(target, root_ / path);
  }
  void whiteout(const std::string& path) {
    fs::create_directories((root_ / path).parent_path());
    ASSERT_EQ(::mknod((root_ / path).c_str(), S_IFCHR | 0600, makedev(0, 0)), 0);
  }
  bool opaque(const std::string& path) {
    fs::create_directories(root_ / path);
    return ::setxattr((root_ / path).c_str(), "user.overlay.opaque", "y", 1, 0) == 0;
  }
  LayerView open() {
    auto view = LayerView::open({root_ / "top", root_ / "middle", root_ / "bottom"});
    EXPECT_TRUE(view.ok());
    return std::move(*view);
  }
  std::string read(const std::string& path) {
    auto text = open().read_file(path, 1000);
    if (!text.ok()) return "error: " + text.error().what;
    return text->value_or("absent");
  }

  fs::path root_;
};

TEST_F(LayerViewTest, shows_the_highest_file) {
  write("bottom/etc/passwd", "bottom");
  write("middle/etc/passwd", "middle");
  write("bottom/etc/group", "group");
  EXPECT_EQ(read("/etc/passwd"), "middle");
  EXPECT_EQ(read("/etc/group"), "group");
  EXPECT_EQ(read("/etc/shadow"), "absent");
}

TEST_F(LayerViewTest, answers_again_as_before_however_many_directories_it_has_seen) {
  constexpr int kMany = 300;  // more than it keeps open
  for (int i = 0; i < kMany; ++i) write("bottom/many/" + std::to_string(i) + "/file", "content");
  write("middle/many/7/file", "middle");
  LayerView view = open();
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < kMany; ++i) {
      std::string directory = "/many/" + std::to_string(i);
      EXPECT_EQ(*view.look_up(directory), Type::directory);
      EXPECT_EQ(*view.look_up(directory + "/none"), Type::absent);
      EXPECT_EQ(*view.look_up(directory + "/none/below"), Type::absent);
      EXPECT_EQ(*view.read_file(directory + "/file", 100), i == 7 ? "middle" : "content");
    }
  }
}

TEST_F(LayerViewTest, hides_what_is_whited_out) {
  write("bottom/etc/passwd", "bottom");
  whiteout("top/etc/passwd");
  EXPECT_EQ(read("/etc/passwd"), "absent");
  write("bottom/opt/a", "a");
  whiteout("middle/opt");
  EXPECT_EQ(*open().look_up("/opt"), Type::absent);
}

TEST_F(LayerViewTest, hides_what_lies_below_an_opaque_directory) {
  write("bottom/etc/passwd", "bottom");
  if (!opaque("middle/etc")) GTEST_SKIP() << "no user attributes on this file system";
  EXPECT_EQ(read("/etc/passwd"), "absent");
  EXPECT_EQ(*open().look_up("/etc"), Type::directory);
}

TEST_F(LayerViewTest, hides_a_directory_below_a_file_and_a_file_below_a_directory) {
  write("bottom/a/b", "b");
  write("top/a", "now a file");
  EXPECT_EQ(*open().look_up("/a/b"), Type::absent);
  EXPECT_EQ(*open().look_up("/a"), Type::other);
  write("bottom/c", "a file");
  write("middle/c/d", "d");
  EXPECT_EQ(read("/c/d"), "d");
}

TEST_F(LayerViewTest, follows_links_inside_the_image_alone) {
  write("bottom/usr/etc/passwd", "real");
  link("top/etc", "usr/etc");
  EXPECT_EQ(read("/etc/passwd"), "real");
  link("top/absolute", "/usr/etc/passwd");
  EXPECT_EQ(read("/absolute"), "real");
  link("top/usr/etc/up", "../../../../../../usr/etc/passwd");
  EXPECT_EQ(read("/usr/etc/up"), "real");
  // The host has this file; the image does not.
  link("top/outside", "/proc/version");
  EXPECT_EQ(read("/outside"), "absent");
  EXPECT_EQ(*open().look_up("/../../../../proc/version"), Type::absent);
}

TEST_F(LayerViewTest, says_where_a_path_leads_as_far_as_there_is_something) {
  link("bottom/usr/local", "/data/site");
  link("middle/soft", "usr/../usr/local");
  write("bottom/opt/file", "file");
  LayerView view = open();
  EXPECT_EQ(*view.real_path("/usr/local/nvidia"), "/data/site/nvidia");
  EXPECT_EQ(*view.real_path("/soft"), "/data/site");
  EXPECT_EQ(*view.real_path("/usr/./missing//x/../y/"), "/usr/missing/y");
  EXPECT_EQ(*view.real_path("/opt/file/below"), "/opt/file/below");
  EXPECT_EQ(*view.real_path("/../.."), "/");
  link("top/circle", "circle");
  EXPECT_EQ(*open().real_path("/circle/x"), "/circle/x");
}

TEST_F(LayerViewTest, gives_up_on_a_circle_of_links) {
  link("top/a", "b");
  link("top/b", "a");
  EXPECT_EQ(read("/a"), "absent");
  EXPECT_EQ(*open().look_up("/a/b"), Type::absent);
}

TEST_F(LayerViewTest, reads_nothing_but_regular_files) {
  ASSERT_EQ(::mkfifo((root_ / "top/pipe").c_str(), 0600), 0);
  fs::create_directories(root_ / "top/etc/passwd");
  EXPECT_EQ(read("/pipe"), "absent");
  EXPECT_EQ(read("/etc/passwd"), "absent");
}

TEST_F(LayerViewTest, refuses_a_file_that_is_too_long) {
  write("top/etc/passwd", std::string(2000, 'x'));
  EXPECT_TRUE(read("/etc/passwd").starts_with("error: read '/etc/passwd'"));
}

TEST_F(LayerViewTest, tells_whose_file_is_seen_without_following_links) {
  using Layers = std::vector<std::optional<size_t>>;
  write("bottom/lib/a", "a");
  write("bottom/lib/b", "b");
  write("bottom/lib/c", "c");
  write("middle/lib/b", "b");
  whiteout("top/lib/c");
  link("top/lib/d", "a");
  link("top/usr", "lib");
  auto layers = open().layers_of("lib", {"a", "b", "c", "d", "e"});
  ASSERT_TRUE(layers.ok());
  EXPECT_EQ(*layers, (Layers{2, 1, std::nullopt, std::nullopt, std::nullopt}));
  EXPECT_EQ(*open().layers_of("usr", {"a"}), (Layers{std::nullopt}));
  EXPECT_EQ(*open().layers_of("", {"lib", "usr"}), (Layers{std::nullopt, std::nullopt}));
}

}  // namespace
}  // namespace berth::engine
