// SPDX-License-Identifier: Apache-2.0
#include "engine/kube/labels.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/text.hpp"

namespace berth::engine {
namespace {

constexpr size_t kLongestLabel = 63;
constexpr std::string_view kBerth = "berth.dev/";
constexpr std::string_view kNvidia = "nvidia.com/";
constexpr std::string_view kNfd = "feature.node.kubernetes.io/";

bool is_letter_or_digit(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/// NFD's names of processor features, from /proc/cpuinfo's.
struct CpuFlag {
  std::string_view ours, theirs;
};
// Source: node-feature-discovery docs/usage/features.md, "X86 CPUID flags" and "Arm64 CPUID flags".
// NFD leaves out BMI1, SSE42 and other old ones by default, and so do we.
// Not in that list, and taken from the library that it names (klauspost/cpuid) without a check:
// FMA3, SHA.
constexpr CpuFlag kX86Flags[] = {
    {"adx", "ADX"},
    {"aes", "AESNI"},
    {"amx_bf16", "AMXBF16"},
    {"amx_complex", "AMXCOMPLEX"},
    {"amx_fp16", "AMXFP16"},
    {"amx_int8", "AMXINT8"},
    {"amx_tile", "AMXTILE"},
    {"avx", "AVX"},
    {"avx2", "AVX2"},
    {"avx512_bf16", "AVX512BF16"},
    {"avx512_bitalg", "AVX512BITALG"},
    {"avx512_fp16", "AVX512FP16"},
    {"avx512_vbmi2", "AVX512VBMI2"},
    {"avx512_vnni", "AVX512VNNI"},
    {"avx512_vp2intersect", "AVX512VP2INTERSECT"},
    {"avx512_vpopcntdq", "AVX512VPOPCNTDQ"},
    {"avx512bw", "AVX512BW"},
    {"avx512cd", "AVX512CD"},
    {"avx512dq", "AVX512DQ"},
    {"avx512er", "AVX512ER"},
    {"avx512f", "AVX512F"},
    {"avx512ifma", "AVX512IFMA"},
    {"avx512pf", "AVX512PF"},
    {"avx512vbmi", "AVX512VBMI"},
    {"avx512vl", "AVX512VL"},
    {"avx_vnni", "AVXVNNI"},
    {"enqcmd", "ENQCMD"},
    {"fma", "FMA3"},
    {"gfni", "GFNI"},
    {"hypervisor", "HYPERVISOR"},
    {"sha_ni", "SHA"},
    {"vaes", "VAES"},
    {"vpclmulqdq", "VPCLMULQDQ"},
};
// Not in NFD's list, and unchecked: SVE.
constexpr CpuFlag kArmFlags[] = {
    {"aes", "AES"},         {"asimdhp", "ASIMDHP"}, {"asimdrdm", "ASIMDRDM"},
    {"atomics", "ATOMICS"}, {"dcpop", "DCPOP"},     {"fphp", "FPHP"},
    {"jscvt", "JSCVT"},     {"pmull", "PMULL"},     {"sve", "SVE"},
};

class LabelList {
 public:
  /// Nothing for a name or value that a label cannot have.
  void add(std::string_view prefix, std::string_view name, std::string_view value) {
    std::string key = label_value(name), text = label_value(value);
    if (!key.empty() && !text.empty()) labels_[std::string(prefix) + key] = std::move(text);
  }
  void add(std::string_view prefix, std::string_view name, uint64_t value) {
    add(prefix, name, std::to_string(value));
  }
  NodeLabels take() { return std::move(labels_); }

 private:
  NodeLabels labels_;
};

/// "570.133.20" → {"570", "133", "20"}.
std::vector<std::string_view> parts_of(const std::string& version) {
  return version.empty() ? std::vector<std::string_view>() : split(version, '.');
}

void add_parts(LabelList& list, std::string_view prefix, const std::string& name,
               const std::string& version, const std::array<std::string_view, 3>& names) {
  auto parts = parts_of(version);
  for (size_t i = 0; i < std::min(parts.size(), names.size()); ++i) {
    if (!names[i].empty()) list.add(prefix, name + "." + std::string(names[i]), parts[i]);
  }
}

void add_own(LabelList& list, const node::Profile& profile) {
  list.add(kBerth, "cpu.microarchitecture", profile.cpu.microarchitecture);
  if (profile.cpu.level > 0) list.add(kBerth, "cpu.level", profile.cpu.level);
  // A selector compares strings: what runs code for an older processor has a label for it, too.
  if (!profile.cpu.microarchitecture.empty()) {
    list.add(kBerth, "cpu.runs." + profile.cpu.microarchitecture, "true");
  }
  for (const std::string& one : profile.cpu.ancestors) list.add(kBerth, "cpu.runs." + one, "true");
  for (const std::string& one : profile.kernel.abilities) list.add(kBerth, "kernel." + one, "true");
  list.add(kBerth, "libc", profile.libc);
  list.add(kBerth, "rocm", profile.rocm);
  for (const std::string& one : profile.fabric) list.add(kBerth, "fabric." + one, "true");
  for (const node::Mpi& one : profile.mpi) list.add(kBerth, "mpi." + one.family, "true");
  if (profile.synthetic) list.add(kBerth, "synthetic", "true");
  list.add(kBerth, "gpu.count", profile.gpus.size());
  std::map<std::string, uint64_t> vendors;
  for (const node::NodeGpu& gpu : profile.gpus) {
    ++vendors[gpu.vendor];
    if (!gpu.compute_capability.empty()) {
      list.add(kBerth, "gpu.sm-" + gpu.compute_capability, "true");
    }
    // "gfx90a:sramecc+:xnack-": a label cannot have the settings.
    std::string architecture = gpu.architecture.substr(0, gpu.architecture.find(':'));
    if (!architecture.empty()) list.add(kBerth, "gpu." + architecture, "true");
  }
  for (const auto& [vendor, count] : vendors) list.add(kBerth, "gpu." + vendor + ".count", count);
  if (vendors.contains("nvidia")) {
    list.add(kBerth, "nvidia.driver", profile.driver.module_version);
    list.add(kBerth, "nvidia.cuda", profile.driver.cuda_version);
  }
}

/// As GPU feature discovery names it. Source: k8s-device-plugin internal/lm/resource.go, which says
/// "undefined" from 10.0 on; the newer names are NVIDIA's.
std::string family_of(uint64_t major, uint64_t minor) {
  switch (major) {
    case 3:
      return "kepler";
    case 5:
      return "maxwell";
    case 6:
      return "pascal";
    case 7:
      return minor < 5 ? "volta" : "turing";
    case 8:
      return minor < 9 ? "ampere" : "ada-lovelace";
    case 9:
      return "hopper";
    case 10:
    case 11:
    case 12:
      return "blackwell";
    default:
      return "undefined";
  }
}

/// Whether a GPU can be put into MIG mode, where its compute capability tells: all of 8.0 (A100,
/// A30), 9.0 and 10.x can, and none of the other ones up to 8.9; of 12.0 only some can.
std::optional<bool> mig_capable(const node::NodeGpu& gpu, uint64_t major, uint64_t minor) {
  if (gpu.mig || (major == 8 && minor == 0) || major == 9 || major == 10) return true;
  if (major > 0 && major <= 8) return false;
  return std::nullopt;
}

/// As GPU feature discovery: without the characters that it removes, blanks become '-'.
std::string product_of(const std::string& model) {
  std::string kept;
  for (char c : model) {
    if (is_letter_or_digit(c) || c == '-' || c == '_' || c == '.' || c == ' ') kept += c;
  }
  std::vector<std::string> words;
  for (std::string_view word : split_blank(kept)) words.emplace_back(word);
  return join(words, "-");
}

void add_card(LabelList& list, const node::NodeGpu& gpu) {
  auto parts = parts_of(gpu.compute_capability);
  uint64_t major = parts.empty() ? 0 : parse_u64(parts[0]).value_or(0);
  uint64_t minor = parts.size() < 2 ? 0 : parse_u64(parts[1]).value_or(0);
  if (auto capable = mig_capable(gpu, major, minor)) {
    list.add(kNvidia, "mig.capable", *capable ? "true" : "false");
  }
  list.add(kNvidia, "gpu.product", product_of(gpu.model));
  if (gpu.memory_bytes) list.add(kNvidia, "gpu.memory", *gpu.memory_bytes >> 20);
  if (major == 0) return;
  list.add(kNvidia, "gpu.family", family_of(major, minor));
  list.add(kNvidia, "gpu.compute.major", major);
  list.add(kNvidia, "gpu.compute.minor", minor);
}

// Source: k8s-device-plugin docs/gpu-feature-discovery/README.md and internal/lm. Unchecked, from
// memory: nvidia.com/gpu.present, which NVIDIA's operator makes, and the names with
// "driver-version" and "runtime-version". Left out, because a profile does not know them:
// gpu.machine, gpu.mode, gpu.clique, gpu.imex-domain, gpu.multiprocessors, gpu.slices.*,
// gpu.engines.*; and gfd.timestamp.
void add_nvidia(LabelList& list, const node::Profile& profile) {
  const node::NodeGpu* first = nullptr;
  uint64_t whole = 0;
  std::map<std::string, uint64_t> slices;
  for (const node::NodeGpu& gpu : profile.gpus) {
    if (gpu.vendor != "nvidia") continue;
    if (first == nullptr) first = &gpu;
    if (!gpu.mig) ++whole;
    for (const std::string& one : gpu.mig_profiles) ++slices[one];
  }
  if (first == nullptr) return;
  list.add(kNvidia, "gpu.present", "true");
  list.add(kNvidia, "gpu.count", whole);
  list.add(kNvidia, "gpu.replicas", 1);
  list.add(kNvidia, "gpu.sharing-strategy", "none");
  add_card(list, *first);
  if (!slices.empty()) list.add(kNvidia, "mig.strategy", "mixed");
  for (const auto& [profile_name, count] : slices) {
    list.add(kNvidia, "mig-" + profile_name + ".count", count);
  }
  const node::NodeDriver& driver = profile.driver;
  list.add(kNvidia, "cuda.driver-version.full", driver.module_version);
  add_parts(list, kNvidia, "cuda.driver-version", driver.module_version,
            {"major", "minor", "revision"});
  add_parts(list, kNvidia, "cuda.driver", driver.module_version, {"major", "minor", "rev"});
  list.add(kNvidia, "cuda.runtime-version.full", driver.cuda_version);
  add_parts(list, kNvidia, "cuda.runtime-version", driver.cuda_version, {"major", "minor", ""});
  add_parts(list, kNvidia, "cuda.runtime", driver.cuda_version, {"major", "minor", ""});
}

// Source: node-feature-discovery docs/usage/features.md. Unchecked: that cpu-model.vendor_id is
// "Intel" or "AMD", and the name pci-VENDOR.present, which NFD has where it is configured as
// NVIDIA's operator does (by default: pci-CLASS_VENDOR.present, and a profile has no classes). Left
// out, because a profile does not know them: cpu-model.family, cpu-model.id, memory-*, storage-*,
// system-os_release.*.
void add_nfd(LabelList& list, const node::Profile& profile) {
  auto add_flags = [&](std::span<const CpuFlag> flags) {
    for (const CpuFlag& flag : flags) {
      if (!std::ranges::binary_search(profile.cpu.features, flag.ours)) continue;
      list.add(kNfd, "cpu-cpuid." + std::string(flag.theirs), "true");
    }
  };
  if (profile.architecture == "amd64") add_flags(kX86Flags);
  if (profile.architecture == "arm64") add_flags(kArmFlags);
  if (profile.cpu.vendor == "GenuineIntel") list.add(kNfd, "cpu-model.vendor_id", "Intel");
  if (profile.cpu.vendor == "AuthenticAMD") list.add(kNfd, "cpu-model.vendor_id", "AMD");
  const std::string& release = profile.kernel.release;
  list.add(kNfd, "kernel-version.full", release);
  std::string numbers = release.substr(0, release.find_first_not_of("0123456789."));
  add_parts(list, kNfd, "kernel-version", numbers, {"major", "minor", "revision"});
  constexpr CpuFlag kPci[] = {{"nvidia", "10de"}, {"amd", "1002"}, {"intel", "8086"}};
  for (const CpuFlag& one : kPci) {
    if (std::ranges::find(profile.gpus, one.ours, &node::NodeGpu::vendor) != profile.gpus.end()) {
      list.add(kNfd, fmt::format("pci-{}.present", one.theirs), "true");
    }
  }
  bool rdma = std::ranges::any_of(profile.fabric, [](const std::string& one) {
    return one == "infiniband" || one == "roce" || one == "iwarp";
  });
  if (rdma) list.add(kNfd, "custom-rdma.capable", "true");
}

}  // namespace

std::string label_value(std::string_view text) {
  std::string value;
  for (char c : text.substr(0, 4 * kLongestLabel)) {
    bool plain = is_letter_or_digit(c) || c == '-' || c == '_' || c == '.';
    if (plain || value.empty() || value.back() != '-') value += plain ? c : '-';
  }
  size_t begin = 0;
  while (begin < value.size() && !is_letter_or_digit(value[begin])) ++begin;
  value = value.substr(begin, kLongestLabel);
  while (!value.empty() && !is_letter_or_digit(value.back())) value.pop_back();
  return value;
}

NodeLabels node_labels(const node::Profile& profile) {
  LabelList list;
  add_own(list, profile);
  add_nvidia(list, profile);
  add_nfd(list, profile);
  return list.take();
}

std::string nfd_feature_file(const NodeLabels& labels) {
  std::string text;
  for (const auto& [name, value] : labels) {
    if (!name.starts_with(kNfd)) text += name + "=" + value + "\n";
  }
  return text;
}

}  // namespace berth::engine
