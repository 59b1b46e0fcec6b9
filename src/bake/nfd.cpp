// SPDX-License-Identifier: Apache-2.0
#include "bake/nfd.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <functional>
#include <set>

#include "bake/nfd_document.hpp"
#include "base/text.hpp"
#include "node/archspec.hpp"

namespace berth::bake {
namespace {

using nfd::Asked;
using nfd::Op;

constexpr int64_t kMost = INT64_MAX;
constexpr int64_t kMaxMajors = 16;  // of compute capability; more than exist

/// A range of integers for one part of a version.
struct Span {
  int64_t low = 0, high = kMost;
  std::string place;  ///< where the range was last restricted
  bool narrowed() const { return low > 0 || high < kMost; }
  bool single() const { return low == high; }
  void narrow(int64_t from, int64_t to) {
    low = std::max(low, from);
    high = std::min(high, to);
  }
};

/// The range of numbers that an expression admits; nothing if these are not a range.
std::optional<Span> span_of(const Asked& asked) {
  const auto& numbers = asked.numbers;
  switch (asked.op) {
    case Op::any:
    case Op::exists:
      return Span{};
    case Op::gt:
      return Span{numbers[0] + 1, kMost, {}};
    case Op::ge:
      return Span{numbers[0], kMost, {}};
    case Op::lt:
      return Span{0, numbers[0] - 1, {}};
    case Op::le:
      return Span{0, numbers[0], {}};
    case Op::gt_lt:
      return Span{numbers[0] + 1, numbers[1] - 1, {}};
    case Op::ge_le:
      return Span{numbers[0], numbers[1], {}};
    case Op::in: {
      std::set<int64_t> all;
      for (const std::string& text : asked.values) {
        auto number = parse_i64(text);
        if (!number || *number < 0 || *number > 999'999'999) return std::nullopt;
        all.insert(*number);
      }
      int64_t width = *all.rbegin() - *all.begin() + 1;
      if (width != static_cast<int64_t>(all.size())) return std::nullopt;
      return Span{*all.begin(), *all.rbegin(), {}};
    }
    default:
      return std::nullopt;
  }
}

/// The demand on a version, for each part and for the version as a whole.
struct VersionDemand {
  std::array<Span, 3> parts;       ///< major, minor, revision
  std::vector<std::string> words;  ///< ">=5.10"
};

/// Nothing if the expression is not a range of versions.
std::optional<std::vector<std::string>> words_of_versions(const Asked& asked) {
  auto word = [&](std::string_view sign, size_t i) { return std::string(sign) + asked.values[i]; };
  switch (asked.op) {
    case Op::any:
    case Op::exists:
      return std::vector<std::string>{};
    case Op::gt:
      return std::vector{word(">", 0)};
    case Op::ge:
      return std::vector{word(">=", 0)};
    case Op::lt:
      return std::vector{word("<", 0)};
    case Op::le:
      return std::vector{word("<=", 0)};
    case Op::gt_lt:
      return std::vector{word(">", 0), word("<", 1)};
    case Op::ge_le:
      return std::vector{word(">=", 0), word("<=", 1)};
    default:
      return std::nullopt;
  }
}

constexpr std::string_view kLabels = "nvidia.com/";
constexpr std::string_view kVersionParts[] = {"major", "minor", "revision"};

/// The labels of NVIDIA's discovery that have an axis here.
enum class Label { none, driver_part, driver_full, compute_major, compute_minor };
struct KnownLabel {
  std::string_view name;
  Label label;
  size_t part;
};
constexpr KnownLabel kKnownLabels[] = {
    {"cuda.driver.major", Label::driver_part, 0},
    {"cuda.driver.minor", Label::driver_part, 1},
    {"cuda.driver.rev", Label::driver_part, 2},
    {"cuda.driver-version.major", Label::driver_part, 0},
    {"cuda.driver-version.minor", Label::driver_part, 1},
    {"cuda.driver-version.revision", Label::driver_part, 2},
    {"cuda.driver-version.full", Label::driver_full, 0},
    {"gpu.compute.major", Label::compute_major, 0},
    {"gpu.compute.minor", Label::compute_minor, 0},
};

KnownLabel label_named(std::string_view name) {
  if (!name.starts_with(kLabels)) return {name, Label::none, 0};
  name.remove_prefix(kLabels.size());
  for (const KnownLabel& known : kKnownLabels) {
    if (known.name == name) return known;
  }
  return {name, Label::none, 0};
}

/// Converts one set of rules.
class Converter {
 public:
  explicit Converter(std::string_view document) : document_(document) {}

