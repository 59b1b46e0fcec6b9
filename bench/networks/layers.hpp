// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "bench/networks/network.hpp"

namespace berth::bench {

/// A convolution as one matrix product with what its window sees, then bias and, if asked for,
/// rectifying. Weights begin as noise of He's scale, another for each `seed`.
/// Source: He et al., "Delving Deep into Rectifiers" (2015), uniform.
class ConvolutionLayer : public Layer {
 public:
  ConvolutionLayer(Device& device, const Scratch& scratch, const Tensor& in, const Tensor& out,
                   const Convolution& shape, uint32_t seed);

  /// Elements of what the window sees, for all images.
  size_t column_count() const;

  void forward(Device& device) override;
  void backward(Device& device) override;
  void descend(Device& device, float rate) override;

 private:
  int weights_per_channel() const { return in_.maps.channels * window_.size * window_.size; }
  Matrix columns(Device& device) const;

  const Scratch& scratch_;
  Tensor in_, out_;
  Window window_;
  Rectify rectify_;
  Tensor weights_, bias_;  // a channel for each of the output's
};

class LargestLayer : public Layer {
 public:
  LargestLayer(Device& device, const Tensor& in, const Tensor& out, const Window& window);
  void forward(Device& device) override;
  void backward(Device& device) override;

 private:
  Tensor in_, out_;
  Window window_;
  float* which_;
};

class MeanLayer : public Layer {
 public:
  MeanLayer(const Tensor& in, const Tensor& out) : in_(in), out_(out) {}
  void forward(Device& device) override;
  void backward(Device& device) override;

 private:
  Tensor in_, out_;
};

}  // namespace berth::bench
