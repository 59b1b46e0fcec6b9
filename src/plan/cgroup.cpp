// SPDX-License-Identifier: Apache-2.0
#include "plan/cgroup.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace berth::plan {
namespace {

constexpr std::string_view kSlice = ".slice";
constexpr size_t kLongestName = 255;

// systemd.unit(5): "ASCII letters, digits, ':', '-', '_', '.', and '\'". A '@' would make the unit
// an instance of a template.
bool is_unit_name(std::string_view name) {
  auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view(":-_.\\").find(c) != std::string_view::npos;
  };
  return !name.empty() && name.size() <= kLongestName && std::ranges::all_of(name, allowed);
}

// systemd.slice(5): dashes separate levels: "a-b.slice" is a child of "a.slice". "-.slice" is the
// root.
bool is_slice(std::string_view name) {
  if (!is_unit_name(name) || !name.ends_with(kSlice)) return false;
  std::string_view levels = name.substr(0, name.size() - kSlice.size());
  if (levels == "-") return true;
  auto parts = split(levels, '-');
  return std::ranges::none_of(parts, [](auto part) { return part.empty(); });
}

std::string own_slice(SystemdManager manager) {
  return manager == SystemdManager::user ? "user.slice" : "system.slice";
}

Result<SystemdScope> checked(SystemdScope scope) {
  if (!is_slice(scope.slice)) {
    return make_error(Kind::usage, "expected the name of a slice, got " + quote(scope.slice));
  }
  if (!is_unit_name(scope.unit)) {
    return make_error(Kind::usage, quote(scope.unit) + " cannot be the name of a unit");
  }
  return scope;
}

bool is_new(const oci::Spec& spec, std::string_view type) {
  const auto& spaces = spec.linux_.namespaces;
  return std::ranges::any_of(spaces, [&](const oci::Namespace& space) {
    return space.type == type && space.path.empty();
  });
}

bool is_writable_cgroup(const oci::Mount& mount) {
  auto has = [&](std::string_view option) {
    return std::ranges::find(mount.options, option) != mount.options.end();
  };
  return (mount.type == "cgroup" || mount.type == "cgroup2") &&
         mount.destination == "/sys/fs/cgroup" && !has("ro") && !has("rro");
}

}  // namespace

Result<SystemdScope> parse_systemd_scope(const std::string& path, const std::string& id,
                                         SystemdManager manager) {
  std::string text = path.empty() ? own_slice(manager) + ":berth:" + id : path;
  auto parts = split(text, ':');
  if (parts.size() != 3 || parts[2].empty()) {
    return make_error(Kind::usage, "expected slice:prefix:name, got " + quote(path));
  }
  SystemdScope scope;
  scope.slice = parts[0].empty() ? own_slice(manager) : std::string(parts[0]);
  scope.unit = (parts[1].empty() ? "" : std::string(parts[1]) + "-") + std::string(parts[2]);
  scope.unit += ".scope";
  scope.user = manager == SystemdManager::user;
  return checked(std::move(scope));
}

Result<std::optional<SystemdScope>> scope_of_path(const std::string& path, SystemdManager manager) {
  SystemdScope scope{own_slice(manager), path, manager == SystemdManager::user};
  size_t name = path.rfind('/');
  if (name != std::string::npos && name > 0) {
    scope.slice = path.substr(0, name);
    scope.slice.erase(0, scope.slice.rfind('/') + 1);
    if (!scope.slice.ends_with(kSlice)) return std::optional<SystemdScope>();
  }
  scope.unit = path.substr(name == std::string::npos ? 0 : name + 1) + ".scope";
  return std::optional(TRY(checked(std::move(scope))));
}

std::optional<uint32_t> cgroup_owner(const oci::Spec& spec) {
  bool is_writable = std::ranges::any_of(spec.mounts, is_writable_cgroup);
  if (!is_writable || !spec.process || !is_new(spec, "cgroup") || !is_new(spec, "user")) {
    return std::nullopt;
  }
  uint32_t uid = spec.process->user.uid;
  for (const auto& mapping : spec.linux_.uid_mappings) {
    if (uid >= mapping.container_id && uid - mapping.container_id < mapping.size) {
      return mapping.host_id + (uid - mapping.container_id);
    }
  }
  return std::nullopt;
}

}  // namespace berth::plan
