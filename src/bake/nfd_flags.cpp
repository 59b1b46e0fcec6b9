// SPDX-License-Identifier: Apache-2.0
#include "bake/nfd_flags.hpp"

#include <algorithm>
#include <iterator>

namespace berth::bake {
namespace {

struct Flag {
  std::string_view nfd, kernel;
};

// Only those that Linux shows in /proc/cpuinfo: no profile contains hidden ones (avx_ifma,
// cmpccxadd, …), and every node would be refused.
// Source: github.com/klauspost/cpuid, and NFD's source/cpu for Arm; arch/x86's cpufeatures.h.
constexpr Flag kFlags[] = {
    // x86
    {"ADX", "adx"},
    {"AESNI", "aes"},
    {"AMD3DNOW", "3dnow"},
    {"AMD3DNOWEXT", "3dnowext"},
    {"AMXBF16", "amx_bf16"},
    {"AMXINT8", "amx_int8"},
    {"AMXTILE", "amx_tile"},
    {"AVX", "avx"},
    {"AVX2", "avx2"},
    {"AVX512BF16", "avx512_bf16"},
    {"AVX512BITALG", "avx512_bitalg"},
    {"AVX512BW", "avx512bw"},
    {"AVX512CD", "avx512cd"},
    {"AVX512DQ", "avx512dq"},
    {"AVX512ER", "avx512er"},
    {"AVX512F", "avx512f"},
    {"AVX512FP16", "avx512_fp16"},
    {"AVX512IFMA", "avx512ifma"},
    {"AVX512PF", "avx512pf"},
    {"AVX512VBMI", "avx512vbmi"},
    {"AVX512VBMI2", "avx512_vbmi2"},
    {"AVX512VL", "avx512vl"},
    {"AVX512VNNI", "avx512_vnni"},
    {"AVX512VP2INTERSECT", "avx512_vp2intersect"},
    {"AVX512VPOPCNTDQ", "avx512_vpopcntdq"},
    {"AVXVNNI", "avx_vnni"},
    {"BMI1", "bmi1"},
    {"BMI2", "bmi2"},
    {"CLDEMOTE", "cldemote"},
    {"CLMUL", "pclmulqdq"},
    {"CLZERO", "clzero"},
    {"CMOV", "cmov"},
    {"CMPXCHG8", "cx8"},
    {"CX16", "cx16"},
    {"ENQCMD", "enqcmd"},
    {"ERMS", "erms"},
    {"F16C", "f16c"},
    {"FMA3", "fma"},
    {"FMA4", "fma4"},
    {"FSRM", "fsrm"},
    {"FXSR", "fxsr"},
    {"FXSROPT", "fxsr_opt"},
    {"GFNI", "gfni"},
    {"HLE", "hle"},
    {"HYPERVISOR", "hypervisor"},
    {"LAHF", "lahf_lm"},
    {"LZCNT", "abm"},
    {"MMX", "mmx"},
    {"MOVBE", "movbe"},
    {"MOVDIR64B", "movdir64b"},
    {"MOVDIRI", "movdiri"},
    {"NX", "nx"},
    {"OSXSAVE", "xsave"},  // Linux shows xsave where it has switched it on
    {"POPCNT", "popcnt"},
    {"RDRAND", "rdrand"},
    {"RDSEED", "rdseed"},
    {"RDTSCP", "rdtscp"},
    {"RTM", "rtm"},
    {"SERIALIZE", "serialize"},
    {"SHA", "sha_ni"},
    {"SSE", "sse"},
    {"SSE2", "sse2"},
    {"SSE3", "sse3"},
    {"SSE4", "sse4_1"},
    {"SSE42", "sse4_2"},
    {"SSE4A", "sse4a"},
    {"SSSE3", "ssse3"},
    {"SVM", "svm"},
    {"SYSCALL", "syscall"},
    {"TBM", "tbm"},
    {"TSXLDTRK", "tsxldtrk"},
    {"VAES", "vaes"},
    {"VMX", "vmx"},
    {"VPCLMULQDQ", "vpclmulqdq"},
    {"WAITPKG", "waitpkg"},
    {"WBNOINVD", "wbnoinvd"},
    {"X87", "fpu"},
    {"XGETBV1", "xgetbv1"},
    {"XOP", "xop"},
    {"XSAVE", "xsave"},
    {"XSAVEC", "xsavec"},
    {"XSAVEOPT", "xsaveopt"},
    {"XSAVES", "xsaves"},
    // Arm
    {"AES", "aes"},
    {"ASIMD", "asimd"},
    {"ASIMDDP", "asimddp"},
    {"ASIMDFHM", "asimdfhm"},
    {"ASIMDHP", "asimdhp"},
    {"ASIMDRDM", "asimdrdm"},
    {"ATOMICS", "atomics"},
    {"BF16", "bf16"},
    {"BTI", "bti"},
    {"CRC32", "crc32"},
    {"DCPODP", "dcpodp"},
    {"DCPOP", "dcpop"},
    {"DIT", "dit"},
    {"FCMA", "fcma"},
    {"FLAGM", "flagm"},
    {"FLAGM2", "flagm2"},
    {"FP", "fp"},
    {"FPHP", "fphp"},
    {"FRINT", "frint"},
    {"I8MM", "i8mm"},
    {"ILRCPC", "ilrcpc"},
    {"JSCVT", "jscvt"},
    {"LRCPC", "lrcpc"},
    {"PACA", "paca"},
    {"PACG", "pacg"},
    {"PMULL", "pmull"},
    {"RNG", "rng"},
    {"SB", "sb"},
    {"SHA1", "sha1"},
    {"SHA2", "sha2"},
    {"SHA3", "sha3"},
    {"SHA512", "sha512"},
    {"SM3", "sm3"},
    {"SM4", "sm4"},
    {"SME", "sme"},
    {"SSBS", "ssbs"},
    {"SVE", "sve"},
    {"SVE2", "sve2"},
    {"SVEAES", "sveaes"},
    {"SVEBF16", "svebf16"},
    {"SVEBITPERM", "svebitperm"},
    {"SVEI8MM", "svei8mm"},
    {"SVEPMULL", "svepmull"},
    {"SVESHA3", "svesha3"},
    {"SVESM4", "svesm4"},
    {"USCAT", "uscat"},
    {"WFXT", "wfxt"},
};

constexpr std::string_view kLevels[] = {"X86_64_V1", "X86_64_V2", "X86_64_V3", "X86_64_V4"};

}  // namespace

std::optional<std::string_view> feature_of_flag(std::string_view flag) {
  auto at = std::find_if(std::begin(kFlags), std::end(kFlags),
                         [&](const Flag& one) { return one.nfd == flag; });
  return at == std::end(kFlags) ? std::nullopt : std::optional(at->kernel);
}

uint32_t level_of_flag(std::string_view flag) {
  auto at = std::find(std::begin(kLevels), std::end(kLevels), flag);
  return at == std::end(kLevels) ? 0 : static_cast<uint32_t>(at - std::begin(kLevels)) + 1;
}

std::vector<std::string_view> flag_names() {
  std::vector<std::string_view> names(std::begin(kLevels), std::end(kLevels));
  for (const Flag& flag : kFlags) names.push_back(flag.nfd);
  return names;
}

}  // namespace berth::bake
