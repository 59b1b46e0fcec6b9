// SPDX-License-Identifier: Apache-2.0
// archive, extract: a tree of a container, or of the host, as a tar and back.
#include <fcntl.h>

#include <string>

#include "sys/file.hpp"
#include "sys/stream.hpp"
#include "transfer/archive.hpp"
#include "transfer/archive_members.hpp"
#include "transfer/cancel.hpp"
#include "transfer/outer_archive.hpp"
#include "transfer/output_file.hpp"
#include "transfer/tree_extract.hpp"
#include "transfer/tree_tar.hpp"

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

/// The bytes of a tar, in pieces; a compressed one is unpacked.
class TarInput {
 public:
  static Result<TarInput> open(const image::ExtractRequest& request, const Cancel& cancel) {
    TarInput input;
    input.cancel_ = &cancel;
    input.fd_ = TRY(open_input(request.input));
    if (!request.packed) return input;
    input.unpacker_ = TRY(ArchiveReader::open_raw(input.fd_));
    // Nothing at all is an empty archive.
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

}  // namespace

Result<image::TransferResult> archive(const image::ArchiveRequest& request, const EventSink& events,
                                      Cancel& cancel) {
  sys::Fd tree = TRY(open_input(request.tree));
  OutputFile output = TRY(OutputFile::open(request.output, 0600));
  FdSink sink(output.fd(), cancel);
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
  // Who writes the archive must not find the pipe closed before its last padding.
  while (!TRY(input.next()).empty()) continue;
  return image::TransferResult();
}

}  // namespace berth::transfer
