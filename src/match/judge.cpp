// SPDX-License-Identifier: Apache-2.0
#include "match/judge.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.hpp"
#include "match/court.hpp"
#include "node/archspec.hpp"
#include "node/what_if.hpp"
#include "scan/driver_files.hpp"

namespace berth::match {
namespace {

std::string level_name(uint32_t level) {
  return level <= 1 ? "x86-64" : fmt::format("x86-64-v{}", level);
}

/// 1 … 4 for "x86-64" … "x86-64-v4"; nothing for other names.
std::optional<uint32_t> level_of_name(std::string_view name) {
  if (name == "x86-64" || name == "x86-64-v1") return 1;
  if (name.size() == 9 && name.starts_with("x86-64-v") && name[8] >= '2' && name[8] <= '4') {
    return static_cast<uint32_t>(name[8] - '0');
  }
  return std::nullopt;
}

std::string_view day_of(const RunRecord& record) {
  return std::string_view(record.time).substr(0, record.time.find('T'));
}

}  // namespace

bool is_older(std::string_view version, std::string_view than) {
  return scan::compare_versions(version, than) < 0;
}

/// "/opt/lib/libfoo.so and 2 more files", "/usr/bin/tool".
std::string files_text(uint64_t files, const std::string& example) {
  std::string name = escape_controls(example);
  return files > 1 ? fmt::format("{} and {} more files", name, files - 1) : name;
}

bool holds(const VersionNeed& need, std::string_view version) {
  int order = scan::compare_versions(version, need.version);
  switch (need.op) {
    case VersionNeed::Op::equal: {
      // "=570" means the branch.
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

bool is_lift(std::string_view lift) {
  return lift.empty() || (split_blank(lift).size() == 1 && node::with({}, lift).ok());
}

namespace {

/// The versions nearest to a need's limit, of which one may meet the other needs too.
std::vector<std::string> versions_near(std::string_view key, const VersionNeed& need) {
  std::vector<std::string> near = {need.version, need.version + ".1"};
  if (key == "driver") {
    for (const CudaDriver& row : kCudaDrivers) near.emplace_back(row.driver);
  } else if (need.op == VersionNeed::Op::less) {
    // "5.10" → "5.9", "6.0" → "5.99"
    size_t dot = need.version.find('.');
    uint64_t major = parse_u64(need.version.substr(0, dot)).value_or(0);
    uint64_t minor =
        dot == std::string::npos
            ? 0
            : parse_u64(need.version.substr(dot + 1, need.version.find('.', dot + 1) - dot - 1))
                  .value_or(0);
    if (minor > 0) near.push_back(fmt::format("{}.{}", major, minor - 1));
    if (major > 0) near.push_back(fmt::format("{}.99", major - 1));
  }
  return near;
}

}  // namespace

std::string lift_of(std::string_view key, const std::vector<VersionNeed>& needs) {
  for (const VersionNeed& need : needs) {
    for (const std::string& version : versions_near(key, need)) {
      bool all =
          std::ranges::all_of(needs, [&](const VersionNeed& one) { return holds(one, version); });
      if (all) return fmt::format("{}={}", key, version);
    }
  }
  return {};
}

std::string success_text(const RunRecord& record) {
  return fmt::format("ran on a node like this (record of {}, exit 0)", day_of(record));
}

Verdict Court::judge() {
  constexpr size_t kUsualClauses = 6;
  verdict_.clauses.reserve(kUsualClauses);
  look_at_platform();
  look_at_cpu();
  look_at_kernel();
  look_at_gpus();
  look_at_mpi();
  look_at_puzzles();
  add_contradictions();
  look_at_runs();
  verdict_.rank.priority = -declared_.priority;
  for (const Clause& clause : verdict_.clauses) {
    verdict_.outcome = std::max(verdict_.outcome, clause.outcome);
  }
  return std::move(verdict_);
}

// ---- platform -----------------------------------------------------------------------------------

void Court::look_at_platform() {
  std::string declared = platform_ != nullptr ? platform_->architecture : "";
  std::string found = found_ != nullptr && !job_.other_command ? found_->architecture : "";
  if (platform_ != nullptr && platform_->os != node_.os) {
    return add({"platform", Tier::declared}, Outcome::fail, [&] {
      return Said{fmt::format("is for {}; this node is {}",
                              escape_controls(oci::platform_text(*platform_)), node_.os),
                  "", ""};  // no node has another one
    });
  }
  if (!declared.empty() && declared != node_.architecture) {
    return add({"platform", Tier::declared}, Outcome::fail, [&] {
      return Said{fmt::format("is for {}; this node is {}",
                              escape_controls(oci::platform_text(*platform_)), node_.architecture),
                  "", "arch=" + declared};
    });
  }
  if (!found.empty() && found != node_.architecture) {
    bool lie = !declared.empty();
    return add({"platform", Tier::found}, Outcome::fail, [&] {
      return Said{
          fmt::format("its program {} is for {}{}; this node is {}",
                      escape_controls(found_->program), escape_controls(found),
                      lie ? ", although it is declared for " + declared : "", node_.architecture),
          "", lie ? "" : "arch=" + found};
    });
  }
  if (declared.empty() && found.empty()) {
    return add_unknown("platform", Alike{}, [&] { return Said{"declares no platform"}; });
  }
  add({"platform", declared.empty() ? Tier::found : Tier::declared}, Outcome::pass,
      [&] { return Said{"is for " + node_.architecture}; });
}

// ---- processor ----------------------------------------------------------------------------------

/// "avx512f, avx512bw and 5 more of ": the features that this node lacks.
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
  verdict_.rank.cpu = UINT32_MAX;
  if (look_at_declared_cpu() && look_at_cpu_features()) look_at_found_cpu();
  if (verdict_.rank.cpu != UINT32_MAX) return;
  std::string_view baseline = node::family_of_architecture(node_.architecture);
  verdict_.rank.cpu = UINT32_MAX - node::closeness(node_.cpu, baseline).value_or(0);
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
    auto near = node::nearest_microarchitecture(name);
    add_unknown({"cpu", Tier::declared}, Alike{}, [&] {
      return Said{fmt::format("declares {}, a processor that archspec does not know{}", quote(name),
                              near ? fmt::format(" (is it {}?)", *near) : "")};
    });
    return true;
  }
  if (level && node_.cpu.level == 0 && node_.architecture == "amd64") {
    add_unknown({"cpu", Tier::declared}, Alike{}, [&] {
      return Said{fmt::format("needs {} ({}); the level of this node is not known", name, how)};
    });
    return true;
  }
  bool runs = level ? node_.cpu.level >= *level : node::runs(node_.cpu, target);
  if (!runs) {
    add({"cpu", Tier::declared}, Outcome::fail, [&] {
      return Said{fmt::format("needs {}{} ({}); this node is {}", lacks(target), name, how,
                              cpu_name(node_)),
                  "take an entry for this processor, or a node that has it", "cpu=" + name};
    });
    return false;
  }
  if (auto close = node::closeness(node_.cpu, target)) verdict_.rank.cpu = UINT32_MAX - *close;
  add({"cpu", Tier::declared}, Outcome::pass, [&] {
    return Said{fmt::format("is for {} ({}); this node is {}", name, how, cpu_name(node_))};
  });
  return true;
}

/// The argument of node::with() for a processor that has all declared features, and is of the
/// declared kind too if such a processor exists; empty if none has the features.
std::string Court::lift_of_features() const {
  auto above = node::known_microarchitecture(declared_.cpu);
  std::string_view family = node::family_of_architecture(node_.architecture);
  auto name = node::least_known_with(declared_.cpu_features, above.value_or(family));
  if (!name) name = node::least_known_with(declared_.cpu_features, family);
  return name ? fmt::format("cpu={}", *name) : "";
}

bool Court::look_at_cpu_features() {
  if (declared_.cpu_features.empty()) return true;
  std::vector<std::string> missing, unknown;
  for (const std::string& feature : declared_.cpu_features) {
    node::Presence presence = node::presence(node_.cpu, feature);
    if (presence == node::Presence::missing) missing.push_back(feature);
    if (presence == node::Presence::unknown) unknown.push_back(feature);
  }
  if (!missing.empty()) {
    add("cpu", Outcome::fail, [&] {
      return Said{fmt::format("needs {} (declared), which this node does not have; it is {}",
                              join(missing, ", "), cpu_name(node_)),
                  "take an entry for this processor, or a node that has it", lift_of_features()};
    });
    return false;
  }
  if (!unknown.empty()) {
    ++verdict_.rank.unknown;
    add("cpu", Outcome::unknown, [&] {
      return Said{
          fmt::format("needs {} (declared); of this node that is not known", join(unknown, ", "))};
    });
    return true;
  }
  // An entry that declares features is as close as the least ancestor of this processor that has
  // them.
  auto least = node::least_with(node_.cpu, declared_.cpu_features);
  auto close = least ? node::closeness(node_.cpu, *least) : std::nullopt;
  if (close) verdict_.rank.cpu = std::min(verdict_.rank.cpu, UINT32_MAX - *close);
  add("cpu", Outcome::pass, [&] {
    return Said{
        fmt::format("uses {} (declared), which this node has", join(declared_.cpu_features, ", "))};
  });
  return true;
}

// An unmet need of the main program is a failure; that of another file only affects that file.
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
    bool main = is_main(need.main);
    add({"cpu", Tier::found}, main ? Outcome::fail : Outcome::runs_but, [&] {
      return Said{
          fmt::format("{} {} {} (found: {}){}; this node is {}",
                      files_text(need.files, need.example), need.files > 1 ? "need" : "needs",
                      level_name(need.isa.level), need.isa.source, lie, cpu_name(node_)),
          main ? "take an entry for this processor, or a node that has it" : "",
          "cpu=" + level_name(need.isa.level)};
    });
  }
}

