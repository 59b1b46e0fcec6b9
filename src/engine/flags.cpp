// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"
#include "engine/run.hpp"
#include "sys/signals.hpp"

namespace berth::engine {

Result<std::vector<std::string>> parse_env_file(std::string_view contents, std::string_view file) {
  std::vector<std::string> entries;
  size_t number = 0;
  for (std::string_view line : split(contents, '\n')) {
    ++number;
    if (line.ends_with('\r')) line.remove_suffix(1);
    // Docker drops blanks before a name and keeps all of the value.
    size_t start = line.find_first_not_of(" \t");
    if (start == std::string_view::npos || line[start] == '#') continue;
    line.remove_prefix(start);
    std::string_view name = line.substr(0, line.find('='));
    if (name.empty() || name.find_first_of(" \t") != std::string_view::npos) {
      return make_error(Kind::usage, std::string(file) + ": line " + std::to_string(number) + ": " +
                                         quote(name) + " is not a variable name");
    }
    entries.emplace_back(line);
  }
  return entries;
}

Result<uint64_t> parse_cpus(std::string_view text) {
  Error wrong = make_error(Kind::usage, "expected a number such as 1.5");
  size_t dot = text.find('.');
  std::string_view whole = text.substr(0, dot);
  std::string fraction(dot == std::string_view::npos ? "" : text.substr(dot + 1));
  if (text.empty() || fraction.size() > 3 || (dot != std::string_view::npos && fraction.empty()))
    return wrong;
  fraction.resize(3, '0');
  auto units = whole.empty() ? std::optional<uint64_t>(0) : parse_u64(whole);
  auto thousandths = parse_u64(fraction);
  if (!units || !thousandths || *units > 1'000'000) return wrong;
  uint64_t millis = *units * 1000 + *thousandths;
  if (millis > 0 && millis < 10)
    return wrong;  // the kernel's smallest quota is 1 ms of a 100 ms period
  return millis;
}

Result<int> parse_signal(std::string_view text) {
  auto number = sys::signal_number(text);
  if (!number) return make_error(Kind::usage, "expected a signal such as TERM or 15");
  return *number;
}

}  // namespace berth::engine
