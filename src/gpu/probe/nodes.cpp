// SPDX-License-Identifier: Apache-2.0
#include "gpu/probe/nodes.hpp"

#include <fmt/format.h>
#include <sys/sysmacros.h>

#include "base/text.hpp"
#include "gpu/inventory/kernel.hpp"

namespace berth::gpu {

std::optional<uint32_t> parse_u32(std::string_view text) {
  auto value = parse_u64(trim(text));
  if (!value || *value > UINT32_MAX) return std::nullopt;
  return static_cast<uint32_t>(*value);
}

std::optional<uint32_t> numbered(std::string_view name, std::string_view prefix) {
  if (!name.starts_with(prefix)) return std::nullopt;
  return parse_u32(name.substr(prefix.size()));
}

Result<NodeFinder> NodeFinder::open(const DriverRoot& root, std::vector<std::string>& problems) {
  NodeFinder out(root, problems);
  if (auto text = TRY(root.read_machine("/proc/devices"))) out.majors_ = parse_majors(*text);
  if (!root.synthetic()) return out;
  if (auto text = TRY(root.read_machine("/dev/nodes"))) {
    out.table_ = TRY_CTX(parse_node_table(*text),
                         fmt::format("cannot read {}", quote(root.machine_path("/dev/nodes"))));
  }
  return out;
}

std::optional<uint32_t> NodeFinder::major_of(const std::string& driver) const {
  auto found = majors_.find(driver);
  if (found == majors_.end()) return std::nullopt;
  return found->second;
}

Node NodeFinder::expect(const std::string& path, uint32_t major, uint32_t minor, uint32_t mode) {
  Node out{.path = path, .host_path = {}, .major = major, .minor = minor, .mode = mode};
  if (auto info = root_->stat_machine(path)) {
    if (S_ISCHR(info->st_mode) && info->st_rdev == makedev(major, minor)) {
      out.host_path = root_->machine_path(path);
      out.mode = info->st_mode & 07777;
      out.gid = info->st_gid;
      return out;
    }
    // The node is left from an earlier module, or a user made it.
    problems_->push_back(fmt::format("{} is not the character device {}:{}, ignoring it",
                                     quote(root_->machine_path(path)), major, minor));
  }
  for (const Node& row : table_) {
    if (row.path == path && row.major == major && row.minor == minor) {
      out.mode = row.mode;
      return out;
    }
  }
  absent_.insert(path);
  return out;
}

std::optional<Node> NodeFinder::find(const std::string& path) const {
  if (auto info = root_->stat_machine(path); info && S_ISCHR(info->st_mode)) {
    return Node{.path = path,
                .host_path = root_->machine_path(path),
                .major = major(info->st_rdev),
                .minor = minor(info->st_rdev),
                .mode = info->st_mode & 07777,
                .gid = info->st_gid};
  }
  for (const Node& row : table_) {
    if (row.path == path) return row;
  }
  return std::nullopt;
}

Result<std::vector<Node>> NodeFinder::find_numbered(const std::string& directory,
                                                    std::string_view prefix) const {
  std::set<uint32_t> numbers;
  for (const std::string& name : TRY(root_->list_machine(directory))) {
    if (auto number = numbered(name, prefix)) numbers.insert(*number);
  }
  const std::string start = directory + "/";
  for (const Node& row : table_) {
    if (!row.path.starts_with(start)) continue;
    if (auto number = numbered(std::string_view(row.path).substr(start.size()), prefix)) {
      numbers.insert(*number);
    }
  }
  std::vector<Node> out;
  for (uint32_t number : numbers) {
    if (auto node = find(fmt::format("{}{}{}", start, prefix, number))) out.push_back(*node);
  }
  return out;
}

Result<std::vector<Node>> parse_node_table(std::string_view text) {
  std::vector<Node> out;
  for (std::string_view line : split(text, '\n')) {
    auto words = split_blank(line);
    if (words.empty() || words[0].starts_with('#')) continue;
    auto bad = [&] {
      return make_error(Kind::corrupt,
                        fmt::format("expected 'path major minor mode', got {}", quote(line)));
    };
    if (words.size() != 4) return bad();
    auto node_major = parse_u32(words[1]), node_minor = parse_u32(words[2]);
    uint32_t mode = 0;
    for (char c : words[3]) {
      if (c < '0' || c > '7' || mode > 0777) return bad();
      mode = mode * 8 + static_cast<uint32_t>(c - '0');
    }
    if (!node_major || !node_minor) return bad();
    std::string path(words[0]);
    if (!path.starts_with('/')) path = "/dev/" + path;
    out.push_back(
        {.path = path, .host_path = {}, .major = *node_major, .minor = *node_minor, .mode = mode});
  }
  return out;
}

}  // namespace berth::gpu
