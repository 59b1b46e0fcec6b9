// SPDX-License-Identifier: Apache-2.0
#include "match/declared.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.hpp"
#include "match/gfx_rules.hpp"

namespace berth::match {
namespace {

using facts::GpuCode;
using Op = VersionNeed::Op;

constexpr size_t kMaxWords = 256;
constexpr size_t kMaxPuzzles = 8;
constexpr size_t kMaxValue = 4096;

bool is_digits(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

/// Whether `text` looks like a feature in /proc/cpuinfo or archspec: "avx512_vnni", "sse4.2".
bool is_feature(std::string_view text) {
  return text.size() <= 32 && std::ranges::all_of(text, [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
         });
}

/// Whether `text` is dotted numbers of limited length: "12", "12.8", "570.133.20".
bool is_version(std::string_view text) {
  if (text.empty() || text.size() > 32) return false;
  for (std::string_view part : split(text, '.')) {
    if (!is_digits(part) || part.size() > 9) return false;
  }
  return true;
}

std::optional<VersionNeed> parse_need(std::string_view text) {
  static constexpr std::pair<std::string_view, Op> kOperators[] = {{">=", Op::at_least},
                                                                   {"<=", Op::at_most},
                                                                   {"=", Op::equal},
                                                                   {"<", Op::less},
                                                                   {">", Op::greater}};
  VersionNeed need{Op::equal, {}};
  for (const auto& [sign, op] : kOperators) {
    if (!text.starts_with(sign)) continue;
    need.op = op;
    text.remove_prefix(sign.size());
    break;
  }
  if (!is_version(text)) return std::nullopt;
  need.version = text;
  return need;
}

/// Interprets an annotation, or a label, as one axis of the declaration.
class Reader {
 public:
  explicit Reader(Declared& declared) : declared_(declared) {}

  void read(std::string_view axis, std::string_view value) {
    if (value.size() > kMaxValue || !take(axis, value)) {
      puzzle(fmt::format("{} {}", axis, quote(value.substr(0, 64))));
      return;
    }
    declared_.any = true;
  }

 private:
  bool take(std::string_view axis, std::string_view value) {
    if (axis == "cpu") return take_cpu(value);
    if (axis == "cpu-features") return take_cpu_features(value);
    if (axis == "gpu") return take_gpu(value);
    if (axis == "cuda") return take_version(declared_.cuda, value);
    if (axis == "user-driver") return take_version(declared_.user_driver, value);
    if (axis == "glibc") return take_version(declared_.glibc, value);
    if (axis == "driver") return take_needs(declared_.driver, value);
    if (axis == "kernel") return take_needs(declared_.kernel, value);
    if (axis == "mpi") return take_word(declared_.mpi, value);
    if (axis == "fabric") return take_fabric(value);
    if (axis == "priority") return take_priority(value);
    // "name" is only for people.
    return axis == "name";
  }

  bool take_cpu(std::string_view value) {
    std::string name(trim(value));
    bool level = name.starts_with("x86-64") || name.starts_with("x86_64");
    // Names in archspec have underscores, and those of compilers have hyphens.
    std::ranges::replace(name, level ? '_' : '-', level ? '-' : '_');
    bool usual = !name.empty() && name.size() <= 64 && std::ranges::all_of(name, [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.';
    });
    if (usual) declared_.cpu = level ? name.replace(0, 6, "x86-64") : name;
    return usual;
  }

  bool take_cpu_features(std::string_view value) {
    auto words = list_words(value);
    if (words.empty() || words.size() > kMaxWords) return false;
    if (!std::ranges::all_of(words, is_feature)) return false;
    std::vector<std::string> features = declared_.cpu_features;
    features.insert(features.end(), words.begin(), words.end());
    std::ranges::sort(features);
    features.erase(std::unique(features.begin(), features.end()), features.end());
    declared_.cpu_features = std::move(features);
    return true;
  }

  bool take_gpu(std::string_view value) {
    auto words = list_words(value);
    if (words.empty() || words.size() > kMaxWords) return false;
    std::vector<GpuCode> code;
    if (!(words.size() == 1 && words.front() == "none")) {
      for (std::string_view word : words) {
        auto one = parse_gpu_code(word);
        if (!one) return false;
        code.push_back(std::move(*one));
      }
    }
    code.insert(code.end(), declared_.gpu.begin(), declared_.gpu.end());
    std::ranges::sort(code);
    code.erase(std::unique(code.begin(), code.end()), code.end());
    declared_.gpu = std::move(code);
    declared_.gpu_said = true;
    return true;
  }

  static bool take_version(std::string& to, std::string_view value) {
    value = trim(value);
    if (!is_version(value)) return false;
    to = value;
    return true;
  }

  static bool take_needs(std::vector<VersionNeed>& to, std::string_view value) {
    auto words = list_words(value);
    if (words.empty() || words.size() > 8) return false;
    std::vector<VersionNeed> needs;
    for (std::string_view word : words) {
      auto need = parse_need(word);
      if (!need) return false;
      needs.push_back(std::move(*need));
    }
    to.insert(to.end(), needs.begin(), needs.end());
    return true;
  }

  static bool take_word(std::string& to, std::string_view value) {
    value = trim(value);
    if (value.empty() || value.size() > 64) return false;
    to = to_lower(value);
    return true;
  }

  bool take_fabric(std::string_view value) {
    auto words = list_words(value);
    if (words.empty() || words.size() > 8) return false;
    for (std::string_view word : words) declared_.fabric.emplace_back(word);
    return true;
  }

  bool take_priority(std::string_view value) {
    auto number = parse_i64(trim(value));
    if (number) declared_.priority = *number;
    return number.has_value();
  }

  void puzzle(std::string text) {
    if (declared_.puzzles.size() < kMaxPuzzles) declared_.puzzles.push_back(std::move(text));
  }

  Declared& declared_;
};

/// Labels that the community of HPC containers agreed on, and the axes that they mean.
constexpr std::pair<std::string_view, std::string_view> kOthers[] = {
    {"org.supercontainers.hardware.cpu.target.microarch", "cpu"},
    {"org.supercontainers.mpi.implementation", "mpi"}};
constexpr std::string_view kRequire = "NVIDIA_REQUIRE_", kDisable = "NVIDIA_DISABLE_REQUIRE";

void read_names(Reader& reader, const std::map<std::string, std::string>& named) {
  for (auto it = named.lower_bound(std::string(kPrefix));
       it != named.end() && it->first.starts_with(kPrefix); ++it) {
    reader.read(std::string_view(it->first).substr(kPrefix.size()), it->second);
  }
  for (const auto& [name, axis] : kOthers) {
    auto found = named.find(std::string(name));
    if (found != named.end()) reader.read(axis, found->second);
  }
}

void read_features(Reader& reader, const std::vector<std::string>& features) {
  for (const std::string& feature : features) {
    size_t colon = feature.find(':');
    if (colon == std::string::npos) continue;
    std::string_view name = std::string_view(feature).substr(0, colon);
    std::string_view value = std::string_view(feature).substr(colon + 1);
    if (name == "cpu" || name == "mpi") reader.read(name, value);
    if (name == "nvcap") reader.read("gpu", value);
  }
}

bool is_true(std::string_view text) {
  static constexpr std::string_view kWords[] = {"1", "t", "T", "true", "TRUE", "True"};
  return std::ranges::find(kWords, text) != std::end(kWords);
}

void take_if_said(std::string& to, const std::string& from) {
  if (!from.empty()) to = from;
}

template <class T>
void append(std::vector<T>& to, const std::vector<T>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

}  // namespace

Declared read_declared(const oci::Descriptor& entry) {
  Declared declared;
  Reader reader(declared);
  read_names(reader, entry.annotations);
  if (entry.platform) read_features(reader, entry.platform->os_features);
  return declared;
}

Declared read_declared(const oci::ContainerDefaults& config) {
  Declared declared;
  Reader reader(declared);
  read_names(reader, config.labels);
  bool disabled = false;
  for (const std::string& variable : config.env) {
    size_t equal = variable.find('=');
    if (equal == std::string::npos) continue;
    std::string_view name = std::string_view(variable).substr(0, equal);
    std::string_view value = std::string_view(variable).substr(equal + 1);
    if (name == kDisable) disabled = is_true(value);
    if (name.starts_with(kRequire)) declared.require.emplace_back(value);
  }
  if (disabled) declared.require.clear();
  return declared;
}

bool declares(std::string_view name) {
  bool other = std::ranges::any_of(kOthers, [&](const auto& one) { return one.first == name; });
  return other || name.starts_with(kPrefix) || name.starts_with(kRequire) || name == kDisable;
}

Declared merge(Declared under, const Declared& over) {
  under.any = under.any || over.any;
  take_if_said(under.cpu, over.cpu);
  if (!over.cpu_features.empty()) under.cpu_features = over.cpu_features;
  if (over.gpu_said) {
    under.gpu_said = true;
    under.gpu = over.gpu;
  }
  take_if_said(under.cuda, over.cuda);
  take_if_said(under.user_driver, over.user_driver);
  take_if_said(under.glibc, over.glibc);
  take_if_said(under.mpi, over.mpi);
  append(under.driver, over.driver);
  append(under.kernel, over.kernel);
  append(under.require, over.require);
  append(under.puzzles, over.puzzles);
  if (!over.fabric.empty()) under.fabric = over.fabric;
  if (over.priority != 0) under.priority = over.priority;
  return under;
}

std::optional<GpuCode> parse_gpu_code(std::string_view text) {
  if (text.size() > 64) return std::nullopt;
  if (text.starts_with("gfx")) {
    std::string_view arch = text.substr(0, text.find(':'));
    bool usual = arch.size() >= 6 && std::all_of(arch.begin() + 3, arch.end(), [](char c) {
                   return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
                 });
    if (!usual && !is_generic_processor(arch)) return std::nullopt;
    return GpuCode{GpuCode::Kind::gfx, std::string(text), {}};
  }
  GpuCode code{GpuCode::Kind::sass, {}, {}};
  if (text.starts_with("sm_")) {
    text.remove_prefix(3);
  } else if (text.starts_with("compute_")) {
    code.kind = GpuCode::Kind::ptx;
    text.remove_prefix(8);
    size_t at = text.find('@');
    if (at != std::string_view::npos) {
      if (!is_version(text.substr(at + 1))) return std::nullopt;
      code.isa = text.substr(at + 1);
      text = text.substr(0, at);
    }
  } else {
    size_t dot = text.find('.');  // a compute capability: "5.2"
    if (dot == std::string_view::npos || !is_digits(text.substr(0, dot)) ||
        text.size() - dot != 2) {
      return std::nullopt;
    }
    code.arch = std::string(text.substr(0, dot)) + std::string(text.substr(dot + 1));
    text = code.arch;
  }
  std::string_view digits = text;
  if (!digits.empty() && (digits.back() == 'a' || digits.back() == 'f')) digits.remove_suffix(1);
  if (!is_digits(digits) || digits.size() < 2 || digits.size() > 4) return std::nullopt;
  code.arch = std::string(text);
  return code;
}

std::string gpu_code_text(const GpuCode& code) {
  switch (code.kind) {
    case GpuCode::Kind::sass:
      return "sm_" + code.arch;
    case GpuCode::Kind::ptx:
      return "compute_" + code.arch + (code.isa.empty() ? "" : "@" + code.isa);
    case GpuCode::Kind::ir:
      return "lto_" + code.arch;
    case GpuCode::Kind::gfx:
      break;
  }
  return code.arch;
}

std::string gpu_codes_text(const std::vector<GpuCode>& codes, size_t most) {
  std::vector<std::string> words;
  for (const GpuCode& code : codes) {
    if (words.size() == most) break;
    words.push_back(gpu_code_text(code));
  }
  std::string text = join(words, " ");
  if (codes.size() > most) text += fmt::format(" and {} more", codes.size() - most);
  return text;
}

std::vector<std::string_view> list_words(std::string_view text) {
  std::vector<std::string_view> words;
  for (std::string_view part : split(text, ',')) {
    for (std::string_view word : split_blank(part)) words.push_back(word);
  }
  return words;
}

}  // namespace berth::match
