// SPDX-License-Identifier: Apache-2.0
#include "scan/loader_paths.hpp"

#include <string_view>

namespace berth::scan {

std::string expand_origin(std::string directories, const std::string& origin) {
  // A long path may contain it many times.
  constexpr size_t kMaxLength = size_t{64} << 10;
  for (std::string_view word : {"$ORIGIN", "${ORIGIN}"}) {
    size_t at = directories.find(word);
    while (at != std::string::npos && directories.size() < kMaxLength) {
      directories.replace(at, word.size(), origin);
      at = directories.find(word, at + origin.size());
    }
  }
  return directories;
}

std::string parent_of(const std::string& path) {
  size_t slash = path.rfind('/');
  return slash == 0 || slash == std::string::npos ? "/" : path.substr(0, slash);
}

}  // namespace berth::scan
