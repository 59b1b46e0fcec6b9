// SPDX-License-Identifier: Apache-2.0
#include "transfer/inflate.hpp"

#include <isa-l/igzip_lib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "base/assert.hpp"

namespace berth::transfer {
namespace {

constexpr int kMaxWindowLog = 27;  // 128 MiB, what zstd itself allows by default
constexpr size_t kFeed = size_t{1} << 20;

Error corrupt(std::string_view format, std::string reason) {
  return make_error(Kind::corrupt, std::string(format) + ": " + std::move(reason));
}

class Plain final : public Inflater {
 public:
  explicit Plain(std::string_view input) : input_(input) {}
  Result<size_t> read(char* out, size_t size) override {
    size_t count = input_.copy(out, size, used_);
    used_ += count;
    return count;
  }
  uint64_t consumed() const override { return used_; }

 private:
  std::string_view input_;
  size_t used_ = 0;
};

std::string isal_reason(int code) {
  switch (code) {
    case ISAL_INCORRECT_CHECKSUM:
      return "the checksum does not hold";
    case ISAL_INVALID_WRAPPER:
      return "a header is damaged";
    case ISAL_UNSUPPORTED_METHOD:
      return "it is not deflate";
    default:
      return "the data is damaged";
  }
}

class Gzip final : public Inflater {
 public:
  explicit Gzip(std::string_view input) : rest_(input), total_(input.size()) {
    isal_inflate_init(&state_);
    state_.crc_flag = ISAL_GZIP;
  }

  Result<size_t> read(char* out, size_t size) override {
    state_.next_out = reinterpret_cast<uint8_t*>(out);
    state_.avail_out = static_cast<uint32_t>(size);
    while (state_.avail_out > 0) {
      if (state_.avail_in == 0) feed();
      if (state_.block_state == ISAL_BLOCK_FINISH) {
        if (state_.avail_in == 0) break;
        TRY(start_member());
      }
      uint32_t in_before = state_.avail_in;
      uint32_t out_before = state_.avail_out;
      int code = isal_inflate(&state_);
      if (code != ISAL_DECOMP_OK && code != ISAL_END_INPUT) {
        return corrupt("gzip", isal_reason(code));
      }
      bool stuck = state_.avail_in == in_before && state_.avail_out == out_before;
      if (stuck && rest_.empty() && state_.block_state != ISAL_BLOCK_FINISH) {
        return corrupt("gzip", "it is cut short");
      }
    }
    return size - state_.avail_out;
  }

  uint64_t consumed() const override { return total_ - rest_.size() - state_.avail_in; }

 private:
  void feed() {
    size_t take = std::min(kFeed, rest_.size());
    // ISA-L does not write to its input.
    state_.next_in = reinterpret_cast<uint8_t*>(const_cast<char*>(rest_.data()));
    state_.avail_in = static_cast<uint32_t>(take);
    rest_.remove_prefix(take);
  }

  /// "A gzip file consists of a series of members" (RFC 1952); what follows must be one.
  Result<void> start_member() {
    if (state_.next_in[0] != 0x1f) return corrupt("gzip", "something follows its end");
    isal_inflate_reset(&state_);
    state_.crc_flag = ISAL_GZIP;
    return {};
  }

  std::string_view rest_;
  uint64_t total_;
  inflate_state state_{};
};

class Zstd final : public Inflater {
 public:
  explicit Zstd(std::string_view input) : input_{input.data(), input.size(), 0} {
    BERTH_ASSERT(stream_ != nullptr);
    ZSTD_DCtx_setParameter(stream_, ZSTD_d_windowLogMax, kMaxWindowLog);
  }
  ~Zstd() override { ZSTD_freeDStream(stream_); }

  Result<size_t> read(char* out, size_t size) override {
    ZSTD_outBuffer output{out, size, 0};
    while (output.pos < size) {
      bool drained = input_.pos == input_.size;
      if (drained && between_frames_) break;
      size_t in_before = input_.pos;
      size_t out_before = output.pos;
      // In slices, so that consumed() follows what was written.
      ZSTD_inBuffer slice{input_.src, std::min(input_.size, input_.pos + kFeed), input_.pos};
      size_t code = ZSTD_decompressStream(stream_, &output, &slice);
      input_.pos = slice.pos;
      if (ZSTD_isError(code)) {
        if (ZSTD_getErrorCode(code) == ZSTD_error_frameParameter_windowTooLarge) {
          return make_error(Kind::unsupported,
                            "zstd: it needs a window of more than the 128 MiB allowed");
        }
        return corrupt("zstd", "the data is damaged");
      }
      between_frames_ = code == 0;
      bool stuck = input_.pos == in_before && output.pos == out_before;
      if (stuck && drained && !between_frames_) return corrupt("zstd", "it is cut short");
    }
    return output.pos;
  }

  uint64_t consumed() const override { return input_.pos; }

 private:
  ZSTD_inBuffer input_;
  ZSTD_DStream* stream_ = ZSTD_createDStream();
  bool between_frames_ = false;
};

}  // namespace

Result<std::unique_ptr<Inflater>> Inflater::make(oci::Compression compression,
                                                 std::string_view input) {
  std::unique_ptr<Inflater> inflater;
  if (compression == oci::Compression::none) inflater = std::make_unique<Plain>(input);
  if (compression == oci::Compression::gzip) {
    if (!input.starts_with("\x1f\x8b")) return corrupt("gzip", "it is no gzip");
    inflater = std::make_unique<Gzip>(input);
  }
  if (compression == oci::Compression::zstd) {
    if (input.empty()) return corrupt("zstd", "it is no zstd");
    inflater = std::make_unique<Zstd>(input);
  }
  return inflater;
}

}  // namespace berth::transfer
