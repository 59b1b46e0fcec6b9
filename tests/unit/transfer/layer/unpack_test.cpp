// SPDX-License-Identifier: Apache-2.0
#include "transfer/layer/unpack.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <filesystem>
#include <iterator>

#include "support/erofs_reader.hpp"
#include "sys/file/file.hpp"
#include "sys/file/remove_tree.hpp"
#include "transfer/compression/decompress.hpp"
#include "transfer/layer/erofs.hpp"
#include "transfer/layer/unpack_options.hpp"
#include "transfer/layer/writer.hpp"
#include "transfer/tar/acl.hpp"
#include "transfer/work/cancel.hpp"
#include "transfer/work/sha256.hpp"
#include "unit/facts/build.hpp"
#include "unit/transfer/tar/sparse_tar.hpp"
#include "unit/transfer/tar/tar_builder.hpp"

namespace berth::transfer {
namespace {

namespace fs = std::filesystem;
using image::OverlayXattr;
using image::Ownership;

/// As root the layers are those of root; else those of a user with a single id. Each layer becomes
/// a directory and an image, which are the same, or is refused as both with the same words.
class UnpackTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/berth-unpack-XXXXXX";
    base_ = ::mkdtemp(name);
    options_.on_warning = [this](const std::string& text) { warnings_.push_back(text); };
    if (::geteuid() != 0) {
      options_.ownership = Ownership::single;
      options_.overlay_xattr = OverlayXattr::user;
    }
    fresh();
  }
  void TearDown() override { ignore(sys::remove_tree(sys::cwd(), base_)); }

  /// An empty directory to unpack into; what lies beside it must never change.
  void fresh() {
    ignore(sys::remove_tree(sys::cwd(), base_ + "/fs"));
    fs::create_directory(base_ + "/fs");
  }

  Result<UnpackedLayer> unpack(const std::string& bytes,
                               oci::Compression compression = oci::Compression::none) {
    sys::Fd blob = *sys::memory_file("layer", bytes);
    sys::Fd destination = *sys::open_at(sys::cwd(), base_ + "/fs", O_RDONLY | O_DIRECTORY);
    LayerWriter writer = *LayerWriter::make(destination, options_);
    return unpack_layer(Inflater::make(compression, file_input(blob)), writer, options_);
  }
  Result<UnpackedLayer> unpack_to_image(const std::string& bytes, const sys::Fd& image) {
    UnpackOptions options = options_;
    options.scan = nullptr;
    options.on_warning = {};
    ErofsLayer layer(image, {}, options);
    return unpack_layer(Inflater::make(oci::Compression::none, bytes), layer, options);
  }
  std::string error(const std::string& bytes) {
    options_.blob_size = bytes.size();
    auto line = [](const Result<UnpackedLayer>& result) {
      return result.ok() ? "no error" : to_line(result.error());
    };
    fresh();
    std::string refused = line(unpack(bytes));
    sys::Fd image = *sys::memory_file("image", "");
    EXPECT_EQ(line(unpack_to_image(bytes, image)), refused);
    return refused;
  }
  void good(const TarBuilder& tar) {
    fresh();
    auto result = unpack(tar.finish());
    ASSERT_TRUE(result.ok()) << to_line(result.error());
    EXPECT_EQ(result->diff_id, sha256_of(tar.finish()));
    sys::Fd image = *sys::memory_file("image", "");
    auto same = unpack_to_image(tar.finish(), image);
    ASSERT_TRUE(same.ok()) << to_line(same.error());
    EXPECT_EQ(same->diff_id, result->diff_id);
    size_t size = static_cast<size_t>(sys::stat_fd(image, "image")->st_size);
    TreeLooks tree = ErofsReader::read(*sys::read_at(image, 0, size, "image"));
    constexpr int64_t kLast = 1'700'000'000;  // of TarBuilder
    EXPECT_EQ(difference(with_times_until(tree, kLast),
                         with_times_until(look_at_tree(base_ + "/fs"), kLast)),
              "");
  }
  std::string content(const std::string& path) { return *sys::read_file(sys::cwd(), at(path)); }
  std::string at(const std::string& path) { return base_ + "/fs/" + path; }
  struct stat status(const std::string& path) {
    struct stat entry {};
    EXPECT_EQ(::lstat(at(path).c_str(), &entry), 0) << path;
    return entry;
  }
  bool is_whiteout(const std::string& path) {
    struct stat entry = status(path);
    return S_ISCHR(entry.st_mode) && entry.st_rdev == 0;
  }
  bool is_opaque(const std::string& path) {
    char value[2];
    const char* key = options_.overlay_xattr == OverlayXattr::trusted ? "trusted.overlay.opaque"
                                                                      : "user.overlay.opaque";
    return ::lgetxattr(at(path).c_str(), key, value, sizeof value) == 1 && value[0] == 'y';
  }

