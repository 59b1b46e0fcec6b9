// SPDX-License-Identifier: Apache-2.0
#include "match/judge.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.hpp"
#include "gpu/grant/requirement.hpp"
#include "match/cuda_rules.hpp"
#include "node/archspec.hpp"
#include "scan/driver_files.hpp"

namespace berth::match {
namespace {

using facts::GpuCode;
using node::NodeGpu;

/// Of Rank::code: better than any code; no code at all lies between code that runs and code that
/// does not, so an entry for other GPUs never comes before one that was made for none.
constexpr uint32_t kBestCode = 500, kNoCode = kBestCode - 50, kUnusedCode = kBestCode;

bool is_older(std::string_view version, std::string_view than) {
  return scan::compare_versions(version, than) < 0;
}

/// "3 files (/opt/lib/libfoo.so and others)", "/usr/bin/tool".
std::string files_text(uint64_t files, const std::string& example) {
  std::string name = escape_controls(example);
  return files > 1 ? fmt::format("{} and {} more files", name, files - 1) : name;
}

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

std::string level_name(uint32_t level) {
  return level <= 1 ? "x86-64" : fmt::format("x86-64-v{}", level);
}

/// 1 … 4 of "x86-64" … "x86-64-v4"; nothing for another name.
std::optional<uint32_t> level_of_name(std::string_view name) {
  if (name == "x86-64" || name == "x86-64-v1") return 1;
  if (name.size() == 9 && name.starts_with("x86-64-v") && name[8] >= '2' && name[8] <= '4') {
    return static_cast<uint32_t>(name[8] - '0');
  }
  return std::nullopt;
}

class Court {
 public:
  Court(const Candidate& candidate, const node::Profile& node, const Job& job)
      : declared_(candidate.declared),
        found_(candidate.found ? &*candidate.found : nullptr),
        platform_(candidate.descriptor.platform ? &*candidate.descriptor.platform : nullptr),
        node_(node),
        job_(job) {}

  Verdict judge() {
    look_at_platform();
    look_at_cpu();
    look_at_kernel();
    look_at_gpus();
    look_at_mpi();
    for (const std::string& puzzle : declared_.puzzles) {
      add("facts", Outcome::unknown,
          fmt::format("declares {}, which this version does not understand",
                      escape_controls(puzzle)));
      ++verdict_.rank.unknown;
    }
    verdict_.rank.priority = -declared_.priority;
    for (const Clause& clause : verdict_.clauses) {
      verdict_.outcome = std::max(verdict_.outcome, clause.outcome);
    }
    return std::move(verdict_);
  }

 private:
  void add(std::string about, Outcome outcome, std::string reason, std::string remedy = {},
           std::string lift = {}) {
    verdict_.clauses.push_back(
        {std::move(about), outcome, std::move(reason), std::move(remedy), std::move(lift)});
  }

  void look_at_platform();
  void look_at_cpu();
  bool look_at_declared_cpu();
  void look_at_found_cpu();
  void look_at_kernel();
  void look_at_gpus();
  bool look_at_driver();
  bool look_at_image_driver();
  bool look_at_host_driver();
  bool look_at_requirements();
  bool look_at_glibc();
  void look_at_code();
  void look_at_code_of(const NodeGpu& gpu);
  void look_at_mpi();

  std::string lacks(std::string_view target) const;
  Outcome lost_driver() const { return job_.needs_gpus ? Outcome::fail : Outcome::runs_but; }
  bool compat_fits() const;
  bool has_gpus(std::string_view vendor) const {
    return std::any_of(node_.gpus.begin(), node_.gpus.end(),
                       [&](const NodeGpu& gpu) { return gpu.vendor == vendor; });
  }
  bool wants_cuda() const;
  std::string cuda() const;

