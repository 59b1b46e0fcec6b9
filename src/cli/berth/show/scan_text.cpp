// SPDX-License-Identifier: Apache-2.0
#include "cli/berth/show/scan_text.hpp"

#include <algorithm>
#include <string_view>
#include <tuple>
#include <vector>

#include "base/text.hpp"
#include "cli/core/table.hpp"

namespace berth::cli {
namespace {

using facts::GpuCode;
using facts::ImageFacts;

constexpr size_t kWidestValue = 48;  // longer values do not widen the column

struct FactRow {
  std::string name;
  std::string value;
  std::string file;
};

std::string files_of(const std::string& example, uint64_t count, bool main) {
  std::string text = example;
  if (count > 1) text += " and " + std::to_string(count - 1) + " more";
  if (main) text += " (the main program's)";
  return text;
}

/// Orders "80" before "100", and "90" before "90a".
bool comes_before(const GpuCode& left, const GpuCode& right) {
  auto key = [](const GpuCode& code) {
    size_t digits = std::min(code.arch.find_first_not_of("0123456789"), code.arch.size());
    return std::make_tuple(code.kind, digits, std::string_view(code.arch),
                           std::string_view(code.isa));
  };
  return key(left) < key(right);
}

/// "sass 80 90a, ptx 90 (8.7)".
std::string code_text(const facts::GpuCodeSet& set) {
  std::string text;
  const GpuCode* before = nullptr;
  std::vector<GpuCode> sorted = set.code;
  std::ranges::sort(sorted, comes_before);
  for (const GpuCode& code : sorted) {
    bool same = before != nullptr && before->kind == code.kind;
    if (!same) text += (text.empty() ? "" : ", ") + enum_text(code.kind);
    text += " " + code.arch;
    if (!code.isa.empty()) text += " (" + code.isa + ")";
    before = &code;
  }
  if (set.zstd) text += ", zstd";
  return set.cuda.empty() ? text : text + ", CUDA " + set.cuda;
}

std::string compat_text(const ImageFacts& facts) {
  std::string text = facts.compat;
  if (!facts.compat_cuda.empty()) text += ", CUDA " + facts.compat_cuda;
  if (facts.compat_drivers.empty()) return text;
  text += ", kernel modules";
  for (uint32_t branch : facts.compat_drivers) text += " " + std::to_string(branch);
  return text;
}

std::string level_text(const facts::IsaNeed& isa) {
  std::string how = isa.source == "note" ? "the loader refuses less"
                    : isa.source == "go" ? "Go refuses less"
                                         : "by its instructions";
  return "x86-64-v" + std::to_string(isa.level) + ", " + how;
}

std::vector<FactRow> rows_of(const ImageFacts& facts) {
  std::vector<FactRow> rows;
  auto add = [&](const char* name, std::string value, std::string file = {}) {
    if (!value.empty()) rows.push_back({name, std::move(value), std::move(file)});
  };
  std::string kind = facts.architecture + (facts.is_static ? ", static" : "");
  add("program", facts.program.empty() ? "unknown" : kind, facts.program);
  for (const auto& need : facts.cpu) {
    add("processor", level_text(need.isa), files_of(need.example, need.files, need.main));
  }
  add("also for", join(facts.hwcaps, " "));
  add("libc", facts.musl ? "musl" : facts.glibc.empty() ? "" : "glibc " + facts.glibc);
  add("libstdc++", facts.libstdcxx);
  for (const auto& unmet : facts.unmet) {
    add("missing", unmet.version, files_of(unmet.path, 1, unmet.main));
  }
  for (const auto& set : facts.gpu_code) {
    add("gpu code", code_text(set), files_of(set.example, set.files, set.main));
  }
  for (const auto& set : facts.linker_code) {
    add("to link", code_text(set), files_of(set.example, set.files, set.main));
  }
  add("cuda", join(facts.cuda_runtimes, " "));
  add("driver", facts.user_driver);
  add("compat", compat_text(facts));
  for (const auto& mpi : facts.mpi) add("mpi", mpi.family + " " + mpi.soname, mpi.path);
  return rows;
}

}  // namespace

std::string scan_text(const ImageFacts& facts) {
  std::vector<FactRow> rows = rows_of(facts);
  size_t names = 0, values = 0;
  for (FactRow& row : rows) {
    row.value = escape_controls(row.value);
    row.file = escape_controls(row.file);
    names = std::max(names, text_width(row.name));
    size_t width = text_width(row.value);
    if (!row.file.empty() && width <= kWidestValue) values = std::max(values, width);
  }
  std::string out;
  for (const FactRow& row : rows) {
    std::string line = pad_right(row.name, names + 2);
    line += row.file.empty() ? row.value : pad_right(row.value, values) + "  " + row.file;
    out += line + "\n";
  }
  return out;
}

}  // namespace berth::cli
