// SPDX-License-Identifier: Apache-2.0
#include "sys/file/tree.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <utility>

#include "base/text.hpp"
#include "sys/file/file.hpp"

namespace berth::sys {

Result<std::optional<std::string>> read_attribute(const Fd& fd, const std::string& key) {
  // Most attributes are short; the kernel's limit is 64 KiB.
  std::string value(256, '\0');
  ssize_t size = ::fgetxattr(fd.get(), key.c_str(), value.data(), value.size());
  if (size < 0 && errno == ERANGE) {
    value.resize(size_t{64} << 10);
    size = ::fgetxattr(fd.get(), key.c_str(), value.data(), value.size());
  }
  if (size < 0) {
    if (errno == ENODATA || errno == EOPNOTSUPP) return std::optional<std::string>();
    return errno_now().error("read attribute " + quote(key));
  }
  value.resize(static_cast<size_t>(size));
  return std::optional<std::string>(std::move(value));
}

Result<std::vector<std::string>> list_attributes(const Fd& fd) {
  std::vector<std::string> names;
  std::string text(size_t{64} << 10, '\0');
  ssize_t size = ::flistxattr(fd.get(), text.data(), text.size());
  if (size < 0) {
    if (errno == EOPNOTSUPP) return names;
    return errno_now().error("list attributes");
  }
  for (std::string_view name : split(std::string_view(text).substr(0, size), '\0')) {
    if (!name.empty()) names.emplace_back(name);
  }
  return names;
}

Result<void> remove_attribute(const Fd& fd, const std::string& key) {
  if (::fremovexattr(fd.get(), key.c_str()) == 0) return {};
  if (errno == ENODATA || errno == EOPNOTSUPP) return {};
  return errno_now().error("remove attribute " + quote(key));
}

Result<void> make_hard_link(const Fd& from_dir, const std::string& from, const Fd& to_dir,
                            const std::string& to) {
  if (::linkat(from_dir.get(), from.c_str(), to_dir.get(), to.c_str(), 0) == 0) return {};
  return errno_now().error("link " + quote(to) + " to " + quote(from));
}

Result<void> write_attribute(const Fd& fd, const std::string& key, std::string_view value) {
  if (::fsetxattr(fd.get(), key.c_str(), value.data(), value.size(), 0) == 0) return {};
  return errno_now().error("set the attribute " + quote(key));
}

Result<MappedFile> MappedFile::map(const Fd& fd, const std::string& name) {
  struct stat file = TRY(stat_fd(fd, name));
  MappedFile mapped;
  if (file.st_size == 0) return mapped;
  auto size = static_cast<size_t>(file.st_size);
  void* start = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd.get(), 0);
  if (start == MAP_FAILED) return errno_now().error("map " + quote(name));
  ::madvise(start, size, MADV_SEQUENTIAL);
  mapped.bytes_ = std::string_view(static_cast<const char*>(start), size);
  return mapped;
}

MappedFile::MappedFile(MappedFile&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  return *this;
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<char*>(bytes_.data()), bytes_.size());
}

Result<mode_t> current_umask() {
  std::string status = TRY(read_file(cwd(), "/proc/self/status"));
  size_t field = status.find("\nUmask:\t");
  mode_t mask = 077;  // if unknown: may cost a needless chmod, but gives no wrong mode
  if (field != std::string::npos) {
    const char* digits = status.data() + field + 8;
    std::from_chars(digits, status.data() + status.size(), mask, 8);
  }
  return mask;
}

}  // namespace berth::sys
