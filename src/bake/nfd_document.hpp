// SPDX-License-Identifier: Apache-2.0
// The document of NFD's image compatibility, and NFD's names of CPUID flags; only for nfd.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "json/value.hpp"

namespace berth::bake::nfd {

/// The maximal size of a file of rules.
inline constexpr size_t kMostBytes = size_t{1} << 20;

enum class Op {
  any,
  in,
  not_in,
  in_regexp,
  exists,
  does_not_exist,
  gt,
  ge,
  lt,
  le,
  gt_lt,
  ge_le,
  is_true,
  is_false
};

/// An expression as parsed; check() validates it.
struct Expression {
  std::string op, type;
  json::Value value;
};
void fields(auto& v, Expression& e) {
  v.optional("op", e.op);
  v.optional("value", e.value);
  v.optional("type", e.type);
  v.strict();
}

struct Term {
  std::string feature;
  std::map<std::string, Expression> expressions;
  std::optional<Expression> name;
};
void fields(auto& v, Term& t) {
  v.required("feature", t.feature);
  v.optional("matchExpressions", t.expressions);
  v.optional("matchName", t.name);
  v.strict();
}

struct Alternative {
  std::vector<Term> terms;
};
void fields(auto& v, Alternative& a) {
  v.optional("matchFeatures", a.terms);
  v.strict();
}

struct Rule {
  std::string name;
  json::Value vars;  ///< for other rules; demands nothing
  std::string vars_template;
  std::vector<Term> terms;
  std::vector<Alternative> any;
};
void fields(auto& v, Rule& r) {
  v.optional("name", r.name);
  v.optional("vars", r.vars);
  v.optional("varsTemplate", r.vars_template);
  v.optional("matchFeatures", r.terms);
  v.optional("matchAny", r.any);
  v.strict();
}

struct Compatibility {
  std::vector<Rule> rules;
  int64_t weight = 0;
  std::string tag, description;
};
void fields(auto& v, Compatibility& c) {
  v.required("rules", c.rules);
  v.optional("weight", c.weight);
  v.optional("tag", c.tag);
  v.optional("description", c.description);
  v.strict();
}

struct Spec {
  std::string version;
  std::vector<Compatibility> sets;
};
void fields(auto& v, Spec& s) {
  v.required("version", s.version);
  v.required("compatibilities", s.sets);
  v.strict();
}

/// An expression with valid values for its operator.
struct Asked {
  Op op = Op::any;
  bool version = false;             ///< values are versions
  std::vector<std::string> values;  ///< versions: plain dotted numbers
  std::vector<int64_t> numbers;     ///< of a comparing operator, unless its values are versions
  std::string text;                 ///< "Ge 5", "In 5, 6": for people
};

/// Errors: usage (an unknown operator, suggesting the nearest one; too many, too few or invalid
/// values). They do not name the place in the document.
Result<Asked> check(const Expression& expression);

/// Errors: usage (a feature that NFD does not have, suggesting the nearest one).
Result<void> check_feature(std::string_view feature);

/// Errors: corrupt, usage.
Result<Spec> read_spec(std::string_view text, std::string_view document);

// CPUID flags, by the names that NFD gives them.

/// Linux's name of a flag: "AVX512VNNI" → "avx512_vnni". Nothing if it is not a flag of NFD, or if
/// /proc/cpuinfo does not show it.
std::optional<std::string> feature_of_flag(std::string_view flag);

/// 1 … 4 for "X86_64_V1" … "X86_64_V4"; 0 for others.
uint32_t level_of_flag(std::string_view flag);

/// All flags that feature_of_flag() or level_of_flag() knows.
std::vector<std::string_view> flag_names();

}  // namespace berth::bake::nfd
