// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "engine/container/list.hpp"
#include "engine/container/stats.hpp"
#include "engine/context/context.hpp"
#include "engine/gpu/top.hpp"

/// The resource usage of containers and GPUs in Prometheus' format.
/// Source: prometheus.io/docs/instrumenting/exposition_formats, "Text-based format".
namespace berth::engine {

inline constexpr const char* kMetricsType = "text/plain; version=0.0.4; charset=utf-8";

/// Measurements taken at one time.
struct Measured {
  std::vector<ContainerSummary> containers;  ///< all
  std::vector<std::pair<ContainerSummary, Usage>> running;
  GpuTop gpus;
};

/// Measures all running containers. Starts berth-runtime once or twice for each container.
/// Errors: io (the store). GPUs that cannot be listed are only a warning.
Result<Measured> measure_all(const Context& context);

/// The known measurements in the text format. Pure.
std::string metrics_text(const Measured& measured);

/// Writes the metrics to a file, atomically.  Errors: those of measure_all(), io.
Result<void> write_metrics(const Context& context, const std::string& path);

/// Serves "GET /metrics" over HTTP on a UNIX socket at `path`, for this user only, one request at a
/// time. After SIGINT, SIGTERM or SIGHUP completes the current answer and removes the socket.
/// Disconnects a client that does not send its request, or read the answer, within five seconds.
/// Replaces a socket without a listener. Errors: io (EADDRINUSE: another process listens there),
/// exists (not a socket), usage (the path is too long). Source: RFC 9112.
Result<void> serve_metrics(const Context& context, const std::string& path);

}  // namespace berth::engine
