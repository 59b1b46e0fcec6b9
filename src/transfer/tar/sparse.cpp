// SPDX-License-Identifier: Apache-2.0
#include "transfer/tar/sparse.hpp"

#include "base/text.hpp"

namespace berth::transfer {
namespace {

constexpr size_t kMaxDigits = 20;

Error refuse_map(const std::string& path, std::string_view reason) {
  return make_error(Kind::corrupt,
                    "tar: entry " + quote(path) + ": its sparse map " + std::string(reason));
}

}  // namespace

Result<Extents> parse_sparse_list(std::string_view text, const std::string& path) {
  Extents extents;
  if (text.empty()) return extents;
  bool has_offset = false;
  for (std::string_view part : split(text, ',')) {
    auto number = parse_u64(part);
    if (!number) return refuse_map(path, "holds what is no number");
    if (has_offset) {
      extents.back().length = *number;
    } else {
      if (extents.size() == kMaxExtents) return refuse_map(path, "has too many parts");
      extents.push_back({*number, 0});
    }
    has_offset = !has_offset;
  }
  if (has_offset) return refuse_map(path, "ends in the middle of a part");
  return extents;
}

Result<bool> SparseLines::add_number(uint64_t number) {
  if (!has_count_) {
    if (number > kMaxExtents) return refuse_map(path_, "has too many parts");
    has_count_ = true;
    count_ = number;
  } else if (!has_offset_) {
    has_offset_ = true;
    offset_ = number;
  } else {
    has_offset_ = false;
    extents_.push_back({offset_, number});
  }
  return !has_offset_ && extents_.size() == count_;
}

Result<bool> SparseLines::add(std::string_view block) {
  for (char c : block) {
    if (c != '\n') {
      if (digits_.size() == kMaxDigits) return refuse_map(path_, "holds what is no number");
      digits_ += c;
      continue;
    }
    auto number = parse_u64(digits_);
    if (!number) return refuse_map(path_, "holds what is no number");
    digits_.clear();
    if (TRY(add_number(*number))) return true;
  }
  return false;
}

Result<void> check_extents(const Extents& extents, uint64_t size, uint64_t stored,
                           const std::string& path) {
  uint64_t end = 0;
  uint64_t sum = 0;
  for (const Extent& extent : extents) {
    if (extent.offset < end) return refuse_map(path, "goes back or overlaps");
    if (extent.offset > size || extent.length > size - extent.offset) {
      return refuse_map(path, "goes beyond the end of the file");
    }
    end = extent.offset + extent.length;
    sum += extent.length;  // at most `size`, for they are apart
  }
  if (sum != stored) return refuse_map(path, "does not fit the bytes that are stored");
  return {};
}

}  // namespace berth::transfer
