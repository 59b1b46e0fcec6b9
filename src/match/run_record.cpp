// SPDX-License-Identifier: Apache-2.0
#include "match/run_record.hpp"

#include <algorithm>
#include <tuple>

#include "base/text.hpp"

namespace berth::match {
namespace {

constexpr uint32_t kMaxExit = 255, kMaxLevel = 4;
constexpr size_t kMaxGpuKinds = 16, kMaxVersion = 32, kMaxName = 64, kMaxModel = 128;

Error not_such(const char* member, std::string_view text) {
  return make_error(Kind::corrupt,
                    std::string("read a record of a run: ") + member + " " + quote(text));
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/// Whether `text` has only characters of names in records: "neoverse_v2", "gfx90a:xnack-",
/// "0.1.0+git1".
bool is_name(std::string_view text, std::string_view more) {
  return text.size() <= kMaxName && std::ranges::all_of(text, [&](char c) {
           return is_digit(c) || (c >= 'a' && c <= 'z') || more.find(c) != std::string_view::npos;
         });
}

/// "12", "570.133.20".
bool is_driver_version(std::string_view text) {
  if (text.empty() || text.size() > kMaxVersion) return false;
  for (std::string_view part : split(text, '.')) {
    bool digits = !part.empty() && std::ranges::all_of(part, is_digit);
    if (!digits || part.size() > 9) return false;
  }
  return true;
}

/// "2026-11-20T12:00:00Z" and nothing else, so that times can be compared as strings.
bool is_time(std::string_view text) {
  constexpr std::string_view kForm = "0000-00-00T00:00:00Z";
  if (text.size() != kForm.size()) return false;
  for (size_t i = 0; i < kForm.size(); ++i) {
    if (kForm[i] == '0' ? !is_digit(text[i]) : text[i] != kForm[i]) return false;
  }
  auto number = [&](size_t at) { return (text[at] - '0') * 10 + text[at + 1] - '0'; };
  static constexpr std::array kDays = {31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  int month = number(5), day = number(8);
  if (month < 1 || month > 12 || day < 1 || day > kDays[static_cast<size_t>(month - 1)]) {
    return false;
  }
  return number(11) < 24 && number(14) < 60 && number(17) < 60;
}

/// "9.0", "12.1".
bool is_capability(std::string_view text) {
  size_t dot = text.find('.');
  return is_driver_version(text) && text.size() <= 5 && dot != std::string_view::npos &&
         dot + 2 == text.size();
}

bool is_plain(std::string_view text) {
  return text.size() <= kMaxModel &&
         std::ranges::none_of(text, [](unsigned char c) { return c < ' ' || c == 0x7f; });
}

Result<void> check(const RunGpu& gpu) {
  static constexpr std::array<std::string_view, 3> kVendors = {"nvidia", "amd", "intel"};
  if (std::ranges::find(kVendors, gpu.vendor) == kVendors.end()) {
    return not_such("vendor of a GPU", gpu.vendor);
  }
  if (!is_plain(gpu.model)) return not_such("model of a GPU", gpu.model.substr(0, kMaxModel));
  if (!gpu.compute_capability.empty() && !is_capability(gpu.compute_capability)) {
    return not_such("compute capability", gpu.compute_capability);
  }
  if (!is_name(gpu.architecture, ":+-")) return not_such("architecture", gpu.architecture);
  return {};
}

/// All members except the time and the version of Berth.
auto subject_of(const RunRecord& r) {
  return std::tie(r.exit, r.own_command, r.user_land, r.gpus, r.architecture, r.cpu, r.kernel,
                  r.driver, r.synthetic);
}

}  // namespace

Result<void> check(const RunRecord& record) {
  if (!is_time(record.time)) return not_such("time", record.time);
  if (record.exit > kMaxExit) return not_such("exit status", std::to_string(record.exit));
  if (record.architecture.empty() || !is_name(record.architecture, "")) {
    return not_such("architecture", record.architecture);
  }
  const RunCpu& cpu = record.cpu;
  if (cpu.microarchitecture.empty() || !is_name(cpu.microarchitecture, "_.-")) {
    return not_such("processor", cpu.microarchitecture);
  }
  if (cpu.level > kMaxLevel) return not_such("level", std::to_string(cpu.level));
  if (!record.kernel.empty() && !is_driver_version(record.kernel)) {
    return not_such("kernel", record.kernel);
  }
  if (record.driver) {
    const RunDriver& driver = *record.driver;
    if (driver.kind != "nvidia" && driver.kind != "rocm") return not_such("driver", driver.kind);
    if (!is_driver_version(driver.version)) return not_such("driver's version", driver.version);
  }
  if (!is_name(record.berth, ".+~-")) return not_such("version of Berth", record.berth);
  if (record.gpus.size() > kMaxGpuKinds) return not_such("GPUs:", "more than 16 kinds");
  for (const RunGpu& gpu : record.gpus) TRY(check(gpu));
  return {};
}

void add_run(std::vector<RunRecord>& runs, RunRecord record) {
  auto same = std::ranges::find_if(
      runs, [&](const RunRecord& one) { return subject_of(one) == subject_of(record); });
  if (same == runs.end()) {
    runs.push_back(std::move(record));
  } else if (same->time < record.time) {
    *same = std::move(record);
  }
  // At equal times all members are compared, so that the original order does not matter.
  std::ranges::sort(runs, [](const RunRecord& left, const RunRecord& right) {
    return left.time != right.time ? left.time < right.time : subject_of(left) < subject_of(right);
  });
  if (runs.size() > kMaxRuns) {
    runs.erase(runs.begin(), runs.end() - static_cast<std::ptrdiff_t>(kMaxRuns));
  }
}

std::string_view plain_release(std::string_view release) {
  std::string_view numbers = release.substr(0, release.find_first_not_of("0123456789."));
  while (numbers.ends_with('.')) numbers.remove_suffix(1);
  return numbers;
}

}  // namespace berth::match
