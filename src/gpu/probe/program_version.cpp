// SPDX-License-Identifier: Apache-2.0
// Hostile: the bytes of a file below the driver root.
#include "gpu/probe/program_version.hpp"

#include <algorithm>

#include "gpu/probe/driver_capabilities.hpp"

namespace berth::gpu {
namespace {

constexpr size_t kMostVersions = 64;
constexpr size_t kLongestVersion = 12;  // "550.163.01" has ten characters

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_of_word(char c) {
  return is_digit(c) || c == '.' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

}  // namespace

std::vector<std::string> driver_versions_in(std::string_view bytes) {
  constexpr size_t kBranchDigits = 3;
  std::vector<std::string> found;
  for (size_t dot = bytes.find('.'); dot != bytes.npos; dot = bytes.find('.', dot + 1)) {
    if (dot < kBranchDigits) continue;
    const size_t start = dot - kBranchDigits;
    if (start > 0 && is_of_word(bytes[start - 1])) continue;
    size_t end = start;
    while (end < bytes.size() && end - start <= kLongestVersion && is_of_word(bytes[end])) ++end;
    std::string word(bytes.substr(start, end - start));
    // The minor number has two digits or three: "100.0" is none.
    bool minor = end > dot + 2 && is_digit(bytes[dot + 1]) && is_digit(bytes[dot + 2]);
    if (!minor || word.size() > kLongestVersion || driver_version_of("x.so." + word) != word) {
      continue;
    }
    if (std::ranges::find(found, word) == found.end()) found.push_back(std::move(word));
    if (found.size() == kMostVersions) break;
  }
  return found;
}

bool names_its_driver(std::string_view program) {
  return program == "nvidia-smi" || program == "nvidia-cuda-mps-control";
}

}  // namespace berth::gpu