  std::string base_;
  UnpackOptions options_;
  std::vector<std::string> warnings_;
};

TEST_F(UnpackTest, every_elf_file_that_stays_is_scanned) {
  std::string program = facts::elf_with({{".data", std::string(100'000, 'x')}});
  facts::LayerScan scan;
  options_.scan = &scan;
  good(TarBuilder()
           .file("bin/a", program, 0000)
           .file("bin/replaced", program)
           .file("bin/replaced", "a text")
           .file("dir/below", program)
           .symlink("dir", "bin")
           .hard_link("lib/b", "bin/a")
           .hard_link("lib/through-link", "dir/a")
           .file("short", std::string("\x7f"
                                      "E"))
           .file("text", "text"));
  std::vector<std::string> paths;
  for (const facts::FileFacts& file : scan.take().files) paths.push_back(file.path);
  EXPECT_EQ(paths, (std::vector<std::string>{"bin/a", "lib/b", "lib/through-link"}));
}

TEST_F(UnpackTest, makes_what_the_archive_says) {
  good(TarBuilder()
           .directory("./", 0751)
           .directory("./usr/", 0700)
           .add({.name = "./usr/tool", .mode = 04755, .uid = 0}, "tool")
           .file("./usr/group", "g", 0664)
           .hard_link("./usr/same", "usr/tool")
           .symlink("./abs", "/etc/passwd")
           .symlink("./up", "../../../etc/passwd")
           .add({.name = "./pipe", .type = '6', .mode = 0600})
           .directory("./usr/closed/", 0555)
           .file("./usr/closed/in", "in", 0400)
           .file("./implied/deep/file", "f"));
  EXPECT_EQ(status("").st_mode & 07777, 0751u);
  EXPECT_EQ(status("usr").st_mode & 07777, 0700u);
  EXPECT_EQ(status("usr").st_mtime, 1'700'000'000);
  EXPECT_EQ(status("usr/tool").st_mode & 07777, 04755u);
  EXPECT_EQ(status("usr/tool").st_mtime, 1'700'000'000);
  EXPECT_EQ(status("usr/group").st_mode & 07777, 0664u);
  EXPECT_EQ(status("usr/same").st_ino, status("usr/tool").st_ino);
  EXPECT_EQ(status("abs").st_mtime, 1'700'000'000);
  EXPECT_EQ(fs::read_symlink(at("up")), "../../../etc/passwd");
  EXPECT_TRUE(S_ISFIFO(status("pipe").st_mode));
  EXPECT_EQ(status("usr/closed").st_mode & 07777, 0555u);
  EXPECT_EQ(status("implied/deep").st_mode & 07777, 0755u);
}

TEST_F(UnpackTest, a_leading_slash_is_the_root_of_the_layer) {
  good(TarBuilder().directory("/ko-app/").file("/ko-app/x", "inside"));
  EXPECT_EQ(content("ko-app/x"), "inside");
}

TEST_F(UnpackTest, nothing_leads_outside) {
  good(TarBuilder()
           .file("../up", "1")
           .file("a/../../down-and-up", "2")
           .symlink("absolute", "/etc")
           .file("absolute/x", "3")
           .symlink("relative", "../../etc")
           .file("relative/y", "4")
           .symlink("to/root", "/")
           .file("to/root/etc/z", "5"));
  EXPECT_EQ(content("up"), "1");
  EXPECT_EQ(content("down-and-up"), "2");
  EXPECT_EQ(content("etc/x"), "3");
  EXPECT_EQ(content("etc/y"), "4");
  EXPECT_EQ(content("etc/z"), "5");
  fs::remove_all(at(""));
  EXPECT_EQ(error(TarBuilder().symlink("a", "b").symlink("b", "a").file("a/evil").finish()),
            "entry 'a/evil': its path goes through too many symbolic links");
  EXPECT_EQ(error(TarBuilder().symlink("l", ".wh.a/b").file("l/evil").finish()),
            "entry 'l/evil': it lies below a whiteout");
  EXPECT_EQ(error(TarBuilder().hard_link("h", "../../../etc/shadow").finish()),
            "entry 'h': it is a hard link to '../../../etc/shadow', which is not in this layer");
  EXPECT_EQ(error(TarBuilder().hard_link("h", "/etc/shadow").finish()),
            "entry 'h': it is a hard link to '/etc/shadow', which is not in this layer");
  EXPECT_EQ(error(TarBuilder().symlink("e", "/etc").hard_link("h", "e/shadow").finish()),
            "entry 'h': it is a hard link to 'e/shadow', which is not in this layer");
  EXPECT_EQ(error(TarBuilder().directory("d").hard_link("h", "d").finish()),
            "entry 'h': it is a hard link to 'd', which is a directory");
  EXPECT_EQ(error(TarBuilder().file("f").file("f/below").finish()),
            "entry 'f/below': 'f' is not a directory");
  EXPECT_EQ(error(TarBuilder().file("d/f").hard_link("d", "d/f").finish()),
            "entry 'd': it is a hard link to 'd/f', which it would replace");
  EXPECT_EQ(error(TarBuilder().symlink(".", "/etc").finish()),
            "entry '.': the root is a directory");
  EXPECT_EQ(std::distance(fs::directory_iterator(base_), {}), 1);
}

TEST_F(UnpackTest, what_links_lead_to_is_made_where_the_layer_has_it_not) {
  good(TarBuilder()
           .symlink("var/run", "/run")
           .file("var/run/x", "1")
           .symlink("lib", "usr/./lib/../lib/")
           .file("lib/y", "2")
           .hard_link("h", "lib/../../var/run/x")
           .hard_link("var/run/twice", "/var/run/x"));
  EXPECT_EQ(content("run/x"), "1");
  EXPECT_EQ(content("usr/lib/y"), "2");
  EXPECT_EQ(status("run/x").st_nlink, 3u);
  EXPECT_EQ(status("run").st_mode & 07777, 0755u);
  EXPECT_TRUE(S_ISLNK(status("var/run").st_mode));
}

TEST_F(UnpackTest, links_make_a_path_neither_deep_nor_long) {
  options_.limits.path_depth = 20;
  std::string deep = "d";
  for (int i = 0; i < 12; ++i) deep += "/d";
  EXPECT_EQ(error(TarBuilder().symlink("l", deep).symlink(deep + "/l", deep).file("l/l/x").finish())
                .substr(0, 70),
            "entry 'd/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d': its path is deeper ");
  std::string around = "a/..";
  for (int i = 0; i < 20; ++i) around += "/a/..";
  EXPECT_EQ(error(TarBuilder().symlink("a/l", around).file("a/l/l/l/x").finish()),
            "entry 'a/l/l/l/x': its path goes through too many symbolic links");
}

TEST_F(UnpackTest, a_device_0_0_is_a_whiteout) {
  good(TarBuilder()
           .add({.name = "d/gone", .type = '3'})
           .hard_link("gone-too", "d/gone")
           .add({.name = "d/both", .type = '3'})
           .file("d/both", "mine")
           .add({.name = "block", .type = '4'}));
  EXPECT_TRUE(is_whiteout("d/gone"));
  EXPECT_TRUE(is_whiteout("gone-too"));
  EXPECT_EQ(content("d/both"), "mine");
  EXPECT_EQ(error(TarBuilder().file(".wh.x", "").hard_link("h", "x").finish()),
            "entry 'h': it is a hard link to 'x', which is not in this layer");
}

TEST_F(UnpackTest, a_hard_link_to_what_took_the_place_of_a_device_0_0_is_one) {
  good(TarBuilder()
           .directory("d/")
           .symlink("l", "d")
           .add({.name = "d/x", .type = '3'})
           .hard_link("gone", "l/x")
           .add({.name = "later", .type = '3'})
           .file("later", "mine")
           .hard_link("same", "later")
           .file("first", "mine too")
           .add({.name = "first", .type = '3'})
           .hard_link("same-too", "first"));
  EXPECT_TRUE(is_whiteout("gone"));
  EXPECT_EQ(content("same"), "mine");
  EXPECT_EQ(content("same-too"), "mine too");
}

TEST_F(UnpackTest, a_link_names_no_directory_that_an_entry_may_not) {
  const std::string longer = std::string(256, 'n') + "/../d";
  EXPECT_EQ(error(TarBuilder().pax({{"linkpath", longer}}).symlink("l", "x").file("l/f").finish()),
            "entry 'l/f': a part of its path is longer than 255 bytes");
  for (const char* target : {".wh.a/../d", ".wh..wh..opq/../d", ".wh..wh.plnk/.."}) {
    EXPECT_EQ(error(TarBuilder().symlink("l", target).file("l/f").finish()),
              "entry 'l/f': it lies below a whiteout");
  }
}

TEST_F(UnpackTest, a_link_that_stays_inside_may_be_gone_through) {
  good(TarBuilder()
           .directory("usr/lib/")
           .symlink("lib", "usr/lib")
           .file("lib/so", "library")
           .directory("lib/sub/", 0711)
           .file("lib/sub/x", "y"));
  EXPECT_EQ(content("usr/lib/so"), "library");
  EXPECT_EQ(status("usr/lib/sub").st_mode & 07777, 0711u);
  EXPECT_TRUE(S_ISLNK(status("lib").st_mode));
}

TEST_F(UnpackTest, the_last_of_several_entries_wins) {
  good(TarBuilder()
           .file("f", "one")
           .file("f", "two")
           .directory("d/")
           .file("d/inner")
           .symlink("d", "f")
           .file("g", "file")
           .directory("g/", 0700)
           .directory("g/", 0711)
           .symlink("s", "/etc/passwd")
           .file("s", "a file again"));
  EXPECT_EQ(content("f"), "two");
  EXPECT_TRUE(S_ISLNK(status("d").st_mode));
  EXPECT_EQ(status("g").st_mode & 07777, 0711u);
  EXPECT_TRUE(S_ISREG(status("s").st_mode));
}

TEST_F(UnpackTest, whiteouts_hide_what_is_below_wherever_they_stand) {
  good(TarBuilder()
           .directory("d/")
           .file("d/.wh.gone", "")
           .file("d/.wh.both", "")
           .file("d/both", "mine")
           .file("d/both2", "mine")
           .file("d/.wh.both2", "")
           .file(".wh.dir1", "")
           .directory("dir1/")
           .directory("dir2/")
           .file(".wh.dir2", "")
           .file(".wh.dir3", "")
           .file("dir3/x", "")
           .file("early/.wh..wh..opq", "")
           .directory("early/", 0711)
           .directory("late/")
           .file("late/y", "")
           .file("late/.wh..wh..opq", "")
           .file(".wh..wh.plnk/1.2", ""));
  EXPECT_TRUE(is_whiteout("d/gone"));
  EXPECT_EQ(content("d/both"), "mine");
  EXPECT_EQ(content("d/both2"), "mine");
  for (const char* opaque : {"dir1", "dir2", "dir3", "early", "late"}) {
    EXPECT_TRUE(is_opaque(opaque)) << opaque;
  }
  EXPECT_FALSE(is_opaque("d"));
  EXPECT_EQ(status("early").st_mode & 07777, 0711u);
  EXPECT_TRUE(fs::exists(at("late/y")));
  for (const auto& entry : fs::recursive_directory_iterator(base_ + "/fs")) {
    EXPECT_FALSE(entry.path().filename().string().starts_with(".wh.")) << entry.path();
  }
}

TEST_F(UnpackTest, a_whiteout_must_name_something) {
  EXPECT_EQ(error(TarBuilder().file("a/.wh.", "").finish()),
            "entry 'a/.wh.': a whiteout of '' does not name a file");
  EXPECT_EQ(error(TarBuilder().file("a/.wh..", "").finish()),
            "entry 'a/.wh..': a whiteout of '.' does not name a file");
  EXPECT_EQ(error(TarBuilder().file("a/.wh...", "").finish()),
            "entry 'a/.wh...': a whiteout of '..' does not name a file");
  EXPECT_EQ(error(TarBuilder().file(".wh.a/b", "").finish()),
            "entry '.wh.a/b': it lies below a whiteout");
}

TEST_F(UnpackTest, device_nodes_are_roots_alone) {
  auto devices = TarBuilder()
                     .add({.name = "dev/null", .type = '3', .mode = 0666, .major = 1, .minor = 3})
                     .add({.name = "dev/sda", .type = '4', .mode = 0660, .major = 8});
  options_.overlay_xattr = OverlayXattr::user;
  fresh();
  ASSERT_TRUE(unpack(devices.finish()).ok());
  EXPECT_FALSE(fs::exists(at("dev/null")));
  EXPECT_EQ(warnings_, std::vector<std::string>{
                           "2 device nodes (first: 'dev/null') cannot be made by an ordinary "
                           "user, ignoring them"});
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to make the nodes";
  options_.overlay_xattr = OverlayXattr::trusted;
  good(devices);
  EXPECT_EQ(status("dev/null").st_rdev, makedev(1, 3));
  EXPECT_EQ(status("dev/null").st_mode & 07777, 0666u);
}

TEST_F(UnpackTest, owners_are_exact_or_all_the_callers) {
  TarBuilder tar;
  tar.directory("d/")
      .add({.name = "d/f", .mode = 06755, .uid = 1234, .gid = 77}, "x")
      .add({.name = "l", .type = '2', .link = "x", .uid = 1234, .gid = 77});
  options_.ownership = Ownership::single;
  good(tar);
  EXPECT_EQ(status("d/f").st_uid, ::geteuid());
  EXPECT_EQ(status("d/f").st_mode & 07777, 0755u);
  EXPECT_EQ(error(TarBuilder().pax({{"uid", "4294967295"}}).file("f").finish()),
            "entry 'f': its owner 4294967295:0 is not a valid id");
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to give files away";
  options_.ownership = Ownership::full;
  good(tar);
  EXPECT_EQ(status("d/f").st_uid, 1234u);
  EXPECT_EQ(status("d/f").st_gid, 77u);
  EXPECT_EQ(status("d/f").st_mode & 07777, 06755u);
  EXPECT_EQ(status("l").st_uid, 1234u);
}

TEST_F(UnpackTest, keeps_file_capabilities_and_drops_the_hosts_attributes) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to set capabilities and trusted attributes";
  std::string capability("\x01\0\0\x02\0\x20\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 20);
  good(TarBuilder()
           .pax({{"SCHILY.xattr.security.capability", capability},
                 {"SCHILY.xattr.trusted.overlay.opaque", "y"},
                 {"SCHILY.xattr.user.overlay.opaque", "y"},
                 {"SCHILY.xattr.security.selinux", "system_u"}})
           .file("ping"));
  char value[64];
  EXPECT_EQ(::lgetxattr(at("ping").c_str(), "security.capability", value, sizeof value), 20);
  EXPECT_EQ(::llistxattr(at("ping").c_str(), value, sizeof value),
            static_cast<ssize_t>(sizeof "security.capability"));
}

TEST_F(UnpackTest, limits_hold) {
  options_.limits.entries = 3;
  EXPECT_EQ(error(TarBuilder().file("a").file("b").file("c").file("d").finish()),
            "the layer has more than 3 entries; try: BERTH_UNPACK_LIMITS, if this image may be so "
            "large");
  options_.limits = {};
  options_.limits.bytes = 5000;
  std::string hint = "; try: BERTH_UNPACK_LIMITS, if this image may be so large";
  EXPECT_EQ(error(TarBuilder().file("a", std::string(10000, 'x')).finish()),
            "the layer unpacks to more than 5000 bytes" + hint);
  // What is not stored cannot be counted while it arrives.
  std::string hole = sparse_member("s", SparseForm::pax_1_0, {}, uint64_t{1} << 55, "");
  EXPECT_EQ(error(hole),
            "entry 's': with its 36028797018963968 bytes the layer has more than 5000" + hint);
  options_.limits = {};
  EXPECT_EQ(
      error(hole),
      "entry 's': with its 36028797018963968 bytes the layer has more than 1099511627776" + hint);
  std::string deep;
  for (int i = 0; i < 600; ++i) deep += "d/";
  EXPECT_EQ(error(TarBuilder().pax({{"path", deep}}).directory("x/").finish()),
            "entry '" + deep.substr(0, 100) + "': its path is deeper than 512 directories" + hint);
  EXPECT_EQ(error(TarBuilder().pax({{"path", std::string(256, 'n')}}).file("x").finish()),
            "entry '" + std::string(256, 'n') + "': a part of its path is longer than 255 bytes");
}

TEST_F(UnpackTest, a_file_that_its_layer_cannot_hold_is_refused_before_it_is_written) {
  std::string claim(12, '\0');
  claim[0] = '\x80';
  claim[7] = '\x19';  // a hundred gigabytes and some
  std::string layer = TarBuilder().add({.name = "big", .size_field = claim}).finish();
  EXPECT_EQ(error(layer),
            "entry 'big': its 107374182400 bytes are more than 1000 times the size of the layer; "
            "try: BERTH_UNPACK_LIMITS, if this image may be so large");
}

TEST_F(UnpackTest, who_means_a_large_image_can_say_so) {
  std::string many = TarBuilder().file("a").file("b").file("c").finish();
  auto say = [&](std::string_view text) {
    Result<UnpackLimits> limits = UnpackLimits().changed_by(text);
    if (limits.ok()) options_.limits = *limits;
    return limits.ok() ? "" : to_line(limits.error());
  };
  EXPECT_EQ(say("entries=2"), "");
  EXPECT_EQ(error(many).substr(0, 33), "the layer has more than 2 entries");
  EXPECT_EQ(say("entries=2, bytes=1k"), "");
  EXPECT_EQ(error(TarBuilder().file("a", std::string(2000, 'x')).finish()).substr(0, 41),
            "the layer unpacks to more than 1024 bytes");
  EXPECT_EQ(
      say("entries=20,deep=3"),
      "BERTH_UNPACK_LIMITS: expected NAME=NUMBER with a name of entries, bytes, ratio, depth, "
      "memory, got 'deep=3'");
  EXPECT_NE(say("entries=-1"), "");
  EXPECT_EQ(say("entries=3,ratio=5000,depth=2000,memory=8g"), "");
  EXPECT_EQ(error(many), "no error");
  options_.limits = {};
  options_.limits.tree_bytes = 1000;
  TarBuilder directories;
  for (int i = 0; i < 100; ++i) directories.directory("d" + std::to_string(i));
  EXPECT_EQ(error(directories.finish()).substr(0, 56),
            "the names of the layer take more than 1000 bytes of memo");
}

TEST_F(UnpackTest, holes_stay_holes) {
  Extents extents{{1 << 20, 5}, {(5 << 20) + 123, 5}};
  for (SparseForm form : kSparseForms) {
    good(TarBuilder()
             .raw(sparse_member("s", form, extents, 64 << 20, "firstlast!"))
             .raw(sparse_member("small", form, {{100, 2}}, 3000, "ab"))
             .file("after", "it"));
    EXPECT_EQ(status("s").st_size, 64 << 20);
    EXPECT_LT(status("s").st_blocks * 512, 1 << 20);
    std::string bytes = *sys::read_file(sys::cwd(), at("s"), 64 << 20);
    EXPECT_EQ(bytes.substr(1 << 20, 5), "first");
    EXPECT_EQ(bytes.substr((5 << 20) + 123, 5), "last!");
    EXPECT_EQ(content("after"), "it");
    sys::Fd image = *sys::memory_file("image", "");
    ASSERT_TRUE(
        unpack_to_image(sparse_member("s", form, extents, 64 << 20, "firstlast!"), image).ok());
    EXPECT_GT(sys::stat_fd(image, "image")->st_size, 64 << 20);
    EXPECT_LT(sys::stat_fd(image, "image")->st_blocks * 512, 1 << 20);
  }
}

TEST_F(UnpackTest, access_lists_are_kept_or_their_mask_goes_with_them) {
  std::string access = "user::rw-,user:1001:rwx,group::r--,mask::rwx,other::---";
  std::string inherited = "user::rwx,group::r-x,group:2000:rwx,mask::rwx,other::---";
  auto layer = [&] {
    return TarBuilder()
        .pax({{"SCHILY.acl.access", inherited}, {"SCHILY.acl.default", inherited}})
        .directory("d/", 0770)
        .pax({{"SCHILY.acl.access", access}, {"SCHILY.acl.default", inherited}})
        .file("d/f", "x", 0670)
        .pax({{"SCHILY.acl.access", "user::rw-,user:ada:rwx,group::r--,mask::rwx,other::---"}})
        .file("d/named", "x", 0670)
        .pax({{"SCHILY.acl.access", "user::rw-,group::r--,other::---"}})
        .file("d/minimal", "x", 0640);
  };
  good(layer());
  bool kept = options_.ownership == Ownership::full;
  EXPECT_EQ(status("d/f").st_mode & 07777, kept ? 0670u : 0640u);
  EXPECT_EQ(status("d/named").st_mode & 07777, 0640u);
  EXPECT_EQ(status("d/minimal").st_mode & 07777, 0640u);
  auto size = [&](const char* path, const char* key) {
    return ::lgetxattr(at(path).c_str(), key, nullptr, 0);
  };
  EXPECT_EQ(size("d/f", "system.posix_acl_access"), kept ? 44 : -1);
  EXPECT_EQ(size("d", "system.posix_acl_default"), kept ? 44 : -1);
  EXPECT_EQ(size("d/f", "system.posix_acl_default"), -1);
  options_.ownership = Ownership::single;
  good(layer());
  EXPECT_EQ(status("d/f").st_mode & 07777, 0640u);
  EXPECT_EQ(size("d/f", "system.posix_acl_access"), -1);
}

TEST_F(UnpackTest, a_default_list_of_the_stores_directory_is_nobodys) {
  std::string list =
      Acl::parse_text("user::rwx,user:1001:rwx,group::rwx,mask::rwx,other::rwx")->value();
  std::string fs = base_ + "/fs";
  if (::setxattr(fs.c_str(), "system.posix_acl_default", list.data(), list.size(), 0) != 0) {
    GTEST_SKIP() << "this file system has no access lists";
  }
  ASSERT_TRUE(unpack(TarBuilder().directory("d/").file("d/f", "x", 0640).finish()).ok());
  for (const char* path : {"", "d", "d/f"}) {
    EXPECT_EQ(::llistxattr(at(path).c_str(), nullptr, 0), 0) << path;
  }
  EXPECT_EQ(status("d/f").st_mode & 0777, 0640u);
}

TEST_F(UnpackTest, trailing_bytes_belong_to_the_digest) {
  std::string bytes = TarBuilder().file("a").finish() + std::string(3 << 20, 'z');
  auto layer = unpack(bytes);
  ASSERT_TRUE(layer.ok());
  EXPECT_EQ(layer->diff_id, sha256_of(bytes));
  EXPECT_EQ(layer->entries, 1u);
}

TEST_F(UnpackTest, large_files_cross_blocks) {
  std::string big(20'000'001, '\0');
  for (size_t i = 0; i < big.size(); ++i) big[i] = static_cast<char>(i * 31 >> 7);
  good(TarBuilder().file("big", big).file("after", "it"));
  EXPECT_EQ(sha256_of(*sys::read_file(sys::cwd(), at("big"), big.size())), sha256_of(big));
  EXPECT_EQ(content("after"), "it");
}

TEST_F(UnpackTest, stops_when_it_is_told_to) {
  Cancel cancel;
  cancel.request();
  options_.cancel = &cancel;
  EXPECT_EQ(error(TarBuilder().file("a").finish()), "stopped by a signal");
}

}  // namespace
}  // namespace berth::transfer
