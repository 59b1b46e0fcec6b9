// SPDX-License-Identifier: Apache-2.0
#include "match/cuda_rules.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.hpp"
#include "match/gfx_rules.hpp"
#include "scan/driver_files.hpp"

namespace berth::match {
namespace {

using facts::GpuCode;

struct Target {
  uint32_t major = 0, minor = 0;
  char suffix = 0;
};

/// "90a" → 9, 0, 'a'; "120" → 12, 0.
std::optional<Target> parse_target(std::string_view arch) {
  Target target;
  if (!arch.empty() && (arch.back() == 'a' || arch.back() == 'f')) {
    target.suffix = arch.back();
    arch.remove_suffix(1);
  }
  if (arch.size() < 2 || arch.size() > 4 || arch.front() == '0') return std::nullopt;
  for (char c : arch) {
    if (c < '0' || c > '9') return std::nullopt;
    target.major = target.major * 10 + target.minor;
    target.minor = static_cast<uint32_t>(c - '0');
  }
  return target;
}

/// "9.0" → 9, 0.
std::optional<Target> parse_capability(std::string_view text) {
  size_t dot = text.find('.');
  if (dot == std::string_view::npos) return std::nullopt;
  auto major = parse_u64(text.substr(0, dot));
  auto minor = parse_u64(text.substr(dot + 1));
  if (!major || !minor || *major > 999 || *minor > 9) return std::nullopt;
  return Target{static_cast<uint32_t>(*major), static_cast<uint32_t>(*minor), 0};
}

/// Major and minor version of Tegra's GPUs (Jetson, DRIVE).
constexpr std::array<std::pair<uint32_t, uint32_t>, 7> kTegra = {
    {{3, 2}, {5, 3}, {6, 2}, {7, 2}, {8, 7}, {10, 1}, {11, 0}}};

/// A target with the suffix f, and a GPU besides the target's own that belongs to its family.
struct Relative {
  uint32_t major, target_minor, gpu_minor;
};
constexpr std::array<Relative, 2> kRelatives = {{{10, 0, 3}, {12, 0, 1}}};

bool is_tegra(const Target& target) {
  return std::ranges::find(kTegra, std::pair(target.major, target.minor)) != kTegra.end();
}

bool is_same(const Target& code, const Target& gpu) {
  return code.major == gpu.major && code.minor == gpu.minor;
}

bool is_of_family(const Target& code, const Target& gpu) {
  return is_same(code, gpu) || std::ranges::any_of(kRelatives, [&](const Relative& one) {
           return code.major == one.major && gpu.major == one.major &&
                  code.minor == one.target_minor && gpu.minor == one.gpu_minor;
         });
}

// NVIDIA supports no cubin of a desktop GPU on Tegra, none of Tegra on desktops, and between two of
// Tegra's GPUs none either.
bool runs_cubin_of(const Target& code, const Target& gpu) {
  if (is_tegra(code) || is_tegra(gpu)) return is_same(code, gpu);
  return code.major == gpu.major && code.minor <= gpu.minor;
}

CodeFit fit_sass(const Target& code, const Target& gpu) {
  CodeFit fit;
  bool runs = code.suffix == 'a'   ? is_same(code, gpu)
              : code.suffix == 'f' ? is_of_family(code, gpu)
                                   : runs_cubin_of(code, gpu);
  if (!runs) return fit;
  fit.code_class = code.suffix == 'a'   ? CodeClass::exact
                   : code.suffix == 'f' ? CodeClass::family
                                        : CodeClass::sass;
  fit.minor = code.minor;
  return fit;
}

/// Whether PTX of version `isa` is too new for a driver of version `cuda`.
bool is_too_new(std::string_view isa, std::string_view cuda) {
  if (isa.empty() || cuda.empty()) return false;
  std::string_view needed = cuda_of_ptx(isa);
  if (!needed.empty()) return scan::compare_versions(cuda, needed) < 0;
  // Versions of PTX that came after this program are for drivers that did so, too.
  return scan::compare_versions(isa, kPtxVersions.back().ptx) > 0 &&
         scan::compare_versions(cuda, kPtxVersions.back().cuda) <= 0;
}

CodeFit fit_ptx(const Target& code, const Target& gpu, std::string_view isa,
                std::string_view cuda) {
  CodeFit fit;
  bool runs = code.major < gpu.major || (code.major == gpu.major && code.minor <= gpu.minor);
  if (code.suffix == 'a') runs = is_same(code, gpu);
  if (code.suffix == 'f') runs = is_of_family(code, gpu);
  if (!runs) return fit;
  if (is_too_new(isa, cuda)) {
    fit.is_too_new = true;
  } else {
    fit.code_class = CodeClass::jit;
  }
  return fit;
}

/// The code has to match the GPU in each setting that the code names: "gfx90a:xnack+" does not run
/// on a GPU with "gfx90a:xnack-".
bool gfx_fits(std::string_view code, std::string_view gpu) {
  auto code_words = split(code, ':');
  auto gpu_words = split(gpu, ':');
  if (!runs_code_for(gpu_words.front(), code_words.front())) return false;
  for (size_t i = 1; i < code_words.size(); ++i) {
    std::string_view word = code_words[i];
    if (word.empty()) continue;
    std::string opposite(word);
    opposite.back() = word.back() == '+' ? '-' : '+';
    if (std::find(gpu_words.begin() + 1, gpu_words.end(), opposite) != gpu_words.end()) {
      return false;
    }
  }
  return true;
}

CodeFit fit_of(const GpuCode& code, const node::NodeGpu& gpu,
               const std::optional<Target>& capability, std::string_view cuda) {
  CodeFit fit;
  if (code.kind == GpuCode::Kind::gfx) {
    if (gpu.vendor == "amd" && gfx_fits(code.arch, gpu.architecture)) {
      bool generic = is_generic_processor(code.arch.substr(0, code.arch.find(':')));
      fit.code_class = generic ? CodeClass::family : CodeClass::exact;
    }
    return fit;
  }
  auto target = parse_target(code.arch);
  if (gpu.vendor != "nvidia" || !target || !capability) return fit;
  if (code.kind == GpuCode::Kind::sass) return fit_sass(*target, *capability);
  if (code.kind == GpuCode::Kind::ptx) return fit_ptx(*target, *capability, code.isa, cuda);
  return fit;
}

std::string_view first_number(std::string_view version) {
  return version.substr(0, version.find('.'));
}

}  // namespace

CodeFit best_fit(const std::vector<GpuCode>& codes, const node::NodeGpu& gpu,
                 std::string_view cuda) {
  CodeFit best;
  const GpuCode* newer_ptx = nullptr;
  const std::optional<Target> capability = parse_capability(gpu.compute_capability);
  for (const GpuCode& code : codes) {
    CodeFit fit = fit_of(code, gpu, capability, cuda);
    if (fit.is_too_new &&
        (newer_ptx == nullptr || scan::compare_versions(code.isa, newer_ptx->isa) < 0)) {
      newer_ptx = &code;
    }
    if (fit.code_class == CodeClass::none || fit.quality() < best.quality()) continue;
    if (best.code != nullptr && fit.quality() == best.quality()) continue;
    best = fit;
    best.code = &code;
  }
  if (best.code == nullptr) best.newer_ptx = newer_ptx;
  return best;
}

bool runs_cubins_of(std::string_view capability, std::string_view gpu) {
  auto code = parse_capability(capability);
  auto here = parse_capability(gpu);
  return code && here && runs_cubin_of(*code, *here);
}

bool is_tegra(std::string_view capability) {
  auto parsed = parse_capability(capability);
  return parsed && is_tegra(*parsed);
}

std::string_view driver_of_cuda(std::string_view cuda) {
  std::string_view minor = cuda.substr(0, cuda.find('.', cuda.find('.') + 1));
  auto row = std::ranges::find(kCudaDrivers, minor, &CudaDriver::cuda);
  return row == kCudaDrivers.end() ? std::string_view() : row->driver;
}

std::string_view oldest_driver(std::string_view cuda) {
  std::string_view own = driver_of_cuda(cuda);
  auto row = std::ranges::find(kMajorDrivers, first_number(cuda), &CudaDriver::cuda);
  if (row == kMajorDrivers.end()) return own;
  return !own.empty() && scan::compare_versions(own, row->driver) < 0 ? own : row->driver;
}

std::optional<bool> driver_works_with(std::string_view cuda, const node::NodeDriver& driver) {
  std::string_view oldest = oldest_driver(cuda);
  if (!oldest.empty()) return reaches_driver(driver.module_version, oldest);
  if (driver.cuda_version.empty()) return std::nullopt;
  if (scan::compare_versions(cuda, driver.cuda_version) <= 0) return true;
  // Minor versions are compatible since CUDA 11, and every major version since then that is not in
  // the tables is newer than these.
  return scan::compare_versions(cuda, kMajorDrivers.back().cuda) > 0 &&
         first_number(cuda) == first_number(driver.cuda_version);
}

std::string_view cuda_of_ptx(std::string_view isa) {
  auto row = std::ranges::find(kPtxVersions, isa, &PtxVersion::ptx);
  return row == kPtxVersions.end() ? std::string_view() : row->cuda;
}

std::string_view driver_of_ptx(std::string_view isa) {
  return driver_of_cuda(cuda_of_ptx(isa));
}

bool reaches_driver(std::string_view module, std::string_view oldest) {
  size_t end = 0;  // of as many numbers of `oldest` as `module` has
  for (auto dots = std::ranges::count(module, '.') + 1; dots > 0 && end < oldest.size(); --dots) {
    end = std::min(oldest.find('.', end + 1), oldest.size());
  }
  return scan::compare_versions(module, oldest.substr(0, end)) >= 0;
}

std::string_view branch_of(std::string_view driver) {
  return first_number(driver);
}

std::string gpu_word(const std::vector<GpuCode>& codes) {
  for (const GpuCode& code : codes) {
    if (code.kind == GpuCode::Kind::gfx) {
      if (!code.arch.starts_with("gfx")) continue;
      return code.arch.substr(0, code.arch.find(':'));
    }
    auto target = parse_target(code.arch);
    if (code.kind == GpuCode::Kind::ir || !target) continue;
    return fmt::format("sm_{}{}", target->major, target->minor);
  }
  return {};
}

}  // namespace berth::match
