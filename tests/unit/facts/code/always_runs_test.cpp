// SPDX-License-Identifier: Apache-2.0
#include "facts/code/always_runs.hpp"

#include <gtest/gtest.h>

#include "unit/facts/build.hpp"

namespace berth::facts {
namespace {

constexpr uint64_t kBase = 0x400000;

// A static program: one segment, from byte 0 of the file at kBase. `text` lies at 0x200, main at
// 0x300, a constructor at 0x400 if there is one.
std::string program(const std::string& main, const std::string& constructor = {}) {
  std::string out(0x600, '\xcc');
  std::memcpy(out.data(), std::string(0x200, '\0').data(), 0x200);
  std::memcpy(out.data(),
              "\x7f"
              "ELF\2\1\1",
              7);
  put<uint16_t>(out, 16, 2);
  put<uint16_t>(out, 18, scan::kMachineX86_64);
  put<uint64_t>(out, 24, kBase + 0x200);
  put<uint64_t>(out, 32, 64);
  put<uint16_t>(out, 54, 56);
  put<uint16_t>(out, 56, 2);
  auto segment = [&](size_t at, uint32_t type, uint64_t offset, uint64_t size) {
    put<uint32_t>(out, at, type);
    put<uint64_t>(out, at + 8, offset);
    put<uint64_t>(out, at + 16, kBase + offset);
    put<uint64_t>(out, at + 32, size);
  };
  segment(64, 1, 0, 0x600);
  segment(120, 2, 0x500, 48);
  put<uint64_t>(out, 0x500, 25);  // DT_INIT_ARRAY
  put<uint64_t>(out, 0x508, kBase + 0x540);
  put<uint64_t>(out, 0x510, 27);
  put<uint64_t>(out, 0x518, constructor.empty() ? 0 : 8);
  put<uint64_t>(out, 0x520, 0);
  put<uint64_t>(out, 0x540, kBase + 0x400);
  // xor ebp, ebp; mov rdi, main; call somewhere
  std::string start("\x31\xed\x48\xc7\xc7\0\0\0\0\xe8\0\0\0\0", 14);
  put<uint32_t>(start, 5, kBase + 0x300);
  out.replace(0x200, start.size(), start);
  out.replace(0x300, main.size(), main);
  out.replace(0x400, constructor.size(), constructor);
  return out;
}

uint32_t level(const std::string& bytes) {
  auto elf = scan::read_elf(bytes);
  EXPECT_TRUE(elf.ok()) << to_line(elf.error());
  return level_of_code(*elf, reader(bytes));
}

const std::string kRet = "\xc3";
const std::string kAvx2 = "\xc5\xfd\xef\xc0";            // vpxor ymm0, ymm0, ymm0
const std::string kAvx512 = "\x62\xf1\x7d\x48\xef\xc0";  // vpxord zmm0, zmm0, zmm0
const std::string kPopcnt = "\xf3\x48\x0f\xb8\xc7";      // popcnt rax, rdi
const std::string kTzcnt = "\xf3\x48\x0f\xbc\xc7";       // rep bsf rax, rdi
const std::string kCpuid = std::string("\x0f\xa2");
const std::string kIfZero = std::string("\x74\x10");       // je
const std::string kCall = std::string("\xe8\0\1\0\0", 5);  // call
const std::string kEndbr = "\xf3\x0f\x1e\xfa";

TEST(AlwaysRuns, main_is_found_and_its_beginning_read) {
  EXPECT_EQ(level(program(kEndbr + kRet)), 0U);
  EXPECT_EQ(level(program(kPopcnt + kRet)), 2U);
  EXPECT_EQ(level(program(kEndbr + kCall + kAvx2 + kRet)), 3U);
  EXPECT_EQ(level(program(kAvx2 + kAvx512 + kRet)), 4U);
}

TEST(AlwaysRuns, what_lies_behind_a_choice_does_not_count) {
  EXPECT_EQ(level(program(kIfZero + kAvx2)), 0U);
  EXPECT_EQ(level(program(kCpuid + kAvx2)), 0U);
  EXPECT_EQ(level(program(kRet + kAvx2)), 0U);
  EXPECT_EQ(level(program(kPopcnt + kCpuid + kAvx512)), 2U);
  EXPECT_EQ(level(program("\xff\xe0" + kAvx2)), 0U);  // jmp rax
}

TEST(AlwaysRuns, jumps_to_known_places_are_followed) {
  EXPECT_EQ(level(program("\xeb\x04" + std::string(4, '\xcc') + kAvx2 + kRet)), 3U);
  EXPECT_EQ(level(program("\xeb\xfe")), 0U);  // to itself, for ever
}

TEST(AlwaysRuns, what_older_processors_take_for_something_else_does_not_count) {
  EXPECT_EQ(level(program(kTzcnt + kRet)), 0U);
}

TEST(AlwaysRuns, constructors_run_before_main) {
  EXPECT_EQ(level(program(kRet, kAvx512 + kRet)), 4U);
}

TEST(AlwaysRuns, a_start_of_another_shape_tells_nothing) {
  std::string other = program(kAvx2 + kRet);
  other[0x202] = '\xc3';
  other[0x203] = '\xc3';
  EXPECT_EQ(level(other), 0U);
  std::string outside = program(kAvx2 + kRet);
  put<uint64_t>(outside, 24, 0x10);
  EXPECT_EQ(level(outside), 0U);
}

}  // namespace
}  // namespace berth::facts
