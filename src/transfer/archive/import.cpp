// SPDX-License-Identifier: Apache-2.0
// import: a directory, a tar, or an image file of another engine becomes an image of one layer.
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <optional>
#include <span>
#include <string>

#include "base/result.hpp"
#include "base/text.hpp"
#include "image/foreign.hpp"
#include "image/store.hpp"
#include "oci/image_spec.hpp"
#include "sys/fd/fd.hpp"
#include "sys/file/file.hpp"
#include "sys/file/mode.hpp"
#include "sys/mount/image_file.hpp"
#include "sys/process/stream.hpp"
#include "transfer/archive/archive.hpp"
#include "transfer/archive/members.hpp"
#include "transfer/archive/new_image.hpp"
#include "transfer/layer/tree_tar.hpp"
#include "transfer/tar/outer_archive.hpp"
#include "transfer/work/cancel.hpp"
#include "transfer/work/event.hpp"
#include "transfer/work/give_up.hpp"
#include "transfer/work/tool.hpp"

namespace berth::transfer {
namespace {

constexpr const char* kPackage = "squashfs-tools-ng";
constexpr uid_t kNobody = 65534;
constexpr size_t kImportPiece = size_t{1} << 20;
// The limits of ArchiveReader for compressed tars: less than kFree is harmless, and no real image
// exceeds the ratio.
constexpr uint64_t kFree = uint64_t{1} << 30;
constexpr uint64_t kMostRatio = 1000;

ToolCall call_of(const char* program, std::vector<std::string> args, const sys::Fd& file) {
  ToolCall call;
  call.program = program;
  call.args = std::move(args);
  call.args.push_back(tool_path(file));
  call.package = kPackage;
  call.keep = {file.get()};
  return call;
}

Result<void> copy_part(const sys::Fd& from, const sys::Extent& part, const sys::Fd& to,
                       const Cancel& cancel) {
  for (uint64_t done = 0; done < part.size;) {
    TRY(cancel.check());
    size_t piece = std::min<uint64_t>(kImportPiece, part.size - done);
    std::string bytes = TRY(sys::read_at(from, part.offset + done, piece, "the image"));
    if (bytes.empty()) return make_error(Kind::corrupt, "the file became shorter");
    TRY(sys::write_at(to, done, bytes, "the copy"));
    done += bytes.size();
  }
  return {};
}

bool readable_by_tools(const struct stat& info) {
  return !tools_are_nobody() || (info.st_mode & S_IROTH) != 0;
}

/// Reads the files through rdsquashfs, which follows no links.
class ToolFiles final : public image::ForeignFiles {
 public:
  explicit ToolFiles(const sys::Fd& file) : file_(file) {}

  Result<std::optional<std::string>> read(const std::string& path,
                                          size_t max_bytes) const override {
    auto text = run("--cat", path, max_bytes);
    if (!text.ok() && is_absence(text.error())) return std::optional<std::string>();
    return std::optional<std::string>(TRY(std::move(text)));
  }
  Result<bool> exists(const std::string& path) const override {
    auto found = run("--stat", path, kImportPiece);
    if (!found.ok() && is_absence(found.error())) return false;
    TRY(std::move(found));
    return true;
  }

 private:
  /// Decides by the message of rdsquashfs, because the exit status is the same for all errors.
  static bool is_absence(const Error& error) {
    constexpr const char* kWords[] = {"no such file", "is not a directory", "not a regular file"};
    return std::ranges::any_of(
        kWords, [&](const char* words) { return error.what.find(words) != std::string::npos; });
  }

  Result<std::string> run(const char* what, const std::string& path, size_t max_bytes) const {
    sys::Pipe pipe = TRY(sys::make_pipe());
    Tool tool = TRY(Tool::start(call_of("rdsquashfs", {what, path}, file_), nullptr, &pipe.write));
    pipe.write.reset();
    std::string text;
    std::string buffer(kImportPiece, '\0');
    while (size_t count = TRY(sys::read_some(pipe.read, buffer, "rdsquashfs"))) {
      text.append(buffer, 0, count);
      if (text.size() <= max_bytes) continue;
      return make_error(Kind::corrupt,
                        quote(path) + " is longer than " + std::to_string(max_bytes) + " bytes");
    }
    TRY(tool.finish());
    return text;
  }

  const sys::Fd& file_;
};

/// The squashfs to import (of a SIF, a copy of its squashfs), in a file that the programs of
/// squashfs-tools-ng can open: they may run as nobody.
class ForeignImage {
 public:
  /// Opens the image in `file`, open for reading; nothing if it is neither squashfs nor SIF. The
  /// squashfs of a SIF is copied to the store's tmp/, and so is a squashfs that only root of the
  /// machine may read.
  /// Errors: those of sys::identify_image(); io, interrupted.
  static Result<std::optional<ForeignImage>> open(const sys::Fd& file, const std::string& name,
                                                  image::Delivery& delivery, const Cancel& cancel);

  /// Writes the whole image as a tar.  Errors: not_found (no sqfs2tar), corrupt, those of `sink`.
  Result<void> write_tar(ByteSink& sink, const Cancel& cancel) const;

  /// The configuration in the image's files.  Errors: not_found (no rdsquashfs), io.
  Result<oci::ContainerDefaults> describe() const;

