// SPDX-License-Identifier: Apache-2.0
#include "runtime/mount/table.hpp"

#include <algorithm>
#include <set>

#include "base/text.hpp"
#include "sys/file/file.hpp"

namespace berth::runtime {
namespace {

bool is_kernels_own(const std::string& type) {
  constexpr std::string_view kTypes[] = {"proc", "sysfs", "mqueue", "cgroup", "cgroup2"};
  return std::ranges::find(kTypes, type) != std::end(kTypes);
}

}  // namespace

std::string unescape_mount_path(std::string_view text) {
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    bool octal = text[i] == '\\' && i + 3 < text.size() &&
                 std::all_of(text.begin() + static_cast<ptrdiff_t>(i) + 1,
                             text.begin() + static_cast<ptrdiff_t>(i) + 4,
                             [](char c) { return c >= '0' && c <= '7'; });
    if (!octal) {
      plain += text[i];
      continue;
    }
    plain +=
        static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 + (text[i + 3] - '0'));
    i += 3;
  }
  return plain;
}

std::vector<MountLine> parse_mount_table(std::string_view mountinfo) {
  std::vector<MountLine> lines;
  for (std::string_view line : split(mountinfo, '\n')) {
    // "36 35 98:0 /root /mount options optional… - type source super-options"
    auto words = split_blank(line);
    auto dash = std::ranges::find(words, "-");
    if (dash - words.begin() < 6 || words.end() - dash < 2) continue;
    bool follows =
        std::any_of(words.begin() + 6, dash, [](auto word) { return word.starts_with("master:"); });
    lines.push_back({std::string(words[0]), std::string(words[2]), unescape_mount_path(words[3]),
                     unescape_mount_path(words[4]), std::string(dash[1]), follows});
  }
  return lines;
}

Result<std::vector<MountLine>> mount_table(const std::string& process) {
  return parse_mount_table(TRY(sys::read_file(sys::cwd(), "/proc/" + process + "/mountinfo")));
}

bool is_at_or_below(std::string_view path, std::string_view directory) {
  if (directory == "/" || path == directory) return true;
  return path.starts_with(directory) && path[directory.size()] == '/';
}

std::vector<MountLine> outside_mounts(const std::vector<MountLine>& container,
                                      const std::vector<MountLine>& host,
                                      const std::vector<std::string>& bound) {
  std::set<std::string_view> devices;
  for (const auto& line : host) devices.insert(line.device);
  // The last one at "/" is what the container has there.
  auto root = std::find_if(container.rbegin(), container.rend(),
                           [](const auto& line) { return line.point == "/"; });
  std::vector<MountLine> outside;
  for (const auto& line : container) {
    if (line.point == "/") continue;
    bool is_bound = std::ranges::any_of(
        bound, [&](const std::string& place) { return is_at_or_below(line.point, place); });
    bool of_root = root != container.rend() && line.device == root->device &&
                   is_at_or_below(line.root, root->root);
    bool of_host =
        devices.contains(line.device) && !of_root && (line.follows || !is_kernels_own(line.type));
    if (is_bound || of_host) outside.push_back(line);
  }
  return outside;
}

}  // namespace berth::runtime