  Result<NfdRules> convert(const nfd::Compatibility& set, size_t index) {
    std::string place = fmt::format("compatibilities[{}]", index);
    for (size_t i = 0; i < set.rules.size(); ++i) {
      TRY(take_rule(fmt::format("{}.rules[{}]", place, i), set.rules[i]));
    }
    say_features();
    TRY(say_version("kernel", kernel_));
    TRY(say_version("driver", driver_));
    TRY(say_gpu());
    TRY(check_words(place));
    rules_.index = index;
    rules_.tag = set.tag;
    rules_.description = set.description;
    rules_.weight = set.weight;
    return std::move(rules_);
  }

 private:
  Error fault(const std::string& place, Error error) const {
    error.what = fmt::format("{}: {}: {}", document_, place, error.what);
    return error;
  }
  Error fault(const std::string& place, std::string what) const {
    return fault(place, make_error(Kind::usage, std::move(what)));
  }
  void leave(const std::string& place, std::string text) {
    rules_.left.push_back({place, std::move(text)});
  }
  void leave(const std::string& place, std::string_view name, const Asked& asked) {
    std::string text = asked.text.empty() ? "any" : asked.text;
    leave(place, fmt::format("{} {} has no word here", escape_controls(name), text));
  }

  // ---- the tree of rules

  Result<void> take_rule(const std::string& place, const nfd::Rule& rule) {
    TRY(take_terms(place, rule.terms));
    if (rule.any.size() == 1) return take_terms(place + ".matchAny[0]", rule.any[0].terms);
    if (rule.any.empty()) return {};
    // `any` is a choice: the demands of a single alternative do not count, but faults in it do.
    for (size_t i = 0; i < rule.any.size(); ++i) {
      Converter other(document_);
      TRY(other.take_terms(fmt::format("{}.matchAny[{}]", place, i), rule.any[i].terms));
    }
    leave(place + ".matchAny", fmt::format("a choice of {} has no word here", rule.any.size()));
    return {};
  }

  Result<void> take_terms(const std::string& rule, const std::vector<nfd::Term>& terms) {
    for (size_t i = 0; i < terms.size(); ++i) {
      std::string place = fmt::format("{}.matchFeatures[{}]", rule, i);
      auto known = nfd::check_feature(terms[i].feature);
      if (!known.ok()) return fault(place, std::move(known).error());
      TRY(take_term(place, terms[i]));
    }
    return {};
  }

  Result<void> take_term(const std::string& place, const nfd::Term& term) {
    for (const auto& [name, expression] : term.expressions) {
      std::string at = fmt::format("{}.matchExpressions[{}]", place, quote(name));
      auto asked = nfd::check(expression);
      if (!asked.ok()) return fault(at, std::move(asked).error());
      take_expression(at, term.feature, name, *asked);
    }
    if (term.name) {
      std::string at = place + ".matchName";
      auto asked = nfd::check(*term.name);
      if (!asked.ok()) return fault(at, std::move(asked).error());
      bool one = asked->op == Op::in && asked->values.size() == 1;
      if (term.feature == "cpu.cpuid" && one) {
        take_flag(at, asked->values[0], *asked);
      } else {
        leave(at, term.feature, *asked);
      }
    }
    if (term.expressions.empty() && !term.name) {
      leave(place, fmt::format("{}, whatever it is, has no word here", term.feature));
    }
    return {};
  }

