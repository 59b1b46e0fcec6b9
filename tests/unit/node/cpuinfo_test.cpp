// SPDX-License-Identifier: Apache-2.0
#include "node/cpuinfo.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "unit/node/cpus.hpp"

namespace berth::node {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;

std::string found(const std::string& vendor, const std::string& flags) {
  return read_cpuinfo(x86_cpuinfo(vendor, "", flags), "x86_64").microarchitecture;
}

std::string found_arm(const std::string& implementer, const std::string& part,
                      const std::string& features) {
  return read_cpuinfo(arm_cpuinfo(implementer, part, features), "aarch64").microarchitecture;
}

TEST(Cpuinfo, intel_goes_by_its_features) {
  EXPECT_EQ(found("GenuineIntel", kFlagsBroadwell), "broadwell");
  EXPECT_EQ(found("GenuineIntel", kFlagsSkylakeServer), "skylake_avx512");
  EXPECT_EQ(found("GenuineIntel", kFlagsSapphireRapids), "sapphirerapids");
}

TEST(Cpuinfo, amd_goes_by_its_features) {
  EXPECT_EQ(found("AuthenticAMD", kFlagsZen4), "zen4");
}

TEST(Cpuinfo, of_another_vendor_only_the_generic_ones_count) {
  EXPECT_EQ(found("CentaurHauls", kFlagsSapphireRapids), "x86_64_v4");
  EXPECT_EQ(found("", kFlagsV3), "x86_64_v3");
  EXPECT_EQ(found("AuthenticAMD", kFlagsV2), "x86_64_v2");
}

TEST(Cpuinfo, a_feature_that_is_off_does_not_take_more_than_it_has_to) {
  std::string flags = kFlagsSapphireRapids;
  flags.replace(flags.find(" amx_tile"), 9, "");
  EXPECT_EQ(found("GenuineIntel", flags), "icelake");
  // Without one of Haswell's, Intel's descendants of the generic level are gone.
  std::string virtual_machine = kFlagsV3;
  EXPECT_EQ(found("GenuineIntel", virtual_machine), "x86_64_v3");
}

TEST(Cpuinfo, arm_goes_by_the_part) {
  EXPECT_EQ(found_arm("0x41", "0xd4f", kFeaturesNeoverseV2), "neoverse_v2");
  EXPECT_EQ(found_arm("0x41", "0xd49", kFeaturesNeoverseV2), "neoverse_n2");
}

TEST(Cpuinfo, an_arm_part_that_nobody_knows_goes_by_vendor_and_features) {
  EXPECT_EQ(found_arm("0x41", "0xfff", "fp asimd evtstrm aes pmull sha1 sha2 crc32 cpuid"),
            "cortex_a72");
  EXPECT_EQ(found_arm("0x70", "0x661", kFeaturesNeoverseV2), "aarch64");
}

TEST(Cpuinfo, power_goes_by_generation) {
  std::string text = "processor\t: 0\ncpu\t\t: POWER9, altivec supported\nclock\t\t: 3666MHz\n";
  Cpu cpu = read_cpuinfo(text, "ppc64le");
  EXPECT_EQ(cpu.microarchitecture, "power9le");
  EXPECT_EQ(cpu.part, "POWER9");
  EXPECT_THAT(cpu.ancestors, ElementsAre("power8le", "ppc64le"));
  EXPECT_EQ(read_cpuinfo(text, "ppc64").microarchitecture, "power9");
  EXPECT_EQ(read_cpuinfo("cpu : POWER8E (raw), altivec supported\n", "ppc64le").microarchitecture,
            "power8le");
  EXPECT_EQ(read_cpuinfo("cpu : POWER11 (architected)\n", "ppc64le").microarchitecture,
            "power10le");
  EXPECT_EQ(read_cpuinfo("cpu : Common\n", "ppc64le").microarchitecture, "ppc64le");
}

TEST(Cpuinfo, risc_v_goes_by_name) {
  EXPECT_EQ(read_cpuinfo("hart : 4\nuarch : sifive,u74-mc\n", "riscv64").microarchitecture,
            "u74mc");
  EXPECT_EQ(read_cpuinfo("model name : Spacemit(R) X60\n", "riscv64").microarchitecture, "x60");
  EXPECT_EQ(read_cpuinfo("uarch : thead,c906\n", "riscv64").microarchitecture, "riscv64");
}

TEST(Cpuinfo, a_family_that_archspec_lacks_is_its_own_microarchitecture) {
  EXPECT_EQ(read_cpuinfo("vendor_id : IBM/S390\n", "s390x").microarchitecture, "s390x");
}

TEST(Cpuinfo, all_of_the_cpu_is_filled) {
  Cpu cpu = read_cpuinfo(x86_cpuinfo("GenuineIntel", "Xeon", kFlagsBroadwell), "x86_64");
  EXPECT_EQ(cpu.vendor, "GenuineIntel");
  EXPECT_EQ(cpu.model, "Xeon");
  EXPECT_EQ(cpu.level, 3u);
  EXPECT_EQ(cpu.ancestors.front(), "haswell");
  EXPECT_EQ(cpu.ancestors.back(), "x86_64");
  EXPECT_THAT(cpu.features, Contains("hypervisor"));  // what archspec does not know is kept
  EXPECT_TRUE(std::is_sorted(cpu.features.begin(), cpu.features.end()));
}

TEST(Cpuinfo, only_the_first_processor_counts) {
  std::string text = x86_cpuinfo("GenuineIntel", "one", kFlagsV2);
  text += x86_cpuinfo("GenuineIntel", "two", kFlagsV4);
  Cpu cpu = read_cpuinfo(text, "x86_64");
  EXPECT_EQ(cpu.model, "one");
  EXPECT_EQ(cpu.level, 2u);
}

TEST(Cpuinfo, what_says_nothing_is_no_error) {
  EXPECT_EQ(read_cpuinfo("", "x86_64").microarchitecture, "x86_64");
  EXPECT_EQ(read_cpuinfo("\n\n\n", "aarch64").microarchitecture, "aarch64");
  EXPECT_EQ(read_cpuinfo(std::string(100'000, '\n'), "x86_64").level, 1u);
  EXPECT_EQ(read_cpuinfo(std::string(100'000, ':'), "x86_64").level, 1u);
}

TEST(Cpuinfo, values_are_bounded_and_have_no_control_characters) {
  Cpu cpu = read_cpuinfo("model name : \x1b[31mred\nvendor_id : " + std::string(5000, 'v') +
                             "\nflags : sse " + std::string(100, 'f') + " a\x7f" + "b sse2\n",
                         "x86_64");
  EXPECT_EQ(cpu.model, "");
  EXPECT_EQ(cpu.vendor, "");
  EXPECT_THAT(cpu.features, ElementsAre("sse", "sse2"));
  std::string many = "flags :";
  for (int i = 0; i < 5000; ++i) many += " f" + std::to_string(i);
  EXPECT_EQ(read_cpuinfo(many, "x86_64").features.size(), 1024u);
}

TEST(Cpuinfo, a_text_that_is_cut_off_keeps_what_came_before) {
  std::string text = x86_cpuinfo("AuthenticAMD", "EPYC", kFlagsZen4);
  Cpu cpu = read_cpuinfo(text.substr(0, text.find("sse2")), "x86_64");
  EXPECT_EQ(cpu.vendor, "AuthenticAMD");
  EXPECT_THAT(cpu.features, Not(Contains("avx2")));
}

}  // namespace
}  // namespace berth::node
