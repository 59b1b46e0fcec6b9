// SPDX-License-Identifier: Apache-2.0
#include "transfer/compression/decompress.hpp"

#include <gtest/gtest.h>
#include <isa-l/igzip_lib.h>
#include <zstd.h>

namespace berth::transfer {
namespace {

std::string text() {
  std::string bytes;
  for (int i = 0; i < 400'000; ++i) bytes += std::to_string(i * 2654435761u % 1000);
  return bytes;
}

std::string gzip(const std::string& bytes) {
  isal_zstream stream;
  isal_deflate_init(&stream);
  std::string out(bytes.size() + 4096, '\0');
  stream.gzip_flag = IGZIP_GZIP;
  stream.end_of_stream = 1;
  stream.next_in = reinterpret_cast<uint8_t*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uint32_t>(bytes.size());
  stream.next_out = reinterpret_cast<uint8_t*>(out.data());
  stream.avail_out = static_cast<uint32_t>(out.size());
  EXPECT_EQ(isal_deflate(&stream), COMP_OK);
  out.resize(stream.total_out);
  return out;
}

std::string zstd(const std::string& bytes, int window_log = 0) {
  ZSTD_CCtx* context = ZSTD_createCCtx();
  if (window_log) {
    ZSTD_CCtx_setParameter(context, ZSTD_c_windowLog, window_log);
    ZSTD_CCtx_setParameter(context, ZSTD_c_contentSizeFlag, 0);
  }
  std::string out(ZSTD_compressBound(bytes.size()) + 64, '\0');
  ZSTD_inBuffer in{bytes.data(), bytes.size(), 0};
  ZSTD_outBuffer output{out.data(), out.size(), 0};
  // In two steps, so that the frame does not know its size and keeps the window.
  ZSTD_inBuffer first{bytes.data(), bytes.size() / 2, 0};
  ZSTD_compressStream2(context, &output, &first, ZSTD_e_flush);
  in.pos = first.pos;
  EXPECT_EQ(ZSTD_compressStream2(context, &output, &in, ZSTD_e_end), 0u);
  ZSTD_freeCCtx(context);
  out.resize(output.pos);
  return out;
}

std::string inflate(oci::Compression compression, const std::string& input,
                    size_t block = 100'000) {
  auto inflater = Inflater::make(compression, input);
  std::string out;
  std::string buffer(block, '\0');
  while (true) {
    auto count = inflater->read(buffer.data(), buffer.size());
    if (!count.ok()) return to_line(count.error());
    out.append(buffer, 0, *count);
    if (*count < buffer.size()) break;
  }
  EXPECT_EQ(inflater->consumed(), input.size());
  return out;
}

using oci::Compression;

TEST(Inflate, gives_back_what_was_packed) {
  std::string bytes = text();
  for (size_t block : {1, 4096, 1 << 20, 3 << 20}) {
    if (block == 1) bytes.resize(5000);
    EXPECT_EQ(inflate(Compression::gzip, gzip(bytes), block), bytes);
    EXPECT_EQ(inflate(Compression::zstd, zstd(bytes), block), bytes);
    EXPECT_EQ(inflate(Compression::none, bytes, block), bytes);
    bytes = text();
  }
}

TEST(Inflate, members_and_frames_follow_one_another) {
  std::string a = text();
  std::string b = "the second";
  EXPECT_EQ(inflate(Compression::gzip, gzip(a) + gzip(b) + gzip("") + gzip(b)), a + b + b);
  EXPECT_EQ(inflate(Compression::zstd, zstd(a) + zstd(b)), a + b);
}

std::string recognized(oci::Compression said, std::string_view input) {
  auto inflater = Inflater::recognize(said, [input]() mutable -> Result<std::string_view> {
    std::string_view piece = input.substr(0, 1000);
    input.remove_prefix(piece.size());
    return piece;
  });
  std::string out(size_t{8} << 20, '\0');
  auto count = inflater->read(out.data(), out.size());
  if (!count.ok()) return to_line(count.error());
  return out.substr(0, *count);
}

TEST(Inflate, recognizes_what_is_packed_otherwise_than_its_type_says) {
  std::string tar = std::string(257, 'x') + "ustar" + text();
  for (auto said : {Compression::gzip, Compression::zstd}) {
    EXPECT_EQ(recognized(said, gzip(tar)), tar);
    EXPECT_EQ(recognized(said, zstd(tar)), tar);
    EXPECT_EQ(recognized(said, tar), tar);
  }
  EXPECT_EQ(recognized(Compression::gzip, "no"), "gzip: it is not gzip data");
  EXPECT_EQ(recognized(Compression::zstd, "garbage"), "zstd: the data is damaged");
  EXPECT_EQ(recognized(Compression::none, gzip(tar)), tar);
  EXPECT_EQ(recognized(Compression::none, zstd(tar)), tar);
  EXPECT_EQ(recognized(Compression::none, "whatever"), "whatever");
}

TEST(Inflate, refuses_damage) {
  std::string packed = gzip(text());
  EXPECT_EQ(inflate(Compression::gzip, "no"), "gzip: it is not gzip data");
  EXPECT_EQ(inflate(Compression::gzip, ""), "gzip: it is not gzip data");
  for (size_t cut : {packed.size() - 1, packed.size() - 8, packed.size() / 2, size_t{2}}) {
    EXPECT_EQ(inflate(Compression::gzip, packed.substr(0, cut)), "gzip: it is cut short") << cut;
  }
  EXPECT_EQ(inflate(Compression::gzip, packed + "garbage"), "gzip: something follows its end");
  EXPECT_EQ(inflate(Compression::gzip, packed + std::string(10, '\0')),
            "gzip: something follows its end");
  std::string wrong_sum = packed;
  wrong_sum[packed.size() - 6] ^= 1;
  EXPECT_EQ(inflate(Compression::gzip, wrong_sum), "gzip: the checksum does not hold");

  std::string frame = zstd(text());
  EXPECT_EQ(inflate(Compression::zstd, frame.substr(0, frame.size() - 3)), "zstd: it is cut short");
  EXPECT_EQ(inflate(Compression::zstd, frame + "garbage"), "zstd: the data is damaged");
  EXPECT_EQ(inflate(Compression::zstd, "garbage"), "zstd: the data is damaged");
}

TEST(Inflate, refuses_a_zstd_window_that_would_take_gigabytes) {
  EXPECT_EQ(inflate(Compression::zstd, zstd(text(), 30)),
            "zstd: it needs a window of more than the 128 MiB allowed");
}

}  // namespace
}  // namespace berth::transfer