  void take_expression(const std::string& place, const std::string& feature,
                       const std::string& name, const Asked& asked) {
    if (feature == "cpu.cpuid") return take_flag(place, name, asked);
    if (feature == "kernel.version") return take_kernel(place, name, asked);
    bool label = feature == "local.label" || feature == "local.feature";
    if (label && take_label(place, name, asked)) return;
    leave(place, feature + ": " + name, asked);
  }

  // ---- the processor

  // A flag is present or absent. IsTrue, and In with "true", are meant for labels, and count as
  // Exists here.
  void take_flag(const std::string& place, const std::string& name, const Asked& asked) {
    if (asked.op == Op::any) return;
    bool there = asked.op == Op::exists || asked.op == Op::is_true ||
                 (asked.op == Op::in && asked.values.size() == 1 &&
                  (asked.values[0] == "true" || asked.values[0] == name));
    if (!there) return leave(place, "cpu.cpuid: " + name, asked);
    if (uint32_t level = nfd::level_of_flag(name)) {
      level_ = std::max(level_, level);
    } else if (auto feature = nfd::feature_of_flag(name)) {
      features_.emplace(*feature);
    } else {
      auto near = nearest(name, nfd::flag_names());
      leave(place, fmt::format("cpu.cpuid: {} has no word here{}", escape_controls(name),
                               near ? fmt::format("; did you mean '{}'?", *near) : ""));
    }
  }

  static std::string microarchitecture_of(uint32_t level) {
    return level == 1 ? "x86_64" : fmt::format("x86_64_v{}", level);
  }

  /// The features that all processors of a level have, including those of x86-64 itself.
  static std::set<std::string, std::less<>> features_of_level(uint32_t level) {
    std::set<std::string, std::less<>> all{"fpu", "cmov", "cx8",  "fxsr",   "mmx",
                                           "nx",  "sse",  "sse2", "syscall"};
    if (level > 1) all.insert("sse3");
    for (std::string_view one : node::features_of(microarchitecture_of(level))) all.emplace(one);
    return all;
  }

  bool has_level(uint32_t level) const {
    static const auto kBase = features_of_level(1);
    auto needed = node::features_of(microarchitecture_of(level));
    return std::ranges::all_of(needed, [&](std::string_view one) {
      return kBase.contains(one) || features_.contains(one);
    });
  }

  void say_features() {
    uint32_t level = level_;
    for (uint32_t more = 4; more > std::max<uint32_t>(level, 1); --more) {
      if (has_level(more)) level = more;
    }
    if (level > 0) {
      rules_.words["cpu"] = level == 1 ? "x86-64" : fmt::format("x86-64-v{}", level);
      for (const std::string& one : features_of_level(level)) features_.erase(one);
    }
    if (features_.empty()) return;
    rules_.words["cpu-features"] = join({features_.begin(), features_.end()}, " ");
  }

  // ---- versions

  void take_part(const std::string& place, std::string_view name, const Asked& asked,
                 VersionDemand& demand, size_t part) {
    auto span = asked.version ? std::nullopt : span_of(asked);
    if (!span) return leave(place, name, asked);
    if (!span->narrowed()) return;
    demand.parts[part].narrow(span->low, span->high);
    demand.parts[part].place = place;
  }

  void take_whole(const std::string& place, std::string_view name, const Asked& asked,
                  VersionDemand& demand) {
    if (asked.op == Op::in && asked.values.size() == 1) {
      std::string_view whole = asked.values[0];
      std::string_view plain = whole.substr(0, whole.find_first_not_of("0123456789."));
      while (plain.ends_with('.')) plain.remove_suffix(1);
      if (plain.empty()) return leave(place, name, asked);
      demand.words.push_back(fmt::format("={}", plain));
      if (plain != whole) {
        leave(place, fmt::format("of {} {} only {} is compared", name, asked.text, plain));
      }
      return;
    }
    auto words = words_of_versions(asked);
    if (!words) return leave(place, name, asked);
    demand.words.insert(demand.words.end(), words->begin(), words->end());
  }

