// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "base/result.hpp"
#include "engine/context/context.hpp"
#include "engine/request/request.hpp"
#include "json/value.hpp"
#include "oci/image_spec.hpp"

namespace berth::engine {

/// The health check of a container: what the flags say, else what the image says, with docker's
/// defaults (30s, 30s, 0s, 3), and its command ready to be executed. Nothing where there is none.
/// Flags may ask for a check every millisecond; an image, which nobody here has written, for one a
/// second.  Pure.
std::optional<oci::Healthcheck> health_check(const Health& flags,
                                             const oci::ContainerDefaults& image);
/// One sentence where the image's check is made more slowly than the image says; else nothing.
std::optional<std::string> slowed_check(const Health& flags, const oci::ContainerDefaults& image);

/// What the monitor of a running container has found out, with docker's members: Status,
/// FailingStreak, Log. Nothing where it has no check.
std::optional<json::Value> read_health(const Paths& paths, const std::string& id);

/// "starting", "healthy", "unhealthy"; empty where it has no check.
std::string health_status(const Paths& paths, const std::string& id);

}  // namespace berth::engine
