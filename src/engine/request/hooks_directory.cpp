// SPDX-License-Identifier: Apache-2.0
#include "engine/request/hooks_directory.hpp"

#include <fcntl.h>

#include "base/text.hpp"
#include "sys/file/file.hpp"

namespace berth::engine {

Result<void> check_hooks_directory(const std::string& path) {
  if (path.empty()) return {};
  auto opened = TRY(sys::open_if_exists(sys::cwd(), path, O_RDONLY | O_DIRECTORY));
  if (!opened) return {};
  for (const std::string& name : TRY(sys::list_directory(*opened, "."))) {
    if (!name.ends_with(".json") || name.find("nvidia") != name.npos) continue;
    return make_error(Kind::unsupported,
                      "--hooks-dir: the hook of " + quote(path + "/" + name) + " is not run",
                      "another directory, or a bundle with the hook and berth-runtime");
  }
  return {};
}

}  // namespace berth::engine
