// SPDX-License-Identifier: Apache-2.0
#include "sys/machine/processors.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <thread>

#include "base/text.hpp"
#include "sys/file/file.hpp"
#include "sys/process/scheduling.hpp"

namespace berth::sys {
namespace {

constexpr size_t kNoQuota = std::numeric_limits<size_t>::max();

std::optional<uint64_t> read_number(const Fd& root, const std::string& path) {
  auto text = read_file(root, path, 64);
  if (!text.ok()) return std::nullopt;
  return parse_u64(trim(*text));
}

size_t rounded_up(uint64_t quota, uint64_t period) {
  if (period == 0 || quota > kNoQuota - period) return kNoQuota;
  return std::max<size_t>(1, (quota + period - 1) / period);
}

/// "max 100000" or "150000 100000", microseconds.
size_t quota_v2(const Fd& root, const std::string& directory) {
  auto text = read_file(root, directory + "/cpu.max", 64);
  if (!text.ok()) return kNoQuota;
  size_t space = text->find(' ');
  if (space == text->npos) return kNoQuota;
  auto quota = parse_u64(std::string_view(*text).substr(0, space));
  auto period = parse_u64(trim(std::string_view(*text).substr(space)));
  return quota && period ? rounded_up(*quota, *period) : kNoQuota;
}

size_t quota_v1(const Fd& root, const std::string& directory) {
  auto quota = read_number(root, directory + "/cpu.cfs_quota_us");  // -1: none
  auto period = read_number(root, directory + "/cpu.cfs_period_us");
  return quota && period ? rounded_up(*quota, *period) : kNoQuota;
}

}  // namespace

size_t processors_of_quota(const Fd& root, std::string_view own_cgroups) {
  size_t least = kNoQuota;
  for (std::string_view line : split(own_cgroups, '\n')) {
    size_t first = line.find(':');
    size_t second = first == line.npos ? first : line.find(':', first + 1);
    if (second == line.npos) continue;
    std::string_view controllers = line.substr(first + 1, second - first - 1);
    bool v1 = false;
    for (std::string_view name : split(controllers, ',')) v1 = v1 || name == "cpu";
    if (!v1 && !controllers.empty()) continue;
    // "/a/b": the quotas of b, of a and of the root, which may be that of a namespace.
    std::string path(line.substr(second + 1));
    if (path.find("/..") != path.npos) path.clear();  // outside of this cgroup namespace
    while (true) {
      while (path.ends_with('/')) path.pop_back();
      least = std::min(least, v1 ? quota_v1(root, "cpu" + path) : quota_v2(root, "." + path));
      if (path.empty()) break;
      path.resize(path.rfind('/') == path.npos ? 0 : path.rfind('/'));
    }
  }
  return least;
}

size_t online_processors() {
  long count = ::sysconf(_SC_NPROCESSORS_ONLN);
  return count > 0 ? static_cast<size_t>(count) : 1;
}

size_t usable_processors() {
  size_t processors = std::max(1u, std::thread::hardware_concurrency());
  auto allowed = affinity();
  if (allowed.ok() && !allowed->empty()) processors = allowed->size();
  auto own = read_file(cwd(), "/proc/self/cgroup", 65536);
  auto root = open_at(cwd(), "/sys/fs/cgroup", O_RDONLY | O_DIRECTORY);
  if (!own.ok() || !root.ok()) return processors;
  return std::min(processors, processors_of_quota(*root, *own));
}

}  // namespace berth::sys
