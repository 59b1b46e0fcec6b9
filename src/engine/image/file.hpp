// SPDX-License-Identifier: Apache-2.0
// Images that are a file of the host: squashfs, as enroot and mksquashfs write it, or SIF.
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"
#include "image/store.hpp"

namespace berth::engine {

/// Whether an IMAGE argument names a file: it begins with "/", "./" or "../", unlike a reference.
bool is_image_path(std::string_view image);

/// The absolute path of an image file, with links resolved.
/// Errors: not_found, usage (a directory, not an image), those of sys::identify_image().
Result<std::string> find_image_file(const std::string& path);

/// Refuses a reference that is also the name of a file in the working directory, such as "x.sqsh".
/// Errors: usage.
Result<void> check_no_image_file(const std::string& reference);

/// The image that the file at `path` describes (image::describe_foreign()).
/// Errors: those of sys::open_layer().
Result<image::Image> describe_image_file(const std::string& path);

}  // namespace berth::engine
