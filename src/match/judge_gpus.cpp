// SPDX-License-Identifier: Apache-2.0
// Judges the GPU driver, the driver's files that the container gets, and the image's GPU code.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.hpp"
#include "gpu/grant/requirement.hpp"
#include "match/court.hpp"
#include "match/verdict.hpp"
#include "scan/cuda_branch.hpp"
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

/// The word of 'berth what-if' for a driver that is new enough.
std::string driver_word(std::string_view driver) {
  return driver.empty() ? std::string() : fmt::format("driver={}", branch_of(driver));
}

/// "driver 535.54.03 (CUDA 12.2)"
std::string driver_text(const UserDriver& driver) {
  if (driver.version.empty()) return "CUDA " + driver.cuda;
  if (driver.cuda.empty()) return fmt::format("driver {}", driver.version);
  return fmt::format("driver {} (CUDA {})", driver.version, driver.cuda);
}

/// The first CUDA version with the oldest PTX in `codes`; empty: unknown, or not all of it is PTX.
std::string cuda_of_oldest_ptx(const std::vector<GpuCode>& codes) {
  std::string oldest;
  for (const GpuCode& code : codes) {
    if (code.kind != GpuCode::Kind::ptx) return {};
    std::string one(cuda_of_ptx(code.isa));
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
  if (!found_->cuda_runtimes.empty() || !found_->user_driver.empty()) return true;
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
    if (set.code.empty()) continue;  // of published facts
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

/// The word of 'berth what-if' for a GPU that some of the image's code is for.
std::string Court::lift_of_code() const {
  for (const CodePlace& place : places_of_code()) {
    if (std::string gpu = gpu_word(*place.code); !gpu.empty()) return "gpu=" + gpu;
  }
  return wants_cuda() ? "gpu=sm_90" : "";
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
                  "", lift_of_code()};
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
                  "", lift_of("driver", declared_.driver)};
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
  const std::string& module = node_.driver.module_version;
  if (runtime.empty() || is_older(runtime, kCudaDrivers.front().cuda)) return look_at_glibc();
  std::optional<bool> works = driver_works_with(runtime, node_.driver);
  if (!works) {
    add_unknown("driver", Alike{.gpus = true}, [&] {
      return Said{fmt::format(
          "whether driver {} works with CUDA {} is not known: both are newer than Berth's tables",
          module, runtime)};
    });
    return look_at_glibc();
  }
  if (*works) {
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
    std::string_view oldest = oldest_driver(runtime);
    if (oldest.empty()) {
      return Said{fmt::format("CUDA {} needs a driver for CUDA {}; this node has {}, for CUDA {}",
                              runtime, runtime, module, node_.driver.cuda_version),
                  "take an entry for an older CUDA, or a node with a newer driver"};
    }
    Lost lost = lost_with(oldest);
    std::string more =
        lost.driver.empty() ? "" : fmt::format(", and its {} needs {}", lost.what, lost.driver);
    return Said{fmt::format("CUDA {} needs driver {} or newer{}; this node has {}", runtime, oldest,
                            more, module),
                "take an entry for an older CUDA, or a node with a newer driver",
                driver_word(lost.driver.empty() ? oldest : lost.driver)};
  });
  return false;
}

