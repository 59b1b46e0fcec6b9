// SPDX-License-Identifier: Apache-2.0
// archive, extract: a tree of a container, or of the host, as a tar and back.
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>

#include <cerrno>
#include <string>

#include "base/text.hpp"
#include "sys/file/file.hpp"
#include "sys/file/file_system.hpp"
#include "sys/process/signals.hpp"
#include "sys/process/stream.hpp"
#include "transfer/archive/archive.hpp"
#include "transfer/archive/members.hpp"
#include "transfer/archive/output_file.hpp"
#include "transfer/layer/tree_extract.hpp"
#include "transfer/layer/tree_tar.hpp"
#include "transfer/tar/entry.hpp"
#include "transfer/tar/outer_archive.hpp"
#include "transfer/work/cancel.hpp"
#include "transfer/work/tool.hpp"

namespace berth::transfer {
namespace {

class FdSink final : public ByteSink {
 public:
  FdSink(const sys::Fd& fd, const Cancel& cancel) : fd_(fd), cancel_(cancel) {}
  Result<void> write(std::string_view bytes) override {
    TRY(cancel_.check());
    size_ += bytes.size();
    return sys::write_all(fd_, bytes, "the archive");
  }
  uint64_t size() const { return size_; }

 private:
  const sys::Fd& fd_;
  const Cancel& cancel_;
  uint64_t size_ = 0;
};

/// The bytes of a tar, in pieces; decompresses if necessary.
class TarInput {
 public:
  static Result<TarInput> open(const image::ExtractRequest& request, const Cancel& cancel) {
    TarInput input;
    input.cancel_ = &cancel;
    input.fd_ = TRY(open_input(request.input));
    if (!request.packed) return input;
    input.unpacker_ = TRY(ArchiveReader::open_raw(input.fd_));
    // An empty input is an empty archive.
    if (!TRY(input.unpacker_->next())) input.unpacker_.reset();
    return input;
  }
  Result<std::string_view> next() {
    TRY(cancel_->check());
    if (unpacker_) return unpacker_->content();
    buffer_.resize(size_t{1} << 20);
    size_t count = TRY(sys::read_some(fd_, buffer_, "the archive"));
    return std::string_view(buffer_.data(), count);
  }

 private:
  sys::Fd fd_;
  std::optional<ArchiveReader> unpacker_;
  std::string buffer_;
  const Cancel* cancel_ = nullptr;
};

std::function<void(const std::string&)> warn_through(const EventSink& events) {
  return [&events](const std::string& text) { events(image::WarningEvent{text}); };
}

bool is_full(const sys::Fd& file) {
  constexpr uint64_t kLittle = uint64_t{1} << 20;
  auto system = sys::file_system_of(sys::fd_path(file));
  return system.ok() && system->free_bytes < kLittle;
}

/// Pipes the tar through tar2sqfs into the file.
Result<void> write_squashfs(const sys::Fd& tree, const image::ArchiveRequest& request,
                            const OutputFile& output, const EventSink& events, Cancel& cancel) {
  if (!S_ISREG(TRY(sys::stat_fd(output.fd(), request.output)).st_mode)) {
    return make_error(Kind::usage, "a squashfs is written to a file, not to a pipe");
  }
  // If tar2sqfs stops reading, it reports the reason itself, so SIGPIPE must not end this process.
  sys::Fd signals = TRY(sys::receive_signals({SIGPIPE}));
  sys::Pipe pipe = TRY(sys::make_pipe());
  ToolCall call;
  call.program = "tar2sqfs";
  call.args = {"--force", "--quiet", "--compressor", "zstd", tool_path(output.fd())};
  call.package = "squashfs-tools-ng";
  call.user = ToolUser::caller;  // it writes the caller's file, and the tar is trusted
  call.env = {"SOURCE_DATE_EPOCH=" + std::to_string(request.epoch)};
  call.keep = {output.fd().get()};
  Tool tool = TRY(Tool::start(call, &pipe.read, nullptr));
  pipe.read.reset();
  FdSink sink(pipe.write, cancel);
  std::optional<uint64_t> latest;
  if (request.epoch > 0) latest = request.epoch;
  auto written =
      write_tree_tar(tree, {request.name, Marks::plain, {}, warn_through(events), latest}, sink);
  pipe.write.reset();
  bool gone = !written.ok() && written.error().sys_errno == EPIPE;
  if (!written.ok() && !gone) return written;
  auto finished = tool.finish();
  // tar2sqfs reports every error as an I/O error.
  if (!finished.ok() && is_full(output.fd())) {
    return sys_error(ENOSPC, "write " + quote(request.output));
  }
  TRY(std::move(finished));
  return gone ? std::move(written) : Result<void>();
}

}  // namespace

Result<image::TransferResult> archive(const image::ArchiveRequest& request, const EventSink& events,
                                      Cancel& cancel) {
  sys::Fd tree = TRY(open_input(request.tree));
  OutputFile output = TRY(OutputFile::open(request.output, 0600));
  FdSink sink(output.fd(), cancel);
  if (request.squashfs) {
    TRY(write_squashfs(tree, request, output, events, cancel));
    TRY(output.finish());
    return image::TransferResult();
  }
  TRY(write_tree_tar(tree, {request.name, Marks::plain, {}, warn_through(events)}, sink));
  TRY(output.finish());
  image::TransferResult result;
  result.size = sink.size();
  return result;
}

Result<image::TransferResult> extract(const image::ExtractRequest& request, const EventSink& events,
                                      Cancel& cancel) {
  TreePlace place;
  place.directory = TRY(open_input(request.directory));
  if (!request.top.empty()) place.root = TRY(open_input(request.top));
  place.path = request.path;
  TarInput input = TRY(TarInput::open(request, cancel));
  TarReader tar([&] { return input.next(); });
  TreeExtractor extractor(std::move(place), {request.owners, request.trust, warn_through(events)});
  TarEntry entry;
  while (TRY(tar.next(entry))) TRY(extractor.add(entry, tar));
  TRY(extractor.finish());
  // Reads to the end, so that the writer of the archive does not get SIGPIPE for its last padding.
  while (!TRY(input.next()).empty()) continue;
  return image::TransferResult();
}

}  // namespace berth::transfer
