// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <optional>
#include <string>
#include <string_view>

#include "base/digest.hpp"
#include "base/result.hpp"

namespace berth::image {

/// The name of an image, with Docker's meaning: "ubuntu" is docker.io/library/ubuntu:latest. The
/// first part is a registry when it holds a '.' or a ':' or is "localhost" or has upper-case
/// letters. With a digest the tag is dropped. Source: distribution/reference grammar; at most 255
/// characters for registry and repository together, 128 for the tag.
class Reference {
 public:
  Reference() = default;

  /// Errors: usage, with the reason ("repository name must be lower case", …).
  static Result<Reference> parse(std::string_view text);

  const std::string& registry() const { return registry_; }      ///< "docker.io", "localhost:5000"
  const std::string& repository() const { return repository_; }  ///< "library/ubuntu"
  const std::string& tag() const { return tag_; }                ///< "latest"; empty with a digest
  const std::optional<Digest>& digest() const { return digest_; }

  /// The whole name: "docker.io/library/ubuntu:latest", "docker.io/library/ubuntu@sha256:…".
  std::string canonical() const;
  /// The short form: "ubuntu:latest", "me/tool:1", "localhost:5000/x@sha256:…".
  std::string familiar() const;
  /// Familiar name without tag and digest: "ubuntu", "localhost:5000/x".
  std::string familiar_name() const;
  /// The repository's location in one spelling: "docker.io/library/ubuntu" also for
  /// "Docker.IO:443/library/ubuntu".
  std::string place() const;
  /// The part after …/manifests/: the digest or the tag.
  std::string manifest_reference() const;

  auto operator<=>(const Reference&) const = default;

 private:
  std::string registry_;
  std::string repository_;
  std::string tag_;
  std::optional<Digest> digest_;
};

/// At most 128 letters, digits, '_', '.' and '-', the first is neither '.' nor '-'.
bool is_tag(std::string_view text);

/// The argument of `search`: "localhost:5000/cuda" is "cuda" at "localhost:5000", "cuda" is "cuda"
/// at "docker.io", and "localhost:5000/" is every repository there. The search text may be any
/// string: a first part in upper case is not a registry, as in docker.
struct SearchTerm {
  std::string registry;  ///< as Reference::registry()
  std::string text;      ///< without the "library/" of Docker Hub's own images
};

/// Errors: usage, with the reason.
Result<SearchTerm> parse_search_term(std::string_view text);

}  // namespace berth::image
