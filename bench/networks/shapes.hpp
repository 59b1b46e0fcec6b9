// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

#include "bench/networks/network.hpp"

namespace berth::bench {

/// The layers of a published network: those whose shapes make the work. Left out are local response
/// normalisation, dropout and GoogLeNet's two classifiers on the way, as in the convnet-benchmarks
/// that the founding document ran.
struct NetworkShape {
  std::string_view name;
  int channels, side, classes;  // of the input, and of the output
  uint64_t usual_batch;         // images, as those benchmarks had it
  uint64_t usual_batches;
  /// Adds the layers; gives the scores.
  Tensor (*build)(Network&);
};

const std::vector<NetworkShape>& network_shapes();

/// Shape: `name` is one of network_shapes().
const NetworkShape& network_shape(std::string_view name);

}  // namespace berth::bench
