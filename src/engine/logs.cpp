// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>

#include <array>
#include <chrono>
#include <deque>
#include <thread>

#include "base/text.hpp"
#include "engine/container_directory.hpp"
#include "engine/containers.hpp"
#include "json/fields.hpp"
#include "sys/file.hpp"
#include "sys/stream.hpp"

namespace berth::engine {
namespace {

constexpr std::chrono::milliseconds kPollTime{50};
constexpr size_t kMaxEntry = size_t{1} << 20;

struct Entry {
  std::string log;
  std::string stream;
  std::string time;
};
template <class V>
void fields(V& v, Entry& e) {
  v.required("log", e.log);
  v.required("stream", e.stream);
  v.required("time", e.time);
}

/// Reads entries of docker's json-file format from a file that may still grow.
class LogReader {
 public:
  explicit LogReader(sys::Fd fd) : fd_(std::move(fd)) {}

  /// The next whole entry; nothing when there is none now.
  Result<std::optional<LogPiece>> next() {
    while (true) {
      size_t end = buffer_.find('\n', start_);
      if (end != std::string::npos) {
        std::string_view line = std::string_view(buffer_).substr(start_, end - start_);
        auto entry = TRY(json::read<Entry>(line, "log"));
        start_ = end + 1;
        Stream stream = entry.stream == "stderr" ? Stream::error : Stream::out;
        return std::optional<LogPiece>(
            LogPiece{stream, std::move(entry.log), std::move(entry.time)});
      }
      buffer_.erase(0, start_);
      start_ = 0;
      if (buffer_.size() > kMaxEntry) return make_error(Kind::corrupt, "log: an endless entry");
      std::array<char, 65536> chunk;
      size_t count = TRY(sys::read_some(fd_, chunk, "log"));
      if (count == 0) return std::optional<LogPiece>();
      buffer_.append(chunk.data(), count);
    }
  }

 private:
  sys::Fd fd_;
  std::string buffer_;
  size_t start_ = 0;
};

// A line may be several pieces: only the last of them ends with a newline.
Result<void> show_tail(LogReader& reader, uint64_t lines,
                       const std::function<void(const LogPiece&)>& sink) {
  std::deque<LogPiece> kept;
  uint64_t complete = 0;
  while (auto piece = TRY(reader.next())) {
    if (piece->text.ends_with('\n')) ++complete;
    kept.push_back(std::move(*piece));
    bool open_end = !kept.back().text.ends_with('\n');
    while (complete + (open_end ? 1 : 0) > lines && !kept.empty()) {
      if (kept.front().text.ends_with('\n')) --complete;
      kept.pop_front();
      if (kept.empty()) break;
    }
  }
  for (const LogPiece& piece : kept) sink(piece);
  return {};
}

Result<void> show_all(LogReader& reader, const std::function<void(const LogPiece&)>& sink) {
  while (auto piece = TRY(reader.next())) sink(*piece);
  return {};
}

}  // namespace

Result<void> container_logs(const Context& context, std::string_view reference,
                            const LogOptions& options,
                            const std::function<void(const LogPiece&)>& sink) {
  ContainerSummary summary = TRY(get_container(context, reference));
  std::string path = context.paths.root + "/containers/" + summary.id + "/" + kLogFile;
  auto file = TRY(sys::open_if_exists(sys::cwd(), path, O_RDONLY | O_NOFOLLOW));
  if (!file) {
    return make_error(Kind::unsupported,
                      "container " + quoted(reference) + " ran in the foreground: it has no log");
  }
  LogReader reader(std::move(*file));
  TRY(options.tail ? show_tail(reader, *options.tail, sink) : show_all(reader, sink));
  while (options.follow) {
    // Looked at before the log, so that nothing written between the two is missed.
    auto files = read_container(context.paths, summary.id);
    bool running = files.ok() && files->owned && !files->exit;
    TRY(show_all(reader, sink));
    if (!running) break;
    std::this_thread::sleep_for(kPollTime);
  }
  return {};
}

}  // namespace berth::engine
