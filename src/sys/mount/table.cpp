// SPDX-License-Identifier: Apache-2.0
#include "sys/mount/table.hpp"

#include <fcntl.h>
#include <linux/mount.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <cerrno>

#include "base/text.hpp"
#include "sys/file/file.hpp"
#include "sys/mount/mount.hpp"

namespace berth::sys {
namespace {

constexpr size_t kMaxTable = size_t{64} << 20;
constexpr unsigned long kNoSymlinkFollow = 8192;  // ST_NOSYMFOLLOW, which glibc 2.36 lacks

}  // namespace

std::string unescape_mount_path(std::string_view text) {
  auto digit = [&](size_t at) { return at < text.size() && text[at] >= '0' && text[at] <= '7'; };
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && digit(i + 1) && digit(i + 2) && digit(i + 3)) {
      out += static_cast<char>((text[i + 1] - '0') << 6 | (text[i + 2] - '0') << 3 |
                               (text[i + 3] - '0'));
      i += 3;
    } else {
      out += text[i];
    }
  }
  return out;
}

std::vector<MountEntry> parse_mount_table(std::string_view text) {
  std::vector<MountEntry> entries;
  for (std::string_view line : split(text, '\n')) {
    // "36 35 98:0 /root /mount options optional… - type source super-options"
    auto words = split_blank(line);
    auto dash = std::ranges::find(words, "-");
    if (dash - words.begin() < 6 || words.end() - dash < 3) continue;
    auto id = parse_u64(words[0]);
    auto parent = parse_u64(words[1]);
    if (!id || !parent) continue;
    bool follows =
        std::any_of(words.begin() + 6, dash, [](auto word) { return word.starts_with("master:"); });
    entries.push_back({*id, *parent, std::string(words[2]), unescape_mount_path(words[3]),
                       unescape_mount_path(words[4]), unescape_mount_path(dash[1]),
                       unescape_mount_path(dash[2]), follows});
  }
  return entries;
}

Result<std::vector<MountEntry>> mount_table(const std::string& process) {
  return parse_mount_table(TRY(read_file(cwd(), "/proc/" + process + "/mountinfo", kMaxTable)));
}

Result<Fd> open_mount(const MountEntry& entry) {
  Fd found = TRY(open_at(cwd(), entry.point, O_PATH | O_NOFOLLOW));
  if (TRY(mount_id(found, entry.point)) == entry.id) return found;
  return make_error(Kind::busy, "open the mount at " + quote(entry.point) + ": it is hidden");
}

Result<uint64_t> mount_attributes(const Fd& place, const std::string& name) {
  struct statvfs info {};
  if (::fstatvfs(place.get(), &info) != 0) return errno_now().error("examine " + quote(name));
  uint64_t attributes = 0;
  if (info.f_flag & ST_RDONLY) attributes |= MOUNT_ATTR_RDONLY;
  if (info.f_flag & ST_NOSUID) attributes |= MOUNT_ATTR_NOSUID;
  if (info.f_flag & ST_NODEV) attributes |= MOUNT_ATTR_NODEV;
  if (info.f_flag & ST_NOEXEC) attributes |= MOUNT_ATTR_NOEXEC;
  if (info.f_flag & ST_NODIRATIME) attributes |= MOUNT_ATTR_NODIRATIME;
  if (info.f_flag & kNoSymlinkFollow) attributes |= MOUNT_ATTR_NOSYMFOLLOW;
  if (info.f_flag & ST_NOATIME) return attributes | MOUNT_ATTR_NOATIME;
  return info.f_flag & ST_RELATIME ? attributes : attributes | MOUNT_ATTR_STRICTATIME;
}

}  // namespace berth::sys
