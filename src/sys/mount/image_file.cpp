// SPDX-License-Identifier: Apache-2.0
#include "sys/mount/image_file.hpp"

#include <sys/stat.h>

#include "base/text.hpp"
#include "sys/file/file.hpp"
#include "sys/file/io_at.hpp"
#include "sys/mount/little_endian.hpp"

namespace berth::sys {
namespace {

constexpr std::string_view kSquashfsMagic = "hsqs";
constexpr size_t kSquashfsHead = 96;
constexpr std::string_view kErofsMagic = "\xe2\xe1\xf5\xe0";
constexpr size_t kErofsAt = 1024;

// The reader of the image would fail too, with a less helpful message.
Result<void> check_squashfs(std::string_view head, uint64_t size) {
  if (head.size() < kSquashfsHead || !head.starts_with(kSquashfsMagic)) {
    return make_error(Kind::corrupt, "the SIF is damaged: its root is not a squashfs");
  }
  if (little_endian(head, 28, 2) != 4) {
    return make_error(Kind::unsupported, "its squashfs is not version 4");
  }
  uint64_t used = little_endian(head, 40, 8);
  if (used <= size) return {};
  return make_error(Kind::corrupt, "it is truncated: its squashfs has " + std::to_string(used) +
                                       " bytes, the file has " + std::to_string(size));
}

Result<std::optional<ImagePart>> identify(const ReadAt& read, uint64_t size) {
  std::string head = TRY(read(0, kErofsAt + kErofsMagic.size()));
  ImagePart part{ImageFormat::squashfs, {0, size}, false};
  if (is_sif(head)) {
    part.sif = true;
    part.extent = TRY(find_sif_root(read, size));
    head = TRY(read(part.extent.offset, kSquashfsHead));
  } else if (head.size() > kErofsAt && head.substr(kErofsAt) == kErofsMagic) {
    part.format = ImageFormat::erofs;
    return std::optional<ImagePart>(part);
  } else if (!head.starts_with(kSquashfsMagic)) {
    return std::optional<ImagePart>();
  }
  TRY(check_squashfs(head, part.extent.size));
  return std::optional<ImagePart>(part);
}

}  // namespace

Result<std::optional<ImagePart>> identify_image(const Fd& file, const std::string& name) {
  struct stat info = TRY(stat_fd(file, name));
  if (!S_ISREG(info.st_mode)) return make_error(Kind::usage, "it is not a regular file");
  auto read = [&](uint64_t offset, size_t length) { return read_at(file, offset, length, name); };
  return identify(read, static_cast<uint64_t>(info.st_size));
}

}  // namespace berth::sys
