// SPDX-License-Identifier: Apache-2.0
// What /proc/cpuinfo says on some machines, as far as Berth reads it.
#pragma once

#include <string>

namespace berth::node {

inline const std::string kFlagsV1 =
    "fpu vme de pse tsc msr pae mce cx8 apic sep mtrr pge mca cmov pat pse36 clflush mmx fxsr sse "
    "sse2 ht syscall nx rdtscp lm constant_tsc rep_good nopl xtopology cpuid pni";
inline const std::string kFlagsV2 = kFlagsV1 + " ssse3 cx16 sse4_1 sse4_2 popcnt lahf_lm";
inline const std::string kFlagsV3 =
    kFlagsV2 + " fma movbe xsave avx f16c abm avx2 bmi1 bmi2 x2apic hypervisor";
inline const std::string kFlagsV4 = kFlagsV3 + " avx512f avx512dq avx512cd avx512bw avx512vl";
inline const std::string kFlagsBroadwell =
    kFlagsV3 + " pclmulqdq aes rdrand fsgsbase hle rtm erms rdseed adx smap xsaveopt";
inline const std::string kFlagsSkylakeServer =
    kFlagsBroadwell + " avx512f avx512dq clflushopt clwb avx512cd avx512bw avx512vl xsavec xgetbv1";
inline const std::string kFlagsSapphireRapids =
    kFlagsSkylakeServer +
    " waitpkg avx512_vnni avx512vbmi avx512_vbmi2 avx512_bitalg avx512_vpopcntdq avx512ifma gfni "
    "vaes "
    "vpclmulqdq sha_ni umip pku rdpid wbnoinvd avx_vnni avx512_bf16 cldemote movdiri movdir64b "
    "serialize amx_bf16 avx512_fp16 amx_tile amx_int8";
inline const std::string kFlagsZen4 =
    kFlagsV4 +
    " pclmulqdq aes rdrand fsgsbase rdseed adx smap sse4a clflushopt clwb sha_ni xsaveopt xsavec "
    "xgetbv1 clzero wbnoinvd gfni vaes vpclmulqdq pku rdpid cppc avx512ifma avx512vbmi "
    "avx512_vbmi2 avx512_vnni avx512_bitalg avx512_vpopcntdq avx512_bf16 flush_l1d";
inline const std::string kFeaturesNeoverseV2 =
    "fp asimd evtstrm aes pmull sha1 sha2 crc32 atomics fphp asimdhp cpuid asimdrdm jscvt fcma "
    "lrcpc dcpop sha3 sm3 sm4 asimddp sha512 sve asimdfhm dit uscat ilrcpc flagm ssbs sb dcpodp "
    "sve2 sveaes svepmull svebitperm svesha3 svesm4 flagm2 frint svei8mm svebf16 i8mm bf16 dgh";

inline std::string x86_cpuinfo(const std::string& vendor, const std::string& model,
                               const std::string& flags) {
  std::string one = "vendor_id\t: " + vendor + "\ncpu family\t: 6\nmodel name\t: " + model +
                    "\nflags\t\t: " + flags + "\nbugs\t\t: spectre_v1\n\n";
  return "processor\t: 0\n" + one + "processor\t: 1\n" + one;
}

inline std::string arm_cpuinfo(const std::string& implementer, const std::string& part,
                               const std::string& features) {
  return "processor\t: 0\nBogoMIPS\t: 2000.00\nFeatures\t: " + features +
         "\nCPU implementer\t: " + implementer +
         "\nCPU architecture: 8\nCPU variant\t: 0x0\nCPU part\t: " + part + "\n\nprocessor\t: 1\n";
}

}  // namespace berth::node
