// SPDX-License-Identifier: Apache-2.0
#include "facts/fat_binary.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zstd.h>

#include <algorithm>

#include "facts/unpack_prefix.hpp"
#include "unit/facts/build.hpp"

namespace berth::facts {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> lines(const FoundCode& found) {
  std::vector<std::string> out;
  for (const GpuCode& code : found.code) {
    out.push_back(enum_text(code.kind) + " " + code.arch +
                  (code.isa.empty() ? "" : " " + code.isa));
  }
  return out;
}

FoundCode read(const std::string& bytes) {
  FoundCode found;
  auto done = read_fat_binaries(reader(bytes), 0, bytes.size(), found);
  EXPECT_TRUE(done.ok()) << to_line(done.error());
  return found;
}

std::string error_of(const std::string& bytes, uint64_t offset = 0) {
  FoundCode found;
  auto done = read_fat_binaries(reader(bytes), offset, bytes.size() - offset, found);
  return done.ok() ? "" : to_line(done.error());
}

std::string zstd(const std::string& text) {
  std::string out(ZSTD_compressBound(text.size()), '\0');
  out.resize(ZSTD_compress(out.data(), out.size(), text.data(), text.size(), 3));
  return out;
}

// As LZ4 may write it: literals, then a match that reaches back by 1, then literals.
std::string lz4(const std::string& first, size_t repeated, const std::string& last) {
  auto length = [](size_t value) {
    std::string out;
    for (value -= 15; value >= 255; value -= 255) out += '\xff';
    return out + static_cast<char>(value);
  };
  std::string out("\xff", 1);
  out += length(first.size()) + first + std::string("\1\0", 2) + length(repeated - 4);
  out += "\xf0" + length(last.size()) + last;
  return out;
}

TEST(FatBinary, tells_targets_of_all_containers) {
  std::string bytes = container(member({.arch = 37}) + member({.arch = 52})) +
                      std::string(16, '\0') +
                      container(member({.kind = 1, .arch = 52, .version = {6, 1}}) +
                                member({.kind = 8, .arch = 80}) + member({.arch = 52}));
  EXPECT_THAT(lines(read(bytes)), ElementsAre("sass 37", "sass 52", "ptx 52 6.1", "ir 80"));
}

TEST(FatBinary, later_compilers_tell_the_suffix_in_the_header) {
  std::string bytes =
      container(member({.arch = 90, .flags = 0x108011, .version = {1, 8}}) +
                member({.arch = 100, .flags = 0x1208011, .version = {1, 8}, .header_size = 0x70}) +
                member({.arch = 103, .flags = 0x1008011, .version = {1, 8}, .header_size = 0x70}));
  FoundCode found = read(bytes);
  EXPECT_THAT(lines(found), ElementsAre("sass 100f", "sass 103", "sass 90a"));
  EXPECT_TRUE(found.zstd);
}

TEST(FatBinary, earlier_compilers_tell_it_in_the_code_object) {
  std::string header = cubin(7, 0x5a0d5a), plain = cubin(7, 0x5a055a);
  EXPECT_THAT(lines(read(container(member({.arch = 90, .payload = header})))),
              ElementsAre("sass 90a"));
  EXPECT_THAT(lines(read(container(member({.arch = 90, .payload = plain})))),
              ElementsAre("sass 90"));
}

TEST(FatBinary, looks_into_packed_code_objects) {
  std::string code = cubin(7, 0x5a0d5a) + std::string(4000, 'x') + std::string(20, 'y');
  std::string packed = lz4(code.substr(0, 65), 3999, std::string(20, 'y'));
  ASSERT_EQ(lz4_prefix(packed, 100'000), code);
  FoundCode found = read(container(member({.arch = 90,
                                           .flags = 0x2011,
                                           .payload = packed,
                                           .packed_size = static_cast<uint32_t>(packed.size())})));
  EXPECT_THAT(lines(found), ElementsAre("sass 90a"));
  EXPECT_FALSE(found.zstd);

  packed = zstd(code);
  found = read(container(member({.arch = 90,
                                 .flags = 0x8011,
                                 .payload = packed + std::string(3, '\0'),
                                 .packed_size = static_cast<uint32_t>(packed.size())})));
  EXPECT_THAT(lines(found), ElementsAre("sass 90a"));
  EXPECT_TRUE(found.zstd);
}

TEST(FatBinary, reads_the_suffix_of_ptx_from_its_target) {
  auto ptx = [](const std::string& target) {
    return read(container(member(
        {.kind = 1,
         .arch = 100,
         .payload = "//\n// x\n//\n\n.version 8.7\n.target " + target + "\n.address_size 64\n",
         .version = {8, 7}})));
  };
  EXPECT_THAT(lines(ptx("sm_100a")), ElementsAre("ptx 100a 8.7"));
  EXPECT_THAT(lines(ptx("sm_100f, debug")), ElementsAre("ptx 100f 8.7"));
  EXPECT_THAT(lines(ptx("sm_100")), ElementsAre("ptx 100 8.7"));
}

TEST(FatBinary, never_reads_payloads) {
  std::string head = container(member({.arch = 80, .payload = std::string(1 << 20, 'x')}));
  uint64_t most = 0, total = 0;
  FoundCode found;
  auto counting = [&](uint64_t offset, size_t length) {
    most = std::max<uint64_t>(most, length);
    total += length;
    return reader(head)(offset, length);
  };
  ASSERT_TRUE(read_fat_binaries(counting, 0, head.size(), found).ok());
  EXPECT_LE(most, 4096U);
  EXPECT_LE(total, 3 * 4096U);
}

TEST(FatBinary, refuses_what_leads_outside) {
  std::string whole = container(member({.arch = 80, .payload = std::string(100, 'x')}));
  EXPECT_EQ(error_of(whole), "");
  EXPECT_EQ(error_of(whole.substr(0, whole.size() - 1)),
            "fat binary: it is longer than its section");
  std::string longer = whole;
  put<uint64_t>(longer, 16 + 8, 101);
  EXPECT_EQ(error_of(longer), "fat binary: a member is longer than its container");
  put<uint64_t>(longer, 16 + 8, UINT64_MAX - 10);
  EXPECT_EQ(error_of(longer), "fat binary: a member is longer than its container");
  std::string head = whole;
  put<uint32_t>(head, 16 + 4, 8);
  EXPECT_EQ(error_of(head), "fat binary: header size of a member");
  std::string version = whole;
  put<uint16_t>(version, 4, 2);
  EXPECT_EQ(error_of(version), "fat binary: version 2 is not known");
  EXPECT_EQ(error_of(std::string(5000, '\0')), "fat binary: no header here");
  EXPECT_EQ(error_of("some text of another kind"), "fat binary: no header here");
}

TEST(FatBinary, keeps_what_was_found_before_the_damage) {
  std::string bytes = container(member({.arch = 80})) + "damaged and more";
  FoundCode found;
  EXPECT_FALSE(read_fat_binaries(reader(bytes), 0, bytes.size(), found).ok());
  EXPECT_THAT(lines(found), ElementsAre("sass 80"));
}

// A member whose payload is a container is code of that member alone.
TEST(FatBinary, does_not_look_into_nested_ones) {
  std::string inner = container(member({.arch = 52}));
  EXPECT_THAT(lines(read(container(member({.arch = 80, .payload = inner})))),
              ElementsAre("sass 80"));
}

TEST(FatBinary, code_objects_have_their_target_where_their_compiler_put_it) {
  auto arch = [](const std::string& header) {
    auto target = cubin_target(header);
    return target ? target->arch : "none";
  };
  EXPECT_EQ(arch(cubin(7, 0x4b054b)), "75");
  EXPECT_EQ(arch(cubin(7, 0x5a0d5a)), "90a");
  EXPECT_EQ(arch(cubin(8, 0x6007802)), "120");
  EXPECT_EQ(arch(cubin(8, 0x6006402)), "100");
  EXPECT_EQ(arch(cubin(8, 0x600640a)), "100a");
  EXPECT_EQ(arch("a text"), "none");
  EXPECT_EQ(arch(cubin(8, 0)), "none");
}

TEST(FatBinary, code_objects_tell_the_version_of_their_compiler) {
  EXPECT_EQ(cubin_toolkit(cubin(7, 0x500550, 124)), 124U);
  EXPECT_EQ(cubin_toolkit(cubin(7, 0x500550, 1)), 0U);
  EXPECT_EQ(cubin_toolkit(cubin(7, 0x500550, 4'000'000)), 0U);
  EXPECT_EQ(cubin_toolkit(cubin(8, 0x6005004, 1)), 130U);
  EXPECT_EQ(cubin_toolkit("a text"), 0U);
  EXPECT_EQ(toolkit_text(124), "12.4");
  EXPECT_EQ(toolkit_text(130), "13");
  EXPECT_EQ(toolkit_text(0), "");
  std::string old = cubin(7, 0x500550, 112),
              newer = cubin(7, 0x500550, 118) + std::string(100, 'y');
  std::string packed = lz4(newer.substr(0, 80), 64, std::string(20, 'y'));
  FoundCode found = read(container(member({.arch = 80, .payload = old}) +
                                   member({.arch = 80,
                                           .flags = 0x2011,
                                           .payload = packed,
                                           .packed_size = static_cast<uint32_t>(packed.size())})));
  EXPECT_EQ(found.toolkit, 118U);
  packed = zstd(newer);
  found = read(container(member({.arch = 80,
                                 .flags = 0x8011,
                                 .payload = packed,
                                 .packed_size = static_cast<uint32_t>(packed.size())})));
  EXPECT_EQ(found.toolkit, 118U);
}

TEST(UnpackPrefix, gives_what_there_is_of_damaged_blocks) {
  EXPECT_EQ(lz4_prefix("", 10), "");
  EXPECT_EQ(lz4_prefix(std::string("\x20"
                                   "ab\0\0",
                                   5),
                       10),
            "ab");  // back by 0
  EXPECT_EQ(lz4_prefix(std::string("\x20"
                                   "ab\3\0",
                                   5),
                       10),
            "ab");  // before the start
  EXPECT_EQ(lz4_prefix(std::string("\x20"
                                   "ab\2\0",
                                   5),
                       10),
            "ababab");
  EXPECT_EQ(lz4_prefix(std::string("\xf0\xff\xff", 3), 10), "");
  EXPECT_EQ(zstd_prefix("no frame", 10), "");
  EXPECT_EQ(zstd_prefix(zstd("a text").substr(0, 8), 10), "");
  EXPECT_EQ(zstd_prefix(zstd("a text"), 100), "a text");
}

std::string bundle(const std::vector<std::pair<std::string, std::string>>& entries) {
  std::string table = "__CLANG_OFFLOAD_BUNDLE__" + raw<uint64_t>(entries.size()), code;
  size_t size = table.size();
  for (const auto& [id, content] : entries) size += 24 + id.size();
  for (const auto& [id, content] : entries) {
    table += raw<uint64_t>(size + code.size()) + raw<uint64_t>(content.size()) +
             raw<uint64_t>(id.size()) + id;
    code += content;
  }
  return table + code;
}

FoundCode read_bundles(const std::string& bytes) {
  FoundCode found;
  auto done = read_offload_bundles(reader(bytes), 0, bytes.size(), found);
  EXPECT_TRUE(done.ok()) << to_line(done.error());
  return found;
}

std::string packed_bundle(const std::string& content, uint16_t version) {
  std::string frame = zstd(content);
  std::string out = "CCOB" + raw(version) + raw<uint16_t>(1);
  if (version == 2) out += raw<uint32_t>(static_cast<uint32_t>(24 + frame.size()));
  if (version == 3) out += raw<uint64_t>(32 + frame.size()) + raw<uint64_t>(content.size());
  if (version != 3) out += raw<uint32_t>(static_cast<uint32_t>(content.size()));
  return out + raw<uint64_t>(0) + frame;
}

TEST(OffloadBundle, tells_targets_of_all_bundles) {
  std::string one = bundle({{"host-x86_64-unknown-linux--", ""},
                            {"hipv4-amdgcn-amd-amdhsa--gfx942:sramecc+:xnack-", "code"}});
  std::string two = bundle({{"hip-amdgcn-amd-amdhsa-unknown-gfx90a", std::string(9000, 'c')}});
  one.resize(4096);
  two.resize(3 * 4096);
  FoundCode found = read_bundles(one + two + bundle({{"hipv4-amdgcn-amd-amdhsa--gfx1100", "c"}}));
  EXPECT_THAT(lines(found), ElementsAre("gfx gfx1100", "gfx gfx90a", "gfx gfx942:sramecc+:xnack-"));
}

TEST(OffloadBundle, looks_into_packed_ones) {
  std::string content = bundle({{"hipv4-amdgcn-amd-amdhsa--gfx90a", std::string(50'000, 'c')}});
  for (uint16_t version : {1, 2, 3}) {
    std::string first = packed_bundle(content, version);
    first.resize(4096);
    std::string second =
        packed_bundle(bundle({{"hipv4-amdgcn-amd-amdhsa--gfx1030", "c"}}), version);
    EXPECT_THAT(lines(read_bundles(first + second)), ElementsAre("gfx gfx1030", "gfx gfx90a"))
        << version;
  }
}

TEST(OffloadBundle, refuses_what_leads_outside) {
  auto error = [](const std::string& bytes) {
    FoundCode found;
    auto done = read_offload_bundles(reader(bytes), 0, bytes.size(), found);
    return done.ok() ? "" : to_line(done.error());
  };
  std::string bytes = bundle({{"hipv4-amdgcn-amd-amdhsa--gfx90a", "code"}});
  put<uint64_t>(bytes, 32 + 8, 1000);
  EXPECT_EQ(error(bytes), "offload bundle: it is longer than its section");
  put<uint64_t>(bytes, 32 + 16, 1000);
  EXPECT_EQ(error(bytes), "offload bundle: id of an entry");
  uint64_t reads = 0;
  FoundCode none;
  auto counting = [&](uint64_t offset, size_t length) {
    ++reads;
    return reader(bytes)(offset, length);
  };
  EXPECT_FALSE(read_offload_bundles(counting, 4096, uint64_t{1} << 40, none).ok());
  EXPECT_EQ(reads, 1U);
  put<uint64_t>(bytes, 24, UINT64_MAX);
  EXPECT_EQ(error(bytes), "offload bundle: too many entries");
  std::string zlib = packed_bundle("", 2);
  put<uint16_t>(zlib, 6, 0);
  EXPECT_EQ(error(zlib), "offload bundle: packed with zlib, not with zstd");
}

}  // namespace
}  // namespace berth::facts