  const Declared& declared_;
  const facts::ImageFacts* found_;
  const oci::Platform* platform_;
  const node::Profile& node_;
  const Job& job_;
  Verdict verdict_;
};

// ---- platform
// ------------------------------------------------------------------------------------

void Court::look_at_platform() {
  std::string declared = platform_ != nullptr ? platform_->architecture : "";
  std::string found = found_ != nullptr ? found_->architecture : "";
  if (platform_ != nullptr && platform_->os != node_.os) {
    return add("platform", Outcome::fail,
               fmt::format("is for {}; this node is {}",
                           escape_controls(oci::platform_text(*platform_)), node_.os),
               "", "os=" + platform_->os);
  }
  if (!declared.empty() && declared != node_.architecture) {
    return add("platform", Outcome::fail,
               fmt::format("is for {}; this node is {}",
                           escape_controls(oci::platform_text(*platform_)), node_.architecture),
               "", "arch=" + declared);
  }
  if (!found.empty() && found != node_.architecture) {
    bool lie = !declared.empty();
    return add(
        "platform", Outcome::fail,
        fmt::format("its program {} is for {}{}; this node is {}", escape_controls(found_->program),
                    escape_controls(found), lie ? ", although it is declared for " + declared : "",
                    node_.architecture),
        "", lie ? "" : "arch=" + found);
  }
  if (declared.empty() && found.empty()) {
    ++verdict_.rank.unknown;
    return add("platform", Outcome::unknown, "declares no platform");
  }
  add("platform", Outcome::pass, "is for " + node_.architecture);
}

// ---- processor
// -----------------------------------------------------------------------------------

/// "avx512f, avx512bw and 5 more of ": the features that this node has not.
std::string Court::lacks(std::string_view target) const {
  constexpr size_t kMost = 3;
  auto features = node::lacking(node_.cpu, target);
  if (features.empty()) return {};
  std::string text;
  for (size_t i = 0; i < std::min(features.size(), kMost); ++i) {
    text += (i == 0 ? "" : ", ") + std::string(features[i]);
  }
  if (features.size() > kMost) text += fmt::format(" and {} more", features.size() - kMost);
  return text + " of ";
}

void Court::look_at_cpu() {
  std::string_view baseline = node::family_of_architecture(node_.architecture);
  verdict_.rank.cpu = UINT32_MAX - node::closeness(node_.cpu, baseline).value_or(0);
  if (look_at_declared_cpu()) look_at_found_cpu();
}

bool Court::look_at_declared_cpu() {
  std::string name = declared_.cpu;
  const char* how = "declared";
  if (name.empty() && platform_ != nullptr && platform_->architecture == "amd64" &&
      platform_->variant.size() == 2 && platform_->variant[0] == 'v') {
    name = "x86-64-" + platform_->variant;
    how = "platform variant";
  }
  if (name.empty()) return true;
  auto level = level_of_name(name);
  std::string target = name;
  if (level) {
    target = *level == 1 ? "x86_64" : fmt::format("x86_64_v{}", *level);
  } else if (auto known = node::known_microarchitecture(name)) {
    target = *known;
  } else {
    ++verdict_.rank.unknown;
    auto near = node::nearest_microarchitecture(name);
    add("cpu", Outcome::unknown,
        fmt::format("declares {}, a processor that archspec does not know{}", quoted(name),
                    near ? fmt::format(" (is it {}?)", *near) : ""));
    return true;
  }
  if (level && node_.cpu.level == 0 && node_.architecture == "amd64") {
    ++verdict_.rank.unknown;
    add("cpu", Outcome::unknown,
        fmt::format("needs {} ({}); the level of this node is not known", name, how));
    return true;
  }
  bool runs = level ? node_.cpu.level >= *level : node::runs(node_.cpu, target);
  if (!runs) {
    add("cpu", Outcome::fail,
        fmt::format("needs {}{} ({}); this node is {}", lacks(target), name, how, cpu_name(node_)),
        "take an entry for this processor, or a node that has it", "cpu=" + name);
    return false;
  }
  if (auto close = node::closeness(node_.cpu, target)) verdict_.rank.cpu = UINT32_MAX - *close;
  add("cpu", Outcome::pass,
      fmt::format("is for {} ({}); this node is {}", name, how, cpu_name(node_)));
  return true;
}

// A need that the main program has ends it; one of another file only that file.
void Court::look_at_found_cpu() {
  if (found_ == nullptr) return;
  if (found_->is_static && found_->cpu.empty()) return;
  for (const facts::CpuNeed& need : found_->cpu) {
    if (node_.cpu.level == 0 || need.isa.level <= node_.cpu.level) continue;
    std::string lie;
    auto declared = level_of_name(declared_.cpu);
    if (declared && *declared < need.isa.level) {
      lie = fmt::format(", although {} is declared", declared_.cpu);
    }
    std::string reason =
        fmt::format("{} {} {} (found: {}){}; this node is {}", files_text(need.files, need.example),
                    need.files > 1 ? "need" : "needs", level_name(need.isa.level), need.isa.source,
                    lie, cpu_name(node_));
    add("cpu", need.main ? Outcome::fail : Outcome::runs_but, reason,
        need.main ? "take an entry for this processor, or a node that has it" : "",
        "cpu=" + level_name(need.isa.level));
  }
}

// ---- kernel
// --------------------------------------------------------------------------------------

bool holds(const VersionNeed& need, std::string_view version) {
  int order = scan::compare_versions(version, need.version);
  switch (need.op) {
    case VersionNeed::Op::equal: {
      // "=570" is a branch.
      bool prefix = version.starts_with(need.version) &&
                    (version.size() == need.version.size() || version[need.version.size()] == '.');
      return order == 0 || prefix;
    }
    case VersionNeed::Op::at_least:
      return order >= 0;
    case VersionNeed::Op::at_most:
      return order <= 0;
    case VersionNeed::Op::less:
      return order < 0;
    case VersionNeed::Op::greater:
      break;
  }
  return order > 0;
}

std::string need_text(const VersionNeed& need) {
  static constexpr std::string_view kSigns[] = {"", "≥ ", "≤ ", "< ", "> "};
  return std::string(kSigns[static_cast<size_t>(need.op)]) + need.version;
}

/// The dotted numbers that a release begins with: "6.18.5-1-amd64" → "6.18.5".
std::string_view plain_release(std::string_view release) {
  return release.substr(0, release.find_first_not_of("0123456789."));
}

void Court::look_at_kernel() {
  for (const VersionNeed& need : declared_.kernel) {
    if (node_.kernel.release.empty()) {
      ++verdict_.rank.unknown;
      add("kernel", Outcome::unknown,
          fmt::format("needs Linux {}; that of this node is not known", need_text(need)));
    } else if (!holds(need, plain_release(node_.kernel.release))) {
      add("kernel", Outcome::fail,
          fmt::format("needs Linux {}; this node has {}", need_text(need), node_.kernel.release),
          "", "kernel=" + need.version);
    }
  }
}

// ---- GPUs
// ----------------------------------------------------------------------------------------

bool Court::wants_cuda() const {
  auto is_nvidia = [](const GpuCode& code) { return code.kind != GpuCode::Kind::gfx; };
  if (std::any_of(declared_.gpu.begin(), declared_.gpu.end(), is_nvidia)) return true;
  if (!declared_.cuda.empty() || !declared_.user_driver.empty() || !declared_.driver.empty() ||
      !declared_.require.empty()) {
    return true;
  }
  if (found_ == nullptr) return false;
  if (!found_->cuda_runtimes.empty()) return true;
  return std::any_of(found_->gpu_code.begin(), found_->gpu_code.end(), [&](const auto& set) {
    return std::any_of(set.code.begin(), set.code.end(), is_nvidia);
  });
}

/// The newest runtime that the image has.
std::string Court::cuda() const {
  std::string newest = declared_.cuda;
  if (found_ == nullptr) return newest;
  for (const std::string& runtime : found_->cuda_runtimes) {
    if (newest.empty() || is_older(newest, runtime)) newest = runtime;
  }
  return newest;
}

void Court::look_at_gpus() {
  bool has_code = !declared_.gpu.empty() || (found_ != nullptr && !found_->gpu_code.empty());
  verdict_.rank.code = has_code || wants_cuda() ? kUnusedCode : kNoCode;
  if (!has_code && !wants_cuda()) {
    if (!node_.gpus.empty() && declared_.gpu_said) {
      add("gpu", Outcome::pass, "is made for no GPU (declared)");
    }
    return;
  }
  if (node_.gpus.empty()) {
    return add("gpu", Outcome::runs_but, "its code for GPUs stays unused: this node has none", "",
               "gpu=" + (declared_.gpu.empty() ? std::string("sm_90")
                                               : gpu_code_text(declared_.gpu.front())));
  }
  bool driven = !wants_cuda() || !has_gpus("nvidia") || look_at_driver();
  if (driven) look_at_code();
}

bool Court::look_at_driver() {
  if (node_.driver.module_version.empty()) {
    add("driver", Outcome::unknown, "the driver of this node is not known");
    ++verdict_.rank.unknown;
    return true;
  }
  for (const VersionNeed& need : declared_.driver) {
    if (holds(need, node_.driver.module_version)) continue;
    add("driver", lost_driver(),
        fmt::format("needs driver {} (declared); this node has {}", need_text(need),
                    node_.driver.module_version),
        "", "driver=" + need.version);
    return false;
  }
  bool driven = job_.user_land == UserLand::image ? look_at_image_driver() : look_at_host_driver();
  return driven && look_at_requirements();
}

// Of the drivers that a package of newer user-land libraries was made for, and the GPUs that take
// one.
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
  if (found_ != nullptr && !found_->user_driver.empty()) {
    if (!theirs.empty() && theirs != found_->user_driver) {
      lie = fmt::format(" (declared: {})", theirs);
    }
    theirs = found_->user_driver;
  }
  const std::string& module = node_.driver.module_version;
  if (theirs.empty()) {
    if (found_ == nullptr) {
      ++verdict_.rank.unknown;
      add("driver", Outcome::unknown, "whether it brings a user-land driver is not known");
      return true;
    }
    add("driver", lost_driver(), "no user-land driver in the image",
        "--gpu-driver bind gives it that of the node");
    return false;
  }
  // The module takes only its own version; 390.30 and 390.30.0 are one.
  if (scan::compare_versions(theirs, module) == 0) {
    add("driver", Outcome::pass, fmt::format("its user-land driver is the module's, {}", module));
    return true;
  }
  if (compat_fits()) {
    verdict_.rank.compat = 1;
    add("driver", Outcome::pass,
        fmt::format("its compat package {} works with kernel module {}", found_->compat, module));
    return true;
  }
  add("driver", lost_driver(),
      fmt::format("user-land driver {} in the image{}, kernel module {}", theirs, lie, module),
      "fails with --gpu-driver image; with bind it has the driver of the node", "driver=" + theirs);
  return false;
}

bool Court::look_at_host_driver() {
  std::string runtime = cuda();
  std::string oldest = runtime.empty() ? "" : oldest_driver(runtime);
  const std::string& module = node_.driver.module_version;
  if (oldest.empty()) return look_at_glibc();
  if (!is_older(module, oldest)) {
    add("driver", Outcome::pass, fmt::format("CUDA {} works with driver {}", runtime, module));
    return look_at_glibc();
  }
  if (compat_fits()) {
    verdict_.rank.compat = 1;
    add("driver", Outcome::pass,
        fmt::format("CUDA {} works with driver {} by its compat package {}", runtime, module,
                    found_->compat));
    return look_at_glibc();
  }
  add("driver", lost_driver(),
      fmt::format("CUDA {} needs driver {} or newer; this node has {}", runtime, oldest, module),
      "take an entry for an older CUDA, or a node with a newer driver", "driver=" + oldest);
  return false;
}

bool Court::look_at_requirements() {
  if (!job_.requirements) return true;
  for (const std::string& text : declared_.require) {
    auto requirement = gpu::parse_requirement(text);
    if (!requirement.ok()) continue;  // the container's start says so
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
      add("driver", lost_driver(),
          fmt::format("needs {} (NVIDIA_REQUIRE); this node has CUDA {}, driver {}, {}",
                      quoted(text.substr(0, 120)), node_.driver.cuda_version,
                      node_.driver.module_version, gpu_name(gpu)),
          "", "");
      return false;
    }
  }
  return true;
}

