// SPDX-License-Identifier: Apache-2.0
#include "oci/runtime_spec.hpp"

namespace berth::oci {

bool Hooks::empty() const {
  return prestart.empty() && create_runtime.empty() && create_container.empty() &&
         start_container.empty() && poststart.empty() && poststop.empty();
}

}  // namespace berth::oci
