// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "sys/fd/fd.hpp"

namespace berth::transfer {

/// Compresses the bytes that are written to it into a file, as one gzip member (ISA-L level 1: the
/// same bytes give the same member).
class GzipWriter {
 public:
  explicit GzipWriter(const sys::Fd& fd);
  ~GzipWriter();

  /// Errors: io.
  Result<void> write(std::string_view bytes);
  Result<void> finish();

 private:
  struct State;
  Result<void> run(std::string_view bytes, bool last);
  const sys::Fd& fd_;
  std::unique_ptr<State> state_;
};

}  // namespace berth::transfer
