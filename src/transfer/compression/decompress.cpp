// SPDX-License-Identifier: Apache-2.0
#include "transfer/compression/decompress.hpp"

#include <isa-l/igzip_lib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "base/assert.hpp"
#include "base/text.hpp"
#include "sys/file/file.hpp"
#include "transfer/compression/parallel_inflate.hpp"

namespace berth::transfer {
namespace {

constexpr int kMaxWindowLog = 27;  // 128 MiB, zstd's own default limit
constexpr size_t kInflateFeed = size_t{1} << 20;

Error corrupt_stream(std::string_view format, std::string reason) {
  return make_error(Kind::corrupt, std::string(format) + ": " + std::move(reason));
}

/// The unread rest of the current piece of input.
class Window {
 public:
  explicit Window(Inflater::Input input) : input_(std::move(input)) {}

  /// Gets the next piece if the current one is used up. Afterwards nothing is left only at the end
  /// of the input.
  Result<void> fill() {
    if (!rest_.empty() || ended_) return {};
    rest_ = TRY(input_());
    ended_ = rest_.empty();
    given_ += rest_.size();
    return {};
  }
  std::string_view take(size_t most) {
    std::string_view taken = rest_.substr(0, most);
    rest_.remove_prefix(taken.size());
    return taken;
  }
  std::string_view rest() const { return rest_; }
  bool ended() const { return ended_; }
  uint64_t used() const { return given_ - rest_.size(); }

 private:
  Inflater::Input input_;
  std::string_view rest_;
  uint64_t given_ = 0;
  bool ended_ = false;
};

class Plain final : public Inflater {
 public:
  explicit Plain(Input input) : window_(std::move(input)) {}
  Result<size_t> read(char* out, size_t size) override {
    size_t count = 0;
    while (count < size) {
      TRY(window_.fill());
      if (window_.ended()) break;
      std::string_view part = window_.take(size - count);
      part.copy(out + count, part.size());
      count += part.size();
    }
    return count;
  }
  uint64_t consumed() const override { return window_.used(); }

 private:
  Window window_;
};

class Gzip final : public Inflater {
 public:
  explicit Gzip(Input input) : window_(std::move(input)) {
    isal_inflate_init(&state_);
    state_.crc_flag = ISAL_GZIP;
  }

  Result<size_t> read(char* out, size_t size) override {
    if (window_.used() == 0) {
      TRY(window_.fill());
      if (!window_.rest().starts_with("\x1f\x8b"))
        return corrupt_stream("gzip", "it is not gzip data");
    }
    state_.next_out = reinterpret_cast<uint8_t*>(out);
    state_.avail_out = static_cast<uint32_t>(size);
    while (state_.avail_out > 0) {
      if (state_.avail_in == 0) TRY(feed());
      if (state_.block_state == ISAL_BLOCK_FINISH) {
        if (state_.avail_in == 0) break;
        TRY(start_member());
      }
      uint32_t in_before = state_.avail_in;
      uint32_t out_before = state_.avail_out;
      int code = isal_inflate(&state_);
      if (code != ISAL_DECOMP_OK && code != ISAL_END_INPUT) {
        return gzip_error(code);
      }
      bool stuck = state_.avail_in == in_before && state_.avail_out == out_before;
      if (stuck && window_.ended() && state_.block_state != ISAL_BLOCK_FINISH) {
        return corrupt_stream("gzip", "it is cut short");
      }
    }
    return size - state_.avail_out;
  }

  uint64_t consumed() const override { return window_.used() - state_.avail_in; }

 private:
  Result<void> feed() {
    TRY(window_.fill());
    std::string_view piece = window_.take(kInflateFeed);
    // ISA-L does not write to its input.
    state_.next_in = reinterpret_cast<uint8_t*>(const_cast<char*>(piece.data()));
    state_.avail_in = static_cast<uint32_t>(piece.size());
    return {};
  }

  /// "A gzip file consists of a series of members" (RFC 1952); any rest must be a member.
  Result<void> start_member() {
    if (state_.next_in[0] != 0x1f) return corrupt_stream("gzip", "something follows its end");
    isal_inflate_reset(&state_);
    state_.crc_flag = ISAL_GZIP;
    return {};
  }

  Window window_;
  inflate_state state_{};
};

class Zstd final : public Inflater {
 public:
  explicit Zstd(Input input) : window_(std::move(input)) {
    BERTH_ASSERT(stream_ != nullptr);
    ZSTD_DCtx_setParameter(stream_, ZSTD_d_windowLogMax, kMaxWindowLog);
  }
  ~Zstd() override { ZSTD_freeDStream(stream_); }

