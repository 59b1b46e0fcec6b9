// SPDX-License-Identifier: Apache-2.0
#include "bake/compare.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.hpp"
#include "match/cuda_rules.hpp"
#include "node/archspec.hpp"
#include "scan/driver_files.hpp"

namespace berth::bake {
namespace {

using facts::GpuCode;

/// The compute capability of a GPU architecture: "9.0" for "90" and "90a".
std::string capability_of(const std::string& arch) {
  std::string digits = arch;
  while (!digits.empty() && (digits.back() == 'a' || digits.back() == 'f')) digits.pop_back();
  if (digits.size() < 2) return {};
  return digits.substr(0, digits.size() - 1) + "." + digits.back();
}

/// The GPU on which the image runs according to a value of `gpu`.
node::NodeGpu gpu_of(const GpuCode& code) {
  node::NodeGpu gpu;
  if (code.kind == GpuCode::Kind::gfx) {
    gpu.vendor = "amd";
    gpu.architecture = code.arch.substr(0, code.arch.find(':'));
  } else {
    gpu.vendor = "nvidia";
    gpu.compute_capability = capability_of(code.arch);
  }
  return gpu;
}

class Comparison {
 public:
  Comparison(const match::Declared& declared, const facts::ImageFacts& found)
      : declared_(declared), found_(found) {}

  std::vector<Finding> run(const std::string& architecture) {
    if (!found_.architecture.empty() && found_.architecture != architecture) {
      lie("platform",
          fmt::format("declares {}; its program {} is for {}", architecture,
                      escape_controls(found_.program), escape_controls(found_.architecture)));
    }
    compare_cpu();
    compare_gpu();
    compare_versions();
    compare_mpi();
    for (const facts::Unmet& unmet : found_.unmet) {
      if (!unmet.main) continue;
      remark("glibc", fmt::format("{} needs {}, which the image does not have",
                                  escape_controls(unmet.path), escape_controls(unmet.version)));
    }
    std::ranges::stable_sort(findings_, [](const Finding& a, const Finding& b) {
      return a.kind == Finding::Kind::lie && b.kind != Finding::Kind::lie;
    });
    return std::move(findings_);
  }

 private:
  void lie(std::string about, std::string text) {
    findings_.push_back({Finding::Kind::lie, std::move(about), std::move(text)});
  }
  void remark(std::string about, std::string text) {
    findings_.push_back({Finding::Kind::remark, std::move(about), std::move(text)});
  }

  void compare_cpu() {
    auto known = node::known_microarchitecture(declared_.cpu);
    uint32_t level = known ? std::max<uint32_t>(node::level_of(*known), 1) : 1;
    level = std::max(level, level_of_features());
    std::string said = declared_.cpu.empty() ? join(declared_.cpu_features, " ") : declared_.cpu;
    if (said.empty()) said = "no processor";
    for (const facts::CpuNeed& need : found_.cpu) {
      if (need.isa.level <= level) continue;
      std::string text =
          fmt::format("declares {}; {} needs x86-64-v{} (found: {})", said,
                      escape_controls(need.example), need.isa.level, need.isa.source);
      // Files other than the main program may be libraries that are chosen at run time.
      need.main ? lie("cpu", text) : remark("cpu", text);
    }
  }

  /// The lowest level of the x86-64 processors that have all declared features: 4 for
  /// "avx512_vnni".
  uint32_t level_of_features() const {
    if (declared_.cpu_features.empty()) return 0;
    uint32_t level = UINT32_MAX;
    for (std::string_view name : node::microarchitectures()) {
      if (node::level_of(name) == 0) continue;  // not x86-64
      node::Cpu cpu;
      cpu.microarchitecture = name;
      if (node::least_with(cpu, declared_.cpu_features) == name) {
        level = std::min(level, node::level_of(name));
      }
    }
    return level == UINT32_MAX ? 0 : level;
  }

  void compare_gpu() {
    if (found_.gpu_code.empty()) {
      if (!declared_.gpu.empty()) {
        remark("gpu", fmt::format("declares {}; no code for GPUs was found in its files",
                                  match::gpu_codes_text(declared_.gpu)));
      }
      return;
    }
    bool has_main =
        std::ranges::any_of(found_.gpu_code, [](const facts::GpuCodeSet& set) { return set.main; });
    std::vector<GpuCode> code;
    for (const facts::GpuCodeSet& set : found_.gpu_code) {
      if (!has_main || set.main) code.insert(code.end(), set.code.begin(), set.code.end());
    }
    std::ranges::sort(code);
    code.erase(std::unique(code.begin(), code.end()), code.end());
    for (const GpuCode& promised : declared_.gpu) compare_code(promised, code);
  }

  void compare_code(const GpuCode& promised, const std::vector<GpuCode>& code) {
    match::CodeFit fit = match::best_fit(code, gpu_of(promised), {});
    std::string text = fmt::format("declares {}; its code is {}", match::gpu_code_text(promised),
                                   match::gpu_codes_text(code));
    if (fit.code_class == match::CodeClass::none) {
      lie("gpu", text);
    } else if (fit.code_class == match::CodeClass::jit && promised.kind == GpuCode::Kind::sass) {
      remark("gpu", text + ", which the driver has to compile");
    }
  }

  void compare_versions() {
    for (const std::string& runtime : found_.cuda_runtimes) {
      bool newer = !declared_.cuda.empty() && scan::compare_versions(runtime, declared_.cuda) > 0;
      if (newer) lie("cuda", fmt::format("declares {}; it has CUDA {}", declared_.cuda, runtime));
    }
    auto differs = [](const std::string& said, const std::string& is) {
      return !said.empty() && !is.empty() && scan::compare_versions(said, is) != 0;
    };
    if (differs(declared_.user_driver, found_.user_driver)) {
      lie("driver", fmt::format("declares user-land driver {}; it has {}", declared_.user_driver,
                                found_.user_driver));
    }
    bool older = differs(declared_.glibc, found_.glibc) &&
                 scan::compare_versions(found_.glibc, declared_.glibc) < 0;
    if (older) {
      lie("glibc", fmt::format("declares {}; it has glibc {}", declared_.glibc, found_.glibc));
    }
  }

  void compare_mpi() {
    if (declared_.mpi.empty() || found_.mpi.empty()) return;
    bool has = std::ranges::any_of(
        found_.mpi, [&](const auto& library) { return library.family == declared_.mpi; });
    if (!has) {
      lie("mpi", fmt::format("declares {}; it has {} ({})", declared_.mpi,
                             found_.mpi.front().family, escape_controls(found_.mpi.front().path)));
    }
  }

  const match::Declared& declared_;
  const facts::ImageFacts& found_;
  std::vector<Finding> findings_;
};

}  // namespace

std::vector<Finding> compare(const match::Declared& declared, const std::string& architecture,
                             const facts::ImageFacts& found) {
  return Comparison(declared, found).run(architecture);
}

}  // namespace berth::bake