// The host's libraries come into the image's user land, with its libc.
bool Court::look_at_glibc() {
  if (found_ != nullptr && found_->musl && found_->glibc.empty()) {
    add("glibc", lost_driver(), "the image has musl; the driver's libraries need glibc");
    return false;
  }
  std::string has = declared_.glibc;
  if (found_ != nullptr && !found_->glibc.empty()) has = found_->glibc;
  const std::string& needed = node_.driver.glibc_needed;
  if (has.empty() || needed.empty() || !is_older(has, needed)) return true;
  add("glibc", lost_driver(),
      fmt::format("the image has glibc {}; the driver's libraries of this node need {}", has,
                  needed));
  return false;
}

void Court::look_at_code() {
  uint32_t worst = 0;
  std::vector<std::string> seen;
  verdict_.rank.code = 0;
  for (const NodeGpu& gpu : node_.gpus) {
    std::string name = gpu_name(gpu);
    // Equal GPUs are one case.
    if (std::find(seen.begin(), seen.end(), name) != seen.end()) continue;
    seen.push_back(name);
    verdict_.rank.code = 0;
    look_at_code_of(gpu);
    worst = std::max(worst, verdict_.rank.code);
  }
  verdict_.rank.code = worst;  // the least of all that the job would see
}

/// Code of one place: what is declared, or what a set of files has.
struct Place {
  const std::vector<GpuCode>* code = nullptr;
  std::string where;  ///< "declared", "/opt/libkernels.so and 3 more files"
  bool main = false;
  bool zstd = false;
};

