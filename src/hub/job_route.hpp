// SPDX-License-Identifier: Apache-2.0
// What other nodes of a job may be given: one image and what belongs to it. Pure.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "base/digest.hpp"
#include "hub/route.hpp"
#include "oci/image_spec.hpp"

namespace berth::hub {

struct ReferrersRoute {
  std::string name;
  Digest subject;
  std::string artifact_type;  ///< empty: of every type
};

/// Nothing for what is no such route.  Source: distribution-spec 1.1 "Listing Referrers".
std::optional<ReferrersRoute> referrers_route(std::string_view method, std::string_view target);

/// Bytes [begin, end) of a blob.
struct ByteRange {
  uint64_t begin = 0;
  uint64_t end = 0;
};
/// What a Range header's value asks of a blob of `size` bytes: all of it where it is none. Nothing
/// where the blob has no such bytes.  Source: RFC 9110 section 14.1.2
std::optional<ByteRange> range_of(std::string_view value, uint64_t size);

/// What belongs to an image, as far as documents have told it. Any thread.
class Belongings {
 public:
  /// `root`: the tag or digest that the image is called by.
  explicit Belongings(std::string root) : root_(std::move(root)) {}

  /// Whether a manifest is one of the image: its root, what a document named, or the list of what
  /// refers to such a one ("sha256-HEX").
  bool has_manifest(std::string_view tag_or_digest) const;
  bool has_manifest(const Digest& digest) const;
  std::optional<oci::Descriptor> blob(const Digest& digest) const;

  /// Takes up what a manifest or an index that belongs to the image names. What is neither names
  /// nothing; at most 4096 of each are known.
  void learn(const Digest& digest, std::string_view bytes, std::string_view media_type);

 private:
  const std::string root_;
  mutable std::mutex mutex_;  // guards what follows
  std::set<Digest> manifests_;
  std::map<Digest, oci::Descriptor> blobs_;
};

}  // namespace berth::hub