  void take_kernel(const std::string& place, const std::string& name, const Asked& asked) {
    if (name == "full") return take_whole(place, "kernel.version: full", asked, kernel_);
    for (size_t part = 0; part < std::size(kVersionParts); ++part) {
      if (kVersionParts[part] != name) continue;
      return take_part(place, "kernel.version: " + name, asked, kernel_, part);
    }
    leave(place, "kernel.version: " + name, asked);
  }

  /// Turns the demands on the parts into comparisons (">=5.10"). A demand on a part after one
  /// that may vary is reported as left.
  Result<void> say_version(const std::string& axis, const VersionDemand& demand) {
    std::vector<std::string> words = demand.words;
    std::string prefix, next;  // "5.10", and the first version after all "5.10.x": "5.11"
    bool open = false;
    for (size_t i = 0; i < demand.parts.size(); ++i) {
      const Span& part = demand.parts[i];
      if (part.low > part.high) {
        return fault(part.place, fmt::format("no {} can have that {} too", axis, kVersionParts[i]));
      }
      if (open && part.narrowed()) {
        leave(part.place, fmt::format("{} of the {}'s version, where what stands before it may "
                                      "differ, has no word here",
                                      kVersionParts[i], axis));
      }
      if (open) continue;
      std::string before = prefix.empty() ? "" : prefix + ".";
      open = !part.single();
      if (!open) {
        next = fmt::format("{}{}", before, part.low + 1);
        prefix = fmt::format("{}{}", before, part.low);
      } else if (part.narrowed()) {
        if (part.low > 0 || !prefix.empty()) {
          words.push_back(fmt::format(">={}{}", before, part.low));
        }
        if (part.high < kMost) {
          words.push_back(fmt::format("<{}{}", before, part.high + 1));
        } else if (!next.empty()) {
          words.push_back("<" + next);
        }
        prefix.clear();
      }
    }
    if (!prefix.empty()) words.push_back("=" + prefix);
    std::vector<std::string> once;
    for (std::string& word : words) {
      if (std::ranges::find(once, word) == once.end()) once.push_back(std::move(word));
    }
    if (!once.empty()) rules_.words[axis] = join(once, " ");
    return {};
  }

  // ---- GPUs, by labels

  bool take_label(const std::string& place, const std::string& name, const Asked& asked) {
    KnownLabel known = label_named(name);
    switch (known.label) {
      case Label::none:
        return false;
      case Label::driver_part:
        take_part(place, name, asked, driver_, known.part);
        break;
      case Label::driver_full:
        take_whole(place, name, asked, driver_);
        break;
      case Label::compute_major:
        take_majors(place, name, asked);
        break;
      case Label::compute_minor: {
        VersionDemand demand;
        take_part(place, name, asked, demand, 0);
        minor_.narrow(demand.parts[0].low, demand.parts[0].high);
        if (demand.parts[0].narrowed()) minor_.place = place;
        break;
      }
    }
    return true;
  }

  // Only majors in a list or a closed range: the names of later GPUs are unknown.
  void take_majors(const std::string& place, const std::string& name, const Asked& asked) {
    std::set<int64_t> majors;
    if (asked.op == Op::in) {
      for (const std::string& text : asked.values) {
        auto number = parse_i64(text);
        if (!number || *number < 1 || *number > 99) return leave(place, name, asked);
        majors.insert(*number);
      }
    } else {
      auto span = asked.version ? std::nullopt : span_of(asked);
      bool closed =
          span && span->low >= 1 && span->high <= 99 && span->high - span->low < kMaxMajors;
      if (!closed) return leave(place, name, asked);
      for (int64_t major = span->low; major <= span->high; ++major) majors.insert(major);
    }
    if (majors_) std::erase_if(*majors_, [&](int64_t one) { return !majors.contains(one); });
    if (!majors_) majors_ = majors;
    majors_place_ = place;
  }

