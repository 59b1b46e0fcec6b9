// SPDX-License-Identifier: Apache-2.0
#include "transfer/archive/foreign_import.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <span>

#include "base/text.hpp"
#include "image/foreign.hpp"
#include "sys/file/file.hpp"
#include "sys/file/mode.hpp"
#include "sys/process/stream.hpp"
#include "transfer/work/tool.hpp"

namespace berth::transfer {
namespace {

constexpr const char* kPackage = "squashfs-tools-ng";
constexpr uid_t kNobody = 65534;
constexpr size_t kImportPiece = size_t{1} << 20;
// The limits of ArchiveReader for compressed tars: below is harmless, above is no honest file.
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
  /// By rdsquashfs's message, because its status does not distinguish this.
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

}  // namespace

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
  // Only this form keeps the root's own owner and mode.
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

}  // namespace berth::transfer
