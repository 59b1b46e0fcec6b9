// SPDX-License-Identifier: Apache-2.0
#include "gpu/inventory/state_directory.hpp"

#include <cstdlib>

#include "base/text.hpp"
#include "sys/file/file.hpp"
#include "sys/user/identity.hpp"

namespace berth::gpu {

std::optional<unsigned> calling_user() {
  unsigned uid = sys::real_uid();
  if (uid != 0) return uid;
  if (sys::in_initial_user_namespace()) return std::nullopt;
  auto map = sys::read_file(sys::cwd(), "/proc/self/uid_map", size_t{64} << 10);
  if (!map.ok()) return uid;
  for (std::string_view line : split(*map, '\n')) {
    auto words = split_blank(line);
    if (words.size() == 3 && words[0] == "0") {
      return static_cast<unsigned>(parse_u64(words[1]).value_or(0));
    }
  }
  return uid;
}

// In batch jobs XDG_RUNTIME_DIR may be unset, or name a directory that was removed at logout.
std::string state_directory(std::optional<unsigned> user, const std::string& runtime_directory) {
  if (!user) return "/run/berth";
  if (runtime_directory.starts_with('/')) {
    auto status = sys::stat_entry(sys::cwd(), runtime_directory);
    bool ours = status.ok() && *status && S_ISDIR((*status)->st_mode) &&
                (*status)->st_uid == sys::effective_uid();
    if (ours) return runtime_directory + "/berth";
  }
  return "/tmp/berth-" + std::to_string(*user);
}

std::string default_state_directory() {
  const char* runtime_directory = std::getenv("XDG_RUNTIME_DIR");
  return state_directory(calling_user(), runtime_directory == nullptr ? "" : runtime_directory);
}

}  // namespace berth::gpu
