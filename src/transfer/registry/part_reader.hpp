// SPDX-License-Identifier: Apache-2.0
// Parses a registry's answers to requests for a part of a blob.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "base/text.hpp"
#include "oci/image_spec.hpp"
#include "transfer/registry/http.hpp"

namespace berth::transfer {

/// Bytes [begin, end) of a blob, and their receiver.
struct BlobPart {
  uint64_t begin = 0;
  uint64_t end = 0;
  bool answered = false;  ///< the registry has answered for it: a 404 now means a lost connection
  std::function<Result<void>(std::string_view bytes)> take;  ///< each byte once, in order
  /// Called before the first byte if the registry sends only the whole blob: `end` is then the end
  /// of the blob.
  std::function<Result<void>()> on_whole = {};
};

/// The first byte of "bytes 100-199/200". Source: RFC 9110 section 14.4.
inline std::optional<uint64_t> parse_content_range_start(std::string_view value) {
  constexpr std::string_view kUnit = "bytes ";
  if (!value.starts_with(kUnit)) return std::nullopt;
  value.remove_prefix(kUnit.size());
  return parse_u64(value.substr(0, value.find('-')));
}

/// Reassembles a part of a blob from answers: passes on every byte once, in order.
class PartReader {
 public:
  PartReader(const oci::Descriptor& blob, BlobPart& part) : blob_(blob), part_(part) {}

  uint64_t next() const { return next_; }
  uint64_t end() const { return part_.end; }
  /// The Range header; empty: none is needed.
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
  /// A registry may answer a Range request with the range or, without Range support, with the
  /// whole.
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
  uint64_t at_ = 0;              ///< the offset of the answer
  bool begun_ = false;
  bool ranges_ = true;
};

}  // namespace berth::transfer
