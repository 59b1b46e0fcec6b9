// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>

#include "bench/common/both.hpp"
#include "bench/common/noise.hpp"
#include "bench/networks/maps.hpp"

// The arithmetic of the networks beside matrix products, one element at a time and in any order:
// Device::each() calls it for every column of every row, on processors and on GPUs. Every element
// gathers what it needs, so no two write to one place.
namespace berth::bench {

/// The element of a plane that lies at (`y`, `x`) of image `image`.
BENCH_BOTH inline int place_of(const Maps& maps, int channel, int image, int y, int x) {
  return ((channel * maps.images + image) * maps.height + y) * maps.width + x;
}

/// A row of an image: rows of an element that walks over maps are these.
struct MapRow {
  int channel, image, y;
  BENCH_BOTH MapRow(const Maps& maps, int row)
      : channel(row / maps.height / maps.images),
        image(row / maps.height % maps.images),
        y(row % maps.height) {}
};

/// Writes what the window sees: a matrix of channels · size² rows and out.plane() columns.
/// Shape: channels · size² · images · out.height rows, out.width columns.
struct Unfold {
  Window window;
  const float* in;
  float* columns;

  BENCH_BOTH void operator()(int row, int x) const {
    const Window& w = window;
    int y = row % w.out.height, image = row / w.out.height % w.out.images;
    int weight = row / w.out.height / w.out.images;  // of which weight: channel, then y, then x
    int in_y = y * w.stride - w.border + weight / w.size % w.size;
    int in_x = x * w.stride - w.border + weight % w.size;
    bool inside = in_y >= 0 && in_y < w.in.height && in_x >= 0 && in_x < w.in.width;
    columns[row * w.out.width + x] =
        inside ? in[place_of(w.in, weight / w.size / w.size, image, in_y, in_x)] : 0;
  }
};

/// The places of a window on a line, from the first to the last, that see what lies at `at`.
struct Seeing {
  int first, last;
  BENCH_BOTH Seeing(int at, const Window& window, int places) {
    int reach = at + window.border;
    first = reach < window.size ? 0 : (reach - window.size) / window.stride + 1;
    last = reach / window.stride;
    if (last >= places) last = places - 1;
  }
};

/// The opposite: adds to each element of `in` all that Unfold would have copied it to.
/// Shape: rows and columns of `window.in`.
struct Fold {
  Window window;
  const float* columns;
  float* in;

  BENCH_BOTH void operator()(int row, int x) const {
    const Window& w = window;
    MapRow at(w.in, row);
    Seeing vertical(at.y, w, w.out.height), horizontal(x, w, w.out.width);
    float sum = 0;
    for (int y = vertical.first; y <= vertical.last; ++y) {
      int weights = (at.channel * w.size + at.y + w.border - y * w.stride) * w.size;
      for (int out_x = horizontal.first; out_x <= horizontal.last; ++out_x) {
        int weight = weights + x + w.border - out_x * w.stride;
        sum += columns[place_of(w.out, weight, at.image, y, out_x)];
      }
    }
    in[row * w.in.width + x] += sum;
  }
};

/// Adds a channel's bias, and keeps what is positive. Shape: `plane` columns, a row per channel.
struct BiasAndRectify {
  const float* bias;
  float* out;
  int plane;
  bool rectify;

  BENCH_BOTH void operator()(int channel, int x) const {
    float& element = out[channel * plane + x];
    element += bias[channel];
    if (rectify && element < 0) element = 0;
  }
};

/// No gradient goes where nothing was positive. Shape: one row.
struct Unrectify {
  const float* out;
  float* gradient;

  BENCH_BOTH void operator()(int, int x) const {
    if (out[x] <= 0) gradient[x] = 0;
  }
};

/// The largest element that the window sees, and which it was. Shape: rows and columns of
/// `window.out`.
struct TakeLargest {
  Window window;
  const float* in;
  float* out;
  float* which;  // row · size + column within the window

