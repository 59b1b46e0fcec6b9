// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.hpp"
#include "oci/image_spec.hpp"

namespace berth::transfer {

/// Applies one Dockerfile instruction about the config, as docker import --change: CMD, ENTRYPOINT,
/// ENV, EXPOSE, LABEL, ONBUILD, STOPSIGNAL, USER, VOLUME, WORKDIR. CMD and ENTRYPOINT as a JSON
/// array, else run by /bin/sh -c.
/// Errors: usage.
Result<void> apply_change(const std::string& instruction, oci::ContainerDefaults& config);

}  // namespace berth::transfer
