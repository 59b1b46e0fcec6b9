// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include "sparse_tar.hpp"
#include "transfer/tar/entry.hpp"
#include "transfer/tar/tar.hpp"

namespace berth::transfer {
namespace {

struct SparseRead {
  TarEntry entry;
  std::string content;
  uint64_t holes = 0;
  std::string after;  ///< the next member's name
  std::string error;
};

/// The first member, in pieces of `piece` bytes.
SparseRead read_sparse(const std::string& bytes, size_t piece = 1 << 20) {
  size_t used = 0;
  TarReader tar([&]() -> Result<std::string_view> {
    std::string_view part = std::string_view(bytes).substr(used, piece);
    used += part.size();
    return part;
  });
  SparseRead result;
  auto all = [&]() -> Result<void> {
    TRY(tar.next(result.entry));
    while (true) {
      uint64_t hole = tar.skip_hole();
      result.holes += hole;
      result.content.append(hole, '\0');
      std::string_view part = TRY(tar.content());
      if (part.empty()) break;
      result.content += part;
    }
    TarEntry next;
    if (TRY(tar.next(next))) result.after = next.path;
    return {};
  };
  auto read = all();
  if (!read.ok()) result.error = to_line(read.error());
  return result;
}

TEST(TarSparse, all_forms_of_gnu_tar_give_the_file_back) {
  std::string content = std::string(70'000, '\0') + "middle" + std::string(9000, '\0') + "end";
  for (bool hole_at_end : {false, true}) {
    std::string whole = content + std::string(hole_at_end ? 5000 : 0, '\0');
    Extents extents{{70'000, 6}, {79'006, 3}};
    for (SparseForm form : kSparseForms) {
      std::string tar = sparse_member("s", form, extents, whole.size(), "middleend");
      tar += TarBuilder().file("after").finish();
      for (size_t piece : {1, 511, 512, 100'000}) {
        SparseRead got = read_sparse(tar, piece);
        ASSERT_EQ(got.error, "");
        EXPECT_EQ(got.entry.path, "s");
        EXPECT_EQ(got.entry.size, whole.size());
        EXPECT_TRUE(got.content == whole);
        EXPECT_EQ(got.holes, whole.size() - 9);
        EXPECT_EQ(got.after, "after");
      }
    }
  }
}

TEST(TarSparse, a_hundred_parts_and_a_file_that_is_one_hole) {
  Extents many;
  std::string data;
  for (uint64_t i = 0; i < 100; ++i) {
    many.push_back({i * 1000 + 500, 10});
    data += std::string(10, static_cast<char>('a' + i % 26));
  }
  for (SparseForm form : kSparseForms) {
    SparseRead got =
        read_sparse(sparse_member("s", form, many, 100'000, data) + TarBuilder().finish());
    ASSERT_EQ(got.error, "");
    EXPECT_EQ(got.content.size(), 100'000u);
    EXPECT_EQ(got.content.substr(99'500, 10), std::string(10, static_cast<char>('a' + 99 % 26)));
    SparseRead hole =
        read_sparse(sparse_member("s", form, {{4096, 0}}, 4096, "") + TarBuilder().finish());
    ASSERT_EQ(hole.error, "");
    EXPECT_EQ(hole.holes, 4096u);
  }
}

TEST(TarSparse, holes_are_zeros_to_who_does_not_ask_for_them) {
  std::string tar = sparse_member("s", SparseForm::pax_1_0, {{200'000, 2}}, 300'000, "ab");
  std::string_view rest = tar;
  TarReader reader([&] { return Result<std::string_view>(std::exchange(rest, {})); });
  TarEntry entry;
  ASSERT_TRUE(*reader.next(entry));
  std::string content;
  while (true) {
    std::string_view part = *reader.content();
    if (part.empty()) break;
    content += part;
  }
  EXPECT_TRUE(content == std::string(200'000, '\0') + "ab" + std::string(99'998, '\0'));
}

TEST(TarSparse, a_map_that_lies_is_refused) {
  struct Lie {
    Extents extents;
    uint64_t size;
    std::string reason;
  };
  const std::vector<Lie> lies = {
      {{{0, 4}, {2, 4}}, 100, "goes back or overlaps"},
      {{{50, 4}, {10, 4}}, 100, "goes back or overlaps"},
      {{{96, 8}}, 100, "goes beyond the end of the file"},
      {{{uint64_t{1} << 58, 8}}, 100, "goes beyond the end of the file"},
      {{{0, 7}}, 100, "does not fit the bytes that are stored"},
      {{{0, 9}}, 100, "does not fit the bytes that are stored"},
      {{}, 100, "does not fit the bytes that are stored"},
  };
  for (const Lie& lie : lies) {
    for (SparseForm form : kSparseForms) {
      if (lie.extents.empty() && form == SparseForm::pax_0_0) continue;  // then it is not sparse
      SparseRead got = read_sparse(sparse_member("s", form, lie.extents, lie.size, "12345678") +
                                   TarBuilder().finish());
      EXPECT_EQ(got.error, "tar: entry 's': its sparse map " + lie.reason);
    }
  }
}

TEST(TarSparse, maps_have_an_end_and_numbers) {
  auto lines = [](const std::string& map) {
    std::string padded = map;
    padded.resize((map.size() + 511) / 512 * 512, '\0');
    return read_sparse(TarBuilder()
                           .pax({{"GNU.sparse.major", "1"},
                                 {"GNU.sparse.minor", "0"},
                                 {"GNU.sparse.name", "s"},
                                 {"GNU.sparse.realsize", "10"}})
                           .file("x", padded)
                           .finish())
        .error;
  };
  EXPECT_EQ(lines("1\n0\n"),
            "tar: entry 's': its sparse map contains something that is not a number");
  EXPECT_EQ(lines(""), "tar: entry 's': its sparse map does not end");
  EXPECT_EQ(lines("1\n-1\n0\n"),
            "tar: entry 's': its sparse map contains something that is not a number");
  EXPECT_EQ(lines(std::string(600, '1')),
            "tar: entry 's': its sparse map contains something that is not a number");
  EXPECT_EQ(lines("100000000\n0\n"), "tar: entry 's': its sparse map has too many parts");
  std::string endless = "262144\n";
  while (endless.size() < (1 << 20) + 512) endless += "0\n0\n";
  EXPECT_EQ(lines(endless), "tar: entry 's': its sparse map does not end");
}

TEST(TarSparse, lists_are_pairs_of_numbers) {
  auto error = [](std::string_view text) { return to_line(parse_sparse_list(text, "s").error()); };
  EXPECT_EQ(error("1"), "tar: entry 's': its sparse map ends in the middle of a part");
  EXPECT_EQ(error("1,x"), "tar: entry 's': its sparse map contains something that is not a number");
  EXPECT_EQ(error("1,2,"),
            "tar: entry 's': its sparse map contains something that is not a number");
  std::string many = "0,0";
  for (size_t i = 0; i < kMaxExtents; ++i) many += ",0,0";
  EXPECT_EQ(error(many), "tar: entry 's': its sparse map has too many parts");
}

TEST(TarSparse, sizes_of_exabytes_and_other_forms_are_refused) {
  auto error = [](std::vector<std::pair<std::string, std::string>> records) {
    return read_sparse(TarBuilder().pax(records).file("s").finish()).error;
  };
  EXPECT_EQ(error({{"GNU.sparse.size", "9999999999999999999"}, {"GNU.sparse.map", "0,1"}}),
            "tar: entry 's' is sparse and has no valid size");
  EXPECT_EQ(error({{"GNU.sparse.map", "0,1"}}), "tar: entry 's' is sparse and has no valid size");
  EXPECT_EQ(error({{"GNU.sparse.major", "2"}, {"GNU.sparse.minor", "0"}}),
            "tar: entry 's' is sparse in the form '2.0', which GNU tar does not have");
  std::string endless = sparse_member("s", SparseForm::old_gnu, {{0, 1}}, 10, "x");
  endless[482] = '\1';
  endless.insert(512, std::string(504, '\0') + '\1' + std::string(7, '\0'));
  EXPECT_EQ(read_sparse(with_checksums(endless) + TarBuilder().finish()).error,
            "tar: entry 's': its sparse map contains something that is not a number");
}

}  // namespace
}  // namespace berth::transfer
