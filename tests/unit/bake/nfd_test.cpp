// SPDX-License-Identifier: Apache-2.0
#include "bake/nfd.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bake/nfd_document.hpp"

namespace berth::bake {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;
using testing::UnorderedElementsAre;

NfdRules rules_of(const std::string& text, const std::optional<std::string>& tag = {}) {
  auto rules = read_nfd(text, "nfd.yaml", tag);
  EXPECT_TRUE(rules.ok()) << to_line(rules.error());
  return rules.ok() ? *rules : NfdRules{};
}

std::string rules_fault(const std::string& text, const std::optional<std::string>& tag = {}) {
  auto rules = read_nfd(text, "nfd.yaml", tag);
  EXPECT_FALSE(rules.ok());
  return rules.ok() ? "" : to_line(rules.error());
}

/// One rule with these terms, in flow style.
std::string rule(const std::string& terms) {
  return "version: v1alpha1\ncompatibilities:\n- rules:\n  - name: r\n    matchFeatures: [" +
         terms + "]\n";
}
std::string term(const std::string& feature, const std::string& expressions) {
  return "{feature: " + feature + ", matchExpressions: {" + expressions + "}}";
}
std::string kernel(const std::string& expressions) {
  return rule(term("kernel.version", expressions));
}
std::string label(const std::string& expressions) {
  return rule(term("local.label", expressions));
}
std::string value(const std::string& text, const std::string& axis) {
  NfdRules rules = rules_of(text);
  auto found = rules.words.find(axis);
  return found == rules.words.end() ? "" : found->second;
}
std::vector<std::string> left(const NfdRules& rules) {
  std::vector<std::string> out;
  for (const NfdLeft& one : rules.left) out.push_back(one.place + ": " + one.text);
  return out;
}

// ---- the processor

TEST(Nfd, flags_are_features_by_the_kernels_names) {
  NfdRules rules =
      rules_of(rule(term("cpu.cpuid",
                         "AVX512VNNI: {op: Exists}, AMXTILE: {op: Exists}, SSE42: {op: "
                         "IsTrue}, FMA3: {op: In, value: ['true']}")));
  EXPECT_THAT(rules.words, ElementsAre(Pair("cpu-features", "amx_tile avx512_vnni fma sse4_2")));
  EXPECT_THAT(rules.left, IsEmpty());
}

TEST(Nfd, a_level_is_a_level_by_its_flag_or_by_all_that_it_has) {
  EXPECT_THAT(rules_of(rule(term("cpu.cpuid", "X86_64_V3: {op: Exists}"))).words,
              ElementsAre(Pair("cpu", "x86-64-v3")));
  std::string v2 =
      "CX16: {op: Exists}, LAHF: {op: Exists}, POPCNT: {op: Exists}, SSE3: {op: Exists}, SSE4: "
      "{op: Exists}, SSE42: {op: Exists}, SSSE3: {op: Exists}";
  EXPECT_THAT(rules_of(rule(term("cpu.cpuid", v2))).words, ElementsAre(Pair("cpu", "x86-64-v2")));
  EXPECT_THAT(rules_of(rule(term("cpu.cpuid", v2 + ", AESNI: {op: Exists}"))).words,
              ElementsAre(Pair("cpu", "x86-64-v2"), Pair("cpu-features", "aes")));
  std::string v3 = v2 +
                   ", AVX: {op: Exists}, AVX2: {op: Exists}, BMI1: {op: Exists}, BMI2: {op: "
                   "Exists}, F16C: {op: Exists}, FMA3: {op: Exists}, LZCNT: {op: Exists}, MOVBE: "
                   "{op: Exists}, OSXSAVE: {op: Exists}";
  EXPECT_THAT(rules_of(rule(term("cpu.cpuid", v3))).words, ElementsAre(Pair("cpu", "x86-64-v3")));
}

TEST(Nfd, a_single_name_is_a_flag_and_a_choice_or_an_absence_has_no_word) {
  NfdRules rules =
      rules_of(rule("{feature: cpu.cpuid, matchName: {op: In, value: [AVX2]}}, "
                    "{feature: cpu.cpuid, matchName: {op: InRegexp, value: ['^AVX']}}, " +
                    term("cpu.cpuid", "HLE: {op: DoesNotExist}, AVX512VNI: {op: Exists}")));
  EXPECT_THAT(rules.words, ElementsAre(Pair("cpu-features", "avx2")));
  EXPECT_THAT(
      left(rules),
      ElementsAre("compatibilities[0].rules[0].matchFeatures[1].matchName: cpu.cpuid "
                  "InRegexp ^AVX has no word here",
                  "compatibilities[0].rules[0].matchFeatures[2].matchExpressions['AVX512VNI']"
                  ": cpu.cpuid: AVX512VNI has no word here; did you mean 'AVX512VNNI'?",
                  "compatibilities[0].rules[0].matchFeatures[2].matchExpressions['HLE']: "
                  "cpu.cpuid: HLE DoesNotExist has no word here"));
}

// ---- versions

TEST(Nfd, parts_of_the_kernels_version_are_a_range) {
  EXPECT_EQ(value(kernel("major: {op: Ge, value: ['5']}"), "kernel"), ">=5");
  EXPECT_EQ(value(kernel("major: {op: Gt, value: ['5']}"), "kernel"), ">=6");
  EXPECT_EQ(value(kernel("major: {op: Lt, value: ['6']}"), "kernel"), "<6");
  EXPECT_EQ(value(kernel("major: {op: Le, value: ['6']}"), "kernel"), "<7");
  EXPECT_EQ(value(kernel("major: {op: In, value: ['5', '6']}"), "kernel"), ">=5 <7");
  EXPECT_EQ(value(kernel("major: {op: GtLt, value: ['4', '7']}"), "kernel"), ">=5 <7");
  EXPECT_EQ(value(kernel("major: {op: GeLe, value: [5, 6]}"), "kernel"), ">=5 <7");
  EXPECT_EQ(value(kernel("major: {op: In, value: ['5']}"), "kernel"), "=5");
  EXPECT_EQ(
      value(kernel("major: {op: In, value: ['5']}, minor: {op: Ge, value: ['10']}"), "kernel"),
      ">=5.10 <6");
  EXPECT_EQ(value(kernel("major: {op: In, value: ['5']}, minor: {op: In, value: ['10']}, "
                         "revision: {op: Lt, value: ['3']}"),
                  "kernel"),
            ">=5.10.0 <5.10.3");
}

TEST(Nfd, versions_as_a_whole_are_compared_as_newer_nfd_does) {
  EXPECT_EQ(value(kernel("full: {op: Ge, value: ['5.10'], type: version}"), "kernel"), ">=5.10");
  EXPECT_EQ(value(kernel("full: {op: GtLt, value: ['5.10', 6.12.1], type: version}"), "kernel"),
            ">5.10 <6.12.1");
  NfdRules rules = rules_of(kernel("full: {op: In, value: [6.1.0-13-amd64]}"));
  EXPECT_THAT(rules.words, ElementsAre(Pair("kernel", "=6.1.0")));
  EXPECT_THAT(left(rules), ElementsAre(HasSubstr("only 6.1.0 is compared")));
}

TEST(Nfd, a_minor_of_any_major_has_no_word) {
  NfdRules rules =
      rules_of(kernel("major: {op: Ge, value: ['5']}, minor: {op: Ge, value: ['10']}"));
  EXPECT_THAT(rules.words, ElementsAre(Pair("kernel", ">=5")));
  EXPECT_THAT(left(rules), ElementsAre(HasSubstr("minor of the kernel's version, where what stands "
                                                 "before it may differ, has no word here")));
}

// ---- labels of NVIDIA's discovery

TEST(Nfd, labels_of_nvidias_discovery_are_driver_and_gpu) {
  EXPECT_EQ(value(label("nvidia.com/cuda.driver.major: {op: Gt, value: ['524']}"), "driver"),
            ">=525");
  EXPECT_EQ(value(label("nvidia.com/cuda.driver-version.full: {op: Ge, value: [525.60.13], type: "
                        "version}"),
                  "driver"),
            ">=525.60.13");
  EXPECT_EQ(value(label("nvidia.com/gpu.compute.major: {op: In, value: ['8', '9']}"), "gpu"),
            "sm_80 sm_90");
  EXPECT_EQ(value(label("nvidia.com/gpu.compute.major: {op: In, value: ['8']}, "
                        "nvidia.com/gpu.compute.minor: {op: Ge, value: ['6']}"),
                  "gpu"),
            "sm_86");
  NfdRules open = rules_of(label("nvidia.com/gpu.compute.major: {op: Ge, value: ['8']}"));
  EXPECT_THAT(open.words, IsEmpty());
  EXPECT_EQ(open.left.size(), 1u);
}

// ---- what has no word

TEST(Nfd, nothing_is_passed_over_in_silence) {
  NfdRules rules = rules_of(R"(version: v1alpha1
compatibilities:
- description: "of NFD's documentation, nearly"
  rules:
  - name: "kernel and cpu"
    matchFeatures:
    - feature: kernel.loadedmodule
      matchExpressions:
        nvidia: {op: Exists}
    - feature: cpu.model
      matchExpressions:
        vendor_id: {op: In, value: ["Intel", "AMD"]}
  - name: "one of available nics"
    matchAny:
    - matchFeatures:
      - feature: pci.device
        matchExpressions:
          vendor: {op: In, value: ["0eee"]}
    - matchFeatures:
      - feature: pci.device
        matchExpressions:
          vendor: {op: In, value: ["0fff"]}
  - name: "a choice of one is none"
    matchAny:
    - matchFeatures:
      - feature: cpu.cpuid
        matchExpressions: {AVX2: {op: Exists}}
)");
  EXPECT_EQ(rules.description, "of NFD's documentation, nearly");
  EXPECT_THAT(rules.words, ElementsAre(Pair("cpu-features", "avx2")));
  EXPECT_THAT(
      left(rules),
      ElementsAre("compatibilities[0].rules[0].matchFeatures[0].matchExpressions['nvidia']: "
                  "kernel.loadedmodule: nvidia Exists has no word here",
                  "compatibilities[0].rules[0].matchFeatures[1].matchExpressions['vendor_id']: "
                  "cpu.model: vendor_id In Intel, AMD has no word here",
                  "compatibilities[0].rules[1].matchAny: a choice of 2 has no word here"));
}

// ---- several sets

const std::string kSets = R"(version: v1alpha1
compatibilities:
- {tag: plain, weight: 1, rules: [{matchFeatures: [{feature: cpu.cpuid, matchExpressions: {X86_64_V2: {op: Exists}}}]}]}
- {tag: fast, weight: 9, rules: [{matchFeatures: [{feature: cpu.cpuid, matchExpressions: {X86_64_V4: {op: Exists}}}]}]}
- {tag: other, weight: 9, rules: []}
)";

