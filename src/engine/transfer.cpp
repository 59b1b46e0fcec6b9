// SPDX-License-Identifier: Apache-2.0
#include "engine/transfer.hpp"

#include <array>
#include <optional>
#include <vector>

#include "base/text.hpp"
#include "sys/file.hpp"
#include "sys/process.hpp"
#include "sys/stream.hpp"

namespace berth::engine {
namespace {

constexpr size_t kMaxLine = size_t{1} << 20;

/// Descriptors of ours that the child gets under numbers that it does not use for itself.
class PassedStreams {
 public:
  /// Replaces "/dev/fd/0" and "/dev/fd/1" by the name that our stream has in the child.
  Result<void> redirect(std::string& path) {
    for (int number : {0, 1}) {
      if (path != "/dev/fd/" + std::to_string(number)) continue;
      sys::Fd ours(number);
      auto copy = sys::duplicate(ours);
      ours.release();  // stays open: it is the process's
      if (!copy.ok()) return std::move(copy).error();
      path = "/dev/fd/" + std::to_string(copy->get());
      fds_.push_back(std::move(*copy));
      break;
    }
    return {};
  }
  std::vector<int> numbers() const {
    std::vector<int> list;
    for (const sys::Fd& fd : fds_) list.push_back(fd.get());
    return list;
  }

 private:
  std::vector<sys::Fd> fds_;
};

// What every request of a kind has is told here once.
Result<void> complete(const Context& context, image::TransferRequest& request,
                      PassedStreams& streams) {
  bool single = context.identity == Identity::single;
  bool root = context.identity == Identity::root;
  return std::visit(
      [&](auto& r) -> Result<void> {
        if constexpr (requires { r.root; }) r.root = context.paths.root;
        if constexpr (requires { r.ownership; }) {
          r.ownership = single ? image::Ownership::single : image::Ownership::full;
          r.overlay_xattr = root ? image::OverlayXattr::trusted : image::OverlayXattr::user;
        }
        if constexpr (requires { r.input; }) TRY(streams.redirect(r.input));
        if constexpr (requires { r.output; }) TRY(streams.redirect(r.output));
        if constexpr (requires { r.source; }) TRY(streams.redirect(r.source));
        return {};
      },
      request);
}

/// The events of the child, line by line.
class Lines {
 public:
  explicit Lines(const sys::Fd& fd) : fd_(fd) {}

  /// Nothing at the end.  Errors: io, corrupt (a line over 1 MiB).
  Result<std::optional<std::string>> next() {
    while (true) {
      size_t end = buffer_.find('\n', start_);
      if (end != std::string::npos) {
        std::string line = buffer_.substr(start_, end - start_);
        start_ = end + 1;
        return std::optional<std::string>(std::move(line));
      }
      buffer_.erase(0, start_);
      start_ = 0;
      if (buffer_.size() > kMaxLine) {
        return make_error(Kind::corrupt, "berth-transfer: a line of more than 1 MiB");
      }
      std::array<char, 16384> chunk;
      size_t count = TRY(sys::read_some(fd_, chunk, "events of berth-transfer"));
      if (count == 0) return std::optional<std::string>();
      buffer_.append(chunk.data(), count);
    }
  }

 private:
  const sys::Fd& fd_;
  std::string buffer_;
  size_t start_ = 0;
};

}  // namespace

Result<image::TransferResult> transfer(const Context& context, image::TransferRequest request,
                                       const Progress& progress) {
  PassedStreams streams;
  TRY(complete(context, request, streams));
  sys::Fd input = TRY(sys::memory_file("berth-transfer-request", image::to_json(request)));
  sys::Pipe events = TRY(sys::make_pipe());

  sys::SpawnOptions options;
  options.program = context.paths.libexec + "/berth-transfer";
  options.args = {"berth-transfer"};
  options.in = &input;
  options.out = &events.write;
  options.keep = streams.numbers();
  sys::Process child = TRY(sys::spawn(options));
  events.write.reset();

  std::optional<Result<image::TransferResult>> outcome;
  Lines lines(events.read);
  while (auto line = TRY(lines.next())) {
    auto event = TRY(image::parse_event(*line));
    if (auto* result = std::get_if<image::TransferResult>(&event)) {
      outcome = std::move(*result);
    } else if (auto* error = std::get_if<Error>(&event)) {
      outcome = std::move(*error);
    } else if (auto* warning = std::get_if<image::WarningEvent>(&event)) {
      context.log.warn(warning->text);
    } else if (progress) {
      progress(event);
    }
  }
  sys::ExitStatus status = TRY(child.wait());
  if (outcome) return std::move(*outcome);
  if (status.signal != 0) {
    return make_error(Kind::interrupted,
                      "berth-transfer was ended by signal " + std::to_string(status.signal));
  }
  return make_error(Kind::bug,
                    "berth-transfer ended without a result, status " + std::to_string(status.code));
}

}  // namespace berth::engine
