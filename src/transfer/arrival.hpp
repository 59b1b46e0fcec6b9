// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "sys/fd.hpp"

namespace berth::transfer {

/// How much of a blob lies in its file while one thread writes it and another reads it.
class Arrival {
 public:
  explicit Arrival(uint64_t size) : size_(size) {}

  /// Of the writer: so many bytes are there; fewer than before when it starts anew.
  void set(uint64_t bytes);
  /// Of the writer, once: everything is there and its digest holds, or it will never be.
  void end(bool good);

  bool ended() const;

  /// Waits until `wanted` bytes beyond `offset` are there, or all. Gives how many are there beyond
  /// it; 0 at the end.  Errors: interrupted (the blob will never be whole: who writes knows why).
  Result<uint64_t> wait_beyond(uint64_t offset, uint64_t wanted);
  /// Waits for the end. Whether the blob is good.
  bool wait_end();

 private:
  const uint64_t size_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t there_ = 0;
  bool ended_ = false;
  bool good_ = false;
};

/// Reads a blob's file from its start, in pieces, as it arrives.
class BlobInput {
 public:
  /// `file`: open for reading. `arrival`: null for a blob that is whole.
  BlobInput(const sys::Fd& file, Arrival* arrival);

  /// The next bytes; none at the end. What it gave before is no longer valid.
  /// Errors: io; those of Arrival::wait_beyond().
  Result<std::string_view> next();

 private:
  const sys::Fd& file_;
  Arrival* arrival_;
  uint64_t offset_ = 0;
  std::string buffer_;
};

}  // namespace berth::transfer
