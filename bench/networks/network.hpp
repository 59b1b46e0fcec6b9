// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "bench/networks/device.hpp"
#include "bench/networks/maps.hpp"

namespace berth::bench {

/// What lies between two layers, and the gradient of the loss by it; no gradient where nobody asks.
struct Tensor {
  Maps maps;
  float* value = nullptr;
  float* gradient = nullptr;

  /// A range of channels of this one, in the same memory.
  Tensor part(int first_channel, int channels) const;
};

enum class Rectify { no, yes };

struct Convolution {
  int channels = 1;  // of the output
  int size = 1, stride = 1, border = 0;
  Rectify rectify = Rectify::yes;
};

/// Room that all layers use one after the other.
struct Scratch {
  float* columns = nullptr;
  float* gradient = nullptr;
  float* ones = nullptr;
};

class Layer {
 public:
  virtual ~Layer() = default;
  virtual void forward(Device& device) = 0;
  /// Adds to the gradient of what it reads.
  virtual void backward(Device& device) = 0;
  virtual void descend(Device&, float /*rate*/) {}
};

/// A convolutional network and its training by plain gradient descent on batches of one size. It
/// is built from its input on, layer by layer; a layer may read what any layer before it wrote.
/// Shape: a batch of at most 256 images (places are counted with 31 bits).
class Network {
 public:
  /// The largest batch with which no layer of ours has 2³¹ elements.
  static constexpr uint64_t kMostImages = 256;

  Network(Device& device, const Maps& input);

  Tensor input() const { return input_; }
  /// Memory for as many channels of the same height and width as `like` has.
  Tensor room(int channels, const Maps& like);

  Tensor convolve(const Tensor& from, const Convolution& shape);
  void convolve(const Tensor& from, const Convolution& shape, const Tensor& to);
  /// Each output sees all maps: a window as large as they are, which have to be square.
  Tensor connect(const Tensor& from, int outputs, Rectify rectify = Rectify::yes);
  /// A window that is cut off at the border counts as one.
  Tensor take_largest(const Tensor& from, int size, int stride, int border = 0);
  Tensor take_mean(const Tensor& from);

  /// Nothing is added any more; `scores` has a channel for each class, and maps of one element.
  void finish(const Tensor& scores);

  /// The class of each image as a whole number, in memory of the device.
  float* labels() const { return labels_; }
  /// Forward, backward, and every weight against its gradient by `rate`; waits for the end.
  void step(float rate);
  /// Forward alone, and the mean loss of the batch.
  double loss();

 private:
  void forward();

  Device& device_;
  Tensor input_, scores_;
  std::vector<Tensor> written_;
  std::vector<std::unique_ptr<Layer>> layers_;
  Scratch scratch_;
  size_t most_columns_ = 1;
  int widest_plane_ = 1;
  float* labels_ = nullptr;
  float* losses_ = nullptr;
};

}  // namespace berth::bench
