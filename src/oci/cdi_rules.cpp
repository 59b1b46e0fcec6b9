// SPDX-License-Identifier: Apache-2.0
// The rules for the content of a CDI file. Source: CDI SPEC.md, and the checks in the CDI reference
// library.
#include <algorithm>
#include <set>

#include "base/text.hpp"
#include "json/path.hpp"
#include "oci/cdi.hpp"
#include "oci/runtime_spec.hpp"

namespace berth::oci::cdi {
namespace {

using json::Path;

constexpr size_t kMaxAnnotations = size_t{256} << 10;  // as in Kubernetes: for all of an object

bool is_ascii_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
bool is_alnum(char c) {
  return is_ascii_letter(c) || (c >= '0' && c <= '9');
}

/// Whether `text` begins and ends with a letter or digit, and has only these and those in `inner`
/// between.
bool is_word(std::string_view text, std::string_view inner) {
  return !text.empty() && is_alnum(text.front()) && is_alnum(text.back()) &&
         std::ranges::all_of(
             text, [&](char c) { return is_alnum(c) || inner.find(c) != std::string_view::npos; });
}

bool is_kind_part(std::string_view text) {
  return is_word(text, "_-.") && is_ascii_letter(text.front());
}

bool is_kind(std::string_view kind) {
  size_t slash = kind.find('/');
  return slash != std::string_view::npos && is_kind_part(kind.substr(0, slash)) &&
         is_kind_part(kind.substr(slash + 1));
}

bool is_device_name(std::string_view name) {
  return is_word(name, "_-.:");
}

bool is_assignment(std::string_view text) {
  size_t equals = text.find('=');
  return equals != std::string_view::npos && equals > 0 && text.find('\0') == text.npos;
}

bool is_path(std::string_view text) {
  return text.starts_with('/') && text.find('\0') == text.npos;
}

/// A qualified name as in Kubernetes, in upper or lower case: "prefix.example/name", "name".
bool is_annotation_key(std::string_view key) {
  size_t slash = key.find('/');
  std::string_view name = key;
  if (slash != std::string_view::npos) {
    std::string_view prefix = key.substr(0, slash);
    name = key.substr(slash + 1);
    if (prefix.size() > 253) return false;
    for (std::string_view label : split(prefix, '.')) {
      if (!is_word(label, "-")) return false;
    }
  }
  return name.size() <= 63 && is_word(name, "-_.");
}

/// Checks one document; stops at the first fault.
class Validator {
 public:
  explicit Validator(const Spec& spec) : spec_(spec) {}

  Result<void> run(std::string_view file) const {
    Path root(file);
    TRY(check_head(root));
    TRY(check_annotations(root, spec_.annotations));
    Path edits = root.member("containerEdits");
    TRY(check_edits(edits, spec_.edits));
    TRY(check_devices(root));
    return check_version(root);
  }

 private:
  static Error fault(const Path& place, const std::string& text) {
    return make_error(Kind::corrupt, place.text() + ": " + text);
  }

  Result<void> check_head(const Path& root) const {
    auto known = versions();
    if (std::ranges::find(known, spec_.version) == known.end()) {
      return fault(
          root.member("cdiVersion"),
          quote(spec_.version) + " is none of the versions up to " + std::string(known.back()));
    }
    if (is_kind(spec_.kind)) return {};
    return fault(root.member("kind"), quote(spec_.kind) + " is not of the form vendor/class");
  }

  Result<void> check_version(const Path& root) const {
    std::string_view needed = needed_version(spec_);
    if (compare_versions(spec_.version, needed) >= 0) return {};
    return fault(
        root.member("cdiVersion"),
        quote(spec_.version) + " is declared, but the content needs " + std::string(needed));
  }

  static Result<void> check_annotations(const Path& owner,
                                        const std::map<std::string, std::string>& annotations) {
    Path place = owner.member("annotations");
    size_t size = 0;
    for (const auto& [key, value] : annotations) {
      size += key.size() + value.size();
      if (!is_annotation_key(key)) return fault(place.entry(key), "not a name for an annotation");
    }
    if (size <= kMaxAnnotations) return {};
    return fault(place, "more than 256 KiB");
  }

  Result<void> check_devices(const Path& root) const {
    Path devices = root.member("devices");
    if (spec_.devices.empty()) return fault(devices, "expected at least one");
    std::set<std::string_view> names;
    for (size_t i = 0; i < spec_.devices.size(); ++i) {
      const Device& device = spec_.devices[i];
      Path place = devices.element(i);
      if (!is_device_name(device.name)) {
        return fault(place.member("name"), quote(device.name) + " is not a valid device name");
      }
      if (!names.insert(device.name).second) {
        return fault(place.member("name"), quote(device.name) + " is given twice");
      }
      TRY(check_annotations(place, device.annotations));
      Path edits = place.member("containerEdits");
      if (device.edits.empty()) return fault(edits, "expected at least one edit");
      TRY(check_edits(edits, device.edits));
    }
    return {};
  }

