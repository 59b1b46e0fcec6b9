// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace berth::bench {

/// What a layer reads or writes: the feature maps of a batch, stored [channel][image][row][column],
/// so that a range of channels is one piece of memory, and a convolution one matrix product.
struct Maps {
  int channels = 0, images = 0, height = 0, width = 0;

  /// Elements of one channel, and of all.
  int plane() const { return images * height * width; }
  int count() const { return channels * plane(); }
};

/// A square window that moves over `in`, one place for each element of `out`'s planes. Beyond the
/// border there is nothing.
struct Window {
  Maps in, out;
  int size = 1, stride = 1, border = 0;
};

}  // namespace berth::bench
