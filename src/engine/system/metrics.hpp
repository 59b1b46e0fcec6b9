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

/// What containers and GPUs use, as Prometheus reads it.
/// Source: prometheus.io/docs/instrumenting/exposition_formats, "Text-based format".
namespace berth::engine {

inline constexpr const char* kMetricsType = "text/plain; version=0.0.4; charset=utf-8";

/// Of one moment.
struct Measured {
  std::vector<ContainerSummary> containers;  ///< all
  std::vector<std::pair<ContainerSummary, Usage>> running;
  GpuTop gpus;
};

/// Measures what runs now. Costs the start of berth-runtime for each running container.
/// Errors: io (the store). GPUs that cannot be listed are a warning.
Result<Measured> measure_all(const Context& context);

/// All of it in the text format; what is not known is absent. Pure.
std::string metrics_text(const Measured& measured);

/// Writes them to a file, which is replaced as a whole.  Errors: those of measure_all(), io.
Result<void> write_metrics(const Context& context, const std::string& path);

}  // namespace berth::engine
