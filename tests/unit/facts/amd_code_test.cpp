// SPDX-License-Identifier: Apache-2.0
#include "facts/amd_code.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "facts/file_facts.hpp"
#include "facts/offload_binary.hpp"
#include "unit/facts/build.hpp"

namespace berth::facts {
namespace {

using ::testing::ElementsAre;

std::string code_object(uint8_t abi, uint32_t flags) {
  std::string out = elf_with({{".text", "code"}}, 3, kMachineAmdGpu);
  out[8] = static_cast<char>(abi);
  put<uint32_t>(out, 48, flags);
  return out;
}

std::string target_of(uint8_t abi, uint32_t flags) {
  auto code = code_object_target(code_object(abi, flags));
  return code ? code->arch : "";
}

TEST(AmdCodeObject, tells_its_target_in_the_header) {
  EXPECT_EQ(target_of(2, 0x73f), "gfx90a:xnack+");
  EXPECT_EQ(target_of(3, 0xe3f), "gfx90a:sramecc+:xnack-");
  EXPECT_EQ(target_of(3, 0x53f), "gfx90a");  // either setting of both
  EXPECT_EQ(target_of(3, 0x36), "gfx1030");
  EXPECT_EQ(target_of(4, 0x0100'0054), "gfx11-generic");
  EXPECT_EQ(target_of(1, 0x32f), "gfx906:sramecc+:xnack+");
  EXPECT_EQ(target_of(1, 0x2f), "gfx906");
}

TEST(AmdCodeObject, is_none_without_a_known_processor) {
  EXPECT_EQ(target_of(2, 0xff), "");
  EXPECT_EQ(target_of(0, 0x2f), "");  // version 2
  EXPECT_FALSE(code_object_target(code_object(2, 0x3f).substr(0, 63)));
  EXPECT_FALSE(code_object_target(elf_with({{".text", "code"}})));
}

std::vector<std::string> targets_of(const std::string& bytes) {
  auto facts = read_file_facts(reader(bytes), "opt/kernels");
  EXPECT_TRUE(facts.ok()) << to_line(facts.error());
  std::vector<std::string> out;
  if (facts.ok() && *facts) {
    for (const GpuCode& code : (*facts)->gpu_code) {
      out.push_back(enum_text(code.kind) + " " + code.arch);
    }
  }
  return out;
}

std::string bundle(const std::string& id, const std::string& code) {
  constexpr uint64_t kTable = 24 + 8 + 24;
  return "__CLANG_OFFLOAD_BUNDLE__" + raw<uint64_t>(1) + raw<uint64_t>(kTable + id.size()) +
         raw<uint64_t>(code.size()) + raw<uint64_t>(id.size()) + id + code;
}

TEST(AmdCodeFile, is_a_code_object_or_a_bundle) {
  EXPECT_THAT(targets_of(code_object(2, 0x3f)), ElementsAre("gfx gfx90a"));
  std::string file = bundle("hipv4-amdgcn-amd-amdhsa--gfx1100", "code");
  EXPECT_TRUE(may_have_facts("opt/code.co", file.substr(0, kFirstBytes)));
  EXPECT_THAT(targets_of(file), ElementsAre("gfx gfx1100"));
  EXPECT_THAT(targets_of("__CLASS__ is no bundle, but a text of more than 52 bytes, as it happens"),
              ElementsAre());
}

TEST(AmdCodeFile, that_is_cut_short_is_corrupt) {
  std::string file = bundle("hipv4-amdgcn-amd-amdhsa--gfx1100", "code of some length");
  for (size_t size : {file.size() - 1, size_t{40}, size_t{24}}) {
    auto facts = read_file_facts(reader(file.substr(0, size)), "opt/kernels");
    EXPECT_FALSE(facts.ok()) << size;
  }
  put<uint64_t>(file, 32, UINT64_MAX / 2);
  EXPECT_FALSE(read_file_facts(reader(file), "opt/kernels").ok());
}

/// As clang's linker wrapper writes them.
std::string offload_binary(uint16_t kind, const std::string& arch, uint64_t image = 64) {
  std::string names = "arch" + std::string(1, '\0') + arch + '\0';
  uint64_t strings = 32 + 40, text = strings + 16, end = (text + names.size() + 7) / 8 * 8;
  std::string out = "\x10\xff\x10\xad" + raw<uint32_t>(1) + raw<uint64_t>(end + image) +
                    raw<uint64_t>(32) + raw<uint64_t>(40);
  out += raw<uint16_t>(kind) + raw<uint16_t>(1) + raw<uint32_t>(0) + raw<uint64_t>(strings) +
         raw<uint64_t>(1) + raw<uint64_t>(end) + raw<uint64_t>(image);
  out += raw<uint64_t>(text) + raw<uint64_t>(text + 5) + names;
  out.resize(end + image);
  return out;
}

TEST(OffloadBinary, tells_the_targets_of_openmp) {
  std::string all = offload_binary(1, "gfx90a:xnack+") + offload_binary(3, "sm_80") +
                    offload_binary(5, "sm_90") + offload_binary(1, "gfx942", 0);
  EXPECT_THAT(targets_of(elf_with({{".llvm.offloading", all}}, 3)),
              ElementsAre("sass 80", "ptx 90", "gfx gfx90a:xnack+"));
}

TEST(OffloadBinary, refuses_what_leads_outside) {
  auto error = [](const std::string& bytes) {
    FoundCode found;
    auto done = read_offload_binaries(reader(bytes), 0, bytes.size(), found);
    return done.ok() ? "" : to_line(done.error());
  };
  const std::string good = offload_binary(1, "gfx90a");
  EXPECT_EQ(error(good), "");
  auto with = [&](size_t at, uint64_t value) {
    std::string bytes = good;
    put<uint64_t>(bytes, at, value);
    return error(bytes);
  };
  EXPECT_EQ(with(8, UINT64_MAX), "offload binary: it is longer than its section");
  EXPECT_EQ(with(8, 8), "offload binary: it is longer than its section");
  EXPECT_EQ(with(16, UINT64_MAX - 8), "offload binary: table");
  EXPECT_EQ(with(32 + 8, UINT64_MAX - 8), "offload binary: table");
  EXPECT_EQ(with(32 + 16, UINT64_MAX), "offload binary: too many names");
  EXPECT_EQ(with(72, UINT64_MAX), "offload binary: name");
  EXPECT_EQ(with(0, 0), "offload binary: no header here");
  std::string later = good;
  put<uint32_t>(later, 4, 7);
  EXPECT_EQ(error(later), "offload binary: version 7 is not known");
  std::string many;
  for (int i = 0; i < 1100; ++i) many += good;
  EXPECT_EQ(error(many), "offload binary: too many of them");
}

}  // namespace
}  // namespace berth::facts