  BENCH_BOTH void operator()(int row, int x) const {
    const Window& w = window;
    MapRow at(w.out, row);
    float largest = -INFINITY;
    int found = 0;
    for (int place = 0; place < w.size * w.size; ++place) {
      int in_y = at.y * w.stride - w.border + place / w.size;
      int in_x = x * w.stride - w.border + place % w.size;
      if (in_y < 0 || in_y >= w.in.height || in_x < 0 || in_x >= w.in.width) continue;
      float element = in[place_of(w.in, at.channel, at.image, in_y, in_x)];
      if (element > largest) {
        largest = element;
        found = place;
      }
    }
    out[row * w.out.width + x] = largest;
    which[row * w.out.width + x] = static_cast<float>(found);
  }
};

/// Adds to each element the gradients of those windows in which it was the largest. Shape: rows and
/// columns of `window.in`.
struct GiveToLargest {
  Window window;
  const float* gradient;
  const float* which;
  float* in;

  BENCH_BOTH void operator()(int row, int x) const {
    const Window& w = window;
    MapRow at(w.in, row);
    Seeing vertical(at.y, w, w.out.height), horizontal(x, w, w.out.width);
    float sum = 0;
    for (int y = vertical.first; y <= vertical.last; ++y) {
      int places = (at.y + w.border - y * w.stride) * w.size;
      for (int out_x = horizontal.first; out_x <= horizontal.last; ++out_x) {
        int from = place_of(w.out, at.channel, at.image, y, out_x);
        int place = places + x + w.border - out_x * w.stride;
        if (static_cast<int>(which[from]) == place) sum += gradient[from];
      }
    }
    in[row * w.in.width + x] += sum;
  }
};

/// The mean of each map, and its gradient. Shape: one row, channels · images columns.
struct TakeMean {
  const float* in;
  float* out;
  int area;  // of a map

  BENCH_BOTH void operator()(int, int map) const {
    float sum = 0;
    for (int place = 0; place < area; ++place) sum += in[map * area + place];
    out[map] = sum / static_cast<float>(area);
  }
};

struct GiveToMean {
  const float* gradient;
  float* in;
  int area;

  BENCH_BOTH void operator()(int, int map) const {
    for (int place = 0; place < area; ++place) {
      in[map * area + place] += gradient[map] / static_cast<float>(area);
    }
  }
};

/// Softmax and cross entropy: the loss of each image, and the gradient of their mean.
/// Shape: one row, a column per image; `scores` has a row per class.
struct CrossEntropy {
  const float* scores;
  const float* labels;  // whole numbers
  float* gradient;
  float* losses;
  int classes, images;

  BENCH_BOTH void operator()(int, int image) const {
    const float* score = scores + image;
    float largest = -INFINITY, sum = 0;
    for (int at = 0; at < classes; ++at) largest = fmaxf(largest, score[at * images]);
    for (int at = 0; at < classes; ++at) sum += expf(score[at * images] - largest);
    int label = static_cast<int>(labels[image]);
    losses[image] = logf(sum) + largest - score[label * images];
    for (int at = 0; at < classes; ++at) {
      float share = expf(score[at * images] - largest) / sum - (at == label ? 1.0F : 0.0F);
      gradient[at * images + image] = share / static_cast<float>(images);
    }
  }
};

/// One step of gradient descent. Shape: one row.
struct Descend {
  const float* gradient;
  float* weights;
  float rate;

  BENCH_BOTH void operator()(int, int x) const { weights[x] -= rate * gradient[x]; }
};

/// Noise of -scale to scale, or the same number everywhere. Shape: one row.
struct FillWithNoise {
  float* data;
  float scale;
  uint32_t seed;

  BENCH_BOTH void operator()(int, int x) const {
    data[x] = (noise(static_cast<uint32_t>(x), seed) * 2 - 1) * scale;
  }
};

struct Fill {
  float* data;
  float value;

  BENCH_BOTH void operator()(int, int x) const { data[x] = value; }
};

}  // namespace berth::bench
