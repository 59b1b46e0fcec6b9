// SPDX-License-Identifier: Apache-2.0
#include "cli/core/words.hpp"

#include <array>
#include <cstdio>

namespace berth::cli {
namespace {

std::string counted(int64_t count, std::string_view unit) {
  return std::to_string(count) + " " + std::string(unit) + (count == 1 ? "" : "s");
}

}  // namespace

// The same thresholds as in docker's go-units, so that scripts that parse the text keep working.
std::string human_duration(std::chrono::seconds duration) {
  int64_t seconds = duration.count();
  int64_t minutes = seconds / 60;
  int64_t hours = (minutes + 30) / 60;
  if (seconds < 1) return "Less than a second";
  if (seconds < 60) return counted(seconds, "second");
  if (minutes == 1) return "About a minute";
  if (minutes < 60) return counted(minutes, "minute");
  if (hours == 1) return "About an hour";
  if (hours < 48) return counted(hours, "hour");
  if (hours < 24 * 7 * 2) return counted(hours / 24, "day");
  if (hours < 24 * 30 * 2) return counted(hours / 24 / 7, "week");
  if (hours < 24 * 365 * 2) return counted(hours / 24 / 30, "month");
  return counted(hours / 24 / 365, "year");
}

std::string human_ago(std::chrono::system_clock::time_point then,
                      std::chrono::system_clock::time_point now) {
  if (then <= std::chrono::system_clock::time_point{}) return "N/A";
  return human_duration(std::chrono::duration_cast<std::chrono::seconds>(now - then)) + " ago";
}

std::string short_duration(std::chrono::seconds duration) {
  auto seconds = static_cast<long long>(duration.count());
  char text[48];
  if (seconds < 60) {
    std::snprintf(text, sizeof text, "%llds", seconds < 0 ? 0 : seconds);
  } else if (seconds < 3600) {
    std::snprintf(text, sizeof text, "%lldm%02llds", seconds / 60, seconds % 60);
  } else {
    std::snprintf(text, sizeof text, "%lldh%02lldm", seconds / 3600, seconds / 60 % 60);
  }
  return text;
}

std::string shown_id(std::string_view id, Ids ids) {
  if (ids == Ids::whole) return std::string(id);
  if (size_t colon = id.find(':'); colon != std::string_view::npos) id.remove_prefix(colon + 1);
  return std::string(id.substr(0, 12));
}

std::string binary_bytes(uint64_t bytes) {
  constexpr std::array kUnits = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  auto value = static_cast<double>(bytes);
  size_t unit = 0;
  for (; value >= 1024 && unit + 1 < kUnits.size(); ++unit) value /= 1024;
  char text[32];
  std::snprintf(text, sizeof text, "%.4g%s", value, kUnits[unit]);
  return text;
}

}  // namespace berth::cli