// ---- kernel -------------------------------------------------------------------------------------

void Court::look_at_kernel() {
  for (const VersionNeed& need : declared_.kernel) {
    if (node_.kernel.release.empty()) {
      add_unknown({"kernel", Tier::declared}, Alike{.kernel = true}, [&] {
        return Said{fmt::format("needs Linux {}; that of this node is not known", need_text(need))};
      });
    } else if (!holds(need, plain_release(node_.kernel.release))) {
      add({"kernel", Tier::declared}, Outcome::fail, [&] {
        return Said{
            fmt::format("needs Linux {}; this node has {}", need_text(need), node_.kernel.release),
            "", lift_of("kernel", declared_.kernel)};
      });
    }
  }
}

// ---- MPI and fabric -----------------------------------------------------------------------------

// The host's library may replace the image's one. Whether it can is decided when the container
// starts.
void Court::look_at_mpi() {
  std::string family = declared_.mpi;
  if (family.empty() && found_ != nullptr && !found_->mpi.empty()) {
    family = found_->mpi.front().family;
  }
  if (!family.empty() && !node_.mpi.empty()) {
    bool same =
        std::ranges::any_of(node_.mpi, [&](const node::Mpi& mpi) { return mpi.family == family; });
    if (!same) ++verdict_.rank.libraries;
  }
  for (const std::string& fabric : declared_.fabric) {
    bool here = std::ranges::find(node_.fabric, fabric) != node_.fabric.end();
    if (!here) ++verdict_.rank.libraries;
  }
}

