// SPDX-License-Identifier: Apache-2.0
#include "transfer/compression/parallel_inflate.hpp"

#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "support/gzip_maker.hpp"
#include "transfer/compression/decompress.hpp"

namespace berth::transfer {
namespace {

using Options = ParallelGzip::Options;

constexpr Options kFew{.threads = 3, .segment = 4096, .room = size_t{1} << 20};

Inflater::Input pieces_of(std::string_view bytes, size_t piece) {
  return [bytes, piece]() mutable -> Result<std::string_view> {
    std::string_view part = bytes.substr(0, piece);
    bytes.remove_prefix(part.size());
    return part;
  };
}

/// What comes out, or the line of an error.
std::string read_all(Inflater& inflater, size_t block, size_t input_size) {
  std::string out;
  std::string buffer(block, '\0');
  size_t count = block;
  while (count == block) {
    auto read = inflater.read(buffer.data(), block);
    if (!read.ok()) return to_line(read.error());
    count = *read;
    out.append(buffer, 0, count);
  }
  EXPECT_EQ(inflater.consumed(), input_size);
  return out;
}

std::string by_many(std::string_view packed, Options options = kFew, size_t piece = 10'000,
                    uint64_t* joined = nullptr) {
  ParallelGzip inflater(pieces_of(packed, piece), options);
  std::string out = read_all(inflater, 70'000, packed.size());
  if (joined != nullptr) *joined = inflater.figures().joined;
  return out;
}

std::string by_one(std::string_view packed) {
  auto inflater = Inflater::make(oci::Compression::gzip, packed);
  return read_all(*inflater, 70'000, packed.size());
}

struct Packing {
  const char* name;
  GzipMaker make;
};
const std::vector<Packing>& kinds() {
  static const std::vector<Packing> all{
      {"1", {.level = 1}},
      {"6", {.level = 6}},
      {"9", {.level = 9}},
      {"short blocks", {.level = 6, .memory_level = 4}},
      {"shortest blocks, mostly fixed", {.level = 6, .memory_level = 1}},
      {"stored", {.level = 0}},
      {"fixed", {.strategy = Z_FIXED}},
      {"literals alone", {.strategy = Z_HUFFMAN_ONLY}},
      {"runs alone", {.strategy = Z_RLE}},
      {"flushed", {.flush_each = 13'000}},
      {"flushed whole", {.flush_each = 50'000, .flush = Z_FULL_FLUSH}},
      {"flushed often", {.flush_each = 300}},
  };
  return all;
}

TEST(ParallelInflate, gives_what_was_packed_however_it_was) {
  for (const std::string& bytes :
       {mixed_bytes(700'000, 1), std::string(3'000'000, 'x'), mixed_bytes(40'000, 2)}) {
    for (const Packing& kind : kinds()) {
      std::string packed = kind.make(bytes);
      EXPECT_TRUE(by_many(packed) == bytes) << kind.name;
      EXPECT_TRUE(by_many(packed, {.threads = 1, .segment = 16384, .room = 400'000}) == bytes)
          << kind.name;
    }
  }
}

TEST(ParallelInflate, decodes_ahead_of_itself) {
  std::string bytes = mixed_bytes(2'000'000, 3);
  for (const Packing& kind : kinds()) {
    // Nothing marks the beginning of a fixed block.
    if (kind.make.strategy == Z_FIXED || kind.make.memory_level == 1) continue;
    std::string packed = kind.make(bytes);
    size_t segment = kind.make.level == 0 ? 131072 : 32768;
    uint64_t joined = 0;
    Options options{.threads = 3, .segment = segment, .room = size_t{2} << 20};
    EXPECT_TRUE(by_many(packed, options, 65536, &joined) == bytes) << kind.name;
    uint64_t segments = packed.size() / segment;
    EXPECT_GE(joined, segments * 2 / 3) << kind.name << ": of " << segments;
  }
}

TEST(ParallelInflate, does_not_care_in_what_pieces_the_stream_comes) {
  std::string bytes = mixed_bytes(100'000, 4);
  std::string packed = GzipMaker{.memory_level = 2}(bytes);
  for (size_t piece : {1, 7, 1000, 4095, 4096, 4097, 5120, 1 << 20}) {
    EXPECT_TRUE(by_many(packed, kFew, piece) == bytes) << piece;
  }
  for (size_t cut = 0; cut < 5000; cut += 97) {
    std::string part = bytes.substr(0, bytes.size() - cut);
    EXPECT_TRUE(by_many(GzipMaker{.memory_level = 1}(part)) == part) << cut;
  }
}

TEST(ParallelInflate, goes_on_where_there_is_no_more_room) {
  std::string bytes =
      mixed_bytes(300'000, 5) + std::string(4'000'000, 'z') + mixed_bytes(300'000, 6);
  std::string packed = GzipMaker{}(bytes);
  for (size_t room : {10'000, 100'000, 300'000, 4 << 20}) {
    EXPECT_TRUE(by_many(packed, {.threads = 2, .segment = 8192, .room = room}) == bytes) << room;
  }
}

TEST(ParallelInflate, members_follow_one_another) {
  std::string bytes = mixed_bytes(90'000, 7);
  std::string packed = GzipMaker{}(bytes);
  std::string empty = GzipMaker{}("");
  EXPECT_TRUE(by_many(packed + empty + empty + packed + GzipMaker{.level = 0}("b") + empty) ==
              bytes + bytes + "b");
  std::string many;
  std::string all;
  for (size_t i = 0; i < 400; ++i) {
    std::string part = bytes.substr(i * 100, i * 7 % 1000);
    many += GzipMaker{.level = static_cast<int>(i % 10)}(part);
    all += part;
  }
  EXPECT_TRUE(by_many(many) == all);
}

TEST(ParallelInflate, reads_headers_with_everything_in_them) {
  std::string bytes = mixed_bytes(90'000, 8);
  std::string name(9'000, 'n');  // over the end of a segment, and of the next
  std::string extra(5'000, 'e');
  gz_header header{};
  header.name = reinterpret_cast<Bytef*>(name.data());
  header.comment = reinterpret_cast<Bytef*>(name.data());
  header.extra = reinterpret_cast<Bytef*>(extra.data());
  header.extra_len = static_cast<uInt>(extra.size());
  header.hcrc = 1;
  std::string packed = GzipMaker{.header = &header}(bytes);
  EXPECT_TRUE(by_many(packed) == bytes);
  packed[5000] ^= 1;
  EXPECT_EQ(by_many(packed), "gzip: the checksum does not hold");
  packed[3] = static_cast<char>(0xff);
  EXPECT_EQ(by_many(packed), by_one(packed));
  packed[2] = 7;
  EXPECT_EQ(by_many(packed), "gzip: it is not deflate");
}

TEST(ParallelInflate, refuses_damage_as_one_thread_does) {
  std::string packed = GzipMaker{}(mixed_bytes(100'000, 9));
  EXPECT_EQ(by_many("no"), "gzip: it is not gzip data");
  EXPECT_EQ(by_many(""), "gzip: it is not gzip data");
  for (size_t cut : {packed.size() - 1, packed.size() - 8, packed.size() - 9, packed.size() / 2,
                     packed.size() / 4096 * 4096, size_t{12}, size_t{5}, size_t{2}}) {
    EXPECT_EQ(by_many(packed.substr(0, cut)), "gzip: it is cut short") << cut;
  }
  EXPECT_EQ(by_many(packed + "garbage"), "gzip: something follows its end");
  EXPECT_EQ(by_many(packed + std::string(10, '\0')), "gzip: something follows its end");
  EXPECT_EQ(by_many(packed + "\x1f"), "gzip: it is cut short");
  EXPECT_EQ(by_many(packed + "\x1fgarbage...."), "gzip: a header is damaged");
  for (size_t from_end : {1, 4, 5, 8}) {
    std::string wrong = packed;
    wrong[wrong.size() - from_end] ^= 1;
    EXPECT_EQ(by_many(wrong), "gzip: the checksum does not hold");
  }
}

TEST(ParallelInflate, accepts_what_one_thread_accepts) {
  std::string bytes = mixed_bytes(60'000, 10);
  uint32_t seed = 1;
  std::set<std::string> lines;
  for (const Packing& kind : kinds()) {
    std::string packed = kind.make(bytes);
    for (int i = 0; i < 40; ++i) {
      std::string flipped = packed;
      seed = seed * 1664525 + 1013904223;
      flipped[(seed >> 8) % flipped.size()] ^= static_cast<char>(1 << (seed >> 5) % 8);
      std::string expected = by_one(flipped);
      EXPECT_TRUE(by_many(flipped) == expected) << kind.name << ' ' << i;
      if (expected.starts_with("gzip: ")) lines.insert(expected);
    }
  }
  EXPECT_GE(lines.size(), 2u);
}

TEST(ParallelInflate, tells_the_error_of_its_input) {
  std::string packed = GzipMaker{}(mixed_bytes(100'000, 11));
  size_t given = 0;
  ParallelGzip inflater(
      [&]() -> Result<std::string_view> {
        if (given > 20'000) return make_error(Kind::io, "the line is cut");
        std::string_view part = std::string_view(packed).substr(given, 1000);
        given += part.size();
        return part;
      },
      kFew);
  EXPECT_EQ(read_all(inflater, 70'000, 0), "the line is cut");
}

TEST(ParallelInflate, can_be_left_at_any_moment) {
  std::string packed = GzipMaker{}(mixed_bytes(300'000, 12));
  std::string buffer(20'000, '\0');
  for (int reads = 0; reads < 4; ++reads) {
    ParallelGzip inflater(pieces_of(packed, 5000), kFew);
    for (int i = 0; i < reads; ++i) ASSERT_TRUE(inflater.read(buffer.data(), buffer.size()).ok());
  }
}

// ---- where blocks begin -------------------------------------------------------------------------

/// Where the blocks of a gzip stream with a plain header begin, but the last, and fixed ones.
std::vector<uint64_t> blocks_of(const std::string& padded, uint64_t size) {
  DeflateView view{reinterpret_cast<const uint8_t*>(padded.data()), 0, size, true};
  std::vector<uint8_t> out(kDeflateWindow + 2'000'000);
  DeflateOutput<uint8_t> output{out.data() + kDeflateWindow, out.data() + kDeflateWindow,
                                out.data() + out.size()};
  DeflateDecoder decoder(10 * 8);
  std::vector<uint64_t> begins{10 * 8};
  while (decoder.run(view, output) == DeflateDecoder::Stop::block_end) {
    begins.push_back(decoder.position());
  }
  begins.pop_back();
  std::erase_if(
      begins, [&](uint64_t bit) { return (load_bits(view.bytes + bit / 8) >> bit % 8 & 7) != 4; });
  return begins;
}

TEST(FindBlock, finds_each_block_and_hardly_anything_else) {
  std::string bytes = mixed_bytes(1'000'000, 13);
  for (int memory_level : {4, 6}) {
    std::string packed = GzipMaker{.memory_level = memory_level}(bytes);
    uint64_t size = packed.size();
    packed.resize(size + DeflateView::kTail);
    DeflateView view{reinterpret_cast<const uint8_t*>(packed.data()), 0, size, true};
    std::vector<uint64_t> begins = blocks_of(packed, size);
    ASSERT_GE(begins.size(), 10u);
    std::vector<uint64_t> found;
    for (auto at = find_block(view, 0); at; at = find_block(view, *at + 1)) found.push_back(*at);
    for (uint64_t begin : begins) {
      EXPECT_EQ(findable_block(view, begin), begin);
      EXPECT_TRUE(std::ranges::binary_search(found, begin)) << begin;
    }
    EXPECT_LE(found.size(), begins.size() + 20);
  }
}

// ---- codes --------------------------------------------------------------------------------------

TEST(DeflateCodes, say_whether_they_are_full) {
  auto of = [](std::vector<uint8_t> lengths) {
    return fullness_of(lengths.data(), lengths.size());
  };
  EXPECT_EQ(of({1, 1}), Fullness::full);
  EXPECT_EQ(of({1, 2, 3, 3}), Fullness::full);
  EXPECT_EQ(of({1, 2, 3, 0}), Fullness::partial);
  EXPECT_EQ(of({1, 1, 15}), Fullness::overfull);
  EXPECT_EQ(of({0, 1, 0}), Fullness::single);
  EXPECT_EQ(of({0, 0}), Fullness::single);
  EXPECT_EQ(of({2}), Fullness::partial);
}

/// Every length of code: what does not fit would write beyond its table.
TEST(DeflateCodes, have_room_for_the_longest) {
  DeflateCodes codes;
  uint32_t seed = 5;
  auto next = [&seed](uint32_t below) {
    seed = seed * 1664525 + 1013904223;
    return (seed >> 8) % below;
  };
  for (int i = 0; i < 3000; ++i) {
    size_t count = i % 2 == 0 ? 286 : 30;
    std::vector<uint8_t> lengths(count);
    uint32_t room = 1 << 15;
    uint32_t least = 1 + next(14);
    for (uint8_t& length : lengths) {
      uint32_t wanted = least + next(16 - least);
      if (room < 1u << (15 - wanted)) wanted = 15;
      if (room == 0) wanted = 0;
      length = static_cast<uint8_t>(wanted);
      if (wanted > 0) room -= 1u << (15 - wanted);
    }
    EXPECT_NE(count == 286 ? build_literals(codes, lengths.data(), count)
                           : build_distances(codes, lengths.data(), count),
              Fullness::overfull);
  }
}

// ---- how many threads ---------------------------------------------------------------------------

TEST(InflateThreads, are_one_unless_more_are_asked_for) {
  EXPECT_EQ(*parse_inflate_threads(""), 1u);
  EXPECT_EQ(*parse_inflate_threads("0"), 1u);
  EXPECT_EQ(*parse_inflate_threads("5"), 5u);
  for (const char* wrong : {"many", "65", "-1"}) {
    auto refused = parse_inflate_threads(wrong);
    ASSERT_FALSE(refused.ok()) << wrong;
    EXPECT_EQ(
        to_line(refused.error()),
        std::string("BERTH_INFLATE_THREADS: expected a number of at most 64, got '") + wrong + "'");
  }
}

}  // namespace
}  // namespace berth::transfer
