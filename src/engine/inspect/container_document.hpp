// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/inspect/container_facts.hpp"
#include "json/value.hpp"
#include "oci/image_spec.hpp"

/// The documents of `inspect`, in docker's names and order. Pure.
namespace berth::engine {

json::Value container_document(const ContainerFacts& facts);

/// The defaults for an image made from the container: its image's defaults, overridden by its
/// request.
oci::ContainerDefaults container_defaults(const ContainerFacts& facts);

/// "Config" of an image, or of a container that changes nothing.
json::Value config_document(const oci::ContainerDefaults& config);

}  // namespace berth::engine
