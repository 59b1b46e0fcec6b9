// SPDX-License-Identifier: Apache-2.0
#include "bake/nfd_document.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/text.hpp"
#include "json/fields.hpp"
#include "yaml/read.hpp"

namespace berth::bake::nfd {
namespace {

constexpr std::string_view kVersion = "v1alpha1";
constexpr json::Limits kLimits{.max_bytes = kMostBytes, .max_depth = 24, .max_values = 50'000};
constexpr size_t kMany = SIZE_MAX;
constexpr size_t kMaxDigits = 9;

struct Operator {
  std::string_view name;
  Op op;
  size_t least, most;  ///< number of values
};
constexpr Operator kOperators[] = {
    {"", Op::any, 0, 0},
    {"In", Op::in, 1, kMany},
    {"NotIn", Op::not_in, 1, kMany},
    {"InRegexp", Op::in_regexp, 1, kMany},
    {"Exists", Op::exists, 0, 0},
    {"DoesNotExist", Op::does_not_exist, 0, 0},
    {"Gt", Op::gt, 1, 1},
    {"Ge", Op::ge, 1, 1},
    {"Lt", Op::lt, 1, 1},
    {"Le", Op::le, 1, 1},
    {"GtLt", Op::gt_lt, 2, 2},
    {"GeLe", Op::ge_le, 2, 2},
    {"IsTrue", Op::is_true, 0, 0},
    {"IsFalse", Op::is_false, 0, 0},
};

constexpr std::string_view kFeatures[] = {
    "cpu.cpuid",
    "cpu.cstate",
    "cpu.model",
    "cpu.pstate",
    "cpu.rdt",
    "cpu.security",
    "cpu.sst",
    "cpu.topology",
    "cpu.coprocessor",
    "kernel.config",
    "kernel.loadedmodule",
    "kernel.enabledmodule",
    "kernel.selinux",
    "kernel.kvm",
    "kernel.version",
    "local.label",
    "local.feature",
    "memory.nv",
    "memory.numa",
    "memory.swap",
    "memory.hugepages",
    "network.device",
    "network.virtual",
    "pci.device",
    "storage.block",
    "system.osrelease",
    "system.dmiid",
    "system.name",
    "usb.device",
    "rule.matched",
};

std::string did_you_mean(std::string_view word, const std::vector<std::string_view>& known) {
  auto near = nearest(word, known);
  return near ? fmt::format("; did you mean '{}'?", *near) : "";
}

bool compares(Op op) {
  return op == Op::gt || op == Op::ge || op == Op::lt || op == Op::le || op == Op::gt_lt ||
         op == Op::ge_le;
}

Result<const Operator*> operator_named(std::string_view name) {
  auto found = std::ranges::find(kOperators, name, &Operator::name);
  if (found != std::end(kOperators)) return &*found;
  std::vector<std::string_view> names;
  for (const Operator& one : kOperators) names.push_back(one.name);
  return make_error(Kind::usage,
                    fmt::format("no operator {}{}", quote(name), did_you_mean(name, names)));
}

/// As in NFD's reader, an unquoted number is the string of its digits.
Result<std::vector<std::string>> texts_of(const json::Value& value) {
  std::vector<std::string> texts;
  if (value.is_null()) return texts;
  const json::Array* array = value.array();
  if (array == nullptr) {
    return make_error(Kind::usage,
                      fmt::format("value: expected an array, got {}", value.type_name()));
  }
  for (const json::Value& one : *array) {
    if (const std::string* text = one.string()) {
      texts.push_back(*text);
    } else if (const int64_t* number = one.get_if<int64_t>()) {
      texts.push_back(std::to_string(*number));
    } else if (const bool* truth = one.get_if<bool>()) {
      texts.emplace_back(*truth ? "true" : "false");
    } else {
      return make_error(Kind::usage,
                        fmt::format("value: expected strings, got {}", one.type_name()));
    }
  }
  return texts;
}

bool is_number(std::string_view text) {
  return !text.empty() && text.size() <= kMaxDigits &&
         std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

/// "v5.10.0-rc1" → "5.10.0": the part of a version that NFD compares.
Result<std::string> version_of(std::string_view text) {
  std::string_view plain = text;
  if (plain.starts_with('v')) plain.remove_prefix(1);
  plain = plain.substr(0, plain.find_first_of("-+"));
  auto parts = split(plain, '.');
  bool good = parts.size() <= 3 && std::ranges::all_of(parts, is_number);
  if (good) return std::string(plain);
  return make_error(Kind::usage, fmt::format("value: expected a version as '5.10' or '5.10.1', "
                                             "got {}",
                                             quote(text)));
}

Result<void> read_values(Asked& asked) {
  for (std::string& text : asked.values) {
    if (asked.version) {
      text = TRY(version_of(text));
      continue;
    }
    if (!is_number(text)) {
      return make_error(Kind::usage, fmt::format("value: expected a whole number, got {}; "
                                                 "versions are compared with 'type: version'",
                                                 quote(text)));
    }
    asked.numbers.push_back(*parse_i64(text));
  }
  if (asked.numbers.size() == 2 && asked.numbers[0] >= asked.numbers[1]) {
    return make_error(Kind::usage, "value: the first has to be less than the second");
  }
  return {};
}

struct Flag {
  std::string_view nfd, kernel;
};

// Only flags that Linux shows in /proc/cpuinfo. No profile contains a flag that Linux hides
// (avx_ifma, cmpccxadd, …), so a demand for it would refuse every node.
// Source: github.com/klauspost/cpuid, and NFD's source/cpu for Arm; arch/x86's cpufeatures.h.
/// Flags that Linux has under the same name in lower case.
constexpr std::string_view kSame[] = {
    "ADX",        "AVX",        "AVX2",      "AVX512BW",   "AVX512CD", "AVX512DQ",   "AVX512ER",
    "AVX512F",    "AVX512IFMA", "AVX512PF",  "AVX512VBMI", "AVX512VL", "BMI1",       "BMI2",
    "CLDEMOTE",   "CLZERO",     "CMOV",      "CX16",       "ENQCMD",   "ERMS",       "F16C",
    "FMA4",       "FSRM",       "FXSR",      "GFNI",       "HLE",      "HYPERVISOR", "MMX",
    "MOVBE",      "MOVDIR64B",  "MOVDIRI",   "NX",         "POPCNT",   "RDRAND",     "RDSEED",
    "RDTSCP",     "RTM",        "SERIALIZE", "SSE",        "SSE2",     "SSE3",       "SSE4A",
    "SSSE3",      "SVM",        "SYSCALL",   "TBM",        "TSXLDTRK", "VAES",       "VMX",
    "VPCLMULQDQ", "WAITPKG",    "WBNOINVD",  "XGETBV1",    "XOP",      "XSAVE",      "XSAVEC",
    "XSAVEOPT",   "XSAVES",     "AES",       "ASIMD",      "ASIMDDP",  "ASIMDFHM",   "ASIMDHP",
    "ASIMDRDM",   "ATOMICS",    "BF16",      "BTI",        "CRC32",    "DCPODP",     "DCPOP",
    "DIT",        "FCMA",       "FLAGM",     "FLAGM2",     "FP",       "FPHP",       "FRINT",
    "I8MM",       "ILRCPC",     "JSCVT",     "LRCPC",      "PACA",     "PACG",       "PMULL",
    "RNG",        "SB",         "SHA1",      "SHA2",       "SHA3",     "SHA512",     "SM3",
    "SM4",        "SME",        "SSBS",      "SVE",        "SVE2",     "SVEAES",     "SVEBF16",
    "SVEBITPERM", "SVEI8MM",    "SVEPMULL",  "SVESHA3",    "SVESM4",   "USCAT",      "WFXT"};

/// Flags with another name in Linux.
constexpr Flag kOthers[] = {
    {"AESNI", "aes"},
    {"AMD3DNOW", "3dnow"},
    {"AMD3DNOWEXT", "3dnowext"},
    {"AMXBF16", "amx_bf16"},
    {"AMXINT8", "amx_int8"},
    {"AMXTILE", "amx_tile"},
    {"AVX512BF16", "avx512_bf16"},
    {"AVX512BITALG", "avx512_bitalg"},
    {"AVX512FP16", "avx512_fp16"},
    {"AVX512VBMI2", "avx512_vbmi2"},
    {"AVX512VNNI", "avx512_vnni"},
    {"AVX512VP2INTERSECT", "avx512_vp2intersect"},
    {"AVX512VPOPCNTDQ", "avx512_vpopcntdq"},
    {"AVXVNNI", "avx_vnni"},
    {"CLMUL", "pclmulqdq"},
    {"CMPXCHG8", "cx8"},
    {"FMA3", "fma"},
    {"FXSROPT", "fxsr_opt"},
    {"LAHF", "lahf_lm"},
    {"LZCNT", "abm"},
    {"OSXSAVE", "xsave"},  // Linux shows xsave if it has enabled it
    {"SHA", "sha_ni"},
    {"SSE4", "sse4_1"},
    {"SSE42", "sse4_2"},
    {"X87", "fpu"},
};

constexpr std::string_view kLevels[] = {"X86_64_V1", "X86_64_V2", "X86_64_V3", "X86_64_V4"};

}  // namespace

Result<Asked> check(const Expression& expression) {
  const Operator* known = TRY(operator_named(expression.op));
  Asked asked;
  asked.op = known->op;
  asked.values = TRY(texts_of(expression.value));
  size_t count = asked.values.size();
  if (count < known->least || count > known->most) {
    std::string takes = known->most == 0   ? "no value"
                        : known->most == 1 ? "one value"
                        : known->most == 2 ? "two values"
                                           : "one value or more";
    return make_error(Kind::usage,
                      fmt::format("operator '{}' takes {}, got {}", known->name, takes, count));
  }
  std::vector<std::string> shown;
  for (const std::string& text : asked.values) shown.push_back(escape_controls(text));
  asked.text = known->name;
  if (!shown.empty()) asked.text += " " + join(shown, ", ");
  if (!compares(asked.op)) return asked;
  if (!expression.type.empty() && expression.type != "version") {
    return make_error(Kind::usage,
                      "type: expected 'version' or none, got " + quote(expression.type));
  }
  asked.version = !expression.type.empty();
  TRY(read_values(asked));
  return asked;
}

Result<void> check_feature(std::string_view feature) {
  std::vector<std::string_view> names(std::begin(kFeatures), std::end(kFeatures));
  if (std::ranges::find(names, feature) != names.end()) return {};
  return make_error(Kind::usage, fmt::format("feature: NFD has no feature {}{}", quote(feature),
                                             did_you_mean(feature, names)));
}

Result<Spec> read_spec(std::string_view text, std::string_view document) {
  json::Value value = TRY(yaml::parse(text, document, kLimits));
  auto spec = json::from_value<Spec>(std::move(value), document);
  if (!spec.ok()) {
    Error error = std::move(spec).error();
    error.kind = Kind::usage;
    return error;
  }
  if (spec->version != kVersion) {
    return make_error(Kind::usage,
                      fmt::format("{}: version: Berth reads NFD's compatibility specification "
                                  "'{}', this one is {}",
                                  document, kVersion, quote(spec->version)));
  }
  if (spec->sets.empty()) {
    return make_error(Kind::usage, fmt::format("{}: compatibilities: empty", document));
  }
  return spec;
}

std::optional<std::string> feature_of_flag(std::string_view flag) {
  if (std::ranges::find(kSame, flag) != std::end(kSame)) return to_lower(flag);
  auto other = std::ranges::find(kOthers, flag, &Flag::nfd);
  return other == std::end(kOthers) ? std::nullopt : std::optional(std::string(other->kernel));
}

uint32_t level_of_flag(std::string_view flag) {
  auto at = std::ranges::find(kLevels, flag);
  return at == std::end(kLevels) ? 0 : static_cast<uint32_t>(at - std::begin(kLevels)) + 1;
}

std::vector<std::string_view> flag_names() {
  std::vector<std::string_view> names(std::begin(kLevels), std::end(kLevels));
  names.insert(names.end(), std::begin(kSame), std::end(kSame));
  for (const Flag& flag : kOthers) names.push_back(flag.nfd);
  return names;
}

}  // namespace berth::bake::nfd