// ---- unknown axes, and results of runs ---------------------------------------------------------

namespace {

/// The properties in which nodes have to be alike for an axis with an invalid value. An unknown
/// axis may be about anything, even a property that records do not contain. For such an axis two
/// nodes cannot be shown to be alike.
std::optional<Alike> alike_for_axis(std::string_view axis) {
  if (axis == "cpu") return Alike{};
  if (axis == "kernel") return Alike{.kernel = true};
  for (std::string_view one : {"gpu", "cuda", "driver", "user-driver", "glibc"}) {
    if (axis == one) return Alike{.gpus = true};
  }
  return std::nullopt;
}

std::string failure_text(const RunRecord& record) {
  return fmt::format("failed on a node like this on {} with exit {}", day_of(record), record.exit);
}

}  // namespace

void Court::look_at_puzzles() {
  for (const std::string& puzzle : declared_.puzzles) {
    add_unknown({"facts", Tier::declared},
                alike_for_axis(std::string_view(puzzle).substr(0, puzzle.find(' '))), [&] {
                  return Said{fmt::format("declares {}, which this version does not understand",
                                          escape_controls(puzzle))};
                });
  }
}

const RunRecord* Court::newest_success(Alike alike) const {
  const RunRecord* newest = nullptr;
  for (const RunRecord& run : candidate_.runs) {
    if (run.exit != 0 || !run.own_command || job_.other_command) continue;
    if (newest != nullptr && run.time <= newest->time) continue;
    if (reaches(node_, run, job_.user_land, alike)) newest = &run;
  }
  return newest;
}

