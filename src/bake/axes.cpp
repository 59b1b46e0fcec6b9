// SPDX-License-Identifier: Apache-2.0
#include "bake/axes.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>

#include "base/text.hpp"
#include "match/declared.hpp"
#include "node/archspec.hpp"
#include "oci/image_spec.hpp"
#include "scan/driver_files.hpp"

namespace berth::bake {
namespace {

constexpr std::string_view kNone = "none", kPlatform = "platform", kCapability = "cc";

struct Axis {
  std::string_view name;
  std::string_view word;    ///< name of its annotation after match::kPrefix; empty: it has none
  std::string_view prefix;  ///< of the axis's part in the name of a cell
  std::string_view like;    ///< examples of values, for errors
};
constexpr Axis kAxes[] = {
    {"cuda", "cuda", "cu", "12.8, 13"},
    {"driver", "driver", "driver", ">=535, 570"},
    {"user-driver", "user-driver", "ul", "570.133.20"},
    {"cpu", "cpu", "", "x86-64-v3, zen4"},
    {"cpu-features", "cpu-features", "", "avx512_vnni"},
    {"cc", "gpu", "sm", "90, 9.0, 90a"},
    {"gpu", "gpu", "", "sm_90, compute_90, gfx942"},
    {"mpi", "mpi", "", "openmpi, mpich"},
    {"fabric", "fabric", "", "infiniband, efa"},
    {"glibc", "glibc", "glibc", "2.36"},
    {"kernel", "kernel", "linux", ">=5.14, 6.1"},
    {"platform", "", "", "linux/amd64, linux/arm64"},
};

const Axis* axis_named(std::string_view name) {
  auto found = std::ranges::find(kAxes, name, &Axis::name);
  return found == std::end(kAxes) ? nullptr : found;
}

std::string without(std::string text, char unwanted) {
  std::erase(text, unwanted);
  return text;
}

/// "9.0" → "sm_90"; "90a" and "sm_90a" → "sm_90a".
std::string code_of_capability(std::string_view value) {
  if (value == kNone || value.starts_with("sm_")) return std::string(value);
  return "sm_" + without(std::string(value), '.');
}

/// Whether the value becomes an annotation: all but "none", and also "none" of `gpu` and `cc`.
bool demands(std::string_view axis, const std::string& value) {
  const Axis* known = axis_named(axis);
  if (known == nullptr || known->word.empty()) return false;
  return value != kNone || known->word == "gpu";
}

uint32_t level_of_cpu(const std::string& value) {
  auto known = node::known_microarchitecture(value);
  if (!known) return 0;
  bool is_level = known->starts_with("x86_64");
  return is_level ? node::level_of(*known) : 8;
}

Error unknown_axis(std::string_view axis) {
  auto near = nearest(axis, axis_names());
  return make_error(Kind::usage,
                    near ? fmt::format("unknown axis {}; did you mean '{}'?", quote(axis), *near)
                         : fmt::format("unknown axis {}; expected one of: {}", quote(axis),
                                       fmt::join(axis_names(), ", ")));
}

/// Letters and digits that are valid in a tag; anything else becomes one '-'.
std::string name_part(std::string_view prefix, const std::string& value) {
  std::string part(prefix);
  for (char c : value) {
    bool usual = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '_';
    if (usual) {
      part += c;
    } else if (!part.empty() && part.back() != '-') {
      part += '-';
    }
  }
  while (part.ends_with('-')) part.pop_back();
  return part;
}

bool names_as_much(const std::string& strict, const std::string& loose) {
  if (loose.empty() || strict == loose) return true;
  auto wanted = node::known_microarchitecture(loose), said = node::known_microarchitecture(strict);
  if (!wanted || !said) return false;
  auto above = node::ancestors_of(*said);
  return *said == *wanted || std::ranges::find(above, *wanted) != above.end();
}

bool has_all(const std::vector<std::string>& strict, const std::vector<std::string>& loose) {
  return std::includes(strict.begin(), strict.end(), loose.begin(), loose.end());  // sorted
}

/// Whether `loose` admits every version that `strict` admits.
bool is_within(const match::VersionNeed& strict, const match::VersionNeed& loose) {
  using Op = match::VersionNeed::Op;
  int order = scan::compare_versions(strict.version, loose.version);
  bool same = strict.op == Op::equal;  // "=570" is a branch
  switch (loose.op) {
    case Op::equal:
      return same &&
             (strict.version == loose.version || strict.version.starts_with(loose.version + "."));
    case Op::at_least:
      return order >= 0 && (same || strict.op == Op::at_least || strict.op == Op::greater);
    case Op::greater:
      return (order > 0 && (same || strict.op == Op::at_least)) ||
             (order >= 0 && strict.op == Op::greater);
    case Op::at_most:
      return (order <= 0 && (strict.op == Op::at_most || strict.op == Op::less)) ||
             (order < 0 && same && !loose.version.starts_with(strict.version + "."));
    case Op::less:
      return (order <= 0 && strict.op == Op::less) || (order < 0 && strict.op == Op::at_most) ||
             (order < 0 && same && !loose.version.starts_with(strict.version + "."));
  }
  return false;
}

bool within_all(const std::vector<match::VersionNeed>& strict,
                const std::vector<match::VersionNeed>& loose) {
  return std::ranges::all_of(loose, [&](const match::VersionNeed& one) {
    return std::ranges::any_of(strict,
                               [&](const match::VersionNeed& own) { return is_within(own, one); });
  });
}

/// Whether all GPUs that run code for `strict` ("sm_86") also run code for `loose` ("sm_80").
bool runs_no_wider(const std::vector<facts::GpuCode>& strict,
                   const std::vector<facts::GpuCode>& loose) {
  if (loose.empty()) return true;
  auto covers = [](const facts::GpuCode& wide, const facts::GpuCode& narrow) {
    if (wide == narrow) return true;
    using Kind = facts::GpuCode::Kind;
    auto digits = [](const facts::GpuCode& code) {
      return code.arch.substr(0, code.arch.find_first_not_of("0123456789"));
    };
    std::string w = digits(wide), n = digits(narrow);
    bool comparable = wide.kind == Kind::sass && narrow.kind == Kind::sass && w == wide.arch;
    return comparable && w.size() == n.size() && w.size() > 1 &&
           w.substr(0, w.size() - 1) == n.substr(0, n.size() - 1) && n.back() >= w.back();
  };
  return !strict.empty() && std::ranges::all_of(strict, [&](const auto& own) {
    return std::ranges::any_of(loose, [&](const auto& one) { return covers(one, own); });
  });
}

std::string part_of(const Axis& axis, const std::string& value) {
  if (value == kNone) return axis.word == "gpu" ? "nogpu" : "";
  if (axis.name == "cpu" && value.starts_with("x86-64-v")) return value.substr(7);
  if (axis.name == "cuda") return name_part(axis.prefix, without(value, '.'));
  if (axis.name == kCapability) return name_part("", without(code_of_capability(value), '_'));
  return name_part(axis.prefix, value);
}

}  // namespace

std::vector<std::string_view> axis_names() {
  std::vector<std::string_view> names;
  for (const Axis& axis : kAxes) names.push_back(axis.name);
  return names;
}

Result<void> check_axis(std::string_view axis, std::string_view value) {
  const Axis* known = axis_named(axis);
  if (known == nullptr) return unknown_axis(axis);
  if (axis == kPlatform) {
    TRY(oci::parse_platform(value));
    return {};
  }
  if (!demands(axis, std::string(value))) return {};
  oci::Descriptor entry;
  entry.annotations = annotations_of({{std::string(axis), std::string(value)}});
  match::Declared declared = match::read_declared(entry);
  if (!declared.puzzles.empty()) {
    return make_error(Kind::usage,
                      fmt::format("{}: not a value of axis '{}'; expected a value such as {}",
                                  quote(value), axis, known->like),
                      "docs/variants.md");
  }
  if (axis == "cpu" && !node::known_microarchitecture(declared.cpu)) {
    auto near = node::nearest_microarchitecture(declared.cpu);
    return make_error(Kind::usage,
                      fmt::format("{}: not a processor that archspec knows{}", quote(value),
                                  near ? fmt::format("; did you mean '{}'?", *near) : ""));
  }
  return {};
}

std::map<std::string, std::string> annotations_of(const AxisValues& axes) {
  std::map<std::string, std::string> annotations;
  for (const auto& [name, value] : axes) {
    const Axis* axis = axis_named(name);
    if (axis == nullptr || !demands(name, value)) continue;
    std::string& said = annotations[std::string(match::kPrefix) + std::string(axis->word)];
    std::string word = name == kCapability ? code_of_capability(value) : value;
    said += (said.empty() ? "" : " ") + word;
  }
  return annotations;
}

bool asks_as_much(std::string_view axis, const std::string& strict, const std::string& loose) {
  if (strict == loose) return true;
  auto read = [&](const std::string& value) {
    oci::Descriptor entry;
    entry.annotations = annotations_of({{std::string(axis), value}});
    return match::read_declared(entry);
  };
  match::Declared more = read(strict), less = read(loose);
  return names_as_much(more.cpu, less.cpu) && has_all(more.cpu_features, less.cpu_features) &&
         within_all(more.kernel, less.kernel) && within_all(more.driver, less.driver) &&
         runs_no_wider(more.gpu, less.gpu);
}

std::string usual_name(const AxisValues& axes) {
  std::vector<std::string> parts;
  for (const Axis& axis : kAxes) {
    auto value = axes.find(std::string(axis.name));
    if (value == axes.end()) continue;
    std::string part = part_of(axis, value->second);
    if (!part.empty()) parts.push_back(std::move(part));
  }
  return parts.empty() ? "generic" : join(parts, "-");
}

bool Demand::operator<(const Demand& other) const {
  if (demands != other.demands) return demands < other.demands;
  if (cpu != other.cpu) return cpu < other.cpu;
  return scan::compare_versions(cuda, other.cuda) < 0;
}

Demand demand_of(const AxisValues& axes) {
  Demand demand;
  for (const auto& [name, value] : axes) {
    if (!demands(name, value)) continue;
    if (name == "cpu") {
      demand.cpu = level_of_cpu(value);
      if (demand.cpu > 1) ++demand.demands;
      continue;
    }
    if (name == "cuda") demand.cuda = value;
    if (value != kNone) ++demand.demands;
  }
  return demand;
}

Result<std::string> fill_in(std::string_view text,
                            const std::map<std::string, std::string>& words) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    bool doubled = i + 1 < text.size() && text[i + 1] == c;
    if (c != '{' && c != '}') {
      out += c;
      continue;
    }
    if (doubled) {
      out += c;
      ++i;
      continue;
    }
    size_t end = c == '{' ? text.find('}', i) : std::string_view::npos;
    if (end == std::string_view::npos) {
      return make_error(Kind::usage, fmt::format("{}: a single '{}'; write two of them for one",
                                                 quote(text.substr(0, 200)), c));
    }
    std::string name(text.substr(i + 1, end - i - 1));
    auto word = words.find(name);
    if (word == words.end()) {
      std::vector<std::string_view> known;
      for (const auto& one : words) known.push_back(one.first);
      auto near = nearest(name, known);
      return make_error(
          Kind::usage,
          fmt::format("{}: unknown variable '{{{}}}'{}", quote(text.substr(0, 200)),
                      escape_controls(name),
                      near ? fmt::format("; did you mean '{{{}}}'?", *near)
                           : fmt::format("; expected one of: {}", fmt::join(known, ", "))));
    }
    out += word->second;
    i = end;
  }
  return out;
}

}  // namespace berth::bake
