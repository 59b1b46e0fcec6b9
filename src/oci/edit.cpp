// SPDX-License-Identifier: Apache-2.0
#include "oci/edit.hpp"

#include <algorithm>
#include <iterator>
#include <set>
#include <unordered_map>
#include <utility>

#include "base/text.hpp"

namespace berth::oci {
namespace {

template <class T>
void append_all(std::vector<T>& to, std::vector<T> from) {
  to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
}

void append_hooks(Hooks& to, Hooks from) {
  append_all(to.prestart, std::move(from.prestart));
  append_all(to.create_runtime, std::move(from.create_runtime));
  append_all(to.create_container, std::move(from.create_container));
  append_all(to.start_container, std::move(from.start_container));
  append_all(to.poststart, std::move(from.poststart));
  append_all(to.poststop, std::move(from.poststop));
}

void set_owner(const DeviceNode& node, const Spec& spec, Device& device) {
  if (!node.owned_by_process || !spec.process) return;
  const User& user = spec.process->user;
  if (!device.uid && user.uid != 0) device.uid = user.uid;
  if (!device.gid && user.gid != 0) device.gid = user.gid;
}

void add_device(const DeviceNode& node, Spec& spec) {
  auto& devices = spec.linux_.devices;
  std::erase_if(devices, [&](const Device& device) { return device.path == node.path; });
  Device device{node.type, node.path, node.major, node.minor, node.file_mode, node.uid, node.gid};
  set_owner(node, spec, device);
  devices.push_back(std::move(device));
  // For the device cgroup a fifo is not a device, and "u" is a synonym of "c".
  if (node.type != "p" && node.permissions != "none") {
    if (!spec.linux_.resources) spec.linux_.resources.emplace();
    spec.linux_.resources->devices.push_back(
        {true, node.type == "u" ? "c" : node.type, node.major, node.minor, node.permissions});
  }
  std::string source = std::string(kDeviceSourceAnnotation) + node.path;
  spec.annotations.erase(source);
  if (!node.host_path.empty() && node.host_path != node.path) {
    spec.annotations[source] = node.host_path;
  }
}

bool is_plain(std::string_view path) {
  return path.starts_with('/') && !path.ends_with('/') && path.find("//") == path.npos &&
         path.find("/./") == path.npos && !path.ends_with("/.");
}

/// "/a//b/" → "/a/b", for comparisons.
std::string plain(const std::string& path) {
  if (is_plain(path)) return path;
  std::string out;
  for (std::string_view part : split(path, '/')) {
    if (part.empty() || part == ".") continue;
    out.append("/").append(part);
  }
  return out.empty() ? "/" : out;
}

/// Removes the text before `separator`, and that, from `text`, and returns it; all of it if there
/// is no separator.
std::string_view take_until(std::string_view& text, char separator) {
  size_t end = std::min(text.find(separator), text.size());
  std::string_view taken = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return taken;
}

struct AddedMount {
  std::string destination;  ///< in the form of plain()
  std::ptrdiff_t depth = 0;
  const Mount* mount = nullptr;
};

// A whole driver has about eighty mounts, so every destination is examined only once.
void add_mounts(const std::vector<Mount>& mounts, Spec& spec) {
  std::vector<AddedMount> added;
  std::unordered_map<std::string_view, size_t> last;  // of equal destinations the last one counts
  added.reserve(mounts.size());  // keeps the strings valid that `last` refers to
  last.reserve(mounts.size());
  for (const Mount& mount : mounts) {
    AddedMount& one = added.emplace_back(AddedMount{plain(mount.destination), 0, &mount});
    one.depth = std::ranges::count(one.destination, '/');
    last[one.destination] = added.size() - 1;
  }
  // The root is the container's own file system: it is never replaced.
  std::erase_if(spec.mounts, [&](const Mount& old) {
    std::string destination = plain(old.destination);
    return destination != "/" && last.contains(destination);
  });
  std::vector<const AddedMount*> order;
  order.reserve(added.size());
  for (size_t i = 0; i < added.size(); ++i) {
    const AddedMount& one = added[i];
    if (one.destination == "/" || last[one.destination] == i) order.push_back(&one);
  }
  std::ranges::stable_sort(
      order, [](const auto* left, const auto* right) { return left->depth < right->depth; });
  spec.mounts.reserve(spec.mounts.size() + order.size());
  for (const AddedMount* one : order) spec.mounts.push_back(*one->mount);
}

void add_loader_entries(const std::vector<LoaderLine>& added, Spec& spec) {
  if (added.empty()) return;
  std::set<std::pair<std::string_view, int32_t>> names;
  for (const LoaderLine& entry : added) names.emplace(entry.soname, entry.flags);
  std::string& text = spec.annotations[std::string(kLoaderCacheAnnotation)];
  std::vector<LoaderLine> entries = loader_entries_of(text);
  std::erase_if(entries, [&](const LoaderLine& old) {
    return names.contains({std::string_view(old.soname), old.flags});
  });
  entries.insert(entries.end(), added.begin(), added.end());
  text = to_annotation(entries);
}

// A plain loop: this is called for hundreds of names in a start.
bool has_control(std::string_view text) {
  for (char c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) return true;
  }
  return false;
}

}  // namespace