/// What the image's code needs beyond `driver`, a newer one than the node's.
Lost Court::lost_with(std::string_view driver) const {
  Lost most;
  const UserDriver newer{driver, scan::cuda_of_branch(driver)};
  const std::vector<CodePlace> places = places_of_code();
  for (const NodeGpu& gpu : node_.gpus) {
    CodeSearch found = search(places, gpu, newer);
    if (!found.is_unused()) continue;
    Lost lost = why_unused(found, newer);
    if (!lost.driver.empty() && is_older(most.driver, lost.driver)) most = std::move(lost);
  }
  return most;
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

CodeSearch Court::search(const std::vector<CodePlace>& places, const NodeGpu& gpu,
                         const UserDriver& driver) const {
  CodeSearch found;
  // If the libraries of the main program are known, other files do not count.
  bool has_main = std::ranges::any_of(
      places, [](const CodePlace& place) { return place.main && place.found != nullptr; });
  for (const CodePlace& place : places) {
    if (has_main && !place.main) continue;
    CodeFit fit = best_fit(*place.code, gpu, driver.cuda);
    bool unreadable = place.zstd && !driver.version.empty() &&
                      !reaches_driver(driver.version, kOldestDriverForZstd);
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

/// Why code is not used, and the driver that would use it.
Lost Court::why_unused(const CodeSearch& found, const UserDriver& driver) const {
  const CodePlace& lost = *found.lost;
  const GpuCode* newer = found.lost_fit.newer_ptx;
  bool unpacked = driver.version.empty() || reaches_driver(driver.version, kOldestDriverForZstd);
  std::string_view for_ptx = newer == nullptr ? std::string_view() : driver_of_ptx(newer->isa);
  if (lost.zstd && !unpacked && (newer != nullptr || found.lost_fit.code != nullptr) &&
      !is_older(kOldestDriverForZstd, for_ptx)) {
    return {fmt::format("packed with zstd, which needs driver {}", kOldestDriverForZstd),
            "code packed with zstd", kOldestDriverForZstd};
  }
  std::string code = fmt::format("{} ({})", gpu_codes_text(*lost.code), where_text(lost));
  if (newer != nullptr) {
    std::string ptx = "PTX " + escape_controls(newer->isa);
    std::string needed = for_ptx.empty()
                             ? std::string("a newer driver")
                             : fmt::format("driver {} (CUDA {})", for_ptx, cuda_of_ptx(newer->isa));
    return {fmt::format("{}, {} needs {}", code, ptx, needed), ptx, for_ptx};
  }
  bool has_ptx = std::ranges::any_of(
      *lost.code, [](const GpuCode& one) { return one.kind == GpuCode::Kind::ptx; });
  return {code + (has_ptx ? ", no PTX for it" : ", no PTX"), "", {}};
}

/// The user-land driver of a program in the container: the image's compat package, or the node's.
UserDriver Court::user_driver() const {
  if (!compat_fits()) return {node_.driver.module_version, node_.driver.cuda_version};
  const std::string& cuda = found_->compat_cuda;
  return {found_->compat, cuda.empty() ? scan::cuda_of_branch(found_->compat) : cuda};
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
  const UserDriver driver = user_driver();
  CodeSearch found = search(places, gpu, driver);
  if (found.is_unused()) {
    verdict_.rank.code = kUnusedCode;
    return add({"gpu", tier_of(*found.lost)}, Outcome::runs_but, [&] {
      Lost lost = why_unused(found, driver);
      if (!lost.what.empty()) {
        return Said{fmt::format("the GPU stays unused: {}; this node is {} with {}", lost.why, name,
                                driver_text(driver)),
                    "take an entry with code for it, or a node with a newer driver",
                    driver_word(lost.driver)};
      }
      std::string other = gpu_word(*found.lost->code);
      return Said{fmt::format("the GPU stays unused: {}; this node is {}", lost.why, name),
                  "take an entry with code for it", other.empty() ? "" : "gpu=" + other};
    });
  }
  verdict_.rank.code = kBestCode - std::min(kBestCode, found.least);
  if (found.lost != nullptr) {
    add({"gpu", tier_of(*found.lost)}, Outcome::runs_but, [&] {
      Lost lost = why_unused(found, driver);
      if (!lost.what.empty()) {
        return Said{fmt::format("some of its code does not run on {} with {}: {}", name,
                                driver_text(driver), lost.why),
                    "", driver_word(lost.driver)};
      }
      return Said{fmt::format("some of its code does not run on {}: {} ({})", name,
                              gpu_codes_text(*found.lost->code), where_text(*found.lost))};
    });
  } else if (found.jit) {
    add({"gpu", tier_of_code()}, Outcome::runs_but, [&] {
      return Said{fmt::format("minutes of JIT at first start: for {} it has only PTX", name),
                  "take an entry with code for it; CUDA_CACHE_PATH keeps what was compiled"};
    });
  } else {
    add({"gpu", tier_of_code()}, Outcome::pass, [&] { return Said{"has code for " + name}; });
  }
}

}  // namespace berth::match
