// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "engine/context/filter.hpp"
#include "engine/image/images.hpp"

/// The query of `images`.
namespace berth::engine {

struct ImageQuery {
  std::optional<std::string> repository;  ///< "name" or "name:tag", with * ? [a-z]
  Filters filters;
  int64_t now = 0;  ///< nanoseconds since 1970, for "until"
};

/// The filter keys of query_images(): before, dangling, label, reference, since, until.
const std::vector<std::string_view>& image_filter_keys();

/// Newest first; one entry for each name of an image.
/// Errors: usage (a filter), not_found (the image of "before" or "since"), io, corrupt.
Result<std::vector<ImageSummary>> query_images(const Context& context, const ImageQuery& query);

}  // namespace berth::engine
