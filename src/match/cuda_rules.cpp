// SPDX-License-Identifier: Apache-2.0
#include "match/cuda_rules.hpp"

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

CodeFit fit_sass(const Target& code, const Target& gpu) {
  CodeFit fit;
  bool same = code.major == gpu.major && code.minor == gpu.minor;
  bool runs = code.suffix == 'a' ? same : code.major == gpu.major && code.minor <= gpu.minor;
  if (!runs) return fit;
  fit.code_class = code.suffix == 'a'   ? CodeClass::exact
                   : code.suffix == 'f' ? CodeClass::family
                                        : CodeClass::sass;
  fit.minor = code.minor;
  return fit;
}

CodeFit fit_ptx(const Target& code, const Target& gpu, std::string_view isa,
                std::string_view cuda) {
  CodeFit fit;
  bool runs = code.major < gpu.major || (code.major == gpu.major && code.minor <= gpu.minor);
  if (code.suffix == 'a') runs = code.major == gpu.major && code.minor == gpu.minor;
  if (code.suffix == 'f') runs = code.major == gpu.major && code.minor <= gpu.minor;
  if (!runs) return fit;
  std::string needed = cuda_of_ptx(isa);
  if (!needed.empty() && !cuda.empty() && scan::compare_versions(cuda, needed) < 0) {
    fit.newer_ptx = true;
    return fit;
  }
  fit.code_class = CodeClass::jit;
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

using Row = std::pair<std::string_view, std::string_view>;

/// CUDA version → oldest driver, for versions without minor-version compatibility.
constexpr std::array<Row, 8> kOldDrivers = {{{"7.5", "352.31"},
                                             {"8.0", "367.48"},
                                             {"9.0", "384.81"},
                                             {"9.1", "390.46"},
                                             {"9.2", "396.26"},
                                             {"10.0", "410.48"},
                                             {"10.1", "418.39"},
                                             {"10.2", "440.33"}}};
constexpr std::array<Row, 3> kMajorDrivers = {{{"11", "450"}, {"12", "525"}, {"13", "580"}}};

/// PTX version → CUDA version, where no formula relates them.
constexpr std::array<Row, 14> kPtxCuda = {{{"4.3", "7.5"},
                                           {"5.0", "8.0"},
                                           {"6.0", "9.0"},
                                           {"6.1", "9.1"},
                                           {"6.2", "9.2"},
                                           {"6.3", "10.0"},
                                           {"6.4", "10.1"},
                                           {"6.5", "10.2"},
                                           {"8.5", "12.5"},
                                           {"8.6", "12.7"},
                                           {"8.7", "12.8"},
                                           {"8.8", "12.9"},
                                           {"9.0", "13.0"},
                                           {"9.1", "13.1"}}};

std::string_view find_row(const auto& rows, std::string_view key) {
  auto row = std::ranges::find(rows, key, &Row::first);
  return row == rows.end() ? std::string_view() : row->second;
}

}  // namespace

CodeFit best_fit(const std::vector<GpuCode>& codes, const node::NodeGpu& gpu,
                 std::string_view cuda) {
  CodeFit best;
  bool newer_ptx = false;
  const std::optional<Target> capability = parse_capability(gpu.compute_capability);
  for (const GpuCode& code : codes) {
    CodeFit fit = fit_of(code, gpu, capability, cuda);
    newer_ptx = newer_ptx || fit.newer_ptx;
    if (fit.code_class == CodeClass::none || fit.quality() < best.quality()) continue;
    if (best.code != nullptr && fit.quality() == best.quality()) continue;
    best = fit;
    best.code = &code;
  }
  best.newer_ptx = best.code == nullptr && newer_ptx;
  return best;
}

std::string_view oldest_driver(std::string_view cuda) {
  std::string_view major = cuda.substr(0, cuda.find('.'));
  std::string_view minor = cuda.substr(0, cuda.find('.', major.size() + 1));
  std::string_view old = find_row(kOldDrivers, minor);
  return old.empty() ? find_row(kMajorDrivers, major) : old;
}

std::string cuda_of_ptx(std::string_view isa) {
  std::string_view found = find_row(kPtxCuda, isa);
  if (!found.empty()) return std::string(found);
  // 7.0 … 7.8 came with CUDA 11.0 … 11.8, 8.0 … 8.4 with 12.0 … 12.4.
  if (isa.size() == 3 && isa[1] == '.' && isa[2] >= '0' && isa[2] <= '9') {
    if (isa[0] == '7' && isa[2] <= '8') return std::string("11.") + isa[2];
    if (isa[0] == '8' && isa[2] <= '4') return std::string("12.") + isa[2];
  }
  return {};
}

}  // namespace berth::match
