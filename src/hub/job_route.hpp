// SPDX-License-Identifier: Apache-2.0
// The objects that other nodes of a job may fetch: one image and its parts. Pure.
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
  std::string artifact_type;  ///< empty: every type
};

/// Nothing if it is no such route.  Source: distribution-spec 1.1 "Listing Referrers".
std::optional<ReferrersRoute> referrers_route(std::string_view method, std::string_view target);

/// Bytes [begin, end) of a blob.
struct ByteRange {
  uint64_t begin = 0;
  uint64_t end = 0;
};
/// The part of a blob of `size` bytes that a Range header requests: the whole if it is no range.
/// Nothing if the blob has no such bytes.  Source: RFC 9110 section 14.1.2
std::optional<ByteRange> range_of(std::string_view value, uint64_t size);

/// The parts of an image, as far as documents have named them. Thread-safe.
class Belongings {
 public:
  /// `root`: the tag or digest of the image.
  explicit Belongings(std::string root) : root_(std::move(root)) {}

  /// Whether a manifest belongs to the image: its root, one that a document named, or a list of
  /// referrers of such a manifest ("sha256-HEX").
  bool has_manifest(std::string_view tag_or_digest) const;
  bool has_manifest(const Digest& digest) const;
  std::optional<oci::Descriptor> blob(const Digest& digest) const;

  /// Adds the objects named by a manifest or an index of the image. Other documents name nothing;
  /// at most 4096 of each kind are kept.
  void learn(const Digest& digest, std::string_view bytes, std::string_view media_type);

 private:
  const std::string root_;
  mutable std::mutex mutex_;  // guards the following members
  std::set<Digest> manifests_;
  std::map<Digest, oci::Descriptor> blobs_;
};

}  // namespace berth::hub
