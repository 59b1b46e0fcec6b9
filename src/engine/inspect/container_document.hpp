// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/inspect/container_facts.hpp"
#include "json/value.hpp"
#include "oci/image_spec.hpp"

/// The documents of `inspect`, in docker's names and order. Pure.
namespace berth::engine {

json::Value container_document(const ContainerFacts& facts);

/// The defaults for an image made from the container: those of the container's image, overridden by
/// the container's request.
oci::ContainerDefaults container_defaults(const ContainerFacts& facts);

/// The member "Config" of an image, or of a container that overrides none of the image's defaults.
json::Value config_document(const oci::ContainerDefaults& config);

}  // namespace berth::engine