void Court::look_at_code_of(const NodeGpu& gpu) {
  std::vector<Place> places;
  if (!declared_.gpu.empty()) places.push_back({&declared_.gpu, "declared", true, false});
  bool has_main = false;
  if (found_ != nullptr) {
    for (const facts::GpuCodeSet& set : found_->gpu_code) {
      has_main = has_main || set.main;
      places.push_back(
          {&set.code, "found in " + files_text(set.files, set.example), set.main, set.zstd});
    }
  }
  if (places.empty()) {
    // CUDA is there, but no code that we could see: programs that compile when they run.
    verdict_.rank.code = kNoCode - 1;
    return;
  }
  std::string name = gpu_name(gpu);
  if (gpu.compute_capability.empty() && gpu.architecture.empty()) {
    verdict_.rank.code = kNoCode;
    ++verdict_.rank.unknown;
    return add("gpu", Outcome::unknown,
               fmt::format("which code {} needs is not known", escape_controls(name)),
               "'berth doctor gpu' tells what the driver does not say");
  }
  const std::string& cuda = node_.driver.cuda_version;
  size_t running = 0, considered = 0;
  uint32_t least = UINT32_MAX;
  bool jit = false;
  const Place* lost = nullptr;
  CodeFit lost_fit;
  for (const Place& place : places) {
    if (has_main && !place.main) continue;
    ++considered;
    CodeFit fit = best_fit(*place.code, gpu, cuda);
    bool unreadable = place.zstd && !node_.driver.module_version.empty() &&
                      is_older(node_.driver.module_version, kOldestDriverForZstd);
    if (fit.code_class == CodeClass::none || unreadable) {
      if (lost == nullptr || place.where == "declared") {
        lost = &place;
        lost_fit = fit;
      }
      continue;
    }
    ++running;
    jit = jit || fit.code_class == CodeClass::jit;
    least = std::min(least, fit.quality());
  }
  bool must_all = has_main || (lost != nullptr && lost->where == "declared");
  if (lost != nullptr && (running == 0 || must_all)) {
    verdict_.rank.code = kUnusedCode;
    std::string why;
    if (lost->zstd && lost_fit.code_class != CodeClass::none) {
      why = fmt::format("packed with zstd, which needs driver {}; this node has {}",
                        kOldestDriverForZstd, node_.driver.module_version);
    } else {
      bool ptx = std::any_of(lost->code->begin(), lost->code->end(),
                             [](const GpuCode& code) { return code.kind == GpuCode::Kind::ptx; });
      why = fmt::format("{} ({}){}", gpu_codes_text(*lost->code), lost->where,
                        lost_fit.newer_ptx
                            ? fmt::format(", PTX newer than CUDA {} of the driver", cuda)
                        : ptx ? ", no PTX for it"
                              : ", no PTX");
    }
    add("gpu", Outcome::runs_but,
        fmt::format("the GPU stays unused: {}; this node is {}", why, name),
        "take an entry with code for it", "gpu=" + gpu_code_text(lost->code->front()));
    return;
  }
  verdict_.rank.code = kBestCode - std::min(kBestCode, least);
  if (lost != nullptr) {
    add("gpu", Outcome::runs_but,
        fmt::format("some of its code does not run on {}: {} ({})", name,
                    gpu_codes_text(*lost->code), lost->where));
  } else if (jit) {
    add("gpu", Outcome::runs_but,
        fmt::format("minutes of JIT at first start: it has only PTX for {}", name),
        "take an entry with code for it; CUDA_CACHE_PATH keeps what was compiled");
  } else {
    add("gpu", Outcome::pass, "has code for " + name);
  }
}