 private:
  sys::Fd file_;
  image::Staged staged_;  ///< the copy, if `file_` is a copy
  uint64_t size_ = 0;
};

Result<std::optional<ForeignImage>> ForeignImage::open(const sys::Fd& file, const std::string& name,
                                                       image::Delivery& delivery,
                                                       const Cancel& cancel) {
  struct stat info = TRY(sys::stat_fd(file, name));
  if (!S_ISREG(info.st_mode)) return std::optional<ForeignImage>();
  auto part = TRY(sys::identify_image(file, name));
  if (!part || part->format != sys::ImageFormat::squashfs) return std::optional<ForeignImage>();
  ForeignImage image;
  image.size_ = part->extent.size;
  if (!part->sif && readable_by_tools(info)) {
    image.file_ = TRY(sys::duplicate(file));
    return std::optional<ForeignImage>(std::move(image));
  }
  image.staged_ = TRY(delivery.stage_file());
  TRY(copy_part(file, part->extent, image.staged_.fd(), cancel));
  if (tools_are_nobody()) {
    TRY(sys::change_owner(image.staged_.fd(), kNobody, kNobody, image.staged_.path()));
  }
  image.file_ = TRY(sys::duplicate(image.staged_.fd()));
  return std::optional<ForeignImage>(std::move(image));
}

Result<void> ForeignImage::write_tar(ByteSink& sink, const Cancel& cancel) const {
  sys::Pipe pipe = TRY(sys::make_pipe());
  sys::widen_pipe(pipe, kImportPiece);
  // Without both options the owner and mode of the root directory would be lost.
  ToolCall call = call_of("sqfs2tar", {"--root-becomes", ".", "--no-skip"}, file_);
  Tool tool = TRY(Tool::start(call, nullptr, &pipe.write));
  pipe.write.reset();
  std::string buffer(kImportPiece, '\0');
  uint64_t written = 0;
  while (size_t count = TRY(sys::read_some(pipe.read, buffer, "sqfs2tar"))) {
    TRY(cancel.check());
    written += count;
    if (written > kFree && written / kMostRatio > size_) {
      return make_error(Kind::corrupt, "it unpacks to more than 1000 times its size");
    }
    TRY(sink.write(std::string_view(buffer).substr(0, count)));
  }
  return tool.finish();
}

Result<oci::ContainerDefaults> ForeignImage::describe() const {
  return image::describe_foreign(ToolFiles(file_));
}

/// The source, and its configuration for containers.
struct Source {
  sys::Fd fd;
  std::optional<ForeignImage> foreign;
  oci::ContainerDefaults says;
};

Result<Source> open_import(const std::string& path, image::Delivery& delivery,
                           const Cancel& cancel) {
  Source source;
  source.fd = TRY(open_input(path));
  source.foreign = TRY(ForeignImage::open(source.fd, path, delivery, cancel));
  if (source.foreign) source.says = TRY(source.foreign->describe());
  return source;
}

Result<void> write_source(const Source& opened, const image::ImportRequest& request, ByteSink& sink,
                          const Cancel& cancel) {
  const std::string& source = request.source;
  if (opened.foreign) return opened.foreign->write_tar(sink, cancel);
  const sys::Fd& fd = opened.fd;
  struct stat status = TRY(sys::stat_fd(fd, source));
  if (S_ISDIR(status.st_mode)) {
    return write_tree_tar(fd, {".", Marks::plain, {}, {}, request.source_date}, sink);
  }
  ArchiveReader reader = TRY(ArchiveReader::open_raw(fd));
  auto member = TRY(reader.next());
  if (!member) return make_error(Kind::corrupt, "read " + quote(source) + ": it is empty");
  while (true) {
    std::string_view part = TRY(reader.content());
    if (part.empty()) return {};
    TRY(sink.write(part));
  }
}

// With a source date, equal files give equal digests, so the name of the source must not appear.
std::string where_from(const image::ImportRequest& request) {
  if (request.source_date) return "Imported";
  return "Imported from " + (is_descriptor(request.source) ? "-" : request.source);
}

Result<oci::ImageConfig> make_config(const image::ImportRequest& request, const Digest& diff_id,
                                     const oci::ContainerDefaults& says) {
  oci::Platform platform = oci::host_platform();
  if (request.platform) platform = TRY(oci::parse_platform(*request.platform));
  oci::ImageConfig config;
  config.config = says;
  config.created = creation_time(request.source_date);
  config.architecture = platform.architecture;
  config.os = platform.os;
  config.variant = platform.variant;
  config.rootfs.diff_ids = {diff_id};
  oci::History history;
  history.created = config.created;
  history.comment = request.message.empty() ? where_from(request) : request.message;
  config.history = {history};
  for (const auto& change : request.changes) TRY(apply_change(change, config.config));
  return config;
}

Result<image::TransferResult> import_into(const image::ImportRequest& request,
                                          const image::Store& store, Events& events,
                                          Cancel& cancel) {
  NewImage made;
  made.reference = TRY(new_name(request.reference));
  // Invalid changes are reported before the work begins.
  TRY(make_config(request, {}, {}));

  image::Delivery delivery = TRY(image::Delivery::begin(store));
  Source source = TRY(open_import(request.source, delivery, cancel));
  image::Staged staged = TRY(delivery.stage_file());
  LayerPacker packer(staged.fd(), cancel);
  TRY(write_source(source, request, packer, cancel));
  Digest diff_id = TRY(packer.finish());
  made.layers.push_back(TRY(describe_layer(staged.fd())));
  TRY(delivery.publish_blob(std::move(staged), made.layers[0].digest));
  made.config = TRY(make_config(request, diff_id, source.says));
  return publish_new_image(store, delivery, made, events, cancel);
}

}  // namespace

Result<image::TransferResult> import_image(const image::ImportRequest& request,
                                           const EventSink& sink, Cancel& cancel) {
  std::string what = "cannot import " + input_name(request.source);
  Events events(sink, Events::Layers::hidden);
  return fill_store(request, what, events, [&](const image::Store& store) {
    return import_into(request, store, events, cancel);
  });
}

}  // namespace berth::transfer
