// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "bench/networks/digits.hpp"
#include "bench/networks/elements.hpp"
#include "bench/networks/shapes.hpp"

namespace berth::bench {
namespace {

// ---- products -----------------------------------------------------------------------------------

float at(const Matrix& matrix, int row, int column) {
  return matrix.turned ? matrix.data[column * matrix.columns + row]
                       : matrix.data[row * matrix.columns + column];
}

TEST(Device, multiplies_matrices_as_they_lie_and_turned) {
  std::vector<float> numbers(64 * 64);
  for (size_t n = 0; n < numbers.size(); ++n) numbers[n] = noise(static_cast<uint32_t>(n), 3);
  for (size_t threads : {1, 3}) {
    Device device(threads);
    for (bool turned_a : {false, true}) {
      for (bool turned_b : {false, true}) {
        Matrix a{numbers.data(), turned_a ? 19 : 37, turned_a ? 37 : 19, turned_a};
        Matrix b{numbers.data() + 99, turned_b ? 50 : 19, turned_b ? 19 : 50, turned_b};
        std::vector<float> product(37 * 50);
        device.multiply(a, b, product.data());
        for (int row = 0; row < 37; ++row) {
          for (int column = 0; column < 50; ++column) {
            float sum = 0;
            for (int k = 0; k < 19; ++k) sum += at(a, row, k) * at(b, k, column);
            ASSERT_NEAR(product[static_cast<size_t>(row * 50 + column)], sum, 1e-4);
          }
        }
      }
    }
  }
}

// ---- training -----------------------------------------------------------------------------------

/// Everything that the published networks are made of, in small: borders, strides, windows that
/// overlap and are cut off, branches that read one tensor and write parts of one.
Tensor build_small(Network& network) {
  Tensor at =
      network.convolve(network.input(), {.channels = 6, .size = 5, .stride = 2, .border = 2});
  at = network.take_largest(at, 3, 2);
  Tensor to = network.room(10, at.maps);
  network.convolve(at, {.channels = 4}, to.part(0, 4));
  network.convolve(network.take_largest(at, 3, 1, 1), {.channels = 6, .size = 3, .border = 1},
                   to.part(4, 6));
  at = network.connect(network.take_largest(to, 2, 2), 12);
  return network.connect(at, 3, Rectify::no);
}

constexpr int kImages = 6;
const Maps kInput{.channels = 2, .images = kImages, .height = 13, .width = 13};

/// Three kinds of picture: a bright bar at another place for each, and noise.
void load(Network& network, uint32_t seed) {
  for (int image = 0; image < kImages; ++image) {
    network.labels()[image] = static_cast<float>(image % 3);
    for (int channel = 0; channel < kInput.channels; ++channel) {
      for (int y = 0; y < kInput.height; ++y) {
        for (int x = 0; x < kInput.width; ++x) {
          int place = place_of(kInput, channel, image, y, x);
          float bright = y / 4 == image % 3 ? 1 : 0;
          network.input().value[place] = bright + noise(static_cast<uint32_t>(place), seed) / 2;
        }
      }
    }
  }
}

TEST(Network, learns_what_it_is_shown) {
  for (size_t threads : {1, 2}) {
    Device device(threads);
    Network network(device, kInput);
    network.finish(build_small(network));
    load(network, 1000);
    double before = network.loss();
    for (uint32_t batch = 0; batch < 60; ++batch) {
      load(network, batch);
      network.step(0.05F);
    }
    load(network, 1000);  // not among those it was trained with
    EXPECT_LT(network.loss(), before / 4) << threads << " threads, before: " << before;
  }
}

TEST(Network, steps_against_the_gradient_of_the_loss) {
  // A small step changes the loss by −rate · |gradient|²; twice as small a step by half as much.
  auto change = [](float rate) {
    Device device(1);
    Network network(device, kInput);
    network.finish(build_small(network));
    load(network, 5);
    double before = network.loss();
    network.step(rate);
    return network.loss() - before;
  };
  double whole = change(2e-3F), half = change(1e-3F);
  EXPECT_LT(half, 0);
  EXPECT_NEAR(whole / half, 2, 0.2);
}

// ---- elements: gradients beside differences of the loss -----------------------------------------

/// The change of Σ weight · f(in) by each element of `in`, asked of the function itself.
template <class Function>
std::vector<float> differences(std::vector<float> in, const std::vector<float>& weights,
                               const Function& f) {
  std::vector<float> found;
  for (float& element : in) {
    float kept = element;
    auto sum_with = [&](float value) {
      element = value;
      double sum = 0;
      auto out = f(in);
      for (size_t n = 0; n < out.size(); ++n) sum += static_cast<double>(weights[n] * out[n]);
      return sum;
    };
    found.push_back(static_cast<float>((sum_with(kept + 1e-3F) - sum_with(kept - 1e-3F)) / 2e-3));
    element = kept;
  }
  return found;
}

std::vector<float> some(int count, uint32_t seed) {
  std::vector<float> numbers(static_cast<size_t>(count));
  for (uint32_t n = 0; n < numbers.size(); ++n) numbers[n] = noise(n, seed);
  return numbers;
}

TEST(Fold, is_the_gradient_of_unfold) {
  Device device(1);
  Window window{{2, 2, 7, 7}, {1, 2, 4, 4}, 3, 2, 1};
  auto unfold = [&](const std::vector<float>& in) {
    std::vector<float> columns(2 * 9 * 2 * 16);
    device.each(2 * 9 * 2 * 4, 4, Unfold{window, in.data(), columns.data()});
    return columns;
  };
  auto in = some(window.in.count(), 1), weights = some(2 * 9 * 2 * 16, 2);
  std::vector<float> gradient(in.size());
  device.each(2 * 2 * 7, 7, Fold{window, weights.data(), gradient.data()});
  auto expected = differences(in, weights, unfold);
  for (size_t n = 0; n < gradient.size(); ++n) EXPECT_NEAR(gradient[n], expected[n], 1e-2) << n;
}

TEST(GiveToLargest, is_the_gradient_of_take_largest) {
  Device device(1);
  Window window{{2, 2, 6, 6}, {2, 2, 3, 3}, 3, 2, 0};  // the last windows are cut off
  std::vector<float> which(static_cast<size_t>(window.out.count()));
  auto largest = [&](const std::vector<float>& in) {
    std::vector<float> out(which.size());
    device.each(2 * 2 * 3, 3, TakeLargest{window, in.data(), out.data(), which.data()});
    return out;
  };
  auto in = some(window.in.count(), 1), weights = some(window.out.count(), 2);
  auto expected = differences(in, weights, largest);
  largest(in);
  std::vector<float> gradient(in.size());
  device.each(2 * 2 * 6, 6, GiveToLargest{window, weights.data(), which.data(), gradient.data()});
  for (size_t n = 0; n < gradient.size(); ++n) EXPECT_NEAR(gradient[n], expected[n], 1e-2) << n;
}

TEST(CrossEntropy, has_the_gradient_that_it_says) {
  Device device(1);
  std::vector<float> labels = {2, 0, 1}, losses(3), gradient(12), unused(12);
  auto loss = [&](const std::vector<float>& scores) {
    device.each(1, 3,
                CrossEntropy{scores.data(), labels.data(), unused.data(), losses.data(), 4, 3});
    return losses;
  };
  auto scores = some(12, 4);
  auto expected = differences(scores, {1 / 3.0F, 1 / 3.0F, 1 / 3.0F}, loss);
  device.each(1, 3,
              CrossEntropy{scores.data(), labels.data(), gradient.data(), losses.data(), 4, 3});
  for (size_t n = 0; n < gradient.size(); ++n) EXPECT_NEAR(gradient[n], expected[n], 1e-3) << n;
}

// ---- the published networks ---------------------------------------------------------------------

TEST(NetworkShapes, end_in_a_score_for_each_class) {
  for (std::string_view name :
       {"googlenet", "mnist"}) {  // the others have hundreds of MB of weights
    const NetworkShape& shape = network_shape(name);
    Device device(1);
    Network network(device, {shape.channels, 1, shape.side, shape.side});
    Tensor scores = shape.build(network);
    EXPECT_EQ(scores.maps.channels, shape.classes) << shape.name;
    EXPECT_EQ(scores.maps.plane(), 1) << shape.name;
  }
}

// ---- digits -------------------------------------------------------------------------------------

class DigitFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    directory_ = std::filesystem::temp_directory_path() /
                 ("berth-digits-" + std::to_string(std::random_device()()));
    std::filesystem::create_directory(directory_);
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  void write(int pictures, int labels) {
    std::ofstream(directory_ / "train-images-idx3-ubyte", std::ios::binary)
        << number(0x803) << number(pictures) << number(28) << number(28) << bytes(pictures * 784);
    std::ofstream(directory_ / "train-labels-idx1-ubyte", std::ios::binary)
        << number(0x801) << number(labels) << bytes(labels);
  }