// ---- MPI and fabric
// ------------------------------------------------------------------------------

// The host's library may take the place of the image's; what that needs is decided at the start.
void Court::look_at_mpi() {
  std::string family = declared_.mpi;
  if (family.empty() && found_ != nullptr && !found_->mpi.empty()) {
    family = found_->mpi.front().family;
  }
  if (!family.empty() && !node_.mpi.empty()) {
    bool same = std::any_of(node_.mpi.begin(), node_.mpi.end(),
                            [&](const node::Mpi& mpi) { return mpi.family == family; });
    if (!same) ++verdict_.rank.libraries;
  }
  for (const std::string& fabric : declared_.fabric) {
    bool here = std::find(node_.fabric.begin(), node_.fabric.end(), fabric) != node_.fabric.end();
    if (!here) ++verdict_.rank.libraries;
  }
}

}  // namespace

std::string cpu_name(const node::Profile& node) {
  std::string level = node.cpu.level != 0 ? level_name(node.cpu.level) : "";
  const std::string& name = node.cpu.microarchitecture;
  if (name.empty()) return level.empty() ? node.architecture : level;
  if (level.empty()) return name;
  return name.starts_with("x86_64") ? level : fmt::format("{} ({})", name, level);
}

std::string to_json_text(Outcome outcome) {
  static constexpr std::string_view kNames[] = {"pass", "runs-but", "unknown", "fail"};
  return std::string(kNames[static_cast<size_t>(outcome)]);
}

Result<Outcome> from_json_text(std::string_view text, std::type_identity<Outcome>) {
  for (Outcome outcome : {Outcome::pass, Outcome::runs_but, Outcome::unknown, Outcome::fail}) {
    if (text == to_json_text(outcome)) return outcome;
  }
  return make_error(Kind::corrupt, "no outcome: " + quoted(text));
}

std::string to_json_text(UserLand user_land) {
  return user_land == UserLand::image ? "image" : "host";
}

Result<UserLand> from_json_text(std::string_view text, std::type_identity<UserLand>) {
  for (UserLand one : {UserLand::host, UserLand::image}) {
    if (text == to_json_text(one)) return one;
  }
  return make_error(Kind::corrupt, "expected host or image, got " + quoted(text));
}

const Clause* Verdict::decisive() const {
  const Clause* worst = nullptr;
  for (const Clause& clause : clauses) {
    if (clause.outcome == Outcome::pass) continue;
    if (worst == nullptr || worst->outcome < clause.outcome) worst = &clause;
  }
  return worst;
}

Verdict judge(const Candidate& candidate, const node::Profile& node, const Job& job) {
  return Court(candidate, node, job).judge();
}

}  // namespace berth::match
