// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "sys/fd/fd.hpp"

struct archive;
struct archive_entry;

/// Wrappers of libarchive. They read and write the outer archive of images, not the content of
/// layers: the tar of load and save, the compression of an imported tar. C strings and libarchive's
/// own error messages stay in this file.
namespace berth::transfer {

/// Reads the members of a tar, plain or compressed (gzip, bzip2, xz, zstd, lz4). If it unpacks to
/// more than 1000 times its size, checked beyond the first GiB, it is corrupt.
class ArchiveReader {
 public:
  /// `fd` must stay open. Errors: corrupt (no tar).
  static Result<ArchiveReader> open(const sys::Fd& fd);
  /// Reads any file, decompressed if necessary, as one member.
  static Result<ArchiveReader> open_raw(const sys::Fd& fd);

  struct Member {
    std::string name;
    enum class Type { file, link, other } type = Type::other;
    std::string target;  ///< of a link
  };
  /// Nothing at the end. Errors: corrupt.
  Result<std::optional<Member>> next();
  /// The next bytes of the member, nothing at its end. Errors: corrupt.
  Result<std::string_view> content();

 private:
  Result<void> check_ratio() const;
  struct Free {
    void operator()(struct archive* a) const;
  };
  std::unique_ptr<struct archive, Free> archive_;
};

/// Writes a tar to a descriptor.
class ArchiveWriter {
 public:
  static Result<ArchiveWriter> open(const sys::Fd& fd);
  Result<void> add_directory(const std::string& name);
  Result<void> add_text(const std::string& name, std::string_view bytes);
  Result<void> add_file(const std::string& name, const sys::Fd& content, uint64_t size);
  Result<void> finish();

 private:
  Result<void> header(const std::string& name, unsigned type, uint64_t size);
  struct Free {
    void operator()(struct archive* a) const;
  };
  std::unique_ptr<struct archive, Free> archive_;
};

/// Receives bytes; an error stops the producer.
class ByteSink {
 public:
  virtual ~ByteSink() = default;
  virtual Result<void> write(std::string_view bytes) = 0;
};

}  // namespace berth::transfer
