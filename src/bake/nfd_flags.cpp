// SPDX-License-Identifier: Apache-2.0
#include "bake/nfd_flags.hpp"

#include <algorithm>
#include <iterator>

#include "base/text.hpp"

namespace berth::bake {
namespace {

struct Flag {
  std::string_view nfd, kernel;
};

// Only those that Linux shows in /proc/cpuinfo: no profile contains hidden ones (avx_ifma,
// cmpccxadd, …), and every node would be refused.
// Source: github.com/klauspost/cpuid, and NFD's source/cpu for Arm; arch/x86's cpufeatures.h.
/// Flags with the same name in Linux, in small letters.
constexpr std::string_view kSame[] = {
    "ADX",        "AVX",        "AVX2",      "AVX512BW",   "AVX512CD", "AVX512DQ",   "AVX512ER",
    "AVX512F",    "AVX512IFMA", "AVX512PF",  "AVX512VBMI", "AVX512VL", "BMI1",       "BMI2",
    "CLDEMOTE",   "CLZERO",     "CMOV",      "CX16",       "ENQCMD",   "ERMS",       "F16C",
    "FMA4",       "FSRM",       "FXSR",      "GFNI",       "HLE",      "HYPERVISOR", "MMX",
    "MOVBE",      "MOVDIR64B",  "MOVDIRI",   "NX",         "POPCNT",   "RDRAND",     "RDSEED",
    "RDTSCP",     "RTM",        "SERIALIZE", "SSE",        "SSE2",     "SSE3",       "SSE4A",
    "SSSE3",      "SVM",        "SYSCALL",   "TBM",        "TSXLDTRK", "VAES",       "VMX",
    "VPCLMULQDQ", "WAITPKG",    "WBNOINVD",  "XGETBV1",    "XOP",      "XSAVE",      "XSAVEC",
    "XSAVEOPT",   "XSAVES",     "AES",       "ASIMD",      "ASIMDDP",  "ASIMDFHM",   "ASIMDHP",
    "ASIMDRDM",   "ATOMICS",    "BF16",      "BTI",        "CRC32",    "DCPODP",     "DCPOP",
    "DIT",        "FCMA",       "FLAGM",     "FLAGM2",     "FP",       "FPHP",       "FRINT",
    "I8MM",       "ILRCPC",     "JSCVT",     "LRCPC",      "PACA",     "PACG",       "PMULL",
    "RNG",        "SB",         "SHA1",      "SHA2",       "SHA3",     "SHA512",     "SM3",
    "SM4",        "SME",        "SSBS",      "SVE",        "SVE2",     "SVEAES",     "SVEBF16",
    "SVEBITPERM", "SVEI8MM",    "SVEPMULL",  "SVESHA3",    "SVESM4",   "USCAT",      "WFXT"};

/// Flags with another name in Linux.
constexpr Flag kOthers[] = {
    {"AESNI", "aes"},
    {"AMD3DNOW", "3dnow"},
    {"AMD3DNOWEXT", "3dnowext"},
    {"AMXBF16", "amx_bf16"},
    {"AMXINT8", "amx_int8"},
    {"AMXTILE", "amx_tile"},
    {"AVX512BF16", "avx512_bf16"},
    {"AVX512BITALG", "avx512_bitalg"},
    {"AVX512FP16", "avx512_fp16"},
    {"AVX512VBMI2", "avx512_vbmi2"},
    {"AVX512VNNI", "avx512_vnni"},
    {"AVX512VP2INTERSECT", "avx512_vp2intersect"},
    {"AVX512VPOPCNTDQ", "avx512_vpopcntdq"},
    {"AVXVNNI", "avx_vnni"},
    {"CLMUL", "pclmulqdq"},
    {"CMPXCHG8", "cx8"},
    {"FMA3", "fma"},
    {"FXSROPT", "fxsr_opt"},
    {"LAHF", "lahf_lm"},
    {"LZCNT", "abm"},
    {"OSXSAVE", "xsave"},  // Linux shows xsave where it has switched it on
    {"SHA", "sha_ni"},
    {"SSE4", "sse4_1"},
    {"SSE42", "sse4_2"},
    {"X87", "fpu"},
};

constexpr std::string_view kLevels[] = {"X86_64_V1", "X86_64_V2", "X86_64_V3", "X86_64_V4"};

}  // namespace

std::optional<std::string> feature_of_flag(std::string_view flag) {
  if (std::ranges::find(kSame, flag) != std::end(kSame)) return to_lower(flag);
  auto other = std::ranges::find(kOthers, flag, &Flag::nfd);
  return other == std::end(kOthers) ? std::nullopt : std::optional(std::string(other->kernel));
}

uint32_t level_of_flag(std::string_view flag) {
  auto at = std::ranges::find(kLevels, flag);
  return at == std::end(kLevels) ? 0 : static_cast<uint32_t>(at - std::begin(kLevels)) + 1;
}

std::vector<std::string_view> flag_names() {
  std::vector<std::string_view> names(std::begin(kLevels), std::end(kLevels));
  names.insert(names.end(), std::begin(kSame), std::end(kSame));
  for (const Flag& flag : kOthers) names.push_back(flag.nfd);
  return names;
}

}  // namespace berth::bake
