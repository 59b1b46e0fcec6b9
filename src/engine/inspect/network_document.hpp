// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "engine/inspect/container_facts.hpp"

/// What `inspect` says of a container's network, in docker's names and order. Pure.
namespace berth::engine {

/// "bridge", "none", "container:<id>"
std::string network_mode(const RunRequest& request);

/// "HostConfig.PortBindings": ports as they were asked for.
json::Value port_bindings(const RunRequest& request);

/// Adds to "Config.ExposedPorts" what --expose and --publish name, a port each.
void add_exposed_ports(const RunRequest& request, oci::ContainerDefaults& config);

/// "NetworkSettings": what there is of the network now.
json::Value network_settings(const ContainerFacts& facts);

}  // namespace berth::engine
