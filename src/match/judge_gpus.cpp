// SPDX-License-Identifier: Apache-2.0
// Judges the GPU driver, the driver's files that the container gets, and the image's GPU code.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.hpp"
#include "gpu/grant/requirement.hpp"
#include "match/court.hpp"
#include "match/verdict.hpp"
#include "scan/driver_files.hpp"

namespace berth::match {
namespace {

using facts::GpuCode;
using node::NodeGpu;

/// Values for Rank::code. kBestCode is better than any code. "No code at all" ranks between code
/// that runs and code that does not, so an entry for other GPUs never precedes one without GPU
/// code.
constexpr uint32_t kBestCode = 500, kNoCode = kBestCode - 50, kUnusedCode = kBestCode;

std::string gpu_name(const NodeGpu& gpu) {
  if (gpu.vendor == "nvidia" && !gpu.compute_capability.empty()) {
    std::string sm = "sm_";
    for (char c : gpu.compute_capability) {
      if (c != '.') sm += c;
    }
    return sm;
  }
  if (!gpu.architecture.empty()) return gpu.architecture;
  return gpu.model.empty() ? gpu.vendor : gpu.model;
}

/// 12008 for "12.8"; 0 for the empty string.
int64_t cuda_number(std::string_view version) {
  constexpr uint64_t kMost = 999;
  std::vector<std::string_view> parts = split(version, '.');
  uint64_t major = parse_u64(parts[0]).value_or(0);
  uint64_t minor = parts.size() > 1 ? parse_u64(parts[1]).value_or(0) : 0;
  return static_cast<int64_t>(std::min(major, kMost) * (kMost + 1) + std::min(minor, kMost));
}

Tier tier_of(const CodePlace& place) {
  return place.found == nullptr ? Tier::declared : Tier::found;
}

/// The first CUDA version with the oldest PTX in `codes`; empty: unknown, or not all of it is PTX.
std::string cuda_of_oldest_ptx(const std::vector<GpuCode>& codes) {
  std::string oldest;
  for (const GpuCode& code : codes) {
    std::string one = code.kind == GpuCode::Kind::ptx ? cuda_of_ptx(code.isa) : "";
    if (one.empty()) return {};
    if (oldest.empty() || is_older(one, oldest)) oldest = one;
  }
  return oldest;
}

/// "declared", "found in /opt/libkernels.so and 3 more files"
std::string where_text(const CodePlace& place) {
  if (place.found == nullptr) return "declared";
  return "found in " + files_text(place.found->files, place.found->example);
}

}  // namespace

bool Court::wants_cuda() const {
  auto is_nvidia = [](const GpuCode& code) { return code.kind != GpuCode::Kind::gfx; };
  if (std::ranges::any_of(declared_.gpu, is_nvidia)) return true;
  if (!declared_.cuda.empty() || !declared_.user_driver.empty() || !declared_.driver.empty() ||
      !declared_.require.empty()) {
    return true;
  }
  if (found_ == nullptr) return false;
  if (!found_->cuda_runtimes.empty()) return true;
  return std::ranges::any_of(
      found_->gpu_code, [&](const auto& set) { return std::ranges::any_of(set.code, is_nvidia); });
}

/// The CUDA version of the image: the newest of its runtimes and of the compilers of its code.
std::string Court::cuda() const {
  std::string newest = declared_.cuda;
  if (found_ == nullptr) return newest;
  std::string of_code = cuda_of_code();
  if (newest.empty() || is_older(newest, of_code)) newest = of_code;
  for (const std::string& runtime : found_->cuda_runtimes) {
    if (newest.empty() || is_older(newest, runtime)) newest = runtime;
  }
  return newest;
}

/// The newest CUDA version of the main program's code. Of other files one suffices, so it is the
/// oldest of them, and unknown if that of one is.
std::string Court::cuda_of_code() const {
  bool has_main =
      std::ranges::any_of(found_->gpu_code, [&](const auto& set) { return is_main(set.main); });
  std::string chosen;
  for (const facts::GpuCodeSet& set : found_->gpu_code) {
    if (has_main && !is_main(set.main)) continue;
    bool amd = set.code.front().kind == GpuCode::Kind::gfx;
    std::string one = set.cuda.empty() ? cuda_of_oldest_ptx(set.code) : set.cuda;
    if (one.empty() && !has_main && !amd) return {};
    if (one.empty()) continue;
    bool better = has_main ? is_older(chosen, one) : is_older(one, chosen);
    if (chosen.empty() || better) chosen = one;
  }
  return chosen;
}

bool Court::has_code() const {
  return !declared_.gpu.empty() || (found_ != nullptr && !found_->gpu_code.empty());
}

bool Court::wants_gpus() const {
  return has_code() || wants_cuda();
}

Tier Court::tier_of_code() const {
  return declared_.gpu.empty() && found_ != nullptr ? Tier::found : Tier::declared;
}

Tier Court::tier_of_cuda() const {
  return cuda() == declared_.cuda ? Tier::declared : Tier::found;
}

void Court::look_at_gpus() {
  look_at_driver_and_code();
  verdict_.rank.other = verdict_.rank.code >= kUnusedCode ? 1 : 0;
}

void Court::look_at_driver_and_code() {
  verdict_.rank.code = wants_gpus() ? kUnusedCode : kNoCode;
  if (!wants_gpus()) {
    if (!node_.gpus.empty() && declared_.gpu_said) {
      add({"gpu", Tier::declared}, Outcome::pass,
          [&] { return Said{"is built for no GPU (declared)"}; });
    }
    return;
  }
  if (node_.gpus.empty()) {
    return add({"gpu", has_code() ? tier_of_code() : tier_of_cuda()}, Outcome::runs_but, [&] {
      return Said{has_code() ? "its code for GPUs stays unused: this node has none"
                             : "what it has for CUDA stays unused: this node has no GPU",
                  "",
                  "gpu=" + (declared_.gpu.empty() ? std::string("sm_90")
                                                  : gpu_code_text(declared_.gpu.front()))};
    });
  }
  bool driven = !wants_cuda() || !has_gpus("nvidia") || look_at_driver();
  if (!driven) return;
  // Found versions are not known for every entry, so they must not decide the order.
  verdict_.rank.cuda = -cuda_number(declared_.cuda);
  look_at_code();
}

bool Court::look_at_driver() {
  if (node_.driver.module_version.empty()) {
    add_unknown("driver", Alike{.gpus = true},
                [&] { return Said{"the driver of this node is not known"}; });
    return true;
  }
  for (const VersionNeed& need : declared_.driver) {
    if (holds(need, node_.driver.module_version)) continue;
    add({"driver", Tier::declared}, lost_driver(), [&] {
      return Said{fmt::format("needs driver {} (declared); this node has {}", need_text(need),
                              node_.driver.module_version),
                  "", "driver=" + need.version};
    });
    return false;
  }
  bool driven = job_.user_land == UserLand::image ? look_at_image_driver() : look_at_host_driver();
  return driven && look_at_requirements();
}

// Whether the image's compat package was made for this driver and the GPUs support compat packages.
bool Court::compat_fits() const {
  if (found_ == nullptr || found_->compat.empty()) return false;
  scan::CompatPackage package;
  package.version = found_->compat;
  package.cuda_version = found_->compat_cuda;
  package.drivers = found_->compat_drivers;
  package.has_note = !found_->compat_drivers.empty();
  std::vector<std::string> brands;
  for (const NodeGpu& gpu : node_.gpus) brands.push_back(to_lower(gpu.brand));
  return scan::judge_compat(package, node_.driver.module_version, node_.driver.cuda_version, brands)
      .use;
}

bool Court::look_at_image_driver() {
  std::string theirs = declared_.user_driver;
  std::string lie;
  Tier tier = Tier::declared;
  if (found_ != nullptr && !found_->user_driver.empty()) {
    if (!theirs.empty() && theirs != found_->user_driver) {
      lie = fmt::format(" (declared: {})", theirs);
    }
    theirs = found_->user_driver;
    tier = Tier::found;
  }
  const std::string& module = node_.driver.module_version;
  if (theirs.empty()) {
    if (found_ == nullptr) {
      add_unknown("driver", Alike{.gpus = true},
                  [&] { return Said{"whether it brings a user-land driver is not known"}; });
      return true;
    }
    add({"driver", Tier::found}, lost_driver(), [&] {
      return Said{"no user-land driver in the image",
                  "--gpu-driver bind gives it that of the node"};
    });
    return false;
  }
  // The module works only with libraries of its own version; 390.30 and 390.30.0 are equal.
  if (scan::compare_versions(theirs, module) == 0) {
    add({"driver", tier}, Outcome::pass,
        [&] { return Said{fmt::format("its user-land driver is the module's, {}", module)}; });
    return true;
  }
  if (compat_fits()) {
    verdict_.rank.compat = 1;
    add({"driver", Tier::found}, Outcome::pass, [&] {
      return Said{
          fmt::format("its compat package {} works with kernel module {}", found_->compat, module)};
    });
    return true;
  }
  add({"driver", tier}, lost_driver(), [&] {
    return Said{
        fmt::format("user-land driver {} in the image{}, kernel module {}", theirs, lie, module),
        "fails with --gpu-driver image; with bind it has the driver of the node",
        "driver=" + theirs};
  });
  return false;
}

bool Court::look_at_host_driver() {
  std::string runtime = cuda();
  std::string_view oldest = oldest_driver(runtime);
  const std::string& module = node_.driver.module_version;
  if (oldest.empty()) return look_at_glibc();
  if (!is_older(module, oldest)) {
    add({"driver", tier_of_cuda()}, Outcome::pass,
        [&] { return Said{fmt::format("CUDA {} works with driver {}", runtime, module)}; });
    return look_at_glibc();
  }
  if (compat_fits()) {
    verdict_.rank.compat = 1;
    add({"driver", tier_of_cuda()}, Outcome::pass, [&] {
      return Said{fmt::format("CUDA {} works with driver {} by its compat package {}", runtime,
                              module, found_->compat)};
    });
    return look_at_glibc();
  }
  add({"driver", tier_of_cuda()}, lost_driver(), [&] {
    return Said{
        fmt::format("CUDA {} needs driver {} or newer; this node has {}", runtime, oldest, module),
        "take an entry for an older CUDA, or a node with a newer driver",
        "driver=" + std::string(oldest)};
  });
  return false;
}

bool Court::look_at_requirements() {
  if (!job_.requirements) return true;
  for (const std::string& text : declared_.require) {
    auto requirement = gpu::parse_requirement(text);
    if (!requirement.ok()) continue;  // reported when the container starts
    for (const NodeGpu& gpu : node_.gpus) {
      if (gpu.vendor != "nvidia") continue;
      gpu::RequirementFacts facts;
      if (!node_.driver.cuda_version.empty()) facts.cuda = node_.driver.cuda_version;
      if (!node_.driver.module_version.empty()) facts.driver = node_.driver.module_version;
      if (!gpu.compute_capability.empty()) facts.arch = gpu.compute_capability;
      if (!gpu.brand.empty()) facts.brand = gpu.brand;
      if (gpu::evaluate(*requirement, facts) != gpu::Truth::no) continue;
      if (compat_fits()) {
        verdict_.rank.compat = 1;
        break;
      }
      add({"driver", Tier::declared}, lost_driver(), [&] {
        return Said{fmt::format("needs {} (NVIDIA_REQUIRE); this node has CUDA {}, driver {}, {}",
                                quote(text.substr(0, 120)), node_.driver.cuda_version,
                                node_.driver.module_version, gpu_name(gpu)),
                    "", ""};
      });
      return false;
    }
  }
  return true;
}

// The host's driver libraries are used with the image's libc.
bool Court::look_at_glibc() {
  if (found_ != nullptr && found_->musl && found_->glibc.empty()) {
    add({"glibc", Tier::found}, lost_driver(),
        [&] { return Said{"the image has musl; the driver's libraries need glibc"}; });
    return false;
  }
  bool is_found = found_ != nullptr && !found_->glibc.empty();
  std::string has = is_found ? found_->glibc : declared_.glibc;
  const std::string& needed = node_.driver.glibc_needed;
  if (has.empty() || needed.empty() || !is_older(has, needed)) return true;
  add({"glibc", is_found ? Tier::found : Tier::declared}, lost_driver(), [&] {
    return Said{fmt::format("the image has glibc {}; the driver's libraries of this node need {}",
                            has, needed)};
  });
  return false;
}

void Court::look_at_code() {
  uint32_t worst = 0;
  std::vector<std::string> seen;
  verdict_.rank.code = 0;
  for (const NodeGpu& gpu : node_.gpus) {
    std::string name = gpu_name(gpu);
    // GPUs of the same kind are judged once.
    if (std::ranges::find(seen, name) != seen.end()) continue;
    seen.push_back(name);
    verdict_.rank.code = 0;
    look_at_code_of(gpu);
    worst = std::max(worst, verdict_.rank.code);
  }
  verdict_.rank.code = worst;  // the worst of all GPUs that the job would see
}

std::vector<CodePlace> Court::places_of_code() const {
  std::vector<CodePlace> places;
  if (!declared_.gpu.empty()) places.push_back({&declared_.gpu, nullptr, true, false});
  if (found_ == nullptr) return places;
  for (const facts::GpuCodeSet& set : found_->gpu_code) {
    if (set.code.empty()) continue;
    places.push_back({&set.code, &set, is_main(set.main), set.zstd});
  }
  return places;
}

CodeSearch Court::search(const std::vector<CodePlace>& places, const NodeGpu& gpu) const {
  CodeSearch found;
  // If the libraries of the main program are known, other files do not count.
  bool has_main = std::ranges::any_of(
      places, [](const CodePlace& place) { return place.main && place.found != nullptr; });
  for (const CodePlace& place : places) {
    if (has_main && !place.main) continue;
    CodeFit fit = best_fit(*place.code, gpu, node_.driver.cuda_version);
    bool unreadable = place.zstd && !node_.driver.module_version.empty() &&
                      is_older(node_.driver.module_version, kOldestDriverForZstd);
    if (fit.code_class == CodeClass::none || unreadable) {
      if (found.lost == nullptr || place.found == nullptr) {
        found.lost = &place;
        found.lost_fit = fit;
      }
      continue;
    }
    ++found.running;
    found.jit = found.jit || fit.code_class == CodeClass::jit;
    found.least = std::min(found.least, fit.quality());
  }
  found.must_all = has_main || (found.lost != nullptr && found.lost->found == nullptr);
  return found;
}

std::string Court::why_unused(const CodeSearch& found) const {
  const CodePlace& lost = *found.lost;
  if (lost.zstd && found.lost_fit.code_class != CodeClass::none) {
    return fmt::format("packed with zstd, which needs driver {}; this node has {}",
                       kOldestDriverForZstd, node_.driver.module_version);
  }
  bool has_ptx = std::ranges::any_of(
      *lost.code, [](const GpuCode& code) { return code.kind == GpuCode::Kind::ptx; });
  std::string ptx = has_ptx ? ", no PTX for it" : ", no PTX";
  if (found.lost_fit.newer_ptx) {
    ptx = fmt::format(", PTX newer than CUDA {} of the driver", node_.driver.cuda_version);
  }
  return fmt::format("{} ({}){}", gpu_codes_text(*lost.code), where_text(lost), ptx);
}

void Court::look_at_code_of(const NodeGpu& gpu) {
  std::vector<CodePlace> places = places_of_code();
  if (places.empty()) {
    // CUDA is present, but no GPU code was found: the program may compile it at run time.
    verdict_.rank.code = kNoCode - 1;
    return;
  }
  std::string name = gpu_name(gpu);
  if (gpu.compute_capability.empty() && gpu.architecture.empty()) {
    verdict_.rank.code = kNoCode;
    return add_unknown({"gpu", tier_of_code()}, Alike{.gpus = true}, [&] {
      return Said{fmt::format("which code {} needs is not known", escape_controls(name)),
                  "'berth doctor gpu' shows what the driver does not report"};
    });
  }
  CodeSearch found = search(places, gpu);
  if (found.lost != nullptr && (found.running == 0 || found.must_all)) {
    verdict_.rank.code = kUnusedCode;
    return add({"gpu", tier_of(*found.lost)}, Outcome::runs_but, [&] {
      return Said{fmt::format("the GPU stays unused: {}; this node is {}", why_unused(found), name),
                  "take an entry with code for it",
                  "gpu=" + gpu_code_text(found.lost->code->front())};
    });
  }
  verdict_.rank.code = kBestCode - std::min(kBestCode, found.least);
  if (found.lost != nullptr) {
    add({"gpu", tier_of(*found.lost)}, Outcome::runs_but, [&] {
      return Said{fmt::format("some of its code does not run on {}: {} ({})", name,
                              gpu_codes_text(*found.lost->code), where_text(*found.lost))};
    });
  } else if (found.jit) {
    add({"gpu", tier_of_code()}, Outcome::runs_but, [&] {
      return Said{fmt::format("minutes of JIT at first start: it has only PTX for {}", name),
                  "take an entry with code for it; CUDA_CACHE_PATH keeps what was compiled"};
    });
  } else {
    add({"gpu", tier_of_code()}, Outcome::pass, [&] { return Said{"has code for " + name}; });
  }
}

}  // namespace berth::match
