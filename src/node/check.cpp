// SPDX-License-Identifier: Apache-2.0
#include "node/check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.hpp"
#include "node/archspec.hpp"
#include "scan/cuda_branch.hpp"
#include "scan/mpi.hpp"

namespace berth::node {
namespace {

constexpr size_t kMaxVersion = 32;
constexpr uint64_t kMaxMemory = uint64_t{1} << 60;
constexpr size_t kMaxRelease = 128;  // Linux has at most 64

// The brands of nvml.h, in the spelling of NVIDIA_REQUIRE_*.
const std::vector<std::string_view> kBrands = {"",
                                               "unknown",
                                               "quadro",
                                               "tesla",
                                               "nvs",
                                               "grid",
                                               "geforce",
                                               "titan",
                                               "nvidiavapps",
                                               "nvidiavpc",
                                               "nvidiavcs",
                                               "nvidiavws",
                                               "nvidiacloudgaming",
                                               "quadrortx",
                                               "nvidiartx",
                                               "nvidia",
                                               "geforcertx",
                                               "titanrtx"};
const std::vector<std::string_view> kMpiFamilies = {"", "mpich", "openmpi", "mpi-abi"};
const std::vector<std::string_view> kAbilities = {
    "cgroup2", "erofs",          "fuse",     "io_uring",     "landlock", "overlay",
    "seccomp", "seccomp-notify", "squashfs", "user-overlay", "userns"};
const std::vector<std::string_view> kFabrics = {"efa", "infiniband", "iwarp",
                                                "opa", "roce",       "slingshot"};

bool all_digits(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

void sort_words(std::vector<std::string>& words) {
  std::ranges::sort(words);
  words.erase(std::unique(words.begin(), words.end()), words.end());
}

std::string gpu_vendor(const NodeGpu& gpu) {
  if (!gpu.vendor.empty()) return gpu.vendor;
  if (!gpu.compute_capability.empty()) return "nvidia";
  return gpu.architecture.starts_with("gfx") ? "amd" : "";
}

Error unknown_name(std::string_view what, std::string_view text,
                   std::optional<std::string_view> near) {
  Error error = make_error(Kind::corrupt, fmt::format("unknown {} {}", what, quote(text)));
  if (near) error.what += fmt::format("; did you mean {}?", quote(*near));
  return error;
}

Error at(std::string_view document, std::string_view member, Error error) {
  error.what = fmt::format("{}: {}: {}", document, member, error.what);
  return error;
}

Error expected(std::string_view document, std::string_view member, std::string_view form,
               std::string_view got) {
  return make_error(Kind::corrupt,
                    fmt::format("{}: {}: expected {}, got {}", document, member, form, quote(got)));
}

// A later version of Berth may know more values, so only a likely misspelling of a known value is
// refused.
Result<void> check_word(std::string_view document, std::string_view member, std::string_view what,
                        std::string_view word, const std::vector<std::string_view>& known) {
  if (std::ranges::find(known, word) != known.end()) return {};
  auto near = nearest(word, known);
  if (!near) return {};
  return at(document, member, unknown_name(what, word, near));
}

// A handwritten profile may have a level and a microarchitecture, so they are compared. In a
// profile with features, which were read from a processor, they may differ.
Result<void> check_level(const Cpu& cpu, std::string_view document) {
  uint32_t implied = level_of(cpu.microarchitecture);
  if (cpu.level == 0 || implied == 0 || cpu.level == implied || !cpu.features.empty()) return {};
  return make_error(Kind::corrupt,
                    fmt::format("{}: cpu.level: it is {}, and {} has level {}", document, cpu.level,
                                quote(cpu.microarchitecture), implied));
}

Result<void> check_cpu(Profile& profile, std::string_view document) {
  Cpu& cpu = profile.cpu;
  if (cpu.level > 4) {
    return make_error(Kind::corrupt,
                      fmt::format("{}: cpu.level: there are 1 to 4, got {}", document, cpu.level));
  }
  sort_words(cpu.features);
  if (cpu.microarchitecture.empty()) return {};
  auto known = known_microarchitecture(cpu.microarchitecture);
  if (!known) {
    // A name from a later version of Berth is accepted if its ancestors are listed.
    if (!cpu.ancestors.empty()) return {};
    auto named = microarchitecture_named(cpu.microarchitecture);
    return at(document, "cpu.microarchitecture", std::move(named).error());
  }
  cpu.microarchitecture = *known;
  if (family_of(*known) != family_of_architecture(profile.architecture)) {
    return make_error(
        Kind::corrupt,
        fmt::format("{}: cpu.microarchitecture: {} is of {}, and the architecture of this node "
                    "is {}",
                    document, quote(*known), family_of(*known), profile.architecture));
  }
  return check_level(cpu, document);
}

Result<void> check_gpu(NodeGpu& gpu, std::string_view document, const std::string& member) {
  if (!gpu.compute_capability.empty()) {
    auto known = compute_capability(gpu.compute_capability);
    if (!known) {
      return expected(document, member + ".compute_capability", "a compute capability as '9.0'",
                      gpu.compute_capability);
    }
    gpu.compute_capability = *known;
  }
  if (gpu.memory_bytes.value_or(0) > kMaxMemory) {
    return make_error(Kind::corrupt, fmt::format("{}: {}.memory_bytes: no GPU has {}", document,
                                                 member, gpu.memory_bytes.value_or(0)));
  }
  if (gpu_vendor(gpu).empty()) {
    return make_error(
        Kind::corrupt,
        fmt::format("{}: {}.vendor: missing, and no other member implies it", document, member));
  }
  static const std::vector<std::string_view> kVendors = {"nvidia", "amd", "intel"};
  if (!gpu.vendor.empty() && std::ranges::find(kVendors, gpu.vendor) == kVendors.end()) {
    return at(document, member + ".vendor",
              unknown_name("GPU vendor", gpu.vendor, nearest(gpu.vendor, kVendors)));
  }
  if (!gpu.compute_capability.empty() && gpu_vendor(gpu) != "nvidia") {
    return make_error(
        Kind::corrupt,
        fmt::format("{}: {}.compute_capability: a GPU of {} has none{}", document, member,
                    gpu_vendor(gpu),
                    gpu_vendor(gpu) == "amd" ? "; its architecture is as 'gfx90a'" : ""));
  }
  return check_word(document, member + ".brand", "GPU brand", gpu.brand, kBrands);
}

Result<void> check_mpi(const Mpi& mpi, std::string_view document, const std::string& member) {
  TRY(check_word(document, member + ".family", "MPI family", mpi.family, kMpiFamilies));
  if (!mpi.family.empty() || !scan::mpi_family(mpi.soname).empty()) return {};
  return make_error(Kind::corrupt,
                    fmt::format("{}: {}.family: missing, and the SONAME {} does not imply it",
                                document, member, quote(mpi.soname)));
}

Result<void> check_versions(const Profile& profile, std::string_view document) {
  const std::array<std::pair<std::string_view, const std::string*>, 5> versions = {{
      {"driver.module_version", &profile.driver.module_version},
      {"driver.library_version", &profile.driver.library_version},
      {"driver.cuda_version", &profile.driver.cuda_version},
      {"driver.glibc_needed", &profile.driver.glibc_needed},
      {"rocm", &profile.rocm},
  }};
  for (const auto& [member, text] : versions) {
    if (!text->empty() && !is_version(*text)) {
      return expected(document, member, "a version as '570.133.20'", *text);
    }
  }
  return {};
}

void fill_cpu(Profile& profile) {
  Cpu& cpu = profile.cpu;
  std::string_view family = family_of_architecture(profile.architecture);
  bool by_level = cpu.microarchitecture.empty() && cpu.features.empty() && cpu.level > 0;
  if (by_level && family == "x86_64") {
    cpu.microarchitecture = cpu.level == 1 ? "x86_64" : fmt::format("x86_64_v{}", cpu.level);
  }
  bool anything = !cpu.microarchitecture.empty() || !cpu.features.empty() || !cpu.part.empty();
  if (anything) complete(family, cpu);
}

}  // namespace

bool is_version(std::string_view text) {
  if (text.size() > kMaxVersion) return false;
  std::vector<std::string_view> parts = split(text, '.');
  return std::ranges::all_of(parts, all_digits);
}

bool is_kernel_release(std::string_view text) {
  if (text.size() > kMaxRelease) return false;
  std::vector<std::string_view> parts = split(text.substr(0, text.find_first_of("-+~_")), '.');
  return all_digits(parts.front()) && (parts.size() == 1 || all_digits(parts[1].substr(0, 1)));
}

bool is_fabric(std::string_view text) {
  return std::ranges::find(kFabrics, text) != kFabrics.end();
}

std::optional<std::string> compute_capability(std::string_view text) {
  constexpr size_t kMaxDigits = 3;  // "120"
  if (text.starts_with("sm_")) text.remove_prefix(3);
  std::vector<std::string_view> parts = split(text, '.');
  if (!std::ranges::all_of(parts, all_digits)) return std::nullopt;
  if (text.size() > kMaxDigits + parts.size() - 1 || text.starts_with('0')) return std::nullopt;
  if (parts.size() == 2) {
    bool one_digit = parts[1].size() == 1;
    return one_digit ? std::optional<std::string>(text) : std::nullopt;
  }
  if (parts.size() > 2) return std::nullopt;
  if (text.size() == 1) return std::string(text) + ".0";
  return fmt::format("{}.{}", text.substr(0, text.size() - 1), text.back());
}

std::optional<std::string> libc_name(std::string_view text) {
  if (text == "musl") return std::string(text);
  std::string_view name = "glibc";
  for (std::string_view one : {std::string_view("glibc"), std::string_view("musl")}) {
    if (!text.starts_with(one)) continue;
    name = one;
    text.remove_prefix(one.size());
    if (!text.starts_with(' ') && !text.starts_with('-')) return std::nullopt;
    text.remove_prefix(1);
    break;
  }
  if (!is_version(text)) return std::nullopt;
  return fmt::format("{} {}", name, text);
}

std::optional<NodeGpu> gpu_named(std::string_view text) {
  NodeGpu gpu;
  constexpr size_t kMost = 32;  // "gfx9-4-generic:sramecc+:xnack-"
  if (text.starts_with("gfx") && text.size() > 3 && text.size() <= kMost) {
    gpu.vendor = "amd";
    gpu.architecture = text;
    return gpu;
  }
  auto capability = compute_capability(text);
  if (!capability) return std::nullopt;
  gpu.vendor = "nvidia";
  gpu.compute_capability = *capability;
  return gpu;
}

std::optional<Mpi> mpi_named(std::string_view family) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 2> kFamilies = {{
      {"mpich", "libmpi.so.12"},
      {"openmpi", "libmpi.so.40"},
  }};
  for (const auto& [name, soname] : kFamilies) {
    if (name == family) return Mpi{std::string(name), std::string(soname), {}};
  }
  return std::nullopt;
}

Result<std::string> architecture_named(std::string_view text) {
  if (text == "x86_64" || text == "x86-64") return std::string("amd64");
  if (text == "aarch64") return std::string("arm64");
  static const std::vector<std::string_view> kNames = {
      "386", "amd64", "arm", "arm64", "loong64", "ppc64", "ppc64le", "riscv64", "s390x"};
  if (std::ranges::find(kNames, text) != kNames.end()) return std::string(text);
  return unknown_name("architecture", text, nearest(text, kNames));
}

Result<std::string> microarchitecture_named(std::string_view text) {
  auto known = known_microarchitecture(text);
  if (known) return std::string(*known);
  return unknown_name("microarchitecture", text, nearest_microarchitecture(text));
}

Result<void> check(Profile& profile, std::string_view document) {
  if (profile.version == 0 || profile.version > kProfileVersion) {
    return make_error(
        profile.version == 0 ? Kind::corrupt : Kind::unsupported,
        fmt::format("{}: version: this Berth reads profiles of version {}, this one is of {}",
                    document, kProfileVersion, profile.version));
  }
  auto architecture = architecture_named(profile.architecture);
  if (!architecture.ok()) return at(document, "architecture", std::move(architecture).error());
  profile.architecture = *architecture;
  TRY(check_cpu(profile, document));
  for (size_t i = 0; i < profile.gpus.size(); ++i) {
    TRY(check_gpu(profile.gpus[i], document, fmt::format("gpus[{}]", i)));
  }
  for (size_t i = 0; i < profile.mpi.size(); ++i) {
    TRY(check_mpi(profile.mpi[i], document, fmt::format("mpi[{}]", i)));
  }
  TRY(check_versions(profile, document));
  if (!profile.libc.empty()) {
    auto known = libc_name(profile.libc);
    if (!known) return expected(document, "libc", "'glibc 2.36' or 'musl'", profile.libc);
    profile.libc = *known;
  }
  for (const std::string& word : profile.kernel.abilities) {
    TRY(check_word(document, "kernel.abilities", "kernel ability", word, kAbilities));
  }
  for (const std::string& word : profile.fabric) {
    TRY(check_word(document, "fabric", "fabric", word, kFabrics));
  }
  if (!profile.kernel.release.empty() && !is_kernel_release(profile.kernel.release)) {
    return expected(document, "kernel.release", "a release as '6.1.0-18-amd64'",
                    profile.kernel.release);
  }
  sort_words(profile.kernel.abilities);
  sort_words(profile.fabric);
  return {};
}

void fill(Profile& profile) {
  fill_cpu(profile);
  for (NodeGpu& gpu : profile.gpus) {
    gpu.vendor = gpu_vendor(gpu);
    if (!gpu.mig_profiles.empty()) gpu.mig = true;
  }
  for (Mpi& mpi : profile.mpi) {
    if (mpi.family.empty()) mpi.family = scan::mpi_family(mpi.soname);
    auto known = mpi_named(mpi.family);
    if (mpi.soname.empty() && known) mpi.soname = known->soname;
  }
  NodeDriver& driver = profile.driver;
  if (driver.library_version.empty()) driver.library_version = driver.module_version;
  if (driver.cuda_version.empty()) {
    driver.cuda_version = scan::cuda_of_branch(driver.library_version);
  }
}

}  // namespace berth::node
