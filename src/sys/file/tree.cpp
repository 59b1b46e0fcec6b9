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
  mode_t mask = 077;  // a needless correction costs a call, not a wrong mode
  if (field != std::string::npos) {
    const char* digits = status.data() + field + 8;
    std::from_chars(digits, status.data() + status.size(), mask, 8);
  }
  return mask;
}

}  // namespace berth::sys
