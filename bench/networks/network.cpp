// SPDX-License-Identifier: Apache-2.0
#include "bench/networks/network.hpp"

#include <algorithm>
#include <numeric>

#include "base/assert.hpp"
#include "bench/networks/elements.hpp"
#include "bench/networks/layers.hpp"

namespace berth::bench {
namespace {

/// Places of a window on a line; one that begins inside and is cut off counts where `cut` says so.
int places(int length, const Window& window, bool cut) {
  int last = length + 2 * window.border - window.size;
  return (last + (cut ? window.stride - 1 : 0)) / window.stride + 1;
}

}  // namespace

Tensor Tensor::part(int first_channel, int channels) const {
  Tensor found = *this;
  found.maps.channels = channels;
  found.value += first_channel * maps.plane();
  if (found.gradient != nullptr) found.gradient += first_channel * maps.plane();
  return found;
}

Network::Network(Device& device, const Maps& input) : device_(device) {
  input_ = {input, device.allocate(static_cast<size_t>(input.count())), nullptr};
}

Tensor Network::room(int channels, const Maps& like) {
  Maps maps = like;
  maps.channels = channels;
  auto count = static_cast<size_t>(maps.count());
  return written_.emplace_back(Tensor{maps, device_.allocate(count), device_.allocate(count)});
}

Tensor Network::convolve(const Tensor& from, const Convolution& shape) {
  Window window{from.maps, {}, shape.size, shape.stride, shape.border};
  Maps maps = from.maps;
  maps.height = places(from.maps.height, window, false);
  maps.width = places(from.maps.width, window, false);
  Tensor to = room(shape.channels, maps);
  convolve(from, shape, to);
  return to;
}

void Network::convolve(const Tensor& from, const Convolution& shape, const Tensor& to) {
  auto layer = std::make_unique<ConvolutionLayer>(device_, scratch_, from, to, shape,
                                                  static_cast<uint32_t>(layers_.size() + 1));
  most_columns_ = std::max(most_columns_, layer->column_count());
  widest_plane_ = std::max(widest_plane_, to.maps.plane());
  layers_.push_back(std::move(layer));
}

Tensor Network::connect(const Tensor& from, int outputs, Rectify rectify) {
  return convolve(from, {.channels = outputs, .size = from.maps.height, .rectify = rectify});
}

Tensor Network::take_largest(const Tensor& from, int size, int stride, int border) {
  Window window{from.maps, from.maps, size, stride, border};
  window.out.height = places(from.maps.height, window, true);
  window.out.width = places(from.maps.width, window, true);
  Tensor to = room(from.maps.channels, window.out);
  layers_.push_back(std::make_unique<LargestLayer>(device_, from, to, window));
  return to;
}

Tensor Network::take_mean(const Tensor& from) {
  Maps maps = from.maps;
  maps.height = maps.width = 1;
  Tensor to = room(from.maps.channels, maps);
  layers_.push_back(std::make_unique<MeanLayer>(from, to));
  return to;
}

void Network::finish(const Tensor& scores) {
  BERTH_ASSERT(scores.maps.plane() == input_.maps.images);
  scores_ = scores;
  scratch_.columns = device_.allocate(most_columns_);
  scratch_.gradient = device_.allocate(most_columns_);
  scratch_.ones = device_.allocate(static_cast<size_t>(widest_plane_));
  device_.each(1, widest_plane_, Fill{scratch_.ones, 1});
  labels_ = device_.allocate(static_cast<size_t>(input_.maps.images));
  losses_ = device_.allocate(static_cast<size_t>(input_.maps.images));
}

void Network::forward() {
  for (auto& layer : layers_) layer->forward(device_);
  device_.each(1, scores_.maps.images,
               CrossEntropy{scores_.value, labels_, scores_.gradient, losses_,
                            scores_.maps.channels, scores_.maps.images});
}

void Network::step(float rate) {
  for (const Tensor& tensor : written_) {
    device_.each(1, tensor.maps.count(), Fill{tensor.gradient, 0});
  }
  forward();
  for (auto layer = layers_.rbegin(); layer != layers_.rend(); ++layer) {
    (*layer)->backward(device_);
  }
  for (auto& layer : layers_) layer->descend(device_, rate);
  device_.wait();
}

double Network::loss() {
  forward();
  std::vector<float> losses(static_cast<size_t>(input_.maps.images));
  device_.wait();
  device_.download(losses_, losses.data(), losses.size());
  return std::accumulate(losses.begin(), losses.end(), 0.0) / static_cast<double>(losses.size());
}

}  // namespace berth::bench
