// SPDX-License-Identifier: Apache-2.0
#include "match/judge.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.hpp"
#include "match/court.hpp"
#include "node/archspec.hpp"
#include "scan/driver_files.hpp"

namespace berth::match {
namespace {

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

/// The dotted numbers that a release begins with: "6.18.5-1-amd64" → "6.18.5".
std::string_view plain_release(std::string_view release) {
  return release.substr(0, release.find_first_not_of("0123456789."));
}

}  // namespace

bool is_older(std::string_view version, std::string_view than) {
  return scan::compare_versions(version, than) < 0;
}

/// "3 files (/opt/lib/libfoo.so and others)", "/usr/bin/tool".
std::string files_text(uint64_t files, const std::string& example) {
  std::string name = escape_controls(example);
  return files > 1 ? fmt::format("{} and {} more files", name, files - 1) : name;
}

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

Verdict Court::judge() {
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

// ---- platform -----------------------------------------------------------------------------------

void Court::look_at_platform() {
  std::string declared = platform_ != nullptr ? platform_->architecture : "";
  std::string found = found_ != nullptr && !job_.other_command ? found_->architecture : "";
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

// ---- processor ----------------------------------------------------------------------------------

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
    bool main = is_main(need.main);
    add("cpu", main ? Outcome::fail : Outcome::runs_but, reason,
        main ? "take an entry for this processor, or a node that has it" : "",
        "cpu=" + level_name(need.isa.level));
  }
}

// ---- kernel -------------------------------------------------------------------------------------

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

// ---- MPI and fabric -----------------------------------------------------------------------------

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
