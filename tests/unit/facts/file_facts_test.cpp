// SPDX-License-Identifier: Apache-2.0
#include "facts/file_facts.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "facts/layer_scan.hpp"
#include "facts/window.hpp"
#include "json/fields.hpp"
#include "unit/facts/build.hpp"

namespace berth::facts {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

FileFacts facts_of(const std::string& bytes) {
  auto facts = read_file_facts(reader(bytes), "a/file");
  EXPECT_TRUE(facts.ok()) << to_line(facts.error());
  EXPECT_TRUE(facts.ok() && facts->has_value());
  return facts.ok() && *facts ? **facts : FileFacts{};
}

// A section .note.gnu.property that asks for these bits of x86-64 levels.
std::string with_note(uint32_t bits, uint16_t machine = scan::kMachineX86_64) {
  std::string other = raw<uint32_t>(0xc0000002) + raw<uint32_t>(4) + raw<uint32_t>(3) +
                      raw<uint32_t>(0);  // IBT and shadow stacks
  std::string need = raw<uint32_t>(0xc0008002) + raw<uint32_t>(4) + raw(bits) + raw<uint32_t>(0);
  std::string note = raw<uint32_t>(4) +
                     raw<uint32_t>(static_cast<uint32_t>(other.size() + need.size())) +
                     raw<uint32_t>(5) + std::string("GNU\0", 4) + other + need;
  return elf_with({{".note.gnu.property", note}}, 2, machine, 7);
}

std::string with_go(std::string_view settings) {
  auto text = [](std::string value) {
    return std::string(1, static_cast<char>(value.size() | 0x80)) +
           static_cast<char>(value.size() >> 7) + value;
  };
  std::string info = "\xff Go buildinf:\x08\x02" + std::string(16, '\0');
  return elf_with({{".go.buildinfo", info + text("go1.21.0") + text(std::string(settings))}});
}

TEST(FileFacts, a_property_note_asks_for_a_level) {
  EXPECT_EQ(facts_of(with_note(1)).isa, (IsaNeed{1, "note"}));
  EXPECT_EQ(facts_of(with_note(1 | 2 | 4)).isa, (IsaNeed{3, "note"}));
  EXPECT_EQ(facts_of(with_note(8)).isa, (IsaNeed{4, "note"}));
  EXPECT_EQ(facts_of(with_note(0)).isa, IsaNeed{});
  EXPECT_EQ(facts_of(with_note(4, scan::kMachineAarch64)).isa, IsaNeed{});
}

TEST(FileFacts, a_go_program_asks_for_its_level) {
  EXPECT_EQ(facts_of(with_go("path\tx\nbuild\tGOARCH=amd64\nbuild\tGOAMD64=v3\n")).isa,
            (IsaNeed{3, "go"}));
  EXPECT_EQ(facts_of(with_go("build\tGOAMD64=v1\n")).isa, (IsaNeed{1, "go"}));
  EXPECT_EQ(facts_of(with_go("build\tGOAMD64=v9\nbuild\tGOAMD64=\n")).isa, IsaNeed{});
  EXPECT_EQ(facts_of(elf_with({{".go.buildinfo", "\xff Go buildinf:\x08\x02"}})).isa, IsaNeed{});
  std::string endless =
      "\xff Go buildinf:\x08\x02" + std::string(16, '\0') + std::string(9, '\xff');
  EXPECT_EQ(facts_of(elf_with({{".go.buildinfo", endless}})).isa, IsaNeed{});
}

TEST(FileFacts, code_for_gpus_is_in_named_sections_alone) {
  std::string code = container(member({.arch = 80}));
  FileFacts facts = facts_of(elf_with({{".data", container(member({.arch = 70}))},
                                       {".nv_fatbin", code},
                                       {"__nv_relfatbin", container(member({.arch = 90}))}}));
  ASSERT_EQ(facts.gpu_code.size(), 2U);
  EXPECT_EQ(facts.gpu_code[0].arch, "80");
  EXPECT_EQ(facts.gpu_code[1].arch, "90");
  EXPECT_TRUE(facts.program);
  EXPECT_EQ(facts.machine, "amd64");
  EXPECT_THAT(facts_of(elf_with({{".nv_fatbin", ""}})).gpu_code, IsEmpty());
}

TEST(FileFacts, sections_without_bytes_are_not_read) {
  EXPECT_THAT(facts_of(elf_with({{".nv_fatbin", "nonsense of a debug file"}}, 3, 62, 8)).gpu_code,
              IsEmpty());
}

TEST(FileFacts, a_code_object_of_its_own_is_one) {
  FileFacts facts = facts_of(cubin(7, 0x5a0d5a));
  EXPECT_EQ(facts.machine, "elf:190");
  EXPECT_EQ(facts.gpu_code, (std::vector<GpuCode>{{GpuCode::Kind::sass, "90a", ""}}));
}

TEST(FileFacts, a_later_code_object_tells_its_suffix_in_a_note) {
  auto arch = [](const std::string& options) {
    std::string note = raw<uint32_t>(12) +
                       raw<uint32_t>(static_cast<uint32_t>(options.size() + 1)) +
                       raw<uint32_t>(2000) + std::string("NVIDIA Corp\0", 12) + options + '\0';
    std::string bytes = elf_with({{".text", "code"}, {".note.nv.tkinfo", note}}, 2, 190, 7);
    std::string header = cubin(8, 0x6005a04);
    put<uint64_t>(header, 40, number_at(bytes, 40, 8));
    put<uint16_t>(header, 60, 4);
    bytes.replace(0, 64, header);
    return facts_of(bytes).gpu_code.at(0).arch;
  };
  EXPECT_EQ(arch("-arch sm_90a -m 64"), "90a");
  EXPECT_EQ(arch("-arch sm_90 -m 64"), "90");
  EXPECT_EQ(arch("-arch sm_90f"), "90f");
  EXPECT_EQ(arch("-arch sm_90"), "90");
  EXPECT_EQ(arch("-arch sm_100a"), "90");
}

TEST(FileFacts, what_is_no_program_or_library_has_none) {
  for (const std::string& bytes : {std::string(), std::string("#!/bin/sh\n"),
                                   std::string("\x7f"
                                               "ELF"),
                                   elf_with({}, 1), elf_with({}, 4)}) {
    auto facts = read_file_facts(reader(bytes), "x");
    ASSERT_TRUE(facts.ok());
    EXPECT_FALSE(facts->has_value());
  }
}

TEST(FileFacts, of_a_program_made_by_the_real_linker) {
  std::ifstream file("/proc/self/exe", std::ios::binary);
  auto read = read_file_facts(
      [&](uint64_t offset, size_t length) -> Result<std::string> {
        std::string bytes(length, '\0');
        file.clear();
        file.seekg(static_cast<std::streamoff>(offset));
        file.read(bytes.data(), static_cast<std::streamsize>(length));
        bytes.resize(static_cast<size_t>(file.gcount()));
        return bytes;
      },
      "x");
  ASSERT_TRUE(read.ok() && read->has_value());
  const FileFacts& facts = **read;
  EXPECT_TRUE(facts.program);
  EXPECT_TRUE(facts.interpreter.starts_with("/lib"));
  EXPECT_TRUE(facts.needs.contains("GLIBC"));
  EXPECT_TRUE(facts.needs.contains("GLIBCXX"));
  EXPECT_THAT(facts.offers, IsEmpty());
}

TEST(LayerScan, keeps_what_is_there_in_the_end) {
  LayerScan scan;
  std::string v3 = with_note(4), v2 = with_note(2);
  scan.add("bin/a", reader(v3));
  scan.add("bin/b", reader(v2));
  scan.add("bin.d/c", reader(v2));
  scan.link("lib/d", "bin/b");
  scan.add("bin/e", reader("\x7f"
                           "ELF but not really, although it is long enough for a header"));
  scan.remove("bin/a");
  scan.add("bin/text", reader("no ELF"));
  LayerFacts facts = scan.take();
  std::vector<std::string> paths;
  for (const FileFacts& file : facts.files) paths.push_back(file.path);
  EXPECT_THAT(paths, ElementsAre("bin.d/c", "bin/b", "lib/d"));
  EXPECT_EQ(facts.files[2].isa, (IsaNeed{2, "note"}));
}

TEST(LayerScan, a_removed_directory_takes_all_below_it) {
  LayerScan scan;
  std::string v3 = with_note(4);
  for (const char* path : {"opt/a/x", "opt/a/b/y", "opt/a.z", "opt/ab"}) {
    scan.add(path, reader(v3));
  }
  scan.remove("opt/a");
  LayerFacts facts = scan.take();
  ASSERT_EQ(facts.files.size(), 2U);
  EXPECT_EQ(facts.files[0].path, "opt/a.z");
}

TEST(LayerScan, lists_what_does_not_read) {
  LayerScan scan;
  std::string damaged = elf_with({{".nv_fatbin", "damaged, though long enough"}});
  scan.add("lib/damaged.so", reader(damaged));
  LayerFacts facts = scan.take();
  EXPECT_THAT(facts.files, IsEmpty());
  EXPECT_THAT(facts.unread, ElementsAre("lib/damaged.so"));
}

TEST(LayerScan, a_layer_that_costs_too_much_is_left) {
  std::string bytes = elf_with({{".data", "x"}});
  LayerScan few({}, {.files = 2});
  LayerScan short_of_reads({}, {.reads = 10});
  LayerScan short_of_bytes({}, {.bytes = 300});
  for (int i = 0; i < 5; ++i) {
    for (LayerScan* scan : {&few, &short_of_reads, &short_of_bytes}) {
      scan->add("lib/" + std::to_string(i), reader(bytes));
    }
  }
  LayerFacts facts = few.take();
  EXPECT_EQ(facts.files.size(), 2U);
  EXPECT_EQ(facts.files_left_out, 3U);
  for (LayerScan* scan : {&short_of_reads, &short_of_bytes}) {
    facts = scan->take();
    EXPECT_LT(facts.files.size(), 5U);
    EXPECT_LE(facts.unread.size(), 1U);  // in which it ended
    EXPECT_EQ(facts.files.size() + facts.unread.size() + facts.files_left_out, 5U);
  }
}

TEST(LayerScan, written_facts_read_back) {
  LayerScan scan;
  std::string bytes = elf_with({{".nv_fatbin", container(member({.arch = 80}))}});
  scan.add("lib/x.so", reader(bytes));
  LayerFacts facts = scan.take();
  auto back = read_layer_facts(write_layer_facts(facts));
  ASSERT_TRUE(back.ok() && back->has_value());
  EXPECT_EQ((*back)->files, facts.files);
  EXPECT_FALSE(read_layer_facts("{").ok());
  facts.version = kVersion + 1;
  EXPECT_FALSE(read_layer_facts(write_layer_facts(facts))->has_value());
}

}  // namespace
}  // namespace berth::facts