const RunRecord* Court::newest_failure(Alike alike) const {
  const RunRecord* newest = nullptr;
  for (const RunRecord& run : candidate_.runs) {
    if (run.exit == 0 || !run.own_command || job_.other_command) continue;
    // At equal times the record with the greater exit status counts, so that the order of the
    // records does not matter.
    bool newer = newest == nullptr || run.time > newest->time ||
                 (run.time == newest->time && run.exit > newest->exit);
    if (newer && is_within(node_, run, job_.user_land, alike)) newest = &run;
  }
  return newest;
}

// Mentions successful runs in clauses that fail. Found facts have precedence over such a run: with
// other input, the program may reach code that this node cannot run.
void Court::add_contradictions() {
  for (Clause& clause : verdict_.clauses) {
    if (clause.outcome != Outcome::fail) continue;
    bool of_gpus = clause.about == "driver" || clause.about == "gpu" || clause.about == "glibc";
    const RunRecord* run = witness({.gpus = of_gpus, .kernel = clause.about == "kernel"});
    if (run == nullptr || words_ == Words::none) continue;
    clause.reason += ", although it " + success_text(*run);
  }
}

void Court::look_at_runs() {
  const RunRecord* success = newest_success({.gpus = wants_gpus()});
  const RunRecord* failure = newest_failure({.gpus = wants_gpus(), .kernel = true});
  if (success != nullptr && failure != nullptr && success->time > failure->time) failure = nullptr;
  if (!candidate_.runs_believed) {
    const char* but = ", but no key that the policy names has signed that: it does not count";
    if (success != nullptr) {
      add("runs", Outcome::pass, [&] { return Said{success_text(*success) + but}; });
    }
    if (failure != nullptr) {
      add("runs", Outcome::pass, [&] { return Said{failure_text(*failure) + but}; });
    }
    return;
  }
  if (success != nullptr) {
    add({"runs", Tier::verified}, Outcome::pass, [&] { return Said{success_text(*success)}; });
  }
  if (failure == nullptr) return;
  verdict_.rank.failed = 1;
  add({"runs", Tier::verified}, Outcome::runs_but, [&] {
    return Said{failure_text(*failure),
                "a later run that ends with 0 counts instead: berth scan --attach --verified"};
  });
}

std::string cpu_name(const node::Profile& node) {
  std::string level = node.cpu.level != 0 ? level_name(node.cpu.level) : "";
  const std::string& name = node.cpu.microarchitecture;
  if (name.empty()) return level.empty() ? node.architecture : level;
  if (level.empty()) return name;
  return name.starts_with("x86_64") ? level : fmt::format("{} ({})", name, level);
}

Verdict judge(const Candidate& candidate, const node::Profile& node, const Job& job, Words words) {
  return Court(candidate, node, job, words).judge();
}

}  // namespace berth::match
