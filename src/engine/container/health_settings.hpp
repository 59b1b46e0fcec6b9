// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "engine/context/context.hpp"
#include "engine/request/request.hpp"
#include "json/value.hpp"
#include "oci/image_spec.hpp"

namespace berth::engine {

/// The health check of a container: the flags, else the image, else docker's defaults (30s, 30s,
/// 0s, 3), and the command to execute. Nothing if there is no check. Flags may ask for a check
/// every millisecond; an image, which is untrusted, at most for a check every second.  Pure.
std::optional<oci::Healthcheck> health_check(const Health& flags,
                                             const oci::ContainerDefaults& image);
/// One sentence if the image's check runs less often than the image asks; else nothing.
std::optional<std::string> slowed_check(const Health& flags, const oci::ContainerDefaults& image);

/// The health state that the monitor of a running container has written, with docker's members:
/// Status, FailingStreak, Log. Nothing without a check.
std::optional<json::Value> read_health(const Paths& paths, const std::string& id);

/// "starting", "healthy", "unhealthy"; empty without a check.
std::string health_status(const Paths& paths, const std::string& id);

}  // namespace berth::engine
