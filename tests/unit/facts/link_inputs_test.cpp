// SPDX-License-Identifier: Apache-2.0
#include "facts/link_inputs.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "facts/file_facts.hpp"
#include "facts/layer_scan.hpp"
#include "facts/ptx.hpp"
#include "facts/window.hpp"
#include "unit/facts/build.hpp"

namespace berth::facts {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> archs(const std::vector<GpuCode>& codes) {
  std::vector<std::string> out;
  for (const GpuCode& code : codes) out.push_back(enum_text(code.kind) + " " + code.arch);
  return out;
}

FileFacts facts_in(const std::string& bytes, const std::string& path = "a/file") {
  auto facts = read_file_facts(reader(bytes), path);
  EXPECT_TRUE(facts.ok()) << to_line(facts.error());
  return facts.ok() && *facts ? **facts : FileFacts{};
}

std::string damage_of(const std::string& bytes) {
  auto facts = read_file_facts(reader(bytes), "a/file");
  return facts.ok() ? "" : to_line(facts.error());
}

std::string object(uint32_t arch, const std::string& section = ".nv_fatbin") {
  return elf_with({{".rodata", "text"}, {section, container(member({.arch = arch}))}}, 1);
}

TEST(LinkInputs, of_objects_and_archives_are_for_linkers) {
  FileFacts facts = facts_in(object(80));
  EXPECT_THAT(archs(facts.linker_code), ElementsAre("sass 80"));
  EXPECT_THAT(facts.gpu_code, IsEmpty());
  EXPECT_EQ(facts.machine, "amd64");
  EXPECT_FALSE(facts.program);
  facts = facts_in(archive({{"", "symbols"},
                            {"a.o", object(70)},
                            {"text", "odd"},
                            {"b.o", object(90, "__nv_relfatbin")},
                            {"host.o", elf_with({{".text", "code"}}, 1)}}));
  EXPECT_THAT(archs(facts.linker_code), ElementsAre("sass 70", "sass 90"));
  EXPECT_THAT(facts.gpu_code, IsEmpty());
}

TEST(LinkInputs, most_objects_and_archives_have_no_facts) {
  for (const std::string& bytes :
       {elf_with({{".text", "code"}}, 1), archive({}), archive({{"a.o", elf_with({}, 1)}}),
        archive({{"debian-binary", "2.0\n"}, {"control.tar.xz", "xz"}}), std::string("!<thin>\n"),
        archive({{"a.o",
                  "\x7f"
                  "ELF"}})}) {
    auto facts = read_file_facts(reader(bytes), "x.a");
    ASSERT_TRUE(facts.ok()) << to_line(facts.error());
    EXPECT_FALSE(facts->has_value());
  }
}

TEST(LinkInputs, an_object_with_very_many_sections_has_their_number_elsewhere) {
  std::string bytes = object(80);
  uint64_t table = number_at(bytes, 40, 8), count = number_at(bytes, 60, 2);
  put<uint64_t>(bytes, table + 32, count);
  put<uint32_t>(bytes, table + 40, static_cast<uint32_t>(count - 1));
  put<uint16_t>(bytes, 60, 0);
  put<uint16_t>(bytes, 62, 0xffff);
  EXPECT_THAT(archs(facts_in(bytes).linker_code), ElementsAre("sass 80"));
  put<uint64_t>(bytes, table + 32, UINT64_MAX);
  EXPECT_EQ(damage_of(bytes), "object: too many sections");
}

TEST(LinkInputs, a_code_object_to_link_is_no_code_that_runs) {
  std::string bytes = cubin(7, 0x500550, 124);
  put<uint16_t>(bytes, 16, 1);
  FileFacts facts = facts_in(bytes);
  EXPECT_THAT(facts.gpu_code, IsEmpty());
  EXPECT_THAT(archs(facts.linker_code), ElementsAre("sass 80"));
}

TEST(LinkInputs, what_leads_outside_is_refused) {
  std::string whole = object(80), cut = whole.substr(0, whole.size() - 64);
  EXPECT_EQ(damage_of(cut), "object: sections outside of the file");
  std::string far = whole;
  put<uint64_t>(far, 40, UINT64_MAX - 100);
  EXPECT_EQ(damage_of(far), "object: sections outside of the file");
  std::string packed = archive({{"a.o", whole}});
  EXPECT_EQ(damage_of(packed), "");
  EXPECT_EQ(damage_of(packed.substr(0, packed.size() - 100)),
            "object: sections outside of the file");
  std::string longer = packed;
  longer.replace(8 + 48, 10, "9999999999");
  EXPECT_EQ(damage_of(longer), "archive: a member outside of the file");
  longer.replace(8 + 48, 10, "-1        ");
  EXPECT_EQ(damage_of(longer), "archive: size of a member");
  EXPECT_EQ(damage_of("!<arch>\nno header of a member"), "archive: no header here");
  // A section of one member must not be read from the next one.
  std::string two = archive({{"a.o", whole}, {"b.o", object(90)}});
  uint64_t table = number_at(whole, 40, 8);
  put<uint64_t>(two, 8 + 60 + table + 2 * 64 + 32, whole.size());
  EXPECT_EQ(damage_of(two), "object: GPU code outside of the file");
}

TEST(LinkInputs, an_archive_of_many_members_is_read_in_a_few_reads_each) {
  constexpr size_t kMembers = 50'000;
  std::string bytes = "!<arch>\n", one = archive({{"a.o", object(80)}}).substr(bytes.size());
  for (size_t i = 0; i < kMembers; ++i) bytes += one;
  const scan::ReadAt read_at = reader(bytes);
  uint64_t reads = 0;
  auto counting = [&](uint64_t offset, size_t length) {
    ++reads;
    return read_at(offset, length);
  };
  auto facts = read_file_facts(counting, "many.a");
  ASSERT_TRUE(facts.ok() && *facts);
  EXPECT_THAT(archs((*facts)->linker_code), ElementsAre("sass 80"));
  EXPECT_LE(reads, 4 * kMembers);
}

TEST(FatBinaryFile, is_code_that_a_program_may_load) {
  std::string bytes = container(member({.kind = 1, .arch = 75, .version = {8, 4}}) +
                                member({.arch = 80, .payload = cubin(7, 0x500550, 124)}));
  FileFacts facts = facts_in(bytes);
  EXPECT_THAT(archs(facts.gpu_code), ElementsAre("sass 80", "ptx 75"));
  EXPECT_THAT(facts.linker_code, IsEmpty());
  EXPECT_EQ(facts.machine, "elf:190");
  EXPECT_EQ(facts.cuda, "12.4");
  EXPECT_EQ(damage_of(bytes.substr(0, bytes.size() - 1)), "fat binary: it is longer than its file");
  put<uint64_t>(bytes, 8, UINT64_MAX - 4);
  EXPECT_EQ(damage_of(bytes), "fat binary: it is longer than its file");
}

TEST(Ptx, has_its_version_and_target_first) {
  auto of = [](std::string_view text) {
    auto code = ptx_target(text);
    return code ? code->arch + " " + code->isa : "none";
  };
  EXPECT_EQ(of("//\n// Generated by NVIDIA NVVM Compiler\n//\n\n.version 8.4\n.target sm_90a\n"),
            "90a 8.4");
  EXPECT_EQ(of(".version 7.2 /* x */ .target sm_70, debug\n"), "70 7.2");
  EXPECT_EQ(of("  /* .version 1.0 */\n.version 8.8\n.target sm_100f"), "100f 8.8");
  for (const char* text :
       {"", "// only a comment", "/* without an end", ".version", ".version 8", ".version x.y",
        ".version 8.4\n", ".version 8.4\n.target", ".version 8.4\n.target gfx90",
        ".version 8.4\n.target sm_9999999999", "int main() {}", ".target sm_70\n.version 8.4"}) {
    EXPECT_EQ(of(text), "none") << text;
  }
}

TEST(Ptx, is_looked_for_in_files_of_that_name) {
  std::string text = "// x\n.version 8.4\n.target sm_80\n";
  EXPECT_THAT(archs(facts_in(text, "a/kernel.ptx").gpu_code), ElementsAre("ptx 80"));
  EXPECT_EQ(facts_in(text, "a/kernel.ptx").gpu_code.at(0).isa, "8.4");
  EXPECT_TRUE(may_have_facts("a/kernel.ptx", "// x\n.ve"));
  EXPECT_FALSE(may_have_facts("a/kernel.js", "// x\n.ve"));
  EXPECT_TRUE(may_have_facts("a/lib.a", "!<arch>\n"));
  EXPECT_FALSE(may_have_facts("a/lib.a", "!<thin>\n"));
  EXPECT_TRUE(may_have_facts("a/x", "\x50\xed\x55\xba\1\0\x10"));
}

}  // namespace
}  // namespace berth::facts
