// SPDX-License-Identifier: Apache-2.0
#include "transfer/tar/outer_archive.hpp"

#include <archive.h>
#include <archive_entry.h>

#include <algorithm>
#include <cerrno>
#include <string>

#include "base/text.hpp"
#include "sys/process/stream.hpp"

namespace berth::transfer {
namespace {

constexpr size_t kArchiveBlock = size_t{1} << 20;
/// The same ratio as for layers (UnpackLimits), but checked from a smaller size on: the output is
/// written before anything else is known about the archive.
constexpr uint64_t kRatio = 1000;
constexpr uint64_t kArchiveRatioFrom = uint64_t{1} << 30;

Error reading_error(struct archive* a) {
  const char* text = archive_error_string(a);
  return make_error(Kind::corrupt,
                    "read the archive: " + (text ? to_lower(text) : std::string("it is damaged")));
}

Error writing_error(struct archive* a) {
  int code = archive_errno(a);
  if (code > 0) return sys_error(code, "write the archive");
  const char* text = archive_error_string(a);
  return make_error(Kind::io,
                    std::string("write the archive: ") + (text ? text : "no reason given"));
}

// Enables only the filters that are built into libarchive. With all filters, libarchive would start
// lrzip, lzop and other programs from PATH if the first bytes of the archive say so. It would also
// do so, with a warning, for a filter that it was built without.
void support_filters(struct archive* a) {
  for (auto support : {archive_read_support_filter_gzip, archive_read_support_filter_bzip2,
                       archive_read_support_filter_xz, archive_read_support_filter_lzma,
                       archive_read_support_filter_zstd, archive_read_support_filter_lz4}) {
    std::unique_ptr<struct archive, int (*)(struct archive*)> trial(archive_read_new(),
                                                                    archive_read_free);
    if (support(trial.get()) == ARCHIVE_OK) support(a);
  }
}

}  // namespace

void ArchiveReader::Free::operator()(struct archive* a) const {
  archive_read_free(a);
}

Result<ArchiveReader> ArchiveReader::open(const sys::Fd& fd) {
  ArchiveReader reader;
  reader.archive_.reset(archive_read_new());
  struct archive* a = reader.archive_.get();
  support_filters(a);
  archive_read_support_format_tar(a);
  if (archive_read_open_fd(a, fd.get(), kArchiveBlock) != ARCHIVE_OK) {
    return make_error(Kind::corrupt, "read the archive: it is not a tar archive");
  }
  return reader;
}

Result<ArchiveReader> ArchiveReader::open_raw(const sys::Fd& fd) {
  ArchiveReader reader;
  reader.archive_.reset(archive_read_new());
  struct archive* a = reader.archive_.get();
  support_filters(a);
  archive_read_support_format_raw(a);
  archive_read_support_format_empty(a);
  if (archive_read_open_fd(a, fd.get(), kArchiveBlock) != ARCHIVE_OK) return reading_error(a);
  return reader;
}

Result<void> ArchiveReader::check_ratio() const {
  constexpr int kUnpacked = 0;
  constexpr int kPacked = -1;
  auto produced = static_cast<uint64_t>(archive_filter_bytes(archive_.get(), kUnpacked));
  auto consumed = static_cast<uint64_t>(archive_filter_bytes(archive_.get(), kPacked));
  if (produced <= kArchiveRatioFrom || produced / std::max<uint64_t>(consumed, 1) <= kRatio)
    return {};
  return make_error(Kind::corrupt, "read the archive: it unpacks to more than " +
                                       std::to_string(kRatio) + " times its size");
}

Result<std::optional<ArchiveReader::Member>> ArchiveReader::next() {
  struct archive_entry* entry = nullptr;
  int code = archive_read_next_header(archive_.get(), &entry);
  TRY(check_ratio());
  if (code == ARCHIVE_EOF) return std::optional<Member>();
  if (code != ARCHIVE_OK && code != ARCHIVE_WARN) return reading_error(archive_.get());
  Member member;
  const char* name = archive_entry_pathname(entry);
  const char* hard_link = archive_entry_hardlink(entry);
  const char* symlink = archive_entry_symlink(entry);
  member.name = name ? name : "";
  if (hard_link != nullptr || symlink != nullptr) {
    member.type = Member::Type::link;
    // A symbolic link is relative to its own directory, a hard link to the root.
    member.target = hard_link ? hard_link : "./" + std::string(symlink);
  } else if (archive_entry_filetype(entry) == AE_IFREG) {
    member.type = Member::Type::file;
  }
  return std::optional<Member>(std::move(member));
}

Result<std::string_view> ArchiveReader::content() {
  const void* bytes = nullptr;
  size_t size = 0;
  la_int64_t offset = 0;
  int code = archive_read_data_block(archive_.get(), &bytes, &size, &offset);
  TRY(check_ratio());
  if (code == ARCHIVE_EOF) return std::string_view();
  if (code != ARCHIVE_OK && code != ARCHIVE_WARN) return reading_error(archive_.get());
  return std::string_view(static_cast<const char*>(bytes), size);
}

void ArchiveWriter::Free::operator()(struct archive* a) const {
  archive_write_free(a);
}

Result<ArchiveWriter> ArchiveWriter::open(const sys::Fd& fd) {
  ArchiveWriter writer;
  writer.archive_.reset(archive_write_new());
  struct archive* a = writer.archive_.get();
  archive_write_set_format_pax_restricted(a);
  archive_write_set_bytes_per_block(a, static_cast<int>(kArchiveBlock));
  archive_write_set_bytes_in_last_block(a, 512);
  if (archive_write_open_fd(a, fd.get()) != ARCHIVE_OK) return writing_error(a);
  return writer;
}

Result<void> ArchiveWriter::header(const std::string& name, unsigned type, uint64_t size) {
  std::unique_ptr<struct archive_entry, void (*)(struct archive_entry*)> entry(archive_entry_new(),
                                                                               archive_entry_free);
  archive_entry_set_pathname(entry.get(), name.c_str());
  archive_entry_set_filetype(entry.get(), type);
  archive_entry_set_perm(entry.get(), type == AE_IFDIR ? 0755 : 0644);
  archive_entry_set_size(entry.get(), static_cast<la_int64_t>(size));
  archive_entry_set_mtime(entry.get(), 0, 0);  // so that equal images give equal archives
  if (archive_write_header(archive_.get(), entry.get()) < ARCHIVE_WARN) {
    return writing_error(archive_.get());
  }
  return {};
}

Result<void> ArchiveWriter::add_directory(const std::string& name) {
  return header(name, AE_IFDIR, 0);
}

Result<void> ArchiveWriter::add_text(const std::string& name, std::string_view bytes) {
  TRY(header(name, AE_IFREG, bytes.size()));
  if (archive_write_data(archive_.get(), bytes.data(), bytes.size()) < 0) {
    return writing_error(archive_.get());
  }
  return {};
}

Result<void> ArchiveWriter::add_file(const std::string& name, const sys::Fd& content,
                                     uint64_t size) {
  TRY(header(name, AE_IFREG, size));
  std::string buffer(kArchiveBlock, '\0');
  for (uint64_t done = 0; done < size;) {
    size_t count = TRY(sys::read_some(content, buffer, name));
    if (count == 0) return make_error(Kind::corrupt, "read " + quote(name) + ": it is too short");
    if (archive_write_data(archive_.get(), buffer.data(), count) < 0) {
      return writing_error(archive_.get());
    }
    done += count;
  }
  return {};
}

Result<void> ArchiveWriter::finish() {
  if (archive_write_close(archive_.get()) != ARCHIVE_OK) return writing_error(archive_.get());
  return {};
}

}  // namespace berth::transfer
