// SPDX-License-Identifier: Apache-2.0
#include "transfer/compression/parallel_inflate.hpp"

#include <isa-l/crc.h>
#include <isa-l/igzip_lib.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "sys/thread/thread.hpp"

namespace berth::transfer {
namespace {

using Stop = DeflateDecoder::Stop;

constexpr size_t kMoreSegments = 3;  // than threads: one is read, one output, one looked into
constexpr size_t kHere = size_t{256} << 10;
constexpr size_t kTrailer = 8;
/// After so many consecutive segments that could not be joined, only one of kTryAgain segments is
/// decoded ahead.
constexpr size_t kMostInVain = 8;
constexpr uint64_t kTryAgain = 16;

Error corrupt_member(std::string what) {
  return make_error(Kind::corrupt, "gzip: " + std::move(what));
}

uint32_t load_number(const uint8_t* bytes) {
  return static_cast<uint32_t>(bytes[0]) | static_cast<uint32_t>(bytes[1]) << 8 |
         static_cast<uint32_t>(bytes[2]) << 16 | static_cast<uint32_t>(bytes[3]) << 24;
}

}  // namespace

ParallelGzip::ParallelGzip(Input input, Options options)
    : input_(std::move(input)),
      options_(options),
      header_state_(std::make_unique<inflate_state>()),
      here_(std::make_unique_for_overwrite<uint8_t[]>(kDeflateWindow + kHere)) {
  for (size_t i = 1; i < options.threads; ++i) {
    std::optional<std::jthread> thread = sys::start_thread([this] { work(); });
    if (!thread) break;
    threads_.push_back(*std::move(thread));
  }
}

ParallelGzip::~ParallelGzip() {
  {
    std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  changed_.notify_all();
}

size_t ParallelGzip::most_segments() const {
  return options_.threads + kMoreSegments;
}

// ---- threads ------------------------------------------------------------------------------------

void ParallelGzip::work() {
  std::unique_lock lock(mutex_);
  while (!stopped_) {
    if (!work_once(lock)) changed_.wait(lock);
  }
}

/// Does one piece of work, first of all work that others wait for. False: there is no work. The
/// lock is released meanwhile.
bool ParallelGzip::work_once(std::unique_lock<std::mutex>& lock) {
  bool resolve = !to_resolve_.empty();
  std::deque<PiecePtr>& tasks = resolve ? to_resolve_ : to_decode_;
  if (tasks.empty()) return false;
  PiecePtr piece = std::move(tasks.front());
  tasks.pop_front();
  State& state = resolve ? piece->resolved : piece->decoded;
  state = State::running;
  InflateRoomPtr room;
  if (!resolve && !rooms_.empty()) {
    room = std::move(rooms_.back());
    rooms_.pop_back();
  }
  lock.unlock();
  if (resolve) {
    piece->chunk->resolve();
  } else {
    piece->chunk->decode(room ? std::move(room) : std::make_unique<InflateRoom>(options_.room));
  }
  lock.lock();
  state = State::done;
  changed_.notify_all();
  return true;
}

/// Does other work while waiting.
void ParallelGzip::wait_for(const State& state) {
  std::unique_lock lock(mutex_);
  while (state != State::done) {
    if (!work_once(lock)) changed_.wait(lock);
  }
}

bool ParallelGzip::is_done(const State& state) {
  std::lock_guard lock(mutex_);
  return state == State::done;
}

void ParallelGzip::hand_out(std::deque<PiecePtr>& tasks, PiecePtr piece) {
  {
    std::lock_guard lock(mutex_);
    tasks.push_back(std::move(piece));
  }
  changed_.notify_all();
}

void ParallelGzip::give_back(Piece& piece) {
  InflateRoomPtr room = piece.chunk->take_room();
  piece.chunk.reset();
  if (!room) return;
  std::lock_guard lock(mutex_);
  rooms_.push_back(std::move(room));
}

// ---- input --------------------------------------------------------------------------------------

/// Reads input as far ahead as there is room. An error of the input is reported after the earlier
/// bytes have been read.
void ParallelGzip::fill() {
  while (!input_ended_ && !input_error_ && pieces_.size() + joined_.size() < most_segments()) {
    ignore(fill_segment());
  }
}

Result<void> ParallelGzip::take_input(InflateSegment& segment) {
  while (segment.size < options_.segment) {
    if (rest_input_.empty()) rest_input_ = TRY(input_());
    if (rest_input_.empty()) {
      input_ended_ = true;
      return {};
    }
    size_t count = std::min(rest_input_.size(), options_.segment - segment.size);
    std::memcpy(segment.bytes.get() + segment.size, rest_input_.data(), count);
    segment.size += count;
    rest_input_.remove_prefix(count);
  }
  return {};
}

Result<void> ParallelGzip::fill_segment() {
  if (input_error_) return *input_error_;
  auto segment = std::make_shared<InflateSegment>(options_.segment);
  segment->begin = come_;
  Result<void> taken = take_input(*segment);
  if (!taken.ok()) {
    input_error_ = std::move(taken).error();
    return *input_error_;
  }
  come_ += segment->size;
  InflateSegmentPtr before = pieces_.empty() ? nullptr : pieces_.back()->segment;
  size_t tail = std::min(segment->size, DeflateView::kTail);
  if (before) std::memcpy(before->bytes.get() + before->size, segment->bytes.get(), tail);
  if (before && input_ended_ && segment->size <= DeflateView::kTail) {
    before->size += segment->size;
    segment = std::exchange(before, nullptr);
  } else {
    pieces_.push_back(std::make_shared<Piece>(segment));
    ++figures_.segments;
  }
  if (input_ended_) {
    std::memset(segment->bytes.get() + segment->size, 0, DeflateView::kTail);
    segment->last = segment->complete = true;
  }
  if (before) {
    before->complete = true;
    look_into(pieces_[pieces_.size() - 2], segment);
  }
  if (input_ended_) look_into(pieces_.back(), nullptr);
  return {};
}

/// Hands out a piece for decoding ahead, except the first: the start of the stream is known.
void ParallelGzip::look_into(const PiecePtr& piece, InflateSegmentPtr next) {
  const InflateSegmentPtr& segment = piece->segment;
  if (segment->begin == 0) return;
  if (in_vain_ >= kMostInVain && segment->begin / options_.segment % kTryAgain != 0) return;
  piece->chunk = std::make_unique<InflateChunk>(segment, std::move(next));
  hand_out(to_decode_, piece);
}

void ParallelGzip::drop_before(uint64_t byte) {
  while (pieces_.size() > 1) {
    const InflateSegment& first = *pieces_.front()->segment;
    if (!first.complete || first.begin + first.size > byte) return;
    if (pieces_.front()->chunk && !pieces_.front()->joined) drop(*pieces_.front());
    pieces_.pop_front();
  }
}

/// Discards the result of decoding ahead, as it could not be joined.
void ParallelGzip::drop(Piece& piece) {
  ++in_vain_;
  {
    std::lock_guard lock(mutex_);
    auto waiting = std::ranges::find(to_decode_, &piece, &PiecePtr::get);
    if (waiting != to_decode_.end()) {
      to_decode_.erase(waiting);
      return;
    }
  }
  wait_for(piece.decoded);
  give_back(piece);
}

/// A view of the bytes from `byte` on: at least one, unless the stream ends there.
Result<DeflateView> ParallelGzip::view_at(uint64_t byte) {
  drop_before(byte);
  while (true) {
    for (const PiecePtr& piece : pieces_) {
      const InflateSegment& segment = *piece->segment;
      if (!segment.complete) break;
      if (segment.last || byte < segment.begin + segment.size) return segment.view();
    }
    TRY(fill_segment());
  }
}

// ---- the stream ---------------------------------------------------------------------------------

Result<size_t> ParallelGzip::read(char* out, size_t size) {
  size_t count = 0;
  while (count < size) {
    if (given_.empty()) {
      if (stage_ == Stage::end) break;
      TRY(go_on());
      continue;
    }
    std::string_view part = given_.front().substr(0, size - count);
    std::memcpy(out + count, part.data(), part.size());
    crc_ = crc32_gzip_refl(crc_, reinterpret_cast<const unsigned char*>(out + count), part.size());
    size_ += static_cast<uint32_t>(part.size());
    count += part.size();
    given_.front().remove_prefix(part.size());
    if (given_.front().empty()) given_.pop_front();
  }
  return count;
}

Result<void> ParallelGzip::go_on() {
  if (given_piece_) give_back(*std::exchange(given_piece_, nullptr));
  switch (stage_) {
    case Stage::header:
      return read_header();
    case Stage::blocks:
      return go_through_blocks();
    case Stage::trailer:
      return check_trailer();
    case Stage::end:
      break;
  }
  return {};
}

Result<void> ParallelGzip::read_header() {
  if (position_ == 0) {
    DeflateView view = TRY(view_at(0));
    if (view.end < 2 || view.bytes[0] != 0x1f || view.bytes[1] != 0x8b) {
      return corrupt_member("it is not gzip data");
    }
  }
  isal_inflate_init(header_state_.get());
  isal_gzip_header header{};
  isal_gzip_header_init(&header);
  int code = ISAL_END_INPUT;
  while (code == ISAL_END_INPUT) {
    DeflateView view = TRY(view_at(position_));
    if (position_ >= view.end) return corrupt_member("it is cut short");
    // ISA-L does not write to its input.
    header_state_->next_in = const_cast<uint8_t*>(view.bytes) + (position_ - view.begin);
    header_state_->avail_in = static_cast<uint32_t>(view.end - position_);
    code = isal_read_gzip_header(header_state_.get(), &header);
    position_ = view.end - header_state_->avail_in;
  }
  if (code != ISAL_DECOMP_OK) return gzip_error(code);
  consumed_ = position_;
  decoder_.begin_at(position_ * 8);
  stream_ended_ = false;
  window_.clear();
  crc_ = size_ = 0;
  stage_ = Stage::blocks;
  return {};
}

Result<void> ParallelGzip::go_through_blocks() {
  drop_before(decoder_.position() / 8);
  fill();
  join_pieces();
  if (!joined_.empty()) {
    give_piece();
    return {};
  }
  if (!stream_ended_) return decode_here();
  position_ = (decoder_.position() + 7) / 8;
  stage_ = Stage::trailer;
  return {};
}

/// The piece with a chunk that may begin at the stream's position. The chunk is decoded, or will
/// be.
ParallelGzip::PiecePtr ParallelGzip::next_to_join() const {
  bool possible = !stream_ended_ && decoder_.between_blocks() && window_.size == kDeflateWindow;
  if (!possible) return nullptr;
  uint64_t byte = decoder_.position() / 8;
  for (const PiecePtr& piece : pieces_) {
    const InflateSegment& segment = *piece->segment;
    if (byte >= segment.begin + segment.size) continue;
    return piece->chunk && !piece->joined ? piece : nullptr;
  }
  return nullptr;
}

/// Whether the chunk begins exactly at the stream's position.
bool ParallelGzip::fits(const Piece& piece) const {
  std::optional<uint64_t> begin = piece.chunk->begin();
  uint64_t position = decoder_.position();
  if (!begin || *begin < position || *begin - position >= 8) return false;
  return *begin == position || findable_block(piece.segment->view(), position) == begin;
}

/// Joins as many pieces as are decoded; at least one, if one fits.
void ParallelGzip::join_pieces() {
  while (true) {
    drop_before(decoder_.position() / 8);
    PiecePtr piece = next_to_join();
    if (!piece) return;
    if (joined_.empty()) wait_for(piece->decoded);
    if (!is_done(piece->decoded) || !fits(*piece)) return;
    piece->chunk->pass_window(window_);
    decoder_ = piece->chunk->end();
    stream_ended_ = piece->chunk->stream_ended();
    piece->joined = true;
    in_vain_ = 0;
    ++figures_.joined;
    joined_.push_back(piece);
    hand_out(to_resolve_, std::move(piece));
  }
}

void ParallelGzip::give_piece() {
  PiecePtr piece = std::move(joined_.front());
  joined_.pop_front();
  wait_for(piece->resolved);
  for (std::string_view bytes : piece->chunk->output()) {
    if (!bytes.empty()) given_.push_back(bytes);
  }
  consumed_ = (piece->chunk->end().position() + 7) / 8;
  given_piece_ = std::move(piece);
}

/// Decodes until a block begins that another thread decodes.
Result<void> ParallelGzip::decode_here() {
  uint8_t* begin = here_.get() + kDeflateWindow;
  DeflateOutput<uint8_t> out{begin - window_.size, begin, begin + kHere};
  std::memcpy(begin - window_.size, window_.bytes.data() + kDeflateWindow - window_.size,
              window_.size);
  while (true) {
    DeflateView view = TRY(view_at(decoder_.position() / 8));
    Stop stop = decoder_.run(view, out);
    if (stop == Stop::damaged) return corrupt_member("the data is damaged");
    if (stop == Stop::cut_short) return corrupt_member("it is cut short");
    stream_ended_ = stop == Stop::stream_end;
    if (stream_ended_ || stop == Stop::needs_room) break;
    if (stop != Stop::block_end) continue;
    PiecePtr piece = next_to_join();
    if (piece && (!is_done(piece->decoded) || fits(*piece))) break;
  }
  window_.set(out.history, out.next);
  if (out.next > begin) {
    given_.emplace_back(reinterpret_cast<char*>(begin), static_cast<size_t>(out.next - begin));
  }
  consumed_ = (decoder_.position() + 7) / 8;
  return {};
}

/// "A gzip file consists of a series of members" (RFC 1952); any rest must be one.
Result<void> ParallelGzip::check_trailer() {
  DeflateView view = TRY(view_at(position_));
  if (view.last && position_ + kTrailer > view.end) return corrupt_member("it is cut short");
  const uint8_t* trailer = view.bytes + (position_ - view.begin);
  if (load_number(trailer) != crc_ || load_number(trailer + 4) != size_) {
    return gzip_error(ISAL_INCORRECT_CHECKSUM);
  }
  position_ += kTrailer;
  consumed_ = position_;
  view = TRY(view_at(position_));
  stage_ = Stage::header;
  if (view.last && position_ == view.end) {
    stage_ = Stage::end;
  } else if (view.bytes[position_ - view.begin] != 0x1f) {
    return corrupt_member("something follows its end");
  }
  return {};
}

}  // namespace berth::transfer
