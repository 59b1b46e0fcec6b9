// SPDX-License-Identifier: Apache-2.0
#include "sys/fd/xattr.hpp"

#include <sys/xattr.h>

#include <cerrno>

#include "base/text.hpp"

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

}  // namespace berth::sys
