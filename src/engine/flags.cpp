// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "base/text.hpp"
#include "engine/run.hpp"
#include "engine/volume.hpp"
#include "sys/signals.hpp"

namespace berth::engine {
namespace {

constexpr std::array kPropagations = {"rprivate", "private", "rshared",
                                      "shared",   "rslave",  "slave"};

bool is_propagation(std::string_view word) {
  return std::find(kPropagations.begin(), kPropagations.end(), word) != kPropagations.end();
}

Result<std::string> parse_destination(std::string_view text, std::string_view flag) {
  if (!text.starts_with('/')) {
    return make_error(Kind::usage,
                      std::string(flag) + " " + quoted(text) + ": the path is not absolute");
  }
  std::string clean(text);
  while (clean.size() > 1 && clean.ends_with('/')) clean.pop_back();
  if (clean == "/") {
    return make_error(Kind::usage, std::string(flag) + " " + quoted(text) +
                                       ": the container's root cannot be mounted over");
  }
  return clean;
}

bool is_here(std::string_view source) {
  return source == "." || source == ".." || source.starts_with("./") || source.starts_with("../");
}

}  // namespace

Result<Volume> parse_volume(std::string_view text, std::string_view working_directory) {
  auto parts = split(text, ':');
  if (parts.size() < 2 || parts.size() > 3 || parts[0].empty() || parts[1].empty()) {
    return make_error(Kind::usage, "volume " + quoted(text) + ": expected SOURCE:DESTINATION[:ro]",
                      "-v /data:/data:ro");
  }
  Volume volume;
  volume.source = parts[0];
  if (is_here(parts[0])) {
    volume.source = std::string(working_directory) + "/" + volume.source;
  } else if (!parts[0].starts_with('/')) {
    return make_error(Kind::unsupported,
                      "volume " + quoted(text) + ": named volumes are not supported",
                      "an absolute path on the host, or ./" + volume.source);
  }
  volume.destination = TRY(parse_destination(parts[1], "volume"));
  if (parts.size() < 3) return volume;
  for (std::string_view option : split(parts[2], ',')) {
    if (option == "ro") {
      volume.read_only = true;
    } else if (is_propagation(option)) {
      volume.propagation = option;
    } else if (option != "rw" && option != "z" && option != "Z") {
      return make_error(Kind::usage,
                        "volume " + quoted(text) + ": unknown option " + quoted(option),
                        "ro, rw or a propagation such as rslave");
    }
  }
  return volume;
}

Result<Tmpfs> parse_tmpfs(std::string_view text) {
  size_t colon = text.find(':');
  Tmpfs tmpfs;
  tmpfs.destination = TRY(parse_destination(text.substr(0, colon), "tmpfs"));
  if (colon == std::string_view::npos) return tmpfs;
  for (std::string_view option : split(text.substr(colon + 1), ',')) {
    if (option.empty()) {
      return make_error(Kind::usage, "tmpfs " + quoted(text) + ": an option is empty");
    }
    tmpfs.options.emplace_back(option);
  }
  return tmpfs;
}

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
                                         quoted(name) + " is not a variable name");
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
