// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "oci/runtime_spec.hpp"

namespace berth::oci {

// The tables of "hooks", which are part of config.json and of the state that outlives it.

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
