// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "base/result.hpp"
#include "sys/fd/fd.hpp"

namespace berth::engine {

/// The file of --cidfile: made before the container, so that two callers of one name do not both
/// get one, and gone with this object unless the id was written.
class CidFile {
 public:
  CidFile() = default;
  CidFile(CidFile&& other) noexcept;
  CidFile& operator=(CidFile&&) = delete;
  ~CidFile();

  /// Makes it; nothing is made without a path. Errors: exists, in docker's words; denied, io.
  static Result<CidFile> create(const std::optional<std::string>& path);

  /// Writes `id`: the file stays. Errors: io.
  Result<void> write(const std::string& id);

 private:
  std::string path_;  ///< empty: there is nothing to be removed
  sys::Fd fd_;
};

}  // namespace berth::engine
