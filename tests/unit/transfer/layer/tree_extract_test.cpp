// SPDX-License-Identifier: Apache-2.0
#include "transfer/layer/tree_extract.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sys/file/file.hpp"
#include "sys/file/remove_tree.hpp"
#include "transfer/tar/entry.hpp"
#include "transfer/tar/tar.hpp"
#include "unit/transfer/tar/tar_builder.hpp"

namespace berth::transfer {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

/// A destination "in", beside a file "secret" that nothing may reach.
class TreeExtract : public ::testing::Test {
 protected:
  void SetUp() override {
    sys::Fd base = *sys::open_at(sys::cwd(), ::testing::TempDir(), O_RDONLY | O_DIRECTORY);
    temp_ = *sys::TempDir::make(base, "extract-");
    ASSERT_TRUE(sys::make_directory(temp_.fd(), "in").ok());
    ASSERT_TRUE(sys::write_file(temp_.fd(), "secret", "the secret word").ok());
    in_ = *sys::open_at(temp_.fd(), "in", O_RDONLY | O_DIRECTORY);
  }
  void TearDown() override {
    EXPECT_EQ(*sys::read_file(temp_.fd(), "secret"), "the secret word");
    EXPECT_THAT(*sys::list_directory(temp_.fd(), "."), ElementsAre("in", "secret"));
  }

  TreePlace beneath() { return {*sys::duplicate(in_)}; }
  TreePlace in_root() { return {*sys::duplicate(in_), *sys::duplicate(in_), "/"}; }

  Result<void> extract(const std::string& bytes, TreePlace place,
                       image::Trust trust = image::Trust::outside) {
    std::string_view rest = bytes;
    TarReader tar(
        [&]() -> Result<std::string_view> { return std::exchange(rest, std::string_view()); });
    TreeExtractor extractor(
        std::move(place),
        {image::Owners::archive, trust, [&](const std::string& w) { warnings_ += w + "\n"; }});
    TarEntry entry;
    while (TRY(tar.next(entry))) TRY(extractor.add(entry, tar));
    return extractor.finish();
  }
  std::string refused(const TarBuilder& tar) {
    auto done = extract(tar.finish(), beneath());
    return done.ok() ? "nothing was refused" : to_line(done.error());
  }
  struct stat status(const std::string& name) {
    auto found = sys::stat_entry(in_, name);
    return found.ok() && *found ? **found : (struct stat){};
  }
  // Files of this user alone, so that the test needs no root.
  static TarBuilder::Header mine(std::string name, char type, std::string link = "") {
    return {.name = std::move(name),
            .type = type,
            .link = std::move(link),
            .uid = ::getuid(),
            .gid = ::getgid()};
  }