TEST(Nfd, of_several_sets_the_weight_or_a_tag_decides_and_it_is_said) {
  NfdRules heavy = rules_of(kSets);
  EXPECT_EQ(heavy.tag, "fast");
  EXPECT_THAT(heavy.words, ElementsAre(Pair("cpu", "x86-64-v4")));
  EXPECT_THAT(remarks_of(heavy, "nfd.yaml"),
              ElementsAre("nfd.yaml: of 3 sets compatibilities[1] (weight 9, tag 'fast') is taken, "
                          "ignoring the others"));
  EXPECT_THAT(rules_of(kSets, "plain").words, ElementsAre(Pair("cpu", "x86-64-v2")));
  EXPECT_EQ(rules_fault(kSets, "fats"), "nfd.yaml: no tag 'fats'; did you mean 'fast'?");
  EXPECT_EQ(rules_fault(kernel("major: {op: Ge, value: ['5']}"), "x"),
            "nfd.yaml: no tag 'x': none of its sets has one");
}

// ---- faults

TEST(Nfd, a_fault_is_one_line_with_its_place_and_the_nearest) {
  EXPECT_EQ(rules_fault(rule(term("cpu.cpuidd", "AVX: {op: Exists}"))),
            "nfd.yaml: compatibilities[0].rules[0].matchFeatures[0]: feature: NFD has no "
            "feature 'cpu.cpuidd'; did you mean 'cpu.cpuid'?");
  EXPECT_EQ(rules_fault(rule(term("cpu.cpuid", "AVX: {op: Exist}"))),
            "nfd.yaml: compatibilities[0].rules[0].matchFeatures[0].matchExpressions['AVX']: no "
            "operator 'Exist'; did you mean 'Exists'?");
  EXPECT_THAT(rules_fault(kernel("major: {op: Ge, value: ['5', '6']}")),
              HasSubstr("operator 'Ge' takes one value, got 2"));
  EXPECT_THAT(rules_fault(kernel("full: {op: Ge, value: ['5.10']}")),
              HasSubstr("expected a whole number, got '5.10'; versions are compared with 'type: "
                        "version'"));
  EXPECT_THAT(rules_fault(kernel("major: {op: GtLt, value: ['6', '5']}")),
              HasSubstr("the first has to be less than the second"));
  EXPECT_THAT(
      rules_fault(kernel("major: {op: Ge, value: ['6']}") + "  - matchFeatures: [" +
                  term("kernel.version", "major: {op: Lt, value: ['5']}") + "]\n"),
      HasSubstr("compatibilities[0].rules[1].matchFeatures[0].matchExpressions['major']: no "
                "kernel can have that major too"));
  EXPECT_THAT(rules_fault("version: v1alpha1\ncompatibilities: [{rules: [{matchFeature: []}]}]\n"),
              HasSubstr("did you mean 'matchFeatures'?"));
  EXPECT_THAT(
      rules_fault("version: v2\ncompatibilities: [{rules: []}]\n"),
      HasSubstr("version: Berth reads NFD's compatibility specification 'v1alpha1', this one "
                "is 'v2'"));
  // In a choice, and in a set that is not taken.
  EXPECT_THAT(rules_fault("version: v1alpha1\ncompatibilities: [{rules: []}, {weight: -1, rules: "
                          "[{matchAny: [{matchFeatures: [{feature: a}]}, {}]}]}]\n"),
              HasSubstr("compatibilities[1].rules[0].matchAny[0].matchFeatures[0]"));
}

TEST(Nfd, hostile_documents_end_somewhere) {
  EXPECT_FALSE(read_nfd("", "n", {}).ok());
  EXPECT_FALSE(read_nfd("[1, 2]", "n", {}).ok());
  EXPECT_FALSE(read_nfd(std::string(nfd::kMostBytes + 1, ' '), "n", {}).ok());
  EXPECT_FALSE(read_nfd("a: &a [*a]", "n", {}).ok());
  EXPECT_FALSE(read_nfd(std::string(5000, '['), "n", {}).ok());
  std::string many;
  for (int i = 0; i < 20'000; ++i) many += "{feature: pci.device},";
  EXPECT_THAT(rules_fault(rule(many)), HasSubstr("too many values"));
  EXPECT_THAT(rules_fault(rule(term("cpu.cpuid", "AVX: null"))), HasSubstr("expected an object"));
}

}  // namespace
}  // namespace berth::bake
