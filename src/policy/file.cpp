// SPDX-License-Identifier: Apache-2.0
#include "policy/file.hpp"

#include "sys/user/trusted_file.hpp"

namespace berth::policy {

Result<Compiled> read_compiled(const std::string& config_dir) {
  constexpr size_t kMaxBytes = size_t{1} << 20;
  std::string path = config_dir + "/" + kCompiledName;
  auto text = TRY(sys::read_trusted_file_if_exists(path, kMaxBytes));
  if (!text)
    return Compiled{.format = kFormat, .source = {}, .lines = {}, .policy = {}, .rules = {}};
  return parse_compiled(*text, path);
}

}  // namespace berth::policy
