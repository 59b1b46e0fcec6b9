// SPDX-License-Identifier: Apache-2.0
#include "facts/unpack_prefix.hpp"

#include <zstd.h>

#include <algorithm>
#include <memory>

namespace berth::facts {
namespace {

/// Reads the rest of a length. Its first part has four bits; if that part is 15, bytes follow up to
/// the first one that is not 255.
bool read_length(std::string_view block, size_t& at, size_t& length) {
  if (length != 15) return true;
  while (at < block.size()) {
    auto byte = static_cast<unsigned char>(block[at++]);
    length += byte;
    if (byte != 255) return true;
  }
  return false;
}

}  // namespace

std::string lz4_prefix(std::string_view block, size_t wanted) {
  std::string out;
  out.reserve(wanted);
  constexpr size_t kLeastMatch = 4;
  for (size_t at = 0; at < block.size() && out.size() < wanted;) {
    auto token = static_cast<unsigned char>(block[at++]);
    size_t literals = token >> 4, match = token & 15;
    if (!read_length(block, at, literals)) break;
    literals = std::min({literals, block.size() - at, wanted - out.size()});
    out += block.substr(at, literals);
    at += literals;
    if (at + 2 > block.size() || out.size() == wanted) break;
    size_t offset = static_cast<unsigned char>(block[at]) |
                    size_t{static_cast<unsigned char>(block[at + 1])} << 8;
    at += 2;
    if (offset == 0 || offset > out.size() || !read_length(block, at, match)) break;
    match = std::min(match + kLeastMatch, wanted - out.size());
    for (size_t i = 0; i < match; ++i) out += out[out.size() - offset];  // it may overlap itself
  }
  return out;
}

std::string zstd_prefix(std::string_view frame, size_t wanted) {
  constexpr int kMaxWindowLog = 24;
  std::unique_ptr<ZSTD_DStream, size_t (*)(ZSTD_DStream*)> stream(ZSTD_createDStream(),
                                                                  ZSTD_freeDStream);
  std::string out(wanted, '\0');
  ZSTD_outBuffer to{out.data(), out.size(), 0};
  ZSTD_inBuffer from{frame.data(), frame.size(), 0};
  bool ready = stream != nullptr && ZSTD_isError(ZSTD_DCtx_setParameter(
                                        stream.get(), ZSTD_d_windowLogMax, kMaxWindowLog)) == 0;
  while (ready && to.pos < to.size) {
    size_t before_in = from.pos, before_out = to.pos;
    size_t left = ZSTD_decompressStream(stream.get(), &to, &from);
    bool moved = from.pos != before_in || to.pos != before_out;
    if (ZSTD_isError(left) != 0 || left == 0 || !moved) break;
  }
  out.resize(to.pos);
  return out;
}

}  // namespace berth::facts
