// SPDX-License-Identifier: Apache-2.0
#include "engine/container/logs.hpp"

#include <fcntl.h>

#include <chrono>

#include "base/text.hpp"
#include "engine/container/list.hpp"
#include "engine/state/directory.hpp"
#include "logs/reader.hpp"
#include "logs/time.hpp"
#include "sys/fd/notify.hpp"
#include "sys/fd/poll.hpp"
#include "sys/file/file.hpp"

namespace berth::engine {
namespace {

/// How soon `follow` notices the end of a container that prints nothing. Output is shown at once.
constexpr std::chrono::milliseconds kLogLook{50};

/// Passes the requested entries to the sink.
class LogFilter {
 public:
  LogFilter(const LogOptions& options, const std::function<void(const LogPiece&)>& sink)
      : options_(options), sink_(sink) {}

  /// False if no later entry is wanted.
  bool show(const logs::Entry& entry) {
    if (options_.until_ns && entry.time_ns > *options_.until_ns) return false;
    if (options_.since_ns && entry.time_ns < *options_.since_ns) return true;
    Stream stream = entry.stream == logs::Stream::error ? Stream::error : Stream::out;
    sink_({stream, entry.text, entry.time_ns});
    return true;
  }

  /// False as in show().  Errors: io.
  Result<bool> show_all(logs::Reader& reader) {
    while (auto entry = TRY(reader.next())) {
      if (!show(*entry)) return false;
    }
    return true;
  }

 private:
  const LogOptions& options_;
  const std::function<void(const LogPiece&)>& sink_;
};

Result<logs::Reader> open_log(const Context& context, const std::string& id,
                              std::string_view reference) {
  auto directory = TRY(sys::open_at(sys::cwd(), context.paths.root + "/containers/" + id,
                                    O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
  auto reader = logs::Reader::open(std::move(directory));
  if (!reader.ok() && reader.error().kind == Kind::not_found) {
    return make_error(Kind::unsupported, "container " + quote(reference) +
                                             " has no log: it ran in the foreground with --rm, or "
                                             "with --log-driver=none, or was never started");
  }
  return reader;
}

bool is_written(const Context& context, const std::string& id) {
  auto files = read_container(context.paths, id);
  return files.ok() && files->owned && !files->exit;
}

bool is_past(std::optional<int64_t> until_ns) {
  using namespace std::chrono;
  return until_ns &&
         *until_ns < duration_cast<nanoseconds>(system_clock::now().time_since_epoch()).count();
}

Result<void> follow(const Context& context, const std::string& id, logs::Reader& reader,
                    LogFilter& filter, const LogOptions& options) {
  // A log rotation also creates and removes names in this directory.
  auto watch = sys::watch_directory(container_path(context.paths, id));
  reader.go_on();
  while (true) {
    // Checked before the log is read, so that no output between the two is missed.
    bool written = is_written(context, id);
    bool past = is_past(options.until_ns);
    if (!TRY(filter.show_all(reader))) return {};
    if (!written || past) return {};
    std::vector<pollfd> entries = {{watch.ok() ? watch->get() : -1, POLLIN, 0}};
    TRY(sys::poll(entries, kLogLook));
    if (watch.ok()) sys::forget_events(*watch);
  }
}

}  // namespace

std::string LogPiece::time() const {
  return logs::time_text(time_ns);
}

Result<void> container_logs(const Context& context, std::string_view reference,
                            const LogOptions& options,
                            const std::function<void(const LogPiece&)>& sink) {
  ContainerSummary summary = TRY(get_container(context, reference));
  if (summary.state == ContainerState::created) return {};
  bool running = is_written(context, summary.id);
  logs::Reader reader = TRY(open_log(context, summary.id, reference));
  LogFilter filter(options, sink);
  bool more = true;
  if (options.tail) {
    for (const logs::Entry& entry : TRY(reader.tail(*options.tail))) {
      more = more && filter.show(entry);
    }
  }
  more = more && TRY(filter.show_all(reader));
  if (more && options.follow && running) {
    TRY(follow(context, summary.id, reader, filter, options));
    running = is_written(context, summary.id);
  }
  if (!more || running) return {};
  // A killed monitor has not marked the last lines as complete.
  for (const logs::Entry& entry : reader.rest()) {
    if (!filter.show(entry)) break;
  }
  return {};
}

}  // namespace berth::engine
