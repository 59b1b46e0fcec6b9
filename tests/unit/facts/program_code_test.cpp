// SPDX-License-Identifier: Apache-2.0
#include "facts/program_code.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "base/text.hpp"
#include "facts/window.hpp"
#include "unit/facts/build.hpp"

namespace berth::facts {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> words(const std::set<GpuCode>& codes) {
  std::vector<std::string> out;
  for (const GpuCode& code : codes) {
    out.push_back((code.kind == GpuCode::Kind::ptx ? "p" : "") + code.arch);
  }
  return out;
}

/// A container with the members of "80 p75".
std::string container_of(std::string_view targets) {
  std::string members;
  for (std::string_view target : split_blank(targets)) {
    bool ptx = target.starts_with('p');
    auto arch = static_cast<uint32_t>(*parse_u64(target.substr(ptx ? 1 : 0)));
    members += ptx ? member({.kind = 1, .arch = arch, .version = {8, 4}})
                   : member({.arch = arch, .payload = cubin(7, arch, 124)});
  }
  return container(members);
}

struct Contents {
  std::vector<std::string> own = {};  ///< targets of containers that are registered alone
  std::optional<std::string> linked = {};
  std::vector<std::string> parts = {};
};

constexpr uint64_t kAddress = 0x40'0000;

/// A program with sections at the address kAddress, and with a table of its fat binaries.
ProgramCode code_of(const Contents& contents, bool addresses = true) {
  std::string fat, relocatable, wrappers;
  auto add = [&](std::string& section, std::string_view targets, uint32_t version) {
    // The first section starts at byte 64 of the file.
    uint64_t at = addresses ? kAddress + 64 + section.size() : 0;
    if (&section == &fat) {
      wrappers += raw<uint32_t>(0x466243b1) + raw(version) + raw(at) + raw<uint64_t>(0);
    }
    section += container_of(targets);
  };
  if (contents.linked) add(fat, *contents.linked, 2);
  for (const std::string& one : contents.own) add(fat, one, 1);
  for (const std::string& one : contents.parts) add(relocatable, one, 1);
  std::string bytes = elf_with(
      {{".nv_fatbin", fat}, {"__nv_relfatbin", relocatable}, {".nvFatBinSegment", wrappers}});
  auto elf = scan::read_elf(bytes);
  EXPECT_TRUE(elf.ok()) << to_line(elf.error());
  elf->segments.push_back(
      {.type = scan::kSegmentLoad, .address = kAddress, .offset = 0, .size = bytes.size()});
  auto code = read_program_code(*elf, reader(bytes));
  EXPECT_TRUE(code.ok()) << to_line(code.error());
  return std::move(*code);
}

// What is in libcudadevrt, which nvcc links to every program without code objects.
const std::string kLibrary = "50 60 70 75 80 86 90 p90";

TEST(ProgramCode, a_library_that_nothing_uses_does_not_count) {
  ProgramCode code = code_of({.own = {"p75"}, .linked = "", .parts = {kLibrary}});
  EXPECT_THAT(words(code.runs.code), ElementsAre("p75"));
  EXPECT_THAT(words(code.linked), ElementsAre("50", "60", "70", "75", "80", "86", "90", "p90"));
  EXPECT_EQ(code.runs.toolkit, 0U);
}

TEST(ProgramCode, all_parts_that_the_driver_links_have_to_run) {
  ProgramCode code = code_of({.linked = "", .parts = {"p75", "p75", kLibrary}});
  EXPECT_THAT(words(code.runs.code), ElementsAre("p75", "p90"));
  EXPECT_THAT(words(code_of({.linked = "", .parts = {"80 p80", "80"}}).runs.code),
              ElementsAre("80"));
}

TEST(ProgramCode, what_the_linker_made_counts_beside_its_parts) {
  ProgramCode code = code_of({.linked = "70", .parts = {"70 p70", "70 p70"}});
  EXPECT_THAT(words(code.runs.code), ElementsAre("70", "p70"));
  EXPECT_THAT(code.linked, IsEmpty());
  EXPECT_EQ(code.runs.toolkit, 124U);
}

TEST(ProgramCode, the_empty_code_object_of_every_program_does_not_count) {
  ProgramCode code = code_of({.own = {"70 p75"}, .linked = "60 70"});
  EXPECT_THAT(words(code.runs.code), ElementsAre("70", "p75"));
  EXPECT_THAT(words(code.linked), ElementsAre("60"));
}

// NCCL 2.29: some small modules are built for more GPUs than the rest.
TEST(ProgramCode, other_modules_do_not_help_linked_code) {
  ProgramCode code =
      code_of({.own = {"60 80 90 p90", "52 p52"}, .linked = "60 80 90", .parts = {"60 80 90 p90"}});
  EXPECT_THAT(words(code.runs.code), ElementsAre("60", "80", "90", "p90"));
  EXPECT_THAT(words(code.linked), ElementsAre("52", "p52"));
}

TEST(ProgramCode, without_addresses_all_of_it_counts) {
  ProgramCode code = code_of({.own = {"p75"}, .linked = "70", .parts = {"80"}}, false);
  EXPECT_THAT(words(code.runs.code), ElementsAre("70", "80", "p75"));
}

TEST(ProgramCode, parts_without_a_common_target_all_count) {
  EXPECT_THAT(words(code_of({.linked = "", .parts = {"70", "80"}}).runs.code),
              ElementsAre("70", "80"));
}

TEST(CodeOfAll, exact_targets_run_on_their_own_gpu_alone) {
  auto piece = [](std::set<GpuCode> code) { return CodePiece{.code = std::move(code)}; };
  GpuCode exact = {GpuCode::Kind::sass, "90a", ""}, plain = {GpuCode::Kind::sass, "90", ""};
  GpuCode ptx = {GpuCode::Kind::ptx, "100", "8.7"}, family = {GpuCode::Kind::sass, "100f", ""};
  GpuCode of_family = {GpuCode::Kind::ptx, "100f", "8.8"};
  EXPECT_THAT(words(code_of_all({piece({exact, plain}), piece({plain})}).code),
              ElementsAre("90", "90a"));
  EXPECT_THAT(words(code_of_all({piece({exact}), piece({exact, ptx})}).code), ElementsAre("90a"));
  EXPECT_THAT(words(code_of_all({piece({family, ptx}), piece({of_family})}).code),
              ElementsAre("p100", "p100f"));
}

// A sparse file, with one code object of nearly 6 GB in its fat binary.
TEST(ProgramCode, a_library_of_six_gigabytes_costs_as_much_as_a_small_one) {
  constexpr uint64_t kSize = 6'000'000'000, kSection = 64, kContainer = 16, kMember = 64;
  std::string head = elf_with({{".nv_fatbin", container_of("80")}});
  uint64_t table = number_at(head, 40, 8);
  std::string tail = head.substr(table);
  put<uint64_t>(tail, 64 + 32, kSize - kSection);
  put<uint64_t>(head, 40, kSize);
  put<uint64_t>(head, kSection + 8, kSize - kSection - kContainer);
  put<uint64_t>(head, kSection + kContainer + 8, kSize - kSection - kContainer - kMember);
  uint64_t reads = 0, bytes = 0;
  auto sparse = [&](uint64_t offset, size_t length) -> Result<std::string> {
    ++reads;
    bytes += length;
    if (offset >= kSize) return reader(tail)(offset - kSize, length);
    std::string out = offset < head.size() ? head.substr(offset, length) : std::string();
    out.resize(std::min<uint64_t>(length, kSize - offset), '\0');
    return out;
  };
  auto facts = read_file_facts(sparse, "opt/large.so");
  ASSERT_TRUE(facts.ok()) << to_line(facts.error());
  ASSERT_TRUE(facts->has_value());
  ASSERT_EQ((*facts)->gpu_code.size(), 1U);
  EXPECT_EQ((*facts)->cuda, "12.4");
  EXPECT_LE(reads, 20U);
  EXPECT_LE(bytes, 100'000U);
  // Nothing but a hole is no fat binary, and is not searched for one.
  std::fill_n(head.begin() + kSection, kContainer + kMember, '\0');
  reads = 0;
  auto hole = read_file_facts(sparse, "opt/large.so");
  ASSERT_FALSE(hole.ok());
  EXPECT_EQ(to_line(hole.error()), "fat binary: no header here");
  EXPECT_LE(reads, 20U);
}

}  // namespace
}  // namespace berth::facts
