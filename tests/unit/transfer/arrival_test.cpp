// SPDX-License-Identifier: Apache-2.0
#include "transfer/arrival.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <string>
#include <thread>

#include "sys/io_at.hpp"

namespace berth::transfer {
namespace {

sys::Fd memory_file() {
  return sys::Fd(::memfd_create("blob", MFD_CLOEXEC));
}

std::string bytes_of(size_t size) {
  std::string bytes(size, '\0');
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(i * 31 + (i >> 12));
  return bytes;
}

void write(const sys::Fd& file, uint64_t offset, std::string_view part) {
  ASSERT_TRUE(sys::write_at(file, offset, part, "blob").ok());
}

/// All that a reader gets, or the error line.
std::string read_to_end(BlobInput& input) {
  std::string out;
  while (true) {
    auto part = input.next();
    if (!part.ok()) return to_line(part.error());
    if (part->empty()) return out;
    out += *part;
  }
}

TEST(Arrival, who_reads_gets_what_comes_in_its_order) {
  std::string bytes = bytes_of(3'000'001);
  sys::Fd file = memory_file();
  Arrival arrival(bytes.size());
  std::thread writer([&] {
    for (size_t at = 0; at < bytes.size(); at += 70'000) {
      std::string_view part = std::string_view(bytes).substr(at, 70'000);
      write(file, at, part);
      arrival.set(at + part.size());
    }
    arrival.end(true);
  });
  BlobInput input(file, &arrival);
  EXPECT_TRUE(read_to_end(input) == bytes);
  writer.join();
  EXPECT_TRUE(arrival.wait_end());
}

TEST(Arrival, a_blob_that_begins_anew_goes_on_where_the_reader_was) {
  std::string bytes = bytes_of(2'000'000);
  sys::Fd file = memory_file();
  Arrival arrival(bytes.size());
  BlobInput input(file, &arrival);
  write(file, 0, std::string_view(bytes).substr(0, 1'000'000));
  arrival.set(1'000'000);
  std::string out = std::string(input.next().value());
  ASSERT_FALSE(out.empty());
  ASSERT_TRUE(sys::truncate(file, 0, "blob").ok());
  arrival.set(0);
  std::thread writer([&] {
    write(file, 0, bytes);
    arrival.set(bytes.size());
    arrival.end(true);
  });
  out += read_to_end(input);
  writer.join();
  EXPECT_TRUE(out == bytes);
}

TEST(Arrival, who_reads_a_blob_that_does_not_come_is_sent_home) {
  sys::Fd file = memory_file();
  Arrival arrival(1000);
  std::thread writer([&] { arrival.end(false); });
  BlobInput input(file, &arrival);
  EXPECT_EQ(read_to_end(input), "read a blob that does not arrive");
  writer.join();
  EXPECT_FALSE(arrival.wait_end());
  EXPECT_TRUE(arrival.ended());
}

TEST(Arrival, the_first_piece_is_long_enough_to_tell_a_format) {
  sys::Fd file = memory_file();
  Arrival arrival(6);
  std::thread writer([&] {
    for (size_t i = 0; i < 6; ++i) {
      write(file, i, "x");
      arrival.set(i + 1);
    }
    arrival.end(true);
  });
  BlobInput input(file, &arrival);
  EXPECT_EQ(input.next().value(), "xxxxxx");
  writer.join();
}

TEST(Arrival, a_blob_that_is_whole_is_read_to_its_end) {
  std::string bytes = bytes_of(1'500'000);
  sys::Fd file = memory_file();
  write(file, 0, bytes);
  BlobInput input(file, nullptr);
  EXPECT_TRUE(read_to_end(input) == bytes);
}

}  // namespace
}  // namespace berth::transfer
