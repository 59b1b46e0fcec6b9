// SPDX-License-Identifier: Apache-2.0
#include "transfer/compression/deflate.hpp"

#include <isa-l/igzip_lib.h>

#include <algorithm>

#include "base/assert.hpp"
#include "sys/file/file.hpp"

namespace berth::transfer {
namespace {

constexpr size_t kOut = size_t{256} << 10;
constexpr size_t kFeed = size_t{1} << 30;

}  // namespace

struct GzipWriter::State {
  isal_zstream stream{};
  std::string level = std::string(ISAL_DEF_LVL1_DEFAULT, '\0');
  std::string out = std::string(kOut, '\0');
};

GzipWriter::GzipWriter(const sys::Fd& fd) : fd_(fd), state_(std::make_unique<State>()) {
  isal_deflate_init(&state_->stream);
  state_->stream.gzip_flag = IGZIP_GZIP;
  state_->stream.level = 1;
  state_->stream.level_buf = reinterpret_cast<uint8_t*>(state_->level.data());
  state_->stream.level_buf_size = static_cast<uint32_t>(state_->level.size());
}

GzipWriter::~GzipWriter() = default;

Result<void> GzipWriter::run(std::string_view bytes, bool last) {
  isal_zstream& stream = state_->stream;
  // ISA-L does not write to its input.
  stream.next_in = reinterpret_cast<uint8_t*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uint32_t>(bytes.size());
  stream.end_of_stream = last;
  do {
    stream.next_out = reinterpret_cast<uint8_t*>(state_->out.data());
    stream.avail_out = static_cast<uint32_t>(state_->out.size());
    int code = isal_deflate(&stream);
    BERTH_ASSERT(code == COMP_OK);  // every other code means a wrong use of the library
    std::string_view packed(state_->out.data(), state_->out.size() - stream.avail_out);
    TRY(sys::write_all(fd_, packed, "layer"));
  } while (stream.avail_out == 0);
  return {};
}

Result<void> GzipWriter::write(std::string_view bytes) {
  while (!bytes.empty()) {
    TRY(run(bytes.substr(0, kFeed), false));
    bytes.remove_prefix(std::min(kFeed, bytes.size()));
  }
  return {};
}

Result<void> GzipWriter::finish() {
  return run({}, true);
}

}  // namespace berth::transfer
