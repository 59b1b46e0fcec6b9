// SPDX-License-Identifier: Apache-2.0
#include "engine/context/absolute_path.hpp"

#include "base/text.hpp"

namespace berth::engine {

Result<std::string> absolute_path(std::string_view path, std::string_view directory) {
  if (path.starts_with('/')) return std::string(path);
  if (!directory.starts_with('/')) {
    return make_error(Kind::not_found,
                      "find " + quote(path) + ": the working directory no longer exists",
                      "an absolute path, or cd to a directory that exists");
  }
  if (path == ".") return std::string(directory);
  return std::string(directory) + (directory.ends_with('/') ? "" : "/") + std::string(path);
}

}  // namespace berth::engine
