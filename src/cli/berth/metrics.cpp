// SPDX-License-Identifier: Apache-2.0
#include "engine/system/metrics.hpp"

#include "cli/berth/common.hpp"

namespace berth::cli {
namespace {

struct MetricsOptions {
  std::string output;
  std::string socket;
};

FlagTable metrics_flags(MetricsOptions& o) {
  return {
      {"output", 'o', "FILE", "Write to FILE, replacing it atomically", &o.output},
      {"socket", 0, "PATH", "Serve over HTTP on a Unix socket until a signal arrives", &o.socket},
  };
}

Result<int> run_metrics(Session& session, const MetricsOptions& o, Arguments) {
  if (!o.output.empty() && !o.socket.empty())
    return make_error(Kind::usage, "--output and --socket cannot be used together");
  if (!o.socket.empty()) {
    TRY(engine::serve_metrics(session.context, o.socket));
    return 0;
  }
  if (!o.output.empty()) {
    TRY(engine::write_metrics(session.context, o.output));
    return 0;
  }
  engine::Measured measured = TRY(engine::measure_all(session.context));
  print(session, engine::metrics_text(measured));
  return 0;
}

}  // namespace

const Verb metrics_verb{
    .text = {.name = "metrics",
             .summary = "Print resource use of containers and GPUs in Prometheus format",
             .example = "berth metrics --output /var/lib/node_exporter/berth.prom"},
    .command = [] { return make_command(metrics_flags, run_metrics); },
};

}  // namespace berth::cli
