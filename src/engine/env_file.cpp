// SPDX-License-Identifier: Apache-2.0
#include "engine/env_file.hpp"

#include "engine/run.hpp"
#include "sys/file.hpp"

namespace berth::engine {

Result<std::vector<std::string>> read_env_file(const std::string& path) {
  std::string contents = TRY(sys::read_file(sys::cwd(), path));
  return parse_env_file(contents, path);
}

}  // namespace berth::engine
