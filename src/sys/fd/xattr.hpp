// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "sys/fd/fd.hpp"

namespace berth::sys {

/// The attribute `key` of an open file (not O_PATH), at most 64 KiB; nothing when it has none or
/// the file system has no such attributes. fgetxattr(2)
Result<std::optional<std::string>> read_attribute(const Fd& fd, const std::string& key);

/// The names of the attributes of an open file (not O_PATH), at most 64 KiB; none where the file
/// system has no such attributes. flistxattr(2)
Result<std::vector<std::string>> list_attributes(const Fd& fd);

/// A missing one is fine, and a file system without attributes.  Errors: denied, io.
/// fremovexattr(2)
Result<void> remove_attribute(const Fd& fd, const std::string& key);

}  // namespace berth::sys
