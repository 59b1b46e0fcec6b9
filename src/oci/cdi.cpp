// SPDX-License-Identifier: Apache-2.0
#include "oci/cdi.hpp"

#include <algorithm>
#include <array>

#include "json/fields.hpp"

namespace berth::oci::cdi {
namespace {

constexpr std::array<std::string_view, 8> kVersions = {"0.3.0", "0.4.0", "0.5.0", "0.6.0",
                                                       "0.7.0", "0.8.0", "1.0.0", "1.1.0"};
// The file for a driver has about two hundred values.
constexpr json::Limits kLimits{
    .max_bytes = size_t{16} << 20, .max_depth = 32, .max_values = 500'000, .unique_names = true};

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

std::string_view later(std::string_view left, std::string_view right) {
  return compare_versions(left, right) < 0 ? right : left;
}

std::string_view needed_by(const Edits& edits) {
  std::string_view needed = kVersions.front();
  auto at_least = [&](bool has, std::string_view version) {
    if (has) needed = later(needed, version);
  };
  for (const Mount& mount : edits.mounts) at_least(!mount.type.empty(), "0.4.0");
  for (const DeviceNode& node : edits.device_nodes) at_least(!node.host_path.empty(), "0.5.0");
  at_least(edits.intel_rdt.has_value(), "0.7.0");
  at_least(!edits.additional_gids.empty(), "0.7.0");
  at_least(!edits.net_devices.empty(), "1.1.0");
  if (edits.intel_rdt) {
    at_least(!edits.intel_rdt->schemata.empty() || edits.intel_rdt->enable_monitoring, "1.1.0");
  }
  return needed;
}

}  // namespace

std::span<const std::string_view> versions() {
  return kVersions;
}

int compare_versions(std::string_view left, std::string_view right) {
  auto place = [](std::string_view version) {
    return std::ranges::find(kVersions, version) - kVersions.begin();
  };
  return static_cast<int>(place(left) - place(right));
}

bool Edits::empty() const {
  return env.empty() && device_nodes.empty() && net_devices.empty() && hooks.empty() &&
         mounts.empty() && !intel_rdt && additional_gids.empty();
}

std::string_view needed_version(const Spec& spec) {
  std::string_view needed = needed_by(spec.edits);
  if (!spec.annotations.empty()) needed = later(needed, "0.6.0");
  // "A class with a dot": the class is the part after the first slash.
  size_t slash = spec.kind.find('/');
  if (slash != std::string::npos && spec.kind.find('.', slash) != std::string::npos) {
    needed = later(needed, "0.6.0");
  }
  for (const Device& device : spec.devices) {
    needed = later(needed, needed_by(device.edits));
    if (!device.annotations.empty()) needed = later(needed, "0.6.0");
    if (!device.name.empty() && !is_letter(device.name.front())) needed = later(needed, "0.5.0");
  }
  return needed;
}

// The field tables. They refuse unknown members, because such a member may be a restriction.

void fields(auto& v, DeviceNode& node) {
  v.required("path", node.path);
  v.optional("hostPath", node.host_path);
  v.optional("type", node.type);
  v.optional("major", node.major);
  v.optional("minor", node.minor);
  v.optional("fileMode", node.file_mode);
  v.optional("permissions", node.permissions);
  v.optional("uid", node.uid);
  v.optional("gid", node.gid);
  v.strict();
}

void fields(auto& v, Mount& mount) {
  v.required("hostPath", mount.host_path);
  v.required("containerPath", mount.container_path);
  v.optional("options", mount.options);
  v.optional("type", mount.type);
  v.strict();
}

void fields(auto& v, Hook& hook) {
  v.required("hookName", hook.hook_name);
  v.required("path", hook.path);
  v.optional("args", hook.args);
  v.optional("env", hook.env);
  v.optional("timeout", hook.timeout);
  v.strict();
}

void fields(auto& v, NetDevice& device) {
  v.required("hostInterfaceName", device.host_interface_name);
  v.required("name", device.name);
  v.strict();
}

void fields(auto& v, IntelRdt& rdt) {
  v.optional("closID", rdt.clos_id);
  v.optional("l3CacheSchema", rdt.l3_cache_schema);
  v.optional("memBwSchema", rdt.mem_bw_schema);
  v.optional("schemata", rdt.schemata);
  v.optional("enableMonitoring", rdt.enable_monitoring);
  v.optional("enableCMT", rdt.enable_cmt);
  v.optional("enableMBM", rdt.enable_mbm);
  v.strict();
}

void fields(auto& v, Edits& edits) {
  v.optional("env", edits.env);
  v.optional("deviceNodes", edits.device_nodes);
  v.optional("netDevices", edits.net_devices);
  v.optional("hooks", edits.hooks);
  v.optional("mounts", edits.mounts);
  v.optional("intelRdt", edits.intel_rdt);
  v.optional("additionalGids", edits.additional_gids);
  v.strict();
}

void fields(auto& v, Device& device) {
  v.required("name", device.name);
  v.optional("annotations", device.annotations);
  v.required("containerEdits", device.edits);
  v.strict();
}

void fields(auto& v, Spec& spec) {
  v.required("cdiVersion", spec.version);
  v.required("kind", spec.kind);
  v.optional("annotations", spec.annotations);
  v.required("devices", spec.devices);
  v.optional("containerEdits", spec.edits);
  v.strict();
}

Result<Spec> from_document(const json::Value& document, std::string_view file) {
  Spec spec = TRY(json::from_value<Spec>(document, file));
  TRY(validate(spec, file));
  return spec;
}

Result<Spec> read_json(std::string_view text, std::string_view file) {
  json::Value document = TRY(json::parse(text, file, kLimits));
  return from_document(document, file);
}

json::Value to_document(const Spec& spec) {
  json::Value document = json::to_value(spec);
  // If the edits of the whole file are empty, the member is left out.
  if (spec.edits.empty()) {
    std::erase_if(*document.get_if<json::Object>(),
                  [](const auto& member) { return member.first == "containerEdits"; });
  }
  return document;
}

}  // namespace berth::oci::cdi
