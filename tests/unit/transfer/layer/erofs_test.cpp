// SPDX-License-Identifier: Apache-2.0
#include "transfer/layer/erofs.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "random_layer.hpp"
#include "support/erofs_reader.hpp"
#include "sys/file/file.hpp"
#include "sys/file/remove_tree.hpp"
#include "sys/mount/mount.hpp"
#include "transfer/compression/decompress.hpp"
#include "transfer/layer/unpack.hpp"
#include "transfer/layer/unpack_options.hpp"
#include "transfer/layer/writer.hpp"
#include "transfer/tar/entry.hpp"
#include "transfer/tar/tar.hpp"
#include "unit/facts/build.hpp"

namespace berth::transfer {
namespace {

namespace fs = std::filesystem;
constexpr int kHostileLayers = 200;
constexpr int64_t kLastTime = 1'700'000'000;  // of RandomLayer
using image::OverlayXattr;
using image::Ownership;

/// As root the layers are those of root; else those of a user with a single id.
class ErofsLayerTest : public testing::Test {
 protected:
  void SetUp() override {
    // Not in /tmp: from a file of tmpfs the kernel mounts no image.
    std::string name = (fs::current_path() / "berth-erofs-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) {
      name = "/tmp/berth-erofs-XXXXXX";
      ASSERT_NE(::mkdtemp(name.data()), nullptr);
    }
    base_ = name;
    options_.on_warning = [this](const std::string& text) { warnings_.push_back(text); };
    if (::geteuid() != 0) {
      options_.ownership = Ownership::single;
      options_.overlay_xattr = OverlayXattr::user;
    }
  }
  void TearDown() override { ignore(sys::remove_tree(sys::cwd(), base_)); }

  /// Into base_/image, which is empty before.
  Result<UnpackedLayer> unpack(const std::string& tar) {
    ignore(sys::remove_entry(sys::cwd(), base_ + "/image"));
    sys::Fd file = *sys::open_at(sys::cwd(), base_ + "/image", O_RDWR | O_CREAT | O_EXCL, 0600);
    ErofsLayer layer(file, {}, options_);
    return unpack_layer(Inflater::make(oci::Compression::none, tar), layer, options_);
  }
  /// What LayerWriter makes of it, in base_/fs.
  Result<UnpackedLayer> unpack_to_directory(const std::string& tar) {
    ignore(sys::remove_tree(sys::cwd(), base_ + "/fs"));
    fs::create_directory(base_ + "/fs");
    sys::Fd destination = *sys::open_at(sys::cwd(), base_ + "/fs", O_RDONLY | O_DIRECTORY);
    LayerWriter writer = *LayerWriter::make(destination, options_);
    return unpack_layer(Inflater::make(oci::Compression::none, tar), writer, options_);
  }
  /// Without threads: many of them would be all that a small layer costs.
  static std::string add_all(MemberSink& sink, std::string_view rest) {
    TarReader tar([&] { return Result<std::string_view>(std::exchange(rest, {})); });
    auto added = [&]() -> Result<void> {
      TarEntry entry;
      while (TRY(tar.next(entry))) TRY(sink.add(entry, tar));
      return sink.finish();
    }();
    return added.ok() ? "no error" : to_line(added.error());
  }
  std::string error(const std::string& tar) {
    auto result = unpack(tar);
    return result.ok() ? "no error" : to_line(result.error());
  }
  TreeLooks read_image() {
    return ErofsReader::read(*sys::read_file(sys::cwd(), base_ + "/image", size_t{1} << 30));
  }
  TreeLooks good(const std::string& tar) {
    auto result = unpack(tar);
    EXPECT_TRUE(result.ok()) << to_line(result.error());
    return result.ok() ? read_image() : TreeLooks();
  }
  /// Two trees but for the times that no entry gave.
  static std::string unlike(const TreeLooks& one, const TreeLooks& other) {
    return difference(with_times_until(one, kLastTime), with_times_until(other, kLastTime));
  }
  int fsck() {
    return std::system(("fsck.erofs --extract " + base_ + "/image >/dev/null 2>&1").c_str());
  }

