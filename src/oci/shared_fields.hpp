// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "oci/runtime_spec.hpp"

namespace berth::oci {

// Field tables that config.json, its edits (oci/edit_fields.hpp) and the state file share.

void fields(auto& v, IdMapping& mapping) {
  v.required("containerID", mapping.container_id);
  v.required("hostID", mapping.host_id);
  v.required("size", mapping.size);
}

void fields(auto& v, Mount& mount) {
  v.required("destination", mount.destination);
  v.optional("type", mount.type);
  v.optional("source", mount.source);
  v.optional("options", mount.options);
  v.optional("uidMappings", mount.uid_mappings);
  v.optional("gidMappings", mount.gid_mappings);
  v.rest(mount.rest);
}

void fields(auto& v, DeviceRule& rule) {
  v.required("allow", rule.allow);
  v.optional("type", rule.type);
  v.optional("major", rule.major);
  v.optional("minor", rule.minor);
  v.optional("access", rule.access);
}

void fields(auto& v, IntelRdt& rdt) {
  v.optional("closID", rdt.clos_id);
  v.optional("schemata", rdt.schemata);
  v.optional("l3CacheSchema", rdt.l3_cache_schema);
  v.optional("memBwSchema", rdt.mem_bw_schema);
  v.optional("enableMonitoring", rdt.enable_monitoring);
  v.rest(rdt.rest);
}

// The tables for "hooks", which are part of config.json and are copied to the state file, because
// config.json may be gone when they run.

void fields(auto& v, Hook& hook) {
  v.required("path", hook.path);
  v.optional("args", hook.args);
  v.optional("env", hook.env);
  v.optional("timeout", hook.timeout);
}

void fields(auto& v, Hooks& hooks) {
  v.optional("prestart", hooks.prestart);
  v.optional("createRuntime", hooks.create_runtime);
  v.optional("createContainer", hooks.create_container);
  v.optional("startContainer", hooks.start_container);
  v.optional("poststart", hooks.poststart);
  v.optional("poststop", hooks.poststop);
  v.rest(hooks.rest);
}

}  // namespace berth::oci
