// SPDX-License-Identifier: Apache-2.0
// gzip streams of every kind that deflate has, by zlib.
#pragma once

#include <zlib.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/assert.hpp"

namespace berth {

struct GzipMaker {
  int level = 6;
  int strategy = Z_DEFAULT_STRATEGY;
  int memory_level = 8;   ///< blocks are the shorter the less it is
  size_t flush_each = 0;  ///< bytes between flushes, 0: none
  int flush = Z_SYNC_FLUSH;
  gz_header* header = nullptr;
  bool ends = true;  ///< else the stream may be gone on with, from a byte on

  std::string operator()(std::string_view bytes) const {
    z_stream stream{};
    constexpr int kGzip = 16;
    BERTH_ASSERT(deflateInit2(&stream, level, Z_DEFLATED, MAX_WBITS + kGzip, memory_level,
                              strategy) == Z_OK);
    if (header != nullptr) deflateSetHeader(&stream, header);
    std::string out(bytes.size() + bytes.size() / 8 + 65536, '\0');
    stream.next_out = reinterpret_cast<Bytef*>(out.data());
    stream.avail_out = static_cast<uInt>(out.size());
    size_t each = flush_each > 0 ? flush_each : bytes.size();
    while (!bytes.empty()) {
      std::string_view part = bytes.substr(0, each);
      bytes.remove_prefix(part.size());
      stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(part.data()));
      stream.avail_in = static_cast<uInt>(part.size());
      deflate(&stream, flush_each > 0 ? flush : Z_NO_FLUSH);
      BERTH_ASSERT(stream.avail_in == 0);
    }
    deflate(&stream, ends ? Z_FINISH : Z_SYNC_FLUSH);
    out.resize(stream.total_out);
    deflateEnd(&stream);
    return out;
  }
};

/// Bytes as programs have them: runs, repetitions near and far, and some of chance.
inline std::string mixed_bytes(size_t size, uint32_t seed) {
  std::string out;
  auto next = [&seed] { return (seed = seed * 1664525 + 1013904223) >> 8; };
  while (out.size() < size) {
    uint32_t kind = next() % 8;
    size_t length = 1 + next() % 60;
    if (kind == 0 && out.size() > 100) {
      size_t back = 1 + next() % std::min<size_t>(out.size() - 1, 32768);
      for (size_t i = 0; i < length; ++i) out += out[out.size() - back];
    } else if (kind == 1) {
      out.append(length, static_cast<char>(next()));
    } else if (kind < 5) {
      for (size_t i = 0; i < length; ++i) out += "etaoin shrdlu/.\n"[next() % 16];
    } else {
      for (size_t i = 0; i < length / 4; ++i) out += static_cast<char>(next());
    }
  }
  out.resize(size);
  return out;
}

}  // namespace berth