  std::string base_;
  UnpackOptions options_;
  std::vector<std::string> warnings_;
};

/// A mount of the image, by the file itself; `error` says why there is none.
class Mounted {
 public:
  explicit Mounted(const std::string& base) : target_(base + "/mounted") {
    fs::create_directory(target_);
    auto mounted = sys::mount(base + "/image", target_, "erofs", MS_RDONLY, "");
    if (!mounted.ok()) error = to_line(mounted.error());
  }
  ~Mounted() {
    if (error.empty()) ignore(sys::unmount(target_, MNT_DETACH));
  }
  TreeLooks looks() const { return look_at_tree(target_); }

  std::string error;

 private:
  std::string target_;
};

TEST_F(ErofsLayerTest, any_layer_becomes_what_it_becomes_in_a_directory) {
  int accepted = 0;
  for (unsigned seed = 0; seed < unsigned{kHostileLayers}; ++seed) {
    std::string tar = RandomLayer(seed).hostile(2 + static_cast<int>(seed % 30));
    sys::TempDir directory = *sys::TempDir::make(sys::cwd(), base_ + "/layer-");
    LayerWriter writer = *LayerWriter::make(directory.fd(), options_);
    sys::Fd image = *sys::memory_file("image", "");
    ErofsLayer layer(image, {}, options_);
    std::string error = add_all(layer, tar);
    ASSERT_EQ(error, add_all(writer, tar)) << "seed " << seed;
    if (error != "no error") continue;
    ++accepted;
    EXPECT_EQ(layer.entries(), writer.entries());
    EXPECT_EQ(layer.bytes(), writer.bytes());
    TreeLooks made = ErofsReader::read(*sys::read_at(image, 0, 1 << 20, "image"));
    TreeLooks expected = look_at_tree(directory.name());
    ASSERT_EQ(unlike(made, expected), "") << "seed " << seed;
  }
  // Either is worth something only if there is enough of it.
  EXPECT_GT(accepted, kHostileLayers / 5);
  EXPECT_LT(accepted, kHostileLayers * 3 / 4);
}

TEST_F(ErofsLayerTest, the_kernel_shows_what_was_unpacked) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to mount";
  for (unsigned seed = 0; seed < 2; ++seed) {
    std::string tar = RandomLayer(seed).honest(60, seed == 0 ? 5000 : 1);
    auto directory = unpack_to_directory(tar);
    ASSERT_TRUE(directory.ok()) << to_line(directory.error());
    ASSERT_TRUE(unpack(tar).ok());
    TreeLooks expected = look_at_tree(base_ + "/fs");
    EXPECT_EQ(unlike(read_image(), expected), "");
    Mounted mounted(base_);
    if (!mounted.error.empty()) GTEST_SKIP() << mounted.error;
    EXPECT_EQ(unlike(mounted.looks(), expected), "");
  }
}

TEST_F(ErofsLayerTest, its_own_checker_accepts_it) {
  if (std::system("command -v fsck.erofs >/dev/null") != 0) GTEST_SKIP() << "no erofs-utils here";
  for (unsigned seed = 10; seed < 12; ++seed) {
    ASSERT_TRUE(unpack(RandomLayer(seed).honest(30, 500)).ok());
    EXPECT_EQ(fsck(), 0);
    EXPECT_EQ(std::system(("dump.erofs -s " + base_ + "/image >/dev/null 2>&1").c_str()), 0);
  }
  ASSERT_TRUE(unpack(TarBuilder().finish()).ok());
  EXPECT_EQ(fsck(), 0);
}

TEST_F(ErofsLayerTest, the_same_layer_gives_the_same_bytes) {
  std::string tar = RandomLayer(7).honest(20, 500);
  ASSERT_TRUE(unpack(tar).ok());
  std::string one = *sys::read_file(sys::cwd(), base_ + "/image", size_t{1} << 30);
  ASSERT_TRUE(unpack(tar).ok());
  EXPECT_EQ(one, *sys::read_file(sys::cwd(), base_ + "/image", size_t{1} << 30));
}

TEST_F(ErofsLayerTest, every_elf_file_that_stays_is_scanned) {
  std::string program = facts::elf_with({{".data", std::string(300'000, 'x')}});
  std::string small = facts::elf_with({{".data", "x"}});
  facts::LayerScan scan;
  options_.scan = &scan;
  good(TarBuilder()
           .file("bin/a", program, 0000)
           .file("bin/replaced", program)
           .file("bin/replaced", "a text")
           .file("dir/below", small)
           .symlink("dir", "bin")
           .hard_link("lib/b", "bin/a")
           .hard_link("lib/through-link", "dir/a")
           .file("small", small)
           .file("text", "text")
           .finish());
  std::vector<std::string> paths;
  for (const facts::FileFacts& file : scan.take().files) paths.push_back(file.path);
  EXPECT_EQ(paths, (std::vector<std::string>{"bin/a", "lib/b", "lib/through-link", "small"}));
}

TEST_F(ErofsLayerTest, a_user_with_a_single_id_owns_all) {
  options_.ownership = Ownership::single;
  options_.overlay_xattr = OverlayXattr::user;
  TreeLooks tree = good(TarBuilder()
                            .add({.name = "f", .mode = 06755, .uid = 1234, .gid = 77}, "x")
                            .add({.name = "null", .type = '3', .major = 1, .minor = 3})
                            .file("d/.wh..wh..opq", "")
                            .finish());
  EXPECT_EQ(tree.at("f").uid, ::geteuid());
  EXPECT_EQ(tree.at("f").mode & 07777, 0755u);
  EXPECT_FALSE(tree.contains("null"));
  EXPECT_EQ(tree.at("d").attributes.at("user.overlay.opaque"), "y");
  EXPECT_EQ(warnings_, std::vector<std::string>{
                           "1 device nodes (first: 'null') cannot be made by an ordinary user, "
                           "ignoring them"});
}

TEST_F(ErofsLayerTest, keeps_file_capabilities_and_drops_the_hosts_attributes) {
  std::string capability("\x01\0\0\x02\0\x20\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 20);
  TreeLooks tree = good(TarBuilder()
                            .pax({{"SCHILY.xattr.security.capability", capability},
                                  {"SCHILY.xattr.trusted.overlay.opaque", "y"},
                                  {"SCHILY.xattr.user.overlay.opaque", "y"},
                                  {"SCHILY.xattr.user.kept", std::string(60'000, 'v')},
                                  {"SCHILY.xattr.security.selinux", "system_u"}})
                            .file("ping")
                            .pax({{"SCHILY.xattr.security.capability", "no capability"}})
                            .file("broken")
                            .pax({{"SCHILY.xattr.user.much", std::string(3000, 'v')}})
                            .directory("./")
                            .finish());
  EXPECT_EQ(tree.at("ping").attributes.at("security.capability"), capability);
  EXPECT_EQ(tree.at("ping").attributes.size(), 2u);
  EXPECT_TRUE(tree.at("broken").attributes.empty());
  EXPECT_TRUE(tree.at("").attributes.empty());
  EXPECT_EQ(warnings_, std::vector<std::string>{
                           "2 file attributes (first: 'security.capability of broken') cannot be "
                           "set here, ignoring them"});
}

TEST_F(ErofsLayerTest, limits_hold) {
  options_.limits.tree_bytes = 1000;
  EXPECT_EQ(error(TarBuilder().file("a").file("b").file(std::string(99, 'c')).finish()),
            "no error");
  EXPECT_EQ(error(RandomLayer(1).honest(3, 1)),
            "the names of the layer take more than 1000 bytes of memory; try: "
            "BERTH_UNPACK_LIMITS, if this image may be so large");
  options_.limits = {};
  // Each link leads half as deep again.
  TarBuilder deep;
  std::string path = "d";
  for (int i = 0; i < 40; ++i) path += "/d";
  deep.directory(path).symlink("l", path);
  deep.directory("l/" + path).symlink("m", "l/" + path);
  options_.limits.path_depth = 80;
  EXPECT_EQ(error(deep.finish()).substr(0, 14), "entry 'd/d/d/d");
  EXPECT_EQ(error(deep.finish()), to_line(unpack_to_directory(deep.finish()).error()));
}

}  // namespace
}  // namespace berth::transfer