  Result<void> check_edits(const Path& place, const Edits& edits) const {
    TRY(check_env(place, edits.env));
    Path nodes = place.member("deviceNodes");
    for (size_t i = 0; i < edits.device_nodes.size(); ++i) {
      TRY(check_node(nodes.element(i), edits.device_nodes[i]));
    }
    TRY(check_net_devices(place.member("netDevices"), edits.net_devices));
    Path hooks = place.member("hooks");
    for (size_t i = 0; i < edits.hooks.size(); ++i) {
      TRY(check_hook(hooks.element(i), edits.hooks[i]));
    }
    Path mounts = place.member("mounts");
    for (size_t i = 0; i < edits.mounts.size(); ++i) {
      TRY(check_mount(mounts.element(i), edits.mounts[i]));
    }
    if (edits.intel_rdt) TRY(check_rdt(place.member("intelRdt"), *edits.intel_rdt));
    return {};
  }

  static Result<void> check_env(const Path& owner, const std::vector<std::string>& env) {
    Path place = owner.member("env");
    for (size_t i = 0; i < env.size(); ++i) {
      if (is_assignment(env[i])) continue;
      return fault(place.element(i), quote(env[i]) + " is not of the form NAME=VALUE");
    }
    return {};
  }

  static Result<void> check_node(const Path& place, const DeviceNode& node) {
    if (!is_path(node.path)) {
      return fault(place.member("path"), "expected an absolute path, got " + quote(node.path));
    }
    if (!node.host_path.empty() && !is_path(node.host_path)) {
      return fault(place.member("hostPath"),
                   "expected an absolute path, got " + quote(node.host_path));
    }
    if (node.type.size() > 1 || std::string_view("bcup").find(node.type) == std::string::npos) {
      return fault(place.member("type"), quote(node.type) + " is none of b, c, u, p");
    }
    if (node.major.value_or(0) < 0 || node.minor.value_or(0) < 0) {
      return fault(place.member(node.major.value_or(0) < 0 ? "major" : "minor"), "below 0");
    }
    bool known = node.permissions == "none" ||
                 node.permissions.find_first_not_of("rwm") == std::string::npos;
    if (known) return {};
    return fault(place.member("permissions"), quote(node.permissions) + " is not of r, w and m");
  }

  static Result<void> check_net_devices(const Path& place, const std::vector<NetDevice>& devices) {
    std::set<std::string_view> hosts, names;
    for (size_t i = 0; i < devices.size(); ++i) {
      Path device = place.element(i);
      auto check = [&](const char* member, const std::string& value,
                       std::set<std::string_view>& seen) -> Result<void> {
        bool good = !value.empty() && value.size() < 16 && value != "." && value != ".." &&
                    value.find_first_of(std::string_view("/ \t\n\0", 5)) == std::string::npos;
        if (!good) return fault(device.member(member), quote(value) + " names no interface");
        if (seen.insert(value).second) return {};
        return fault(device.member(member), quote(value) + " is given twice");
      };
      TRY(check("hostInterfaceName", devices[i].host_interface_name, hosts));
      TRY(check("name", devices[i].name, names));
    }
    return {};
  }

  static Result<void> check_hook(const Path& place, const Hook& hook) {
    auto names = hook_names();
    if (std::ranges::find(names, hook.hook_name) == names.end()) {
      return fault(place.member("hookName"), quote(hook.hook_name) + " is not a stage of hooks");
    }
    if (!is_path(hook.path)) {
      return fault(place.member("path"), "expected an absolute path, got " + quote(hook.path));
    }
    TRY(check_env(place, hook.env));
    if (hook.timeout && *hook.timeout <= 0) return fault(place.member("timeout"), "not above 0");
    return {};
  }

  static Result<void> check_mount(const Path& place, const Mount& mount) {
    if (mount.host_path.empty()) return fault(place.member("hostPath"), "empty");
    if (is_path(mount.container_path)) return {};
    return fault(place.member("containerPath"),
                 "expected an absolute path, got " + quote(mount.container_path));
  }

  Result<void> check_rdt(const Path& place, const IntelRdt& rdt) const {
    const std::string& id = rdt.clos_id;
    bool good = id.empty() || id == "/" ||
                (id != "." && id != ".." && id.size() < 4096 &&
                 id.find_first_of(std::string_view("/\n\0", 3)) == std::string::npos);
    if (!good) return fault(place.member("closID"), quote(id) + " names no class of service");
    if (!rdt.enable_cmt && !rdt.enable_mbm) return {};
    if (compare_versions(spec_.version, "1.1.0") < 0) return {};
    return fault(place.member(rdt.enable_cmt ? "enableCMT" : "enableMBM"),
                 "enableMonitoring took its place in 1.1.0");
  }

  const Spec& spec_;
};

}  // namespace

Result<void> validate(const Spec& spec, std::string_view file) {
  return Validator(spec).run(file);
}

bool looks_qualified(std::string_view text) {
  return !text.starts_with('/') && text.find('=') != std::string_view::npos;
}

Result<QualifiedName> parse_name(std::string_view text) {
  size_t equals = text.find('=');
  std::string_view kind = text.substr(0, equals);
  std::string_view device = equals == std::string_view::npos ? "" : text.substr(equals + 1);
  if (is_kind(kind) && is_device_name(device)) {
    return QualifiedName{std::string(kind), std::string(device)};
  }
  return make_error(Kind::usage, "device " + quote(text) + ": expected vendor/class=name",
                    "a name of 'berth cdi list', such as nvidia.com/gpu=0");
}

}  // namespace berth::oci::cdi
