// SPDX-License-Identifier: Apache-2.0
// bench_inflate THREADS BLOB…: inflates these gzip layers, each twice, into a buffer of 1 MiB that
// nobody reads; THREADS is 0 for ISA-L alone, else what ParallelGzip gets. Prints JSON: for each
// layer the bytes, seconds of wall and of all processors (the second time), and how many segments
// were decoded ahead.
#include <fcntl.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <memory>

#include "base/result.hpp"
#include "sys/file/file.hpp"
#include "sys/file/tree.hpp"
#include "transfer/compression/parallel_inflate.hpp"

namespace {

using namespace berth;
using transfer::Inflater;
using transfer::ParallelGzip;

constexpr size_t kBlock = size_t{1} << 20;
constexpr size_t kPiece = size_t{512} << 10;  // as a blob comes from the registry

double processor_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

struct Run {
  uint64_t uncompressed = 0;
  double seconds = 0;
  double cpu_seconds = 0;
  ParallelGzip::Figures figures;
};

Result<Run> inflate(std::string_view bytes, size_t threads) {
  auto input = [bytes]() mutable -> Result<std::string_view> {
    std::string_view piece = bytes.substr(0, kPiece);
    bytes.remove_prefix(piece.size());
    return piece;
  };
  auto begin = std::chrono::steady_clock::now();
  double cpu = processor_seconds();
  std::unique_ptr<Inflater> inflater;
  if (threads == 0) {
    inflater = Inflater::make(oci::Compression::gzip, input);
  } else {
    inflater = std::make_unique<ParallelGzip>(input, ParallelGzip::Options{.threads = threads});
  }
  auto block = std::make_unique<char[]>(kBlock);
  Run run;
  size_t count = kBlock;
  while (count == kBlock) {
    count = TRY(inflater->read(block.get(), kBlock));
    run.uncompressed += count;
  }
  if (auto* parallel = dynamic_cast<ParallelGzip*>(inflater.get()))
    run.figures = parallel->figures();
  inflater.reset();
  run.cpu_seconds = processor_seconds() - cpu;
  run.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return run;
}

Result<void> measure(size_t threads, const char* path) {
  sys::Fd blob = TRY(sys::open_at(sys::cwd(), path, O_RDONLY));
  sys::MappedFile mapped = TRY(sys::MappedFile::map(blob, path));
  TRY(inflate(mapped.bytes(), threads));  // brings the pages
  Run run = TRY(inflate(mapped.bytes(), threads));
  std::printf(
      "{\"threads\": %zu, \"compressed\": %zu, \"uncompressed\": %llu, \"s\": %.3f, \"cpu_s\": "
      "%.3f, "
      "\"segments\": %llu, \"ahead\": %llu, \"mb_per_s\": %.0f, \"cpu_s_per_gb\": %.2f}\n",
      threads, mapped.bytes().size(), static_cast<unsigned long long>(run.uncompressed),
      run.seconds, run.cpu_seconds, static_cast<unsigned long long>(run.figures.segments),
      static_cast<unsigned long long>(run.figures.joined),
      static_cast<double>(run.uncompressed) / 1e6 / run.seconds,
      run.cpu_seconds * 1e9 / static_cast<double>(run.uncompressed));
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fputs("usage: bench_inflate THREADS BLOB...\n", stderr);
    return 2;
  }
  size_t threads = std::strtoul(argv[1], nullptr, 10);
  for (int i = 2; i < argc; ++i) {
    auto done = measure(threads, argv[i]);
    if (!done.ok()) {
      std::fprintf(stderr, "bench_inflate: %s\n", to_line(done.error()).c_str());
      return 1;
    }
  }
  return 0;
}
