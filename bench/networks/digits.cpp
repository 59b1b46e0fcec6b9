// SPDX-License-Identifier: Apache-2.0
#include "bench/networks/digits.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.hpp"

namespace berth::bench {
namespace {

constexpr uint32_t kPictures = 0x803, kLabels = 0x801;  // bytes, of three dimensions and of one
constexpr int kPixels = Digits::kSide * Digits::kSide;
constexpr int kPicturesHeader = 16, kLabelsHeader = 8;

uint32_t read_number(std::istream& file) {
  uint32_t number = 0;
  for (int byte = 0; byte < 4; ++byte) number = number << 8 | static_cast<uint32_t>(file.get());
  return number;
}

Result<std::ifstream> open_file(const std::string& path, uint32_t magic) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return make_error(Kind::not_found, "open " + quote(path));
  if (read_number(file) != magic) {
    return make_error(Kind::corrupt, fmt::format("{}: not a file of MNIST's form", quote(path)));
  }
  return file;
}

}  // namespace

Result<Digits> Digits::open(const std::string& directory) {
  Digits digits;
  digits.pictures_ = TRY(open_file(directory + "/train-images-idx3-ubyte", kPictures));
  digits.labels_ = TRY(open_file(directory + "/train-labels-idx1-ubyte", kLabels));
  uint32_t count = read_number(digits.pictures_);
  uint32_t height = read_number(digits.pictures_), width = read_number(digits.pictures_);
  if (count != read_number(digits.labels_) || count > 1'000'000 || height != kSide ||
      width != kSide) {
    return make_error(Kind::corrupt,
                      fmt::format("{}: expected pictures of {} × {} and a label for each",
                                  quote(directory), kSide, kSide));
  }
  digits.count_ = static_cast<int>(count);
  return digits;
}

Result<void> Digits::read(uint64_t number, int images, float* pixels, float* labels) {
  if (images > count_) {
    return make_error(Kind::usage,
                      fmt::format("--batch-size: there are {} pictures, got {}", count_, images));
  }
  auto batches = static_cast<uint64_t>(count_ / images);
  auto first = static_cast<std::streamoff>(number % batches) * images;
  bytes_.resize(static_cast<size_t>(images) * kPixels);
  pictures_.seekg(kPicturesHeader + first * kPixels);
  if (!pictures_.read(bytes_.data(), std::streamsize{images} * kPixels)) {
    return make_error(Kind::corrupt, "the file of pictures ends early");
  }
  std::transform(bytes_.begin(), bytes_.end(), pixels,
                 [](char byte) { return static_cast<float>(static_cast<uint8_t>(byte)) / 255; });
  labels_.seekg(kLabelsHeader + first);
  if (!labels_.read(bytes_.data(), images)) {
    return make_error(Kind::corrupt, "the file of labels ends early");
  }
  std::transform(bytes_.begin(), bytes_.begin() + images, labels,
                 [](char byte) { return static_cast<float>(static_cast<uint8_t>(byte) % 10); });
  return {};
}

}  // namespace berth::bench
