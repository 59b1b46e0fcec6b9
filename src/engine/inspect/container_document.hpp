// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/inspect/container_facts.hpp"
#include "json/value.hpp"
#include "oci/image_spec.hpp"

/// The documents of `inspect`, in docker's names and order. Pure.
namespace berth::engine {

json::Value container_document(const ContainerFacts& facts);

/// The defaults of an image that is made of the container: those of its image with what was asked
/// of the container over them.
oci::ContainerDefaults container_defaults(const ContainerFacts& facts);

/// "Config" of an image, or of a container that adds nothing.
json::Value config_document(const oci::ContainerDefaults& config);

}  // namespace berth::engine
