// SPDX-License-Identifier: Apache-2.0
#include "bench/networks/layers.hpp"

#include <cmath>

#include "bench/networks/elements.hpp"

namespace berth::bench {
namespace {

int rows_of(const Maps& maps) {
  return maps.channels * maps.images * maps.height;
}

/// What the window sees is the input as it lies.
bool sees_one_place(const Window& window) {
  return window.size == 1 && window.stride == 1 && window.border == 0;
}

Tensor parameters(Device& device, int channels, int of_each) {
  Maps maps{.channels = channels, .images = 1, .height = 1, .width = of_each};
  auto count = static_cast<size_t>(maps.count());
  return {maps, device.allocate(count), device.allocate(count)};
}

void descend(Device& device, const Tensor& of, float rate) {
  device.each(1, of.maps.count(), Descend{of.gradient, of.value, rate});
}

}  // namespace

// ---- convolution --------------------------------------------------------------------------------

ConvolutionLayer::ConvolutionLayer(Device& device, const Scratch& scratch, const Tensor& in,
                                   const Tensor& out, const Convolution& shape, uint32_t seed)
    : scratch_(scratch),
      in_(in),
      out_(out),
      window_{in.maps, out.maps, shape.size, shape.stride, shape.border},
      rectify_(shape.rectify),
      weights_(parameters(device, shape.channels, weights_per_channel())),
      bias_(parameters(device, shape.channels, 1)) {
  float scale = std::sqrt(6.0F / static_cast<float>(weights_per_channel()));
  device.each(1, weights_.maps.count(), FillWithNoise{weights_.value, scale, seed});
}

size_t ConvolutionLayer::column_count() const {
  return static_cast<size_t>(weights_per_channel()) * static_cast<size_t>(out_.maps.plane());
}

Matrix ConvolutionLayer::columns(Device& device) const {
  int rows = weights_per_channel();
  if (sees_one_place(window_)) return {in_.value, rows, out_.maps.plane()};
  device.each(rows * out_.maps.images * out_.maps.height, out_.maps.width,
              Unfold{window_, in_.value, scratch_.columns});
  return {scratch_.columns, rows, out_.maps.plane()};
}

void ConvolutionLayer::forward(Device& device) {
  int channels = out_.maps.channels, plane = out_.maps.plane();
  Matrix weights{weights_.value, channels, weights_per_channel()};
  device.multiply(weights, columns(device), out_.value);
  device.each(channels, plane,
              BiasAndRectify{bias_.value, out_.value, plane, rectify_ == Rectify::yes});
}

void ConvolutionLayer::backward(Device& device) {
  int channels = out_.maps.channels, plane = out_.maps.plane();
  if (rectify_ == Rectify::yes) {
    device.each(1, out_.maps.count(), Unrectify{out_.value, out_.gradient});
  }
  Matrix gradient{out_.gradient, channels, plane};
  Matrix seen = columns(device);
  seen.turned = true;
  device.multiply(gradient, seen, weights_.gradient);
  device.multiply(gradient, {scratch_.ones, plane, 1}, bias_.gradient);
  if (in_.gradient == nullptr) return;
  Matrix weights{weights_.value, channels, weights_per_channel(), true};
  device.multiply(weights, gradient, scratch_.gradient);
  device.each(rows_of(in_.maps), in_.maps.width, Fold{window_, scratch_.gradient, in_.gradient});
}

void ConvolutionLayer::descend(Device& device, float rate) {
  bench::descend(device, weights_, rate);
  bench::descend(device, bias_, rate);
}

// ---- pooling ------------------------------------------------------------------------------------

LargestLayer::LargestLayer(Device& device, const Tensor& in, const Tensor& out,
                           const Window& window)
    : in_(in),
      out_(out),
      window_(window),
      which_(device.allocate(static_cast<size_t>(out.maps.count()))) {}

void LargestLayer::forward(Device& device) {
  device.each(rows_of(out_.maps), out_.maps.width,
              TakeLargest{window_, in_.value, out_.value, which_});
}

void LargestLayer::backward(Device& device) {
  device.each(rows_of(in_.maps), in_.maps.width,
              GiveToLargest{window_, out_.gradient, which_, in_.gradient});
}

void MeanLayer::forward(Device& device) {
  int area = in_.maps.height * in_.maps.width;
  device.each(1, out_.maps.count(), TakeMean{in_.value, out_.value, area});
}

void MeanLayer::backward(Device& device) {
  int area = in_.maps.height * in_.maps.width;
  device.each(1, out_.maps.count(), GiveToMean{out_.gradient, in_.gradient, area});
}

}  // namespace berth::bench
