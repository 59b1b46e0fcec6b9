// SPDX-License-Identifier: Apache-2.0
#include "transfer/tar/tar.hpp"

#include <gtest/gtest.h>

#include <map>
#include <tuple>

#include "tar_builder.hpp"
#include "transfer/tar/entry.hpp"

namespace berth::transfer {
namespace {

struct TarRead {
  std::vector<TarEntry> entries;
  std::vector<std::string> contents;
  std::string error;
};

/// In pieces of `piece` bytes, so that records straddle them.
TarRead read_tar(const std::string& bytes, size_t piece = 1 << 20) {
  size_t used = 0;
  TarReader tar([&]() -> Result<std::string_view> {
    std::string_view part = std::string_view(bytes).substr(used, piece);
    used += part.size();
    return part;
  });
  TarRead result;
  TarEntry entry;
  while (true) {
    auto more = tar.next(entry);
    if (!more.ok()) {
      result.error = to_line(more.error());
      return result;
    }
    if (!*more) return result;
    result.entries.push_back(entry);
    std::string content;
    while (true) {
      auto part = tar.content();
      if (!part.ok()) {
        result.error = to_line(part.error());
        return result;
      }
      if (part->empty()) break;
      content += *part;
    }
    result.contents.push_back(content);
  }
}

TEST(Tar, reads_members_however_the_stream_is_cut) {
  std::string bytes = TarBuilder()
                          .directory("d/")
                          .file("d/a", std::string(1000, 'a'))
                          .symlink("l", "d/a")
                          .hard_link("h", "d/a")
                          .file("b", "")
                          .finish();
  for (size_t piece : {1, 100, 511, 512, 513, 100000}) {
    TarRead got = read_tar(bytes, piece);
    ASSERT_EQ(got.error, "");
    ASSERT_EQ(got.entries.size(), 5u);
    EXPECT_EQ(got.entries[0].type, TarEntry::Type::directory);
    EXPECT_EQ(got.contents[1], std::string(1000, 'a'));
    EXPECT_EQ(got.entries[2].link, "d/a");
    EXPECT_EQ(got.entries[3].type, TarEntry::Type::hard_link);
    EXPECT_EQ(got.entries[1].mtime, 1'700'000'000);
  }
}

TEST(Tar, pax_wins_over_fields) {
  std::string path = std::string(200, 'p') + "/" + std::string(200, 'q');
  TarRead got = read_tar(TarBuilder()
                             .pax({{"path", path},
                                   {"mtime", "-1.25"},
                                   {"uid", "4000000000"},
                                   {"SCHILY.xattr.user.k", std::string("v\0w", 3)},
                                   {"linkpath", ""}})
                             .file("short")
                             .finish());
  ASSERT_EQ(got.error, "");
  EXPECT_EQ(got.entries[0].path, path);
  EXPECT_EQ(got.entries[0].uid, 4000000000u);
  EXPECT_EQ(got.entries[0].mtime, -2);
  EXPECT_EQ(got.entries[0].mtime_nanoseconds, 750'000'000u);
  ASSERT_EQ(got.entries[0].xattrs.size(), 1u);
  EXPECT_EQ(got.entries[0].xattrs[0].second.size(), 3u);
}

TEST(Tar, gnu_long_names_and_base_256_sizes) {
  std::string size(12, '\0');
  size[0] = '\x80';
  size[11] = 3;
  TarRead got =
      read_tar(TarBuilder()
                   .add({.name = "././@LongLink", .type = 'L'}, std::string(300, 'n') + '\0')
                   .add({.name = "x", .size_field = size}, "abc")
                   .finish());
  ASSERT_EQ(got.error, "");
  EXPECT_EQ(got.entries[0].path, std::string(300, 'n'));
  EXPECT_EQ(got.contents[0], "abc");
}

TEST(Tar, links_and_directories_have_no_content_whatever_their_size_says) {
  TarRead got =
      read_tar(TarBuilder()
                   .add({.name = "h", .type = '1', .link = "a", .size_field = "00000001000"})
                   .file("a")
                   .finish());
  ASSERT_EQ(got.error, "");
  EXPECT_EQ(got.entries.size(), 2u);
}

TEST(Tar, an_archive_may_end_without_zero_blocks_but_not_inside_a_member) {
  EXPECT_EQ(read_tar(TarBuilder().file("a").unfinished()).error, "");
  EXPECT_EQ(read_tar("").error, "");
  std::string whole = TarBuilder().file("a", std::string(600, 'x')).unfinished();
  EXPECT_EQ(read_tar(whole.substr(0, 512 + 600)).contents, std::vector{std::string(600, 'x')});
  EXPECT_EQ(read_tar(whole.substr(0, 512 + 600)).error, "");  // only the padding is missing
  EXPECT_EQ(read_tar(whole.substr(0, 1000)).error, "tar: the archive ends inside a file");
  EXPECT_EQ(read_tar(whole.substr(0, 100)).error, "tar: the archive ends inside a header");
}

TEST(Tar, refuses_what_is_not_what_it_seems) {
  auto flipped = TarBuilder().file("a").finish();
  flipped[0] = 'b';
  EXPECT_EQ(read_tar(flipped).error, "tar: a header has a wrong checksum");
  EXPECT_EQ(read_tar(std::string(512, '\0') + TarBuilder().file("a").finish()).error,
            "tar: data follows a zero block");
  std::string negative(12, '\xff');
  EXPECT_EQ(read_tar(TarBuilder().add({.name = "n", .size_field = negative}).finish()).error,
            "tar: entry 'n' has a field that is not a valid number");
  std::string huge(12, '\0');
  huge[0] = '\x80';
  huge[4] = '\x7f';
  EXPECT_EQ(read_tar(TarBuilder().add({.name = "n", .size_field = huge}).finish()).error,
            "tar: entry 'n' has a field that is not a valid number");
  EXPECT_EQ(read_tar(TarBuilder().add({.name = "n", .size_field = "99999999999"}).finish()).error,
            "tar: entry 'n' has a field that is not a valid number");
  EXPECT_EQ(read_tar(TarBuilder().add({.name = "n", .type = 'S'}).finish()).error,
            "tar: entry 'n' has the type 'S', which is not a file, link, device or directory");
  EXPECT_EQ(read_tar(TarBuilder().pax({{"size", "-5"}}).file("s").finish()).error,
            "tar: entry 's': pax size '-5' is not a valid number");
  EXPECT_EQ(read_tar(TarBuilder().pax({{"path", std::string("a\0b", 3)}}).file("s").finish()).error,
            "tar: a pax header has a NUL in a name");
}

TEST(Tar, attributes_come_in_three_ways_and_each_key_once) {
  TarRead got = read_tar(TarBuilder()
                             .pax({{"LIBARCHIVE.xattr.user.a%20b", "dmFsdWU"},
                                   {"LIBARCHIVE.xattr.user.k", "bGF0ZXI"},
                                   {"SCHILY.xattr.user.k", "sooner"},
                                   {"SCHILY.acl.access", "user::rw-,group::r--,other::r--"},
                                   {"SCHILY.acl.default", "nonsense"}})
                             .file("f")
                             .finish());
  ASSERT_EQ(got.error, "");
  std::map<std::string, std::string> xattrs(got.entries[0].xattrs.begin(),
                                            got.entries[0].xattrs.end());
  EXPECT_EQ(xattrs.size(), got.entries[0].xattrs.size());
  EXPECT_EQ(xattrs["user.a b"], "value");
  EXPECT_EQ(xattrs["user.k"], "sooner");
  EXPECT_EQ(xattrs["system.posix_acl_access"].size(), 28u);
  EXPECT_EQ(xattrs["system.posix_acl_default"], "");
}

TEST(Tar, times_may_lie_before_1970_and_between_seconds) {
  for (auto [text, seconds, nanoseconds] :
       {std::tuple("-0.5", -1L, 500'000'000u), std::tuple("-1.000000001", -2L, 999'999'999u),
        std::tuple("0.1234567891", 0L, 123'456'789u),
        std::tuple("5000000000", 5'000'000'000L, 0u)}) {
    TarRead got = read_tar(TarBuilder().pax({{"mtime", text}}).file("f").finish());
    ASSERT_EQ(got.error, "");
    EXPECT_EQ(got.entries[0].mtime, seconds);
    EXPECT_EQ(got.entries[0].mtime_nanoseconds, nanoseconds);
  }
}

TEST(Tar, limits_extended_headers) {
  EXPECT_EQ(
      read_tar(
          TarBuilder().add({.name = "p", .type = 'x'}, std::string((1 << 20) + 1, 'x')).finish())
          .error,
      "tar: an extended header of 1048577 bytes, more than the 1 MiB allowed");
  TarBuilder many;
  for (int i = 0; i < 20; ++i) many.pax({{"path", "x"}});
  EXPECT_EQ(read_tar(many.file("a").finish()).error,
            "tar: more than 16 extended headers before one entry");
  for (std::string bad : {"5 a=b", "100 a=b\n", "0 a=b\n", "a=b\n", "6 =ab\n", "6 abc\n",
                          "18446744073709551615 a=b\n"}) {
    TarRead got = read_tar(TarBuilder().add({.name = "p", .type = 'x'}, bad).file("a").finish());
    EXPECT_TRUE(got.error.starts_with("tar: a pax header has a record")) << bad << got.error;
  }
}

}  // namespace
}  // namespace berth::transfer