  static std::string number(int value) {
    std::string text;
    for (int shift : {24, 16, 8, 0}) text += static_cast<char>(value >> shift);
    return text;
  }
  static std::string bytes(int count) {
    std::string text;
    for (int n = 0; n < count; ++n) text += static_cast<char>(n / (count > 100 ? 784 : 1));
    return text;
  }

  std::filesystem::path directory_;
};

TEST_F(DigitFiles, are_read_batch_by_batch_and_from_the_beginning_again) {
  write(7, 7);
  auto digits = Digits::open(directory_);
  ASSERT_TRUE(digits.ok()) << to_line(digits.error());
  std::vector<float> pixels(3 * 784), labels(3);
  for (auto [batch, first] :
       {std::pair{0, 0}, {1, 3}, {2, 0}}) {  // the seventh is not a whole batch
    auto done = digits->read(static_cast<uint64_t>(batch), 3, pixels.data(), labels.data());
    ASSERT_TRUE(done.ok()) << to_line(done.error());
    for (int image = 0; image < 3; ++image) {
      EXPECT_EQ(labels[static_cast<size_t>(image)], static_cast<float>(first + image));
      EXPECT_EQ(pixels[static_cast<size_t>(image * 784)], static_cast<float>(first + image) / 255);
    }
  }
}

TEST_F(DigitFiles, of_another_form_are_refused) {
  EXPECT_EQ(Digits::open(directory_).error().kind, Kind::not_found);
  write(7, 6);
  EXPECT_EQ(Digits::open(directory_).error().kind, Kind::corrupt);
  write(7, 7);
  auto digits = Digits::open(directory_);
  std::vector<float> pixels(8 * 784), labels(8);
  EXPECT_EQ(digits->read(0, 8, pixels.data(), labels.data()).error().kind, Kind::usage);
}

}  // namespace
}  // namespace berth::bench