  sys::TempDir temp_;
  sys::Fd in_;
  std::string warnings_;
};

TEST_F(TreeExtract, makes_files_directories_links_and_times) {
  TarBuilder tar;
  tar.add(mine("d/", '5')).add(mine("d/f", '0'), "tea").add(mine("d/l", '2', "../../secret"));
  tar.add(mine("d/h", '1', "d/f")).add(mine("p", '6'));
  ASSERT_TRUE(extract(tar.finish(), beneath()).ok());
  EXPECT_EQ(*sys::read_file(in_, "d/f"), "tea");
  EXPECT_EQ(*sys::read_link(in_, "d/l"), "../../secret");
  EXPECT_EQ(status("d/f").st_ino, status("d/h").st_ino);
  EXPECT_TRUE(S_ISFIFO(status("p").st_mode));
  EXPECT_EQ(status("d").st_mtim.tv_sec, 1'700'000'000);
  EXPECT_EQ(warnings_, "");
}

TEST_F(TreeExtract, names_that_lead_up_are_refused) {
  EXPECT_THAT(refused(TarBuilder().file("../secret")), HasSubstr("its path goes up with '..'"));
  EXPECT_THAT(refused(TarBuilder().file("a/../../secret")), HasSubstr("goes up"));
  EXPECT_THAT(refused(TarBuilder().hard_link("h", "../secret")), HasSubstr("goes up"));
  EXPECT_THAT(refused(TarBuilder().hard_link("h", "/")), HasSubstr("a link to a directory"));
}

TEST_F(TreeExtract, links_on_the_way_are_not_followed) {
  ASSERT_TRUE(sys::make_symlink("..", in_, "way").ok());
  ASSERT_TRUE(sys::make_symlink("../secret", in_, "end").ok());
  EXPECT_THAT(refused(TarBuilder().file("way/secret")), StartsWith("cannot enter '/way'"));
  EXPECT_THAT(refused(TarBuilder().hard_link("h", "way/secret")), StartsWith("cannot enter"));
  EXPECT_THAT(refused(TarBuilder().symlink("mine", "..").file("mine/secret")),
              StartsWith("cannot enter"));
  // What is in the place of a member goes; it is not written through.
  ASSERT_TRUE(extract(TarBuilder().add(mine("end", '0'), "new").finish(), beneath()).ok());
  EXPECT_TRUE(S_ISREG(status("end").st_mode));
}

TEST_F(TreeExtract, a_hard_link_to_a_link_is_that_link) {
  ASSERT_TRUE(sys::make_symlink("../secret", in_, "end").ok());
  ASSERT_TRUE(extract(TarBuilder().add(mine("h", '1', "end")).finish(), beneath()).ok());
  EXPECT_TRUE(S_ISLNK(status("h").st_mode));
}

TEST_F(TreeExtract, in_a_root_links_lead_inside_of_it) {
  ASSERT_TRUE(sys::make_directory(in_, "real").ok());
  ASSERT_TRUE(sys::make_symlink("/real", in_, "way").ok());
  ASSERT_TRUE(sys::make_symlink("../../..", in_, "up").ok());
  TarBuilder tar;
  tar.add(mine("way/f", '0'), "tea").add(mine("up/secret", '0'), "inside");
  ASSERT_TRUE(extract(tar.finish(), in_root()).ok());
  EXPECT_EQ(*sys::read_file(in_, "real/f"), "tea");
  EXPECT_EQ(*sys::read_file(in_, "secret"), "inside");
}

TEST_F(TreeExtract, directories_and_other_things_do_not_replace_each_other) {
  ASSERT_TRUE(sys::make_directory(in_, "d").ok());
  ASSERT_TRUE(sys::write_file(in_, "f", "").ok());
  EXPECT_THAT(refused(TarBuilder().file("d")), StartsWith("cannot overwrite directory 'd'"));
  EXPECT_THAT(refused(TarBuilder().directory("f")), StartsWith("cannot overwrite non-directory"));
}

TEST_F(TreeExtract, outside_nothing_is_set_id_and_no_device) {
  auto tool = mine("tool", '0');
  tool.mode = 06755;
  TarBuilder tar;
  tar.add(tool, "x").add(mine("d/disk", '4')).add(mine("d/again", '1', "./d/disk"));
  tar.add(mine("third", '1', "d/again")).add(mine("last", '0'), "x");
  auto done = extract(tar.finish(), beneath());
  ASSERT_TRUE(done.ok()) << to_line(done.error());
  EXPECT_EQ(status("tool").st_mode & 07777U, 0755U);
  EXPECT_THAT(*sys::list_directory(in_, "."), ElementsAre("d", "last", "tool"));
  EXPECT_TRUE(sys::list_directory(in_, "d")->empty());
  EXPECT_EQ(warnings_,
            "devices of 'd/disk' and 2 more, ignoring\nset-id bits of 'tool', ignoring\n");
}

TEST_F(TreeExtract, zeros_take_no_room) {
  std::string content(size_t{8} << 20, '\0');
  TarBuilder tar;
  tar.add(mine("empty", '0'), content);
  content[content.size() / 2] = 'x';
  tar.add(mine("middle", '0'), content).add(mine("one", '0'), std::string(1, '\0'));
  std::string bytes = tar.finish();
  // In pieces, as they come through a pipe.
  std::string_view rest = bytes;
  TarReader reader([&]() -> Result<std::string_view> {
    std::string_view part = rest.substr(0, 65536);
    rest.remove_prefix(part.size());
    return part;
  });
  TreeExtractor extractor(beneath(), {});
  TarEntry entry;
  while (*reader.next(entry)) ASSERT_TRUE(extractor.add(entry, reader).ok());
  EXPECT_EQ(status("empty").st_size, 8 << 20);
  EXPECT_EQ(status("empty").st_blocks, 0);
  EXPECT_LT(status("middle").st_blocks, 2048);
  EXPECT_EQ(*sys::read_file(in_, "middle", content.size()), content);
  EXPECT_EQ(status("one").st_size, 1);
}

TEST_F(TreeExtract, what_is_gone_at_the_end_is_not_made_again) {
  TarBuilder tar;
  tar.add(mine("d/", '5')).add(mine("d/e/", '5'));
  std::string bytes = tar.finish();
  std::string_view rest = bytes;
  TarReader reader(
      [&]() -> Result<std::string_view> { return std::exchange(rest, std::string_view()); });
  TreeExtractor extractor(beneath(), {});
  TarEntry entry;
  while (*reader.next(entry)) ASSERT_TRUE(extractor.add(entry, reader).ok());
  ASSERT_TRUE(sys::remove_tree(in_, "d").ok());
  ASSERT_TRUE(extractor.finish().ok());
  EXPECT_TRUE(sys::list_directory(in_, ".")->empty());
}

TEST_F(TreeExtract, lies_about_sizes_and_ids_are_refused) {
  std::string cut = TarBuilder().add(mine("f", '0'), std::string(2000, 'x')).finish();
  EXPECT_FALSE(extract(cut.substr(0, 1500), beneath()).ok());
  EXPECT_THAT(refused(TarBuilder().pax({{"uid", "4294967295"}}).file("f")),
              HasSubstr("its owner's id is too large"));
  std::string deep;
  for (int i = 0; i < 513; ++i) deep += "d/";
  EXPECT_THAT(refused(TarBuilder().pax({{"path", deep + "f"}}).file("f")),
              HasSubstr("its path is too deep"));
}

}  // namespace
}  // namespace berth::transfer
