// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "base/digest.hpp"
#include "base/result.hpp"
#include "transfer/gzip/inflate.hpp"
#include "transfer/layer/unpack_options.hpp"
#include "transfer/work/sha256.hpp"

namespace berth::transfer {

/// The uncompressed bytes of a layer in blocks of 1 MiB. Two threads work ahead of the reader: one
/// inflates, one hashes; all three share eight blocks. Where the system grants no threads the
/// reader does everything.
class BlockStream {
 public:
  BlockStream(std::unique_ptr<Inflater> inflater, const UnpackOptions& options);
  ~BlockStream();
  BlockStream(BlockStream&&) = delete;

  /// The next block, empty at the end; invalidates the previous one.
  /// Errors: corrupt, unsupported (as Inflater; a limit), interrupted.
  Result<std::string_view> next();

  /// Reads the rest and returns the digest of everything.
  Result<Digest> finish();

 private:
  static constexpr size_t kBlocks = 8;
  static constexpr size_t kBlockSize = size_t{1} << 20;
  struct Block {
    std::unique_ptr<char[]> bytes;
    size_t size = 0;
    uint64_t consumed = 0;  ///< of the compressed input, when this block was complete
  };

  void stop();
  void inflate();
  void inflate_block(std::unique_lock<std::mutex>& lock);
  void hash();
  void hash_block(std::unique_lock<std::mutex>& lock);
  std::optional<Error> check_limits() const;

  std::unique_ptr<Inflater> inflater_;
  const UnpackOptions& options_;
  std::array<Block, kBlocks> blocks_;

  std::mutex mutex_;
  std::condition_variable changed_;
  // Blocks inflated, hashed and given back by the reader, counted from the start.
  uint64_t inflated_ = 0;
  uint64_t hashed_ = 0;
  uint64_t released_ = 0;
  bool ended_ = false;    ///< no block follows `inflated_`
  bool stopped_ = false;  ///< the reader does not want more
  std::optional<Error> error_;
  Digest digest_;

  bool holding_ = false;   ///< the reader holds block `released_`
  uint64_t produced_ = 0;  ///< bytes; of the inflating thread
  Sha256 sha_;             ///< of the hashing thread
  std::optional<std::jthread> inflate_thread_;
  std::optional<std::jthread> hash_thread_;
};

}  // namespace berth::transfer
