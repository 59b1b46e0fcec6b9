// SPDX-License-Identifier: Apache-2.0
#include "engine/gpu/host_devices.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "base/text.hpp"
#include "gpu/ledger/chooser.hpp"
#include "sys/file/file.hpp"
#include "sys/file/file_system.hpp"

namespace berth::engine {
namespace {

constexpr int kMostDepth = 8;

Error custom_device(const std::string& path, const std::string& why) {
  return make_error(Kind::usage,
                    "error gathering device information while adding custom device \"" +
                        escape_controls(path) + "\": " + why);
}

bool is_node(mode_t mode) {
  return S_ISCHR(mode) || S_ISBLK(mode);
}

oci::DeviceNode node_of(const struct stat& info, const std::string& path, std::string destination,
                        const std::string& access) {
  oci::DeviceNode node;
  node.path = std::move(destination);
  node.host_path = path;
  node.type = S_ISBLK(info.st_mode) ? "b" : "c";
  node.major = static_cast<int64_t>(major(info.st_rdev));
  node.minor = static_cast<int64_t>(minor(info.st_rdev));
  node.permissions = access;
  node.file_mode = info.st_mode & 07777;
  node.uid = info.st_uid;
  node.gid = info.st_gid;
  return node;
}

/// Calls `take` for every node below the directory `path`; skips entries that are removed
/// meanwhile.
template <class Take>
Result<void> walk(const std::string& path, int depth, const Take& take) {
  auto directory = TRY(sys::open_if_exists(sys::cwd(), path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
  if (!directory) return {};
  for (const std::string& name : TRY(sys::list_directory(*directory, "."))) {
    auto info = TRY(sys::stat_entry(*directory, name));
    if (!info) continue;
    std::string entry = path + "/" + name;
    if (S_ISDIR(info->st_mode) && depth < kMostDepth) TRY(walk(entry, depth + 1, take));
    if (is_node(info->st_mode)) take(*info, entry);
  }
  return {};
}

// Docker's list: nodes that every container has of its own, and the consoles.
bool is_left_out(const std::string& path) {
  static constexpr std::array<std::string_view, 6> kBelow = {
      "/dev/pts/", "/dev/shm/", "/dev/fd/", "/dev/mqueue/", "/dev/.lxc/", "/dev/.udev/"};
  static constexpr std::array<std::string_view, 9> kOfItsOwn = {
      "/dev/console", "/dev/ptmx",    "/dev/null", "/dev/zero", "/dev/full",
      "/dev/random",  "/dev/urandom", "/dev/tty",  "/dev/core"};
  return std::ranges::find(kOfItsOwn, path) != kOfItsOwn.end() ||
         std::ranges::any_of(kBelow,
                             [&](std::string_view below) { return path.starts_with(below); });
}

}  // namespace

Result<std::vector<oci::DeviceNode>> named_nodes(const std::vector<HostDevice>& devices) {
  std::vector<oci::DeviceNode> nodes;
  for (const HostDevice& device : devices) {
    auto found = sys::open_at(sys::cwd(), device.source, O_PATH);
    if (!found.ok()) {
      Error error = custom_device(device.source, found.error().kind == Kind::not_found
                                                     ? "no such file or directory"
                                                     : to_line(found.error()));
      error.kind = found.error().kind;
      return error;
    }
    struct stat info = TRY(sys::stat_fd(*found, device.source));
    const std::string source = TRY(sys::read_link(sys::cwd(), sys::fd_path(*found)));
    if (is_node(info.st_mode)) {
      nodes.push_back(node_of(info, source, device.destination, device.access));
      continue;
    }
    size_t before = nodes.size();
    if (S_ISDIR(info.st_mode)) {
      TRY(walk(source, 0, [&](const struct stat& one, const std::string& path) {
        nodes.push_back(
            node_of(one, path, device.destination + path.substr(source.size()), device.access));
      }));
    }
    if (nodes.size() == before) return custom_device(device.source, "not a device node");
  }
  return nodes;
}

Result<std::vector<oci::DeviceNode>> nodes_by_hand(const RunRequest& request) {
  auto nodes = TRY(named_nodes(request.host_devices));
  if (request.site.gpus) std::erase_if(nodes, is_gpu_node);
  return nodes;
}

Result<std::vector<oci::DeviceNode>> all_nodes(Identity identity) {
  std::vector<oci::DeviceNode> nodes;
  TRY(walk("/dev", 0, [&](const struct stat& info, const std::string& path) {
    if (is_left_out(path)) return;
    bool usable = identity == Identity::root || sys::check_access(sys::cwd(), path, R_OK).ok() ||
                  sys::check_access(sys::cwd(), path, W_OK).ok();
    if (usable) nodes.push_back(node_of(info, path, path, "rwm"));
  }));
  return nodes;
}

bool is_gpu_node(const oci::DeviceNode& node) {
  const std::string& path = node.host_path.empty() ? node.path : node.host_path;
  if (node.type == "c" && gpu::is_gpu_major(node.major)) return true;
  return path.starts_with("/dev/nvidia") || path.starts_with("/dev/dri/") || path == "/dev/kfd";
}

std::vector<oci::DeviceNode> take_out(std::vector<oci::DeviceNode>& nodes,
                                      const std::vector<gpu::Node>& withheld) {
  std::vector<oci::DeviceNode> taken;
  std::erase_if(nodes, [&](const oci::DeviceNode& node) {
    bool out = std::ranges::any_of(withheld, [&](const gpu::Node& other) {
      return (node.type == "c" && node.major == other.major && node.minor == other.minor) ||
             node.host_path == other.host_path;
    });
    if (out) taken.push_back(node);
    return out;
  });
  return taken;
}

std::vector<oci::DeviceRule> device_rules_of(const std::vector<std::string>& rules) {
  std::vector<oci::DeviceRule> out;
  for (const std::string& rule : rules) {
    auto words = split(rule, ' ');
    auto numbers = split(words.size() == 3 ? words[1] : "*:*", ':');
    auto number = [](std::string_view text) -> std::optional<int64_t> {
      auto value = parse_u64(text);
      if (!value) return std::nullopt;
      return static_cast<int64_t>(*value);
    };
    if (words.size() != 3 || numbers.size() != 2) continue;  // parse_device_rule() refused it
    out.push_back({true, std::string(words[0]), number(numbers[0]), number(numbers[1]),
                   std::string(words[2])});
  }
  return out;
}

}  // namespace berth::engine
