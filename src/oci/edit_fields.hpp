// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "oci/edit.hpp"
#include "oci/shared_fields.hpp"

namespace berth::oci {

// The JSON form of edits that Berth's programs exchange (the index of CDI devices). It is not the
// form of CDI files.

void fields(auto& v, DeviceNode& node) {
  v.required("path", node.path);
  v.optional("host_path", node.host_path);
  v.required("type", node.type);
  v.required("major", node.major);
  v.required("minor", node.minor);
  v.required("permissions", node.permissions);
  v.optional("file_mode", node.file_mode);
  v.optional("uid", node.uid);
  v.optional("gid", node.gid);
  v.optional("owned_by_process", node.owned_by_process);
}

void fields(auto& v, Link& link) {
  v.required("path", link.path);
  v.required("target", link.target);
}

void fields(auto& v, LoaderLine& line) {
  v.required("soname", line.soname);
  v.required("path", line.path);
  v.required("flags", line.flags);
}

void fields(auto& v, NetDeviceEdit& device) {
  v.required("host_name", device.host_name);
  v.required("name", device.name);
}

void fields(auto& v, CompatRequest& request) {
  v.optional("host_driver_version", request.host_driver_version);
  v.optional("host_cuda_version", request.host_cuda_version);
  v.required("container_root", request.container_root);
}

void fields(auto& v, ContainerEdits& edits) {
  v.optional("env", edits.env);
  v.optional("device_nodes", edits.device_nodes);
  v.optional("mounts", edits.mounts);
  v.optional("additional_gids", edits.additional_gids);
  v.required("hooks", edits.hooks);
  v.optional("net_devices", edits.net_devices);
  v.optional("intel_rdt", edits.intel_rdt);
  v.optional("links", edits.links);
  v.optional("loader_entries", edits.loader_entries);
  v.optional("compat", edits.compat);
  v.optional("freeze_device_nodes", edits.freeze_device_nodes);
  v.optional("application_profile", edits.application_profile);
}

}  // namespace berth::oci
