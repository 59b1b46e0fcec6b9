// SPDX-License-Identifier: Apache-2.0
// A gzip stream by several threads in segments of 4 KiB, and by ISA-L: both give the same bytes, or
// both refuse. The first byte says what the rest is: a stream as it is; blocks behind good ones; or
// what is packed, in several members perhaps, before some bits are flipped.
#include "transfer/compression/parallel_inflate.hpp"

#include <optional>

#include "support/gzip_maker.hpp"

namespace {

using namespace berth;
using transfer::Inflater;
using transfer::ParallelGzip;

constexpr size_t kMost = size_t{8} << 20;  // a bomb is not what is looked for

/// Nothing where it is refused.
std::optional<std::string> read_all(Inflater& inflater) {
  std::string out;
  std::string block(50'000, '\0');
  while (out.size() < kMost) {
    auto count = inflater.read(block.data(), block.size());
    if (!count.ok()) return std::nullopt;
    out.append(block, 0, *count);
    if (*count < block.size()) break;
  }
  return out;
}

/// More bytes than there are, alike but not the same.
std::string grown(std::string_view bytes) {
  uint32_t seed = 1;
  for (char c : bytes) seed = seed * 31 + static_cast<unsigned char>(c);
  std::string out = mixed_bytes(20'000 + seed % 60'000, seed);
  for (size_t i = 0; !bytes.empty() && out.size() < 100'000 && i < 40; ++i) {
    out.insert(seed * i % out.size(), bytes.substr(i % bytes.size()));
  }
  return out;
}

std::string stream_of(uint8_t kind, std::string_view rest) {
  if (kind % 4 == 0) return std::string(rest);
  GzipMaker make{.level = kind / 4 % 10, .memory_level = 1 + kind / 4 % 9};
  if (kind & 0x40) make.strategy = kind / 4 % 5;
  if (kind & 0x80) make.flush_each = 3000;
  if (kind % 4 == 1) {
    make.ends = false;
    return make(grown(rest.substr(0, 8))) + std::string(rest);
  }
  std::string stream = make(grown(rest));
  if (kind % 4 == 3) stream += make(rest) + stream;
  for (size_t i = 0; i + 3 < rest.size() && i < 12; i += 3) {
    size_t at = static_cast<uint8_t>(rest[i]) << 8 | static_cast<uint8_t>(rest[i + 1]);
    stream[at % stream.size()] ^= static_cast<char>(1 << (static_cast<uint8_t>(rest[i + 2]) % 8));
    if (kind & 0x20) break;
  }
  return stream;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  std::string stream = stream_of(data[0], {reinterpret_cast<const char*>(data) + 2, size - 2});
  std::string_view left = stream;
  size_t piece = size_t{1} << (data[1] % 16);
  auto input = [&]() -> Result<std::string_view> {
    std::string_view part = left.substr(0, piece);
    left.remove_prefix(part.size());
    return part;
  };
  ParallelGzip many(input, {.threads = 1u + data[1] / 16 % 3,
                            .segment = 4096,
                            .room = size_t{1} << (14 + data[1] / 64)});
  std::optional<std::string> out = read_all(many);
  auto one = Inflater::make(oci::Compression::gzip, stream);
  BERTH_ASSERT(out == read_all(*one));
  return 0;
}
