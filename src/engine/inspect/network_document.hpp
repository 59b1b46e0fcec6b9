// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "engine/inspect/container_facts.hpp"

/// The network of a container for `inspect`, in docker's names and order. Pure.
namespace berth::engine {

/// "bridge", "none", "container:<id>"
std::string network_mode(const RunRequest& request);

/// "HostConfig.PortBindings": the requested ports.
json::Value port_bindings(const RunRequest& request);

/// Adds the ports of --expose and --publish to "Config.ExposedPorts", one entry for each port.
void add_exposed_ports(const RunRequest& request, oci::ContainerDefaults& config);

/// "NetworkSettings": the current state of the network.
json::Value network_settings(const ContainerFacts& facts);

}  // namespace berth::engine
