// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <thread>
#include <vector>

#include "transfer/compression/inflate_chunk.hpp"
#include "transfer/compression/inflater.hpp"

struct inflate_state;  // ISA-L's

namespace berth::transfer {

/// Decompresses one gzip stream with several threads. The stream is cut into segments. In each
/// segment a thread searches for the beginning of a block and decodes from there, without knowing
/// the preceding output. The reader joins two pieces if one ends exactly where the next begins;
/// otherwise it decodes the bytes itself. So a wrongly detected beginning costs only speed. Takes
/// up to 13 MiB of memory for each thread and for each of three more segments. No measurement has
/// shown that a whole pull becomes faster, so this class is only used on request
/// (docs/decisions/0151).
/// Source: Kerbiriou and Chikhi 2019 (two passes), Knespel and Brunst 2023 (any content); RFC 1951
/// and 1952.
class ParallelGzip final : public Inflater {
 public:
  struct Options {
    size_t threads = 1;                ///< including the reader; slower if the system grants fewer
    size_t segment = size_t{1} << 20;  ///< compressed bytes, a power of two from 4 KiB on
    size_t room = size_t{12} << 20;    ///< for a segment's output, at first two bytes a symbol
  };
  ParallelGzip(Input input, Options options);
  ~ParallelGzip() override;

  /// The output and the errors are the same as with one thread.
  Result<size_t> read(char* out, size_t size) override;
  uint64_t consumed() const override { return consumed_; }

  /// The number of segments so far, and of those that were decoded ahead and could be joined.
  struct Figures {
    uint64_t segments = 0;
    uint64_t joined = 0;
  };
  Figures figures() const { return figures_; }

 private:
  enum class Stage { header, blocks, trailer, end };
  enum class State { waiting, running, done };
  /// A segment and a thread's result.
  struct Piece {
    explicit Piece(InflateSegmentPtr s) : segment(std::move(s)) {}
    InflateSegmentPtr segment;
    std::unique_ptr<InflateChunk> chunk;  // null: not searched
    State decoded = State::waiting;
    State resolved = State::waiting;
    bool joined = false;
  };
  using PiecePtr = std::shared_ptr<Piece>;

  // Threads.
  void work();
  bool work_once(std::unique_lock<std::mutex>& lock);
  void wait_for(const State& state);
  bool is_done(const State& state);
  void hand_out(std::deque<PiecePtr>& tasks, PiecePtr piece);
  void give_back(Piece& piece);

  // Input.
  void fill();
  Result<void> fill_segment();
  Result<void> take_input(InflateSegment& segment);
  void look_into(const PiecePtr& piece, InflateSegmentPtr next);
  void drop_before(uint64_t byte);
  void drop(Piece& piece);
  size_t most_segments() const;
  Result<DeflateView> view_at(uint64_t byte);

  // The stream.
  Result<void> go_on();
  Result<void> read_header();
  Result<void> go_through_blocks();
  Result<void> check_trailer();
  void join_pieces();
  PiecePtr next_to_join() const;
  bool fits(const Piece& piece) const;
  void give_piece();
  Result<void> decode_here();

  Input input_;
  const Options options_;

  // Only for the reader.
  std::deque<PiecePtr> pieces_;  // from the stream's position on
  std::deque<PiecePtr> joined_;  // next output, in order
  std::string_view rest_input_;
  uint64_t come_ = 0;
  bool input_ended_ = false;
  std::optional<Error> input_error_;
  size_t in_vain_ = 0;     // consecutive segments that could not be joined
  uint64_t position_ = 0;  // of the header or trailer, in bytes
  Stage stage_ = Stage::header;
  const std::unique_ptr<inflate_state> header_state_;
  DeflateDecoder decoder_;
  bool stream_ended_ = false;
  InflateWindow window_;
  std::unique_ptr<uint8_t[]> here_;  // a window, and what is decoded behind it
  std::deque<std::string_view> given_;
  PiecePtr given_piece_;
  uint32_t crc_ = 0;
  uint32_t size_ = 0;  // of the member, modulo 2^32
  uint64_t consumed_ = 0;
  Figures figures_;

  std::mutex mutex_;  // guards the following members, and the states
  std::condition_variable changed_;
  std::deque<PiecePtr> to_decode_;
  std::deque<PiecePtr> to_resolve_;
  std::vector<InflateRoomPtr> rooms_;
  bool stopped_ = false;
  std::vector<std::jthread> threads_;
};

}  // namespace berth::transfer
