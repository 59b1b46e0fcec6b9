// SPDX-License-Identifier: Apache-2.0
#include "scan/elf.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>

namespace berth::scan {
namespace {

template <class T>
void put(std::string& out, size_t at, T value) {
  std::memcpy(out.data() + at, &value, sizeof value);
}

// A shared object with one loaded segment, a dynamic section and a note of the given owner.
// Layout: header 0, segments 64, strings 256, dynamic 320, note 448, end 512.
std::string make_elf64() {
  std::string out(512, '\0');
  std::memcpy(out.data(),
              "\x7f"
              "ELF\x02\x01\x01",
              7);
  put<uint16_t>(out, 16, 3);
  put<uint16_t>(out, 18, kMachineX86_64);
  put<uint64_t>(out, 32, 64);  // segments
  put<uint16_t>(out, 54, 56);
  put<uint16_t>(out, 56, 3);
  struct Row {
    uint32_t type;
    uint64_t offset, size;
  };
  const Row rows[] = {{1, 0, 512}, {2, 320, 80}, {4, 448, 32}};
  for (size_t i = 0; i < 3; ++i) {
    size_t at = 64 + i * 56;
    put<uint32_t>(out, at, rows[i].type);
    put<uint64_t>(out, at + 8, rows[i].offset);
    put<uint64_t>(out, at + 16, 0x1000 + rows[i].offset);  // addresses differ from offsets
    put<uint64_t>(out, at + 32, rows[i].size);
    put<uint64_t>(out, at + 48, 4);
  }
  std::memcpy(out.data() + 256, "\0libcuda.so.1\0libc.so.6\0", 24);
  const uint64_t tags[][2] = {{14, 1}, {1, 14}, {5, 0x1000 + 256}, {10, 24}, {0, 0}};
  for (size_t i = 0; i < 5; ++i) {
    put<uint64_t>(out, 320 + i * 16, tags[i][0]);
    put<uint64_t>(out, 328 + i * 16, tags[i][1]);
  }
  put<uint32_t>(out, 448, 4);
  put<uint32_t>(out, 452, 16);
  put<uint32_t>(out, 456, 1);
  std::memcpy(out.data() + 460, "GNU\0", 4);
  put<uint32_t>(out, 468, 2);
  put<uint32_t>(out, 472, 3);
  put<uint32_t>(out, 476, 99);
  return out;
}

TEST(Elf, reads_soname_needed_and_notes) {
  auto elf = read_elf(make_elf64());
  ASSERT_TRUE(elf.ok()) << to_line(elf.error());
  EXPECT_EQ(elf->elf_class, ElfClass::elf64);
  EXPECT_EQ(elf->machine, kMachineX86_64);
  EXPECT_EQ(elf->type, 3);
  EXPECT_EQ(elf->soname, "libcuda.so.1");
  EXPECT_EQ(elf->needed, std::vector<std::string>{"libc.so.6"});
  ASSERT_EQ(elf->notes.size(), 1U);
  EXPECT_EQ(elf->notes[0].owner, "GNU");
  EXPECT_EQ(elf->notes[0].type, 1U);
  EXPECT_EQ(elf->notes[0].content.size(), 16U);
}

TEST(Elf, reads_a_program_made_by_the_real_linker) {
  std::ifstream file("/proc/self/exe", std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(file)), {});
  auto elf = read_elf(bytes);
  ASSERT_TRUE(elf.ok()) << to_line(elf.error());
  EXPECT_NE(std::find(elf->needed.begin(), elf->needed.end(), "libc.so.6"), elf->needed.end());
  auto abi = std::find_if(elf->notes.begin(), elf->notes.end(),
                          [](const ElfNote& note) { return note.section == ".note.ABI-tag"; });
  ASSERT_NE(abi, elf->notes.end());
  EXPECT_EQ(abi->owner, "GNU");
}

TEST(Elf, says_what_is_no_elf) {
  auto text = read_elf("#!/bin/sh\necho this is a script that is longer than an ELF header is\n");
  ASSERT_FALSE(text.ok());
  EXPECT_EQ(to_line(text.error()), "ELF: not an ELF file");
  EXPECT_EQ(text.error().kind, Kind::unsupported);
  EXPECT_EQ(read_elf("").error().kind, Kind::unsupported);
}

TEST(Elf, refuses_a_string_table_outside_of_the_file) {
  std::string bytes = make_elf64();
  put<uint64_t>(bytes, 320 + 2 * 16 + 8, 0x999999);
  auto elf = read_elf(bytes);
  ASSERT_FALSE(elf.ok());
  EXPECT_EQ(to_line(elf.error()), "ELF: string table outside of the segments");
}

TEST(Elf, refuses_a_soname_outside_of_its_table) {
  std::string bytes = make_elf64();
  put<uint64_t>(bytes, 328, 24);
  EXPECT_EQ(to_line(read_elf(bytes).error()), "ELF: string outside of its table");
}

TEST(Elf, refuses_more_headers_than_any_linker_writes) {
  std::string bytes = make_elf64();
  put<uint16_t>(bytes, 56, 60000);
  EXPECT_EQ(to_line(read_elf(bytes).error()), "ELF: too many headers");
}

// No length and no flipped byte may lead outside of the buffer: the sanitizers watch.
TEST(Elf, survives_every_truncation_and_every_flipped_byte) {
  const std::string good = make_elf64();
  int refused = 0;
  for (size_t length = 0; length < good.size(); ++length) {
    if (!read_elf(good.substr(0, length)).ok()) ++refused;
  }
  EXPECT_GT(refused, 400);
  for (size_t at = 0; at < good.size(); ++at) {
    for (unsigned char value : {0x00, 0x7f, 0x80, 0xff}) {
      std::string bad = good;
      bad[at] = static_cast<char>(value);
      ignore(read_elf(bad));  // either answer will do
    }
  }
}

}  // namespace
}  // namespace berth::scan
