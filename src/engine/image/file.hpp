// SPDX-License-Identifier: Apache-2.0
// Images that are a file of the host: squashfs as enroot and mksquashfs write it, and SIF.
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"
#include "image/store.hpp"

namespace berth::engine {

/// Whether an IMAGE argument names a file: it begins with "/", "./" or "../", as no reference does.
bool is_image_path(std::string_view image);

/// The absolute path of such a file, without links.
/// Errors: not_found, usage (a directory, no such image), those of sys::identify_image().
Result<std::string> find_image_file(const std::string& path);

/// Refuses a reference that is meant as a file of the working directory: "x.sqsh", which lies
/// there. Errors: usage.
Result<void> check_no_image_file(const std::string& reference);

/// What the file at `path` says of itself (image::describe_foreign()).
/// Errors: those of sys::open_layer().
Result<image::Image> describe_image_file(const std::string& path);

}  // namespace berth::engine
