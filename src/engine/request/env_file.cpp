// SPDX-License-Identifier: Apache-2.0
#include "engine/request/env_file.hpp"

#include "base/text.hpp"
#include "sys/file/file.hpp"

namespace berth::engine {

Result<std::vector<std::string>> parse_env_file(std::string_view contents, std::string_view file) {
  std::vector<std::string> entries;
  size_t number = 0;
  for (std::string_view line : split(contents, '\n')) {
    ++number;
    if (line.ends_with('\r')) line.remove_suffix(1);
    // Docker drops blanks before a name and keeps the whole value.
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

Result<std::vector<std::string>> read_env_file(const std::string& path) {
  std::string contents = TRY(sys::read_file(sys::cwd(), path));
  return parse_env_file(contents, path);
}

}  // namespace berth::engine
