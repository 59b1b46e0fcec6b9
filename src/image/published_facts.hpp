// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/digest.hpp"
#include "base/result.hpp"
#include "facts/facts.hpp"
#include "match/run_record.hpp"
#include "oci/image_spec.hpp"

/// Facts about the files of images, and records of their runs, as published in the repository of
/// the images: one document per name, with a part for each of its images, so that one request
/// answers for a whole index. Its specification is docs/variants.md "Published facts".
namespace berth::image {

inline constexpr std::string_view kFactsArtifact = "application/vnd.dev.berth.facts.v1";
inline constexpr std::string_view kFactsType = "application/vnd.dev.berth.facts.v1.json+zstd";
/// Annotation of the blob's descriptor: a signature over the bytes of the blob, as base64.
inline constexpr std::string_view kFactsSignature = "dev.berth.signature";

struct PublishedImage {
  Digest image;  ///< of the image's manifest
  oci::Platform platform;
  /// The part of the image's config that verdicts need: the variables and labels with declarations.
  oci::ContainerDefaults config;
  /// None: they have another facts::kVersion, so another version of Berth wrote them, and their
  /// meaning may differ.
  std::optional<facts::ImageFacts> found;
  std::vector<match::RunRecord> runs;  ///< by time, at most match::kMaxRuns
};

struct PublishedFacts {
  uint32_t version = 1;
  Digest subject;  ///< the index, or the only manifest
  std::vector<PublishedImage> images;
  /// The name of the trusted key that signed the document; empty: none did. Not a member of the
  /// document.
  std::string signer;

  const PublishedImage* of(const Digest& image) const;
};

/// The variables and labels that match::read_declared() reads.
oci::ContainerDefaults declaring_part(const oci::ContainerDefaults& config);

/// Parses the document: untrusted, uncompressed bytes. Ignores unknown members, so a later version
/// of Berth may add some; if ignoring them would be wrong, it raises `version`.
/// Errors: corrupt (not such a document, more than 1,024 images or 64 runs of one image, a string
/// that is longer than 4 KiB or contains control characters), unsupported (of a later version).
Result<PublishedFacts> parse_published_facts(std::string_view text);
std::string to_json(const PublishedFacts& facts);

void fields(auto& v, PublishedImage& p) {
  v.required("image", p.image);
  v.required("platform", p.platform);
  v.optional("config", p.config);
  v.optional("found", p.found);
  v.optional("runs", p.runs);
}

void fields(auto& v, PublishedFacts& p) {
  v.required("version", p.version);
  v.required("subject", p.subject);
  v.required("images", p.images);
}

}  // namespace berth::image