bool may_be_images(const std::map<std::string, std::string>& annotations) {
  return std::ranges::any_of(annotations, [](const auto& one) {
    return one.first == "io.container.manager" ||
           one.first.starts_with("org.opencontainers.image.");
  });
}

void append_hook(std::string_view stage, Hook hook, Hooks& hooks) {
  const std::pair<std::string_view, std::vector<Hook>*> stages[] = {
      {"prestart", &hooks.prestart},
      {"createRuntime", &hooks.create_runtime},
      {"createContainer", &hooks.create_container},
      {"startContainer", &hooks.start_container},
      {"poststart", &hooks.poststart},
      {"poststop", &hooks.poststop}};
  for (const auto& [name, list] : stages) {
    if (name == stage) return list->push_back(std::move(hook));
  }
}

void set_env(std::vector<std::string>& env, std::string assignment) {
  std::string prefix = assignment.substr(0, assignment.find('=')) + "=";
  auto same =
      std::ranges::find_if(env, [&](const std::string& old) { return old.starts_with(prefix); });
  if (same == env.end()) {
    env.push_back(std::move(assignment));
  } else {
    *same = std::move(assignment);
  }
}

void apply(const ContainerEdits& edits, Spec& spec) {
  if (!spec.process && !(edits.env.empty() && edits.additional_gids.empty())) {
    spec.process.emplace();
  }
  for (const auto& assignment : edits.env) set_env(spec.process->env, assignment);
  for (const auto& node : edits.device_nodes) add_device(node, spec);
  add_mounts(edits.mounts, spec);
  for (uint32_t gid : edits.additional_gids) {
    auto& gids = spec.process->user.additional_gids;
    if (std::ranges::find(gids, gid) == gids.end()) gids.push_back(gid);
  }
  append_hooks(spec.hooks, edits.hooks);
  for (const auto& device : edits.net_devices) {
    spec.linux_.net_devices[device.host_name] = {device.name};
  }
  if (edits.intel_rdt) spec.linux_.intel_rdt = edits.intel_rdt;
  for (const auto& link : edits.links) {
    spec.annotations[std::string(kLinkAnnotation) + link.path] = link.target;
  }
  add_loader_entries(edits.loader_entries, spec);
  if (edits.compat) {
    spec.annotations[std::string(kCompatAnnotation)] = to_annotation(*edits.compat);
  }
}

void append(ContainerEdits& edits, ContainerEdits added) {
  append_all(edits.env, std::move(added.env));
  append_all(edits.device_nodes, std::move(added.device_nodes));
  append_all(edits.mounts, std::move(added.mounts));
  append_all(edits.additional_gids, std::move(added.additional_gids));
  append_hooks(edits.hooks, std::move(added.hooks));
  append_all(edits.net_devices, std::move(added.net_devices));
  if (added.intel_rdt) edits.intel_rdt = std::move(added.intel_rdt);
  append_all(edits.links, std::move(added.links));
  append_all(edits.loader_entries, std::move(added.loader_entries));
  if (added.compat) edits.compat = std::move(added.compat);
  edits.freeze_device_nodes = edits.freeze_device_nodes || added.freeze_device_nodes;
  edits.application_profile = edits.application_profile || added.application_profile;
}

std::string to_annotation(const std::vector<LoaderLine>& entries) {
  std::string text;
  for (const LoaderLine& entry : entries) {
    if (has_control(entry.soname) || has_control(entry.path)) continue;
    text.append(entry.soname).append("\t").append(entry.path).append("\t");
    text.append(std::to_string(entry.flags)).append("\n");
  }
  return text;
}

std::vector<LoaderLine> loader_entries_of(std::string_view annotation) {
  std::vector<LoaderLine> entries;
  entries.reserve(static_cast<size_t>(std::ranges::count(annotation, '\n')));
  while (!annotation.empty()) {
    std::string_view line = take_until(annotation, '\n');
    std::string_view soname = take_until(line, '\t');
    std::string_view path = take_until(line, '\t');
    auto flags = parse_i64(line);
    if (soname.empty() || !path.starts_with('/') || has_control(soname) || has_control(path)) {
      continue;
    }
    if (!flags || *flags < INT32_MIN || *flags > INT32_MAX) continue;
    entries.push_back({std::string(soname), std::string(path), static_cast<int32_t>(*flags)});
  }
  return entries;
}

std::string to_annotation(const CompatRequest& request) {
  return join({request.container_root, request.host_driver_version, request.host_cuda_version,
               join(request.brands, ",")},
              "\t");
}

std::optional<CompatRequest> compat_request_of(std::string_view annotation) {
  constexpr size_t kLongest = 4096;
  auto parts = split(annotation, '\t');
  if (annotation.size() > kLongest || parts.size() != 4 || !parts[0].starts_with('/')) return {};
  if (std::ranges::any_of(parts, has_control)) return {};
  CompatRequest request{std::string(parts[1]), std::string(parts[2]), std::string(parts[0]), {}};
  for (std::string_view brand : split(parts[3], ',')) {
    if (!brand.empty()) request.brands.emplace_back(brand);
  }
  return request;
}

}  // namespace berth::oci
