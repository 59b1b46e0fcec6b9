// SPDX-License-Identifier: Apache-2.0
#include "bench/networks/shapes.hpp"

#include <algorithm>

namespace berth::bench {
namespace {

/// size × size with a border that keeps height and width.
Convolution same(int channels, int size) {
  return {.channels = channels, .size = size, .border = size / 2};
}

Tensor classify(Network& network, Tensor maps, std::vector<int> hidden, int classes) {
  for (int outputs : hidden) maps = network.connect(maps, outputs);
  return network.connect(maps, classes, Rectify::no);
}

// Krizhevsky, "One weird trick for parallelizing convolutional neural networks" (2014): one column.
Tensor alexnet(Network& network) {
  Tensor at =
      network.convolve(network.input(), {.channels = 64, .size = 11, .stride = 4, .border = 2});
  at = network.take_largest(at, 3, 2);
  at = network.convolve(at, same(192, 5));
  at = network.take_largest(at, 3, 2);
  for (int channels : {384, 256, 256}) at = network.convolve(at, same(channels, 3));
  at = network.take_largest(at, 3, 2);
  return classify(network, at, {4096, 4096}, 1000);
}

// Sermanet et al. (2013), the fast model.
Tensor overfeat(Network& network) {
  Tensor at = network.convolve(network.input(), {.channels = 96, .size = 11, .stride = 4});
  at = network.take_largest(at, 2, 2);
  at = network.convolve(at, {.channels = 256, .size = 5});
  at = network.take_largest(at, 2, 2);
  for (int channels : {512, 1024, 1024}) at = network.convolve(at, same(channels, 3));
  at = network.take_largest(at, 2, 2);
  return classify(network, at, {3072, 4096}, 1000);
}

// Simonyan and Zisserman (2014), configuration A; 0 stands for a pooling.
Tensor vgg(Network& network) {
  Tensor at = network.input();
  for (int channels : {64, 0, 128, 0, 256, 256, 0, 512, 512, 0, 512, 512, 0}) {
    at = channels == 0 ? network.take_largest(at, 2, 2) : network.convolve(at, same(channels, 3));
  }
  return classify(network, at, {4096, 4096}, 1000);
}

/// A row of Szegedy et al. (2014), table 1.
struct Inception {
  int one, three_before, three, five_before, five, pooled;
};

Tensor inception(Network& network, const Tensor& from, const Inception& width) {
  Tensor to = network.room(width.one + width.three + width.five + width.pooled, from.maps);
  int channel = 0;
  auto branch = [&](const Tensor& source, const Convolution& shape) {
    network.convolve(source, shape, to.part(channel, shape.channels));
    channel += shape.channels;
  };
  branch(from, same(width.one, 1));
  branch(network.convolve(from, same(width.three_before, 1)), same(width.three, 3));
  branch(network.convolve(from, same(width.five_before, 1)), same(width.five, 5));
  branch(network.take_largest(from, 3, 1, 1), same(width.pooled, 1));
  return to;
}

Tensor googlenet(Network& network) {
  Tensor at =
      network.convolve(network.input(), {.channels = 64, .size = 7, .stride = 2, .border = 3});
  at = network.take_largest(at, 3, 2);
  at = network.convolve(at, same(64, 1));
  at = network.convolve(at, same(192, 3));
  at = network.take_largest(at, 3, 2);
  at = inception(network, at, {64, 96, 128, 16, 32, 32});
  at = inception(network, at, {128, 128, 192, 32, 96, 64});
  at = network.take_largest(at, 3, 2);
  at = inception(network, at, {192, 96, 208, 16, 48, 64});
  at = inception(network, at, {160, 112, 224, 24, 64, 64});
  at = inception(network, at, {128, 128, 256, 24, 64, 64});
  at = inception(network, at, {112, 144, 288, 32, 64, 64});
  at = inception(network, at, {256, 160, 320, 32, 128, 128});
  at = network.take_largest(at, 3, 2);
  at = inception(network, at, {256, 160, 320, 32, 128, 128});
  at = inception(network, at, {384, 192, 384, 48, 128, 128});
  return classify(network, network.take_mean(at), {}, 1000);
}

// The TensorFlow tutorial's network for MNIST (mnist_deep).
Tensor mnist(Network& network) {
  Tensor at = network.convolve(network.input(), same(32, 5));
  at = network.take_largest(at, 2, 2);
  at = network.convolve(at, same(64, 5));
  at = network.take_largest(at, 2, 2);
  return classify(network, at, {1024}, 10);
}

}  // namespace

const std::vector<NetworkShape>& network_shapes() {
  static const std::vector<NetworkShape> shapes = {
      {"alexnet", 3, 224, 1000, 128, 1000, alexnet},
      {"googlenet", 3, 224, 1000, 128, 1000, googlenet},
      {"overfeat", 3, 231, 1000, 128, 1000, overfeat},
      {"vgg", 3, 224, 1000, 64, 1000, vgg},
      {"mnist", 1, 28, 10, 50, 20000, mnist},
  };
  return shapes;
}

const NetworkShape& network_shape(std::string_view name) {
  const auto& shapes = network_shapes();
  return *std::find_if(shapes.begin(), shapes.end(),
                       [&](const NetworkShape& shape) { return shape.name == name; });
}

}  // namespace berth::bench
