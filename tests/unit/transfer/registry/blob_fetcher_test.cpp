// SPDX-License-Identifier: Apache-2.0
#include "transfer/registry/blob_fetcher.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <random>
#include <set>
#include <thread>

#include "sys/file/file.hpp"

namespace berth::transfer {
namespace {

constexpr BlobFetcher::Limits kSmall = {.connections = 4, .ahead = 64 << 10, .part = 16 << 10};

std::string random_bytes(size_t size, unsigned seed = 1) {
  std::mt19937 random(seed);
  std::string bytes(size, '\0');
  for (char& c : bytes) c = static_cast<char>(random());
  return bytes;
}

oci::Descriptor described(const std::string& bytes) {
  oci::Descriptor blob;
  blob.digest = sha256_of(bytes);
  blob.size = bytes.size();
  return blob;
}

/// A registry that knows Range, and gives `step` bytes at a time.
BlobStream::Fetch from(const std::string& bytes, size_t step = 3000) {
  return [&bytes, step](BlobPart part) -> Result<void> {
    for (uint64_t at = part.begin; at < part.end;) {
      size_t count = std::min<uint64_t>(step, part.end - at);
      TRY(part.take(std::string_view(bytes).substr(at, count)));
      at += count;
    }
    return {};
  };
}

Result<std::string> read_all(BlobStream& stream) {
  std::string all;
  while (true) {
    std::string_view piece = TRY(stream.next());
    if (piece.empty()) return all;
    all += piece;
  }
}

std::string error_of(const Result<void>& result) {
  return result.ok() ? "" : to_line(result.error());
}

TEST(BlobStream, gives_the_bytes_in_order_whatever_the_sizes) {
  Cancel cancel;
  for (size_t size : {size_t{0}, size_t{1}, size_t{100}, size_t{16384}, size_t{16385},
                      size_t{65536}, size_t{65537}, size_t{1} << 20, size_t{1234567}}) {
    std::string bytes = random_bytes(size);
    BlobFetcher fetcher(kSmall, cancel);
    BlobStream stream(fetcher, described(bytes), from(bytes), {});
    Result<std::string> read = read_all(stream);
    ASSERT_TRUE(read.ok()) << to_line(read.error());
    EXPECT_EQ(*read, bytes) << size;
    EXPECT_TRUE(stream.arrived());
    EXPECT_EQ(error_of(stream.finish()), "");
  }
}

TEST(BlobStream, a_large_blob_comes_over_several_connections_and_never_further_than_allowed) {
  Cancel cancel;
  std::string bytes = random_bytes(1 << 20);
  std::atomic<int> at_once = 0;
  std::atomic<int> most = 0;
  std::atomic<uint64_t> furthest = 0;
  auto fetch = [&](BlobPart part) -> Result<void> {
    int now = ++at_once;
    for (int seen = most; now > seen && !most.compare_exchange_weak(seen, now);) {
    }
    for (uint64_t seen = furthest;
         part.end > seen && !furthest.compare_exchange_weak(seen, part.end);) {
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    Result<void> done = from(bytes)(part);
    --at_once;
    return done;
  };
  BlobFetcher fetcher(kSmall, cancel);
  BlobStream stream(fetcher, described(bytes), fetch, {});
  uint64_t read = 0;
  while (true) {
    Result<std::string_view> piece = stream.next();
    ASSERT_TRUE(piece.ok());
    if (piece->empty()) break;
    EXPECT_EQ(*piece, std::string_view(bytes).substr(read, piece->size()));
    read += piece->size();
    EXPECT_LE(furthest, read + kSmall.ahead);
  }
  EXPECT_EQ(read, bytes.size());
  EXPECT_GT(most, 1);
  EXPECT_LE(most, 4);
}

TEST(BlobStream, a_registry_without_ranges_gives_the_whole_on_one_connection) {
  Cancel cancel;
  std::string bytes = random_bytes(1 << 20);
  std::atomic<int> calls = 0;
  auto fetch = [&](BlobPart part) -> Result<void> {
    ++calls;
    part.end = bytes.size();
    TRY(part.on_whole());
    return from(bytes)(std::move(part));
  };
  BlobFetcher fetcher(kSmall, cancel);
  BlobStream stream(fetcher, described(bytes), fetch, {});
  Result<std::string> read = read_all(stream);
  ASSERT_TRUE(read.ok()) << to_line(read.error());
  EXPECT_EQ(*read, bytes);
  EXPECT_EQ(calls, 1);
}

TEST(BlobStream, many_at_once_get_each_their_own) {
  Cancel cancel;
  BlobFetcher fetcher(kSmall, cancel);
  std::vector<std::jthread> readers;
  std::atomic<int> good = 0;
  for (unsigned i = 0; i < 12; ++i) {
    readers.emplace_back([&, i] {
      std::string bytes = random_bytes(100'000 + 10'000 * i, i);
      BlobStream stream(fetcher, described(bytes), from(bytes, 100 + i), {});
      Result<std::string> read = read_all(stream);
      good += read.ok() && *read == bytes ? 1 : 0;
    });
  }
  readers.clear();
  EXPECT_EQ(good, 12);
}

TEST(BlobStream, the_end_is_reached_only_when_the_digest_holds) {
  Cancel cancel;
  std::string bytes = random_bytes(200'000);
  oci::Descriptor blob = described(bytes);
  std::string other = bytes;
  other.back() ^= 1;
  BlobFetcher fetcher(kSmall, cancel);
  BlobStream stream(fetcher, blob, from(other), {.action = "read it"});
  std::string expected =
      "cannot read it: check its bytes: their digest is '" + sha256_of(other).text() + "'";
  Result<std::string> read = read_all(stream);
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(to_line(read.error()), expected);
  EXPECT_TRUE(stream.failed());
  EXPECT_EQ(error_of(stream.finish()), expected);
}

TEST(BlobStream, who_lost_interest_still_learns_whether_it_was_good) {
  Cancel cancel;
  std::string bytes = random_bytes(300'000);
  BlobFetcher fetcher(kSmall, cancel);
  BlobStream good(fetcher, described(bytes), from(bytes), {});
  ASSERT_TRUE(good.next().ok());
  EXPECT_EQ(error_of(good.finish()), "");
  oci::Descriptor wrong = described(bytes);
  wrong.digest = sha256_of("another");
  BlobStream bad(fetcher, wrong, from(bytes), {});
  EXPECT_NE(error_of(bad.finish()), "");
}

TEST(BlobStream, a_copy_of_the_bytes_is_written) {
  Cancel cancel;
  std::string bytes = random_bytes(150'000);
  sys::Fd file = *sys::memory_file("copy", "");
  std::atomic<uint64_t> told = 0;
  BlobFetcher fetcher(kSmall, cancel);
  BlobStream stream(fetcher, described(bytes), from(bytes),
                    {.copy = &file, .progress = [&](uint64_t come) { told = come; }});
  EXPECT_EQ(error_of(stream.finish()), "");
  EXPECT_EQ(*sys::read_at(file, 0, bytes.size() + 1, "copy"), bytes);
  EXPECT_EQ(told, bytes.size());
}

TEST(BlobStream, an_error_of_one_connection_reaches_the_reader_and_stops_the_others) {
  Cancel cancel;
  std::string bytes = random_bytes(1 << 20);
  auto fetch = [&](BlobPart part) -> Result<void> {
    if (part.begin >= 200'000) return make_error(Kind::io, "read: the line is cut");
    return from(bytes)(std::move(part));
  };
  BlobFetcher fetcher(kSmall, cancel);
  BlobStream stream(fetcher, described(bytes), fetch, {});
  Result<std::string> read = read_all(stream);
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.error().what, "read: the line is cut");
}

TEST(BlobStream, who_goes_away_does_not_wait_for_what_he_does_not_read) {
  Cancel cancel;
  std::string bytes = random_bytes(1 << 20);
  auto fetch = [&](BlobPart part) -> Result<void> {
    part.end = bytes.size();
    TRY(part.on_whole());
    return from(bytes)(std::move(part));
  };
  BlobFetcher fetcher(kSmall, cancel);
  BlobStream stream(fetcher, described(bytes), fetch, {});
  ASSERT_TRUE(stream.next().ok());
}

TEST(BlobStream, a_signal_ends_who_waits_for_room) {
  Cancel cancel;
  std::string bytes = random_bytes(1 << 20);
  std::atomic<bool> interrupted = false;
  auto fetch = [&](BlobPart part) -> Result<void> {
    part.end = bytes.size();
    TRY(part.on_whole());
    Result<void> done = from(bytes)(std::move(part));
    interrupted = !done.ok() && done.error().kind == Kind::interrupted;
    return done;
  };
  BlobFetcher fetcher(kSmall, cancel);
  BlobStream stream(fetcher, described(bytes), fetch, {});
  ASSERT_TRUE(stream.next().ok());
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  cancel.request();
  Result<std::string> read = read_all(stream);
  EXPECT_FALSE(read.ok());
  EXPECT_TRUE(interrupted);
}

TEST(BlobStream, without_threads_the_reader_fetches) {
  Cancel cancel;
  BlobFetcher::Limits none = kSmall;
  none.connections = 0;
  std::string bytes = random_bytes(500'000);
  BlobFetcher fetcher(none, cancel);
  BlobStream stream(fetcher, described(bytes), from(bytes), {});
  Result<std::string> read = read_all(stream);
  ASSERT_TRUE(read.ok()) << to_line(read.error());
  EXPECT_EQ(*read, bytes);
  BlobStream unread(fetcher, described(bytes), from(bytes), {});
  EXPECT_EQ(error_of(unread.finish()), "");
}

}  // namespace
}  // namespace berth::transfer