  Result<size_t> read(char* out, size_t size) override {
    ZSTD_outBuffer output{out, size, 0};
    while (output.pos < size) {
      TRY(window_.fill());
      if (window_.ended() && window_.used() == 0)
        return corrupt_stream("zstd", "it is not zstd data");
      if (window_.ended() && between_frames_) break;
      size_t out_before = output.pos;
      // In slices, so that consumed() advances together with the output.
      std::string_view rest = window_.rest();
      ZSTD_inBuffer slice{rest.data(), std::min(rest.size(), kInflateFeed), 0};
      size_t code = ZSTD_decompressStream(stream_, &output, &slice);
      window_.take(slice.pos);
      if (ZSTD_isError(code)) {
        if (ZSTD_getErrorCode(code) == ZSTD_error_frameParameter_windowTooLarge) {
          return make_error(Kind::unsupported,
                            "zstd: it needs a window of more than the 128 MiB allowed");
        }
        return corrupt_stream("zstd", "the data is damaged");
      }
      between_frames_ = code == 0;
      bool stuck = slice.pos == 0 && output.pos == out_before;
      if (stuck && window_.ended() && !between_frames_)
        return corrupt_stream("zstd", "it is cut short");
    }
    return output.pos;
  }

  uint64_t consumed() const override { return window_.used(); }

 private:
  Window window_;
  ZSTD_DStream* stream_ = ZSTD_createDStream();
  bool between_frames_ = false;
};

bool is_plain_tar(std::string_view bytes) {
  constexpr size_t kMagic = 257;  // POSIX and GNU
  return bytes.size() > kMagic && bytes.substr(kMagic).starts_with("ustar");
}

oci::Compression compression_of(std::string_view bytes, oci::Compression said) {
  if (is_plain_tar(bytes)) return oci::Compression::none;  // its first bytes are a file name
  if (bytes.starts_with("\x1f\x8b")) return oci::Compression::gzip;
  if (bytes.starts_with("\x28\xb5\x2f\xfd")) return oci::Compression::zstd;
  return said;
}

/// Chooses the format when the first bytes arrive.
class Recognized final : public Inflater {
 public:
  Recognized(oci::Compression said, Input input, size_t threads)
      : said_(said), input_(std::move(input)), threads_(threads) {}

  Result<size_t> read(char* out, size_t size) override {
    if (!inflater_) TRY(look());
    return inflater_->read(out, size);
  }
  uint64_t consumed() const override { return inflater_ ? inflater_->consumed() : 0; }

 private:
  Result<void> look() {
    std::string_view first = TRY(input_());
    auto input = [this, first]() mutable -> Result<std::string_view> {
      if (first.empty()) return input_();
      return std::exchange(first, std::string_view());
    };
    inflater_ = make(compression_of(first, said_), input, threads_);
    return {};
  }

  oci::Compression said_;
  Input input_;
  size_t threads_;
  std::unique_ptr<Inflater> inflater_;
};

}  // namespace

Error gzip_error(int code) {
  std::string reason = "the data is damaged";
  if (code == ISAL_INCORRECT_CHECKSUM) reason = "the checksum does not hold";
  if (code == ISAL_INVALID_WRAPPER) reason = "a header is damaged";
  if (code == ISAL_UNSUPPORTED_METHOD) reason = "it is not deflate";
  return make_error(Kind::corrupt, "gzip: " + reason);
}

std::unique_ptr<Inflater> Inflater::recognize(oci::Compression said, Input input, size_t threads) {
  return std::make_unique<Recognized>(said, std::move(input), threads);
}

std::unique_ptr<Inflater> Inflater::make(oci::Compression compression, Input input,
                                         size_t threads) {
  switch (compression) {
    case oci::Compression::gzip:
      if (threads > 1) {
        return std::make_unique<ParallelGzip>(std::move(input),
                                              ParallelGzip::Options{.threads = threads});
      }
      return std::make_unique<Gzip>(std::move(input));
    case oci::Compression::zstd:
      return std::make_unique<Zstd>(std::move(input));
    case oci::Compression::none:
      break;
  }
  return std::make_unique<Plain>(std::move(input));
}

std::unique_ptr<Inflater> Inflater::make(oci::Compression compression, std::string_view input) {
  return make(compression, [input]() mutable -> Result<std::string_view> {
    return std::exchange(input, std::string_view());
  });
}

Result<size_t> parse_inflate_threads(std::string_view text) {
  constexpr uint64_t kMost = 64;
  if (text.empty()) return 1;
  std::optional<uint64_t> number = parse_u64(text);
  if (number && *number <= kMost) return std::max<size_t>(1, *number);
  return make_error(Kind::usage, "BERTH_INFLATE_THREADS: expected a number of at most " +
                                     std::to_string(kMost) + ", got " + quote(text));
}

Inflater::Input file_input(const sys::Fd& file) {
  constexpr size_t kPiece = size_t{512} << 10;
  return [&file, offset = uint64_t{0},
          buffer = std::string(kPiece, '\0')]() mutable -> Result<std::string_view> {
    size_t count = TRY(sys::read_at(file, offset, buffer.data(), buffer.size(), "layer"));
    offset += count;
    return std::string_view(buffer).substr(0, count);
  };
}

}  // namespace berth::transfer
