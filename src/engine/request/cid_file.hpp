// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "base/result.hpp"
#include "sys/fd/fd.hpp"

namespace berth::engine {

/// The file of --cidfile: created before the container, so that of two callers with the same path
/// only one succeeds. The destructor removes it unless the id was written.
class CidFile {
 public:
  CidFile() = default;
  CidFile(CidFile&& other) noexcept;
  CidFile& operator=(CidFile&&) = delete;
  ~CidFile();

  /// Creates the file at `path`; does nothing without a path. Errors: exists, in docker's words;
  /// denied, io.
  static Result<CidFile> create(const std::optional<std::string>& path);

  /// Writes `id`; the file then stays. Errors: io.
  Result<void> write(const std::string& id);

 private:
  std::string path_;  ///< empty: nothing to remove
  sys::Fd fd_;
};

}  // namespace berth::engine
