// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "engine/context/context.hpp"
#include "engine/context/filter.hpp"

/// Queries and changes of the store alone, without the network.
namespace berth::engine {

struct ImageSummary {
  std::string repository;  ///< in docker's form: "ubuntu", "127.0.0.1:5000/a/b"
  std::string tag;         ///< "<none>" for an image known only by digest
  std::string digest;      ///< "sha256:…" as the registry gives it; empty for a local image
  std::string id;          ///< "sha256:…" of the config
  int64_t created_at = 0;  ///< seconds since 1970, of the config; 0: unknown
  uint64_t size = 0;       ///< unpacked bytes
  std::map<std::string, std::string> labels;
  bool read_only = false;  ///< the image is in an additional store
};

/// Newest first.  Errors: io, corrupt.
Result<std::vector<ImageSummary>> list_images(const Context& context);

/// The references of all images of `repository` in the store, sorted by tag: "me/tool" →
/// "me/tool:1", "me/tool:2".  Errors: usage (a tag or a digest), not_found (none), io.
Result<std::vector<std::string>> tags_of(const Context& context, std::string_view repository);

struct RemovedImage {
  std::vector<std::string> untagged;  ///< references
  std::vector<std::string> deleted;   ///< "sha256:…" of image and layers
};
struct RemoveImageOptions {
  bool force = false;  ///< even if a stopped container uses the image
};
/// Errors: not_found ("no such image: X"), busy (a container uses the image), denied (the image is
/// in an additional store).
Result<RemovedImage> remove_image(const Context& context, std::string_view reference,
                                  RemoveImageOptions options);

/// "docker.io/library/ubuntu:latest" → "ubuntu:latest", docker's short form. Returns any other
/// string unchanged.
std::string familiar(std::string_view reference);

/// Errors: not_found (source), usage (target).
Result<void> tag_image(const Context& context, std::string_view source, std::string_view target);

struct HistoryEntry {
  std::optional<std::string> image_id;  ///< only for the newest entry
  int64_t created_at = 0;
  std::string created_by;
  uint64_t size = 0;
  std::string comment;
};
/// Newest first.  Errors: not_found, corrupt.
Result<std::vector<HistoryEntry>> image_history(const Context& context, std::string_view reference);

struct ImageQuery {
  std::optional<std::string> repository;  ///< "name" or "name:tag", with * ? [a-z]
  Filters filters;
  int64_t now = 0;  ///< nanoseconds since 1970, for "until"
};

/// Newest first; one entry for each name of an image.
/// Errors: usage (a filter), not_found (the image of "before" or "since"), io, corrupt.
Result<std::vector<ImageSummary>> query_images(const Context& context, const ImageQuery& query);

}  // namespace berth::engine
