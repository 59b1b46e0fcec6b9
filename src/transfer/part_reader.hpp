// SPDX-License-Identifier: Apache-2.0
// What a registry answers to a request for a part of a blob.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "oci/image_spec.hpp"
#include "transfer/http.hpp"

namespace berth::transfer {

/// Bytes [begin, end) of a blob, and who takes them.
struct BlobPart {
  uint64_t begin = 0;
  uint64_t end = 0;
  bool answered = false;  ///< for this blob the registry has: that it is gone now is a lost line
  std::function<Result<void>(std::string_view bytes)> take;  ///< each byte once, in order
  /// Told before the first byte where the registry gives only the whole blob: `end` is then the end
  /// of the blob.
  std::function<Result<void>()> on_whole = {};
};

/// The first byte of "bytes 100-199/200". Source: RFC 9110 section 14.4.
std::optional<uint64_t> parse_content_range_start(std::string_view value);

/// The answers that bring a part of a blob: gives on every byte once, in order.
class PartReader {
 public:
  PartReader(const oci::Descriptor& blob, BlobPart& part) : blob_(blob), part_(part) {}

  uint64_t next() const { return next_; }
  uint64_t end() const { return part_.end; }
  /// Of a Range header; empty: none is needed.
  std::string range() const {
    if (next_ == 0 && end() == blob_.size) return "";
    return end() == blob_.size ? fmt::format("bytes={}-", next_)
                               : fmt::format("bytes={}-{}", next_, end() - 1);
  }
  void expect_answer() { begun_ = false; }
  /// The next answer is the whole blob.
  void forget_ranges() { ranges_ = false; }
  bool ranges() const { return ranges_; }

  Result<void> take(const HttpResponse& head, std::string_view bytes) {
    if (!begun_) TRY(begin(head));
    begun_ = true;
    if (bytes.size() > end() - at_) {
      return make_error(
          Kind::corrupt,
          fmt::format("check its size: more than the {} bytes of its descriptor", blob_.size));
    }
    uint64_t known = std::min<uint64_t>(next_ - std::min(next_, at_), bytes.size());
    at_ += bytes.size();
    bytes.remove_prefix(known);
    if (bytes.empty()) return {};
    next_ += bytes.size();
    return part_.take(bytes);
  }

 private:
  /// A registry may answer a Range with the piece or, not knowing Range, with the whole.
  Result<void> begin(const HttpResponse& head) {
    if (head.status != 206) {
      at_ = 0;
      if (part_.end == blob_.size) return {};
      part_.end = blob_.size;
      return part_.on_whole ? part_.on_whole() : Result<void>();
    }
    at_ = next_;
    std::string_view range = head.header("content-range").value_or("");
    if (parse_content_range_start(range) == next_) return {};
    return make_error(Kind::corrupt,
                      "check its range: the registry sent another part than requested");
  }

  const oci::Descriptor& blob_;
  BlobPart& part_;
  uint64_t next_ = part_.begin;  ///< the first byte that has not come
  uint64_t at_ = 0;              ///< where the answer is
  bool begun_ = false;
  bool ranges_ = true;
};

}  // namespace berth::transfer
