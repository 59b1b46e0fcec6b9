// SPDX-License-Identifier: Apache-2.0
// Runs as: the container's first process, in its root, with the container's identity, capabilities
// and limits. Hostile: every name and byte of the root.
#pragma once

#include "scan/driver_files.hpp"

namespace berth::runtime {

/// The root of the calling process, for scan/. Opens only regular files.
class OwnRoot : public scan::Tree {
 public:
  /// Links do not count: NVIDIA's packages are recognised by a regular file.
  Result<std::optional<File>> find_file(const std::string& path) const override;
  Result<std::vector<std::string>> list(const std::string& path) const override;
  Result<std::string> read(const File& file, uint64_t offset, size_t length) const override;
};

}  // namespace berth::runtime
