// SPDX-License-Identifier: Apache-2.0
#include "engine/state/log_end.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "known_error/find.hpp"
#include "sys/file/file.hpp"
#include "sys/process/stream.hpp"

namespace berth::engine {
namespace {

constexpr size_t kChunk = size_t{64} << 10;

Result<std::string> read_to_end(const sys::Fd& fd, const std::string& name) {
  known_error::Tail tail;
  std::string chunk(kChunk, '\0');
  while (size_t count = TRY(sys::read_some(fd, chunk, name))) {
    tail.add(std::string_view(chunk).substr(0, count));
  }
  return std::string(tail.text());
}

}  // namespace

Result<std::string> read_log_end(const std::string& path) {
  if (path == "-") {
    sys::Fd input(STDIN_FILENO);
    auto text = read_to_end(input, "standard input");
    input.release();
    return text;
  }
  sys::Fd file = TRY(sys::open_at(sys::cwd(), path, O_RDONLY | O_NOCTTY));
  struct stat info = TRY(sys::stat_fd(file, path));
  auto size = static_cast<uint64_t>(info.st_size);
  // Files in /proc report no size.
  if (!S_ISREG(info.st_mode) || size == 0) return read_to_end(file, path);
  // One more byte tells the caller that the log is longer.
  uint64_t length = std::min<uint64_t>(size, known_error::kMaxLog + 1);
  return sys::read_at(file, size - length, length, path);
}

}  // namespace berth::engine