  Result<void> say_gpu() {
    if (majors_ && majors_->empty()) {
      return fault(majors_place_, "no GPU can have that compute capability too");
    }
    bool one = majors_ && majors_->size() == 1;
    if (minor_.narrowed() && !one) {
      leave(minor_.place,
            "the minor of a compute capability without a single major has no word here");
    }
    if (!majors_) return {};
    if (one && (minor_.low > minor_.high || minor_.low > 9)) {
      return fault(minor_.place, "no GPU can have that compute capability");
    }
    if (one && minor_.high < 9) {
      leave(minor_.place,
            fmt::format("that the minor of a compute capability is {} at most has no word here",
                        minor_.high));
    }
    std::vector<std::string> words;
    for (int64_t major : *majors_) {
      words.push_back(fmt::format("sm_{}{}", major, one ? minor_.low : 0));
    }
    rules_.words["gpu"] = join(words, " ");
    return {};
  }

  // Checks that the words are valid values of their axes.
  Result<void> check_words(const std::string& place) const {
    for (const auto& [axis, value] : rules_.words) {
      auto checked = check_axis(axis, value);
      if (!checked.ok()) return fault(place, std::move(checked).error());
    }
    return {};
  }

  std::string_view document_;
  NfdRules rules_;
  uint32_t level_ = 0;
  std::set<std::string, std::less<>> features_;
  VersionDemand kernel_, driver_;
  std::optional<std::set<int64_t>> majors_;
  std::string majors_place_;
  Span minor_;
};

Error no_tag(std::string_view document, std::string_view tag, const nfd::Spec& spec) {
  std::vector<std::string_view> tags;
  for (const nfd::Compatibility& set : spec.sets) {
    if (!set.tag.empty()) tags.push_back(set.tag);
  }
  auto near = nearest(tag, tags);
  std::string more = near ? fmt::format("; did you mean '{}'?", *near)
                          : fmt::format("; expected one of: {}",
                                        escape_controls(fmt::format("{}", fmt::join(tags, ", "))));
  if (tags.empty()) more = ": none of its sets has one";
  return make_error(Kind::usage, fmt::format("{}: no tag {}{}", document, quote(tag), more));
}

}  // namespace

Result<NfdRules> read_nfd(std::string_view text, std::string_view document,
                          const std::optional<std::string>& tag) {
  nfd::Spec spec = TRY(nfd::read_spec(text, document));
  std::optional<NfdRules> chosen;
  // All sets are parsed: a typo in an unused one is an error too.
  for (size_t i = 0; i < spec.sets.size(); ++i) {
    NfdRules rules = TRY(Converter(document).convert(spec.sets[i], i));
    if (tag && rules.tag != *tag) continue;
    if (!chosen || rules.weight > chosen->weight) chosen = std::move(rules);
  }
  if (!chosen) return no_tag(document, tag.value_or(""), spec);
  chosen->sets = spec.sets.size();
  return std::move(*chosen);
}

std::vector<std::string> remarks_of(const NfdRules& rules, std::string_view document) {
  std::vector<std::string> lines;
  if (rules.sets > 1) {
    std::string tag = rules.tag.empty() ? "" : fmt::format(", tag {}", quote(rules.tag));
    lines.push_back(
        fmt::format("{}: of {} sets compatibilities[{}] (weight {}{}) is taken, "
                    "ignoring the others",
                    document, rules.sets, rules.index, rules.weight, tag));
  }
  for (const NfdLeft& left : rules.left) {
    lines.push_back(fmt::format("{}: {}: {}, ignoring it", document, left.place, left.text));
  }
  return lines;
}

}  // namespace berth::bake
