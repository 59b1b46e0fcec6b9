// SPDX-License-Identifier: Apache-2.0
#include "runtime/state/bundle.hpp"

#include <fcntl.h>

#include "base/text.hpp"
#include "json/value.hpp"
#include "oci/config.hpp"
#include "oci/default_spec.hpp"
#include "sys/file/file.hpp"
#include "sys/user/identity.hpp"

namespace berth::runtime {
namespace {

constexpr size_t kMaxConfig = size_t{16} << 20;

}  // namespace

Result<Bundle> read_bundle(const std::string& path, const std::string& config) {
  sys::Fd directory = TRY(sys::open_at(sys::cwd(), path, O_PATH | O_DIRECTORY));
  Bundle bundle;
  bundle.path =
      path.starts_with("/") ? path : TRY(sys::read_link(sys::cwd(), sys::fd_path(directory)));
  // O_NONBLOCK: does not block on a FIFO.
  sys::Fd file = TRY(sys::open_at(directory, config, O_RDONLY | O_NONBLOCK));
  struct stat info = TRY(sys::stat_fd(file, config));
  if (!S_ISREG(info.st_mode)) {
    return make_error(Kind::usage, "open " + quote(config) + ": not a regular file");
  }
  std::string text = TRY(sys::read_all(file, config, kMaxConfig));
  bundle.spec = TRY(oci::parse_spec(text));
  return bundle;
}

Result<void> write_default_spec(const std::string& directory, SpecKind kind) {
  oci::Spec spec = kind == SpecKind::rootless
                       ? oci::template_rootless_spec(sys::effective_uid(), sys::effective_gid())
                       : oci::template_spec();
  json::Value value = TRY(json::parse(oci::write_spec(spec), kConfigFile));
  sys::Fd place = TRY(sys::open_at(sys::cwd(), directory, O_PATH | O_DIRECTORY));
  sys::Fd file =
      TRY(sys::open_at(place, kConfigFile, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0666));
  TRY(sys::write_all(file, json::dump(value, 2) + "\n", kConfigFile));
  return sys::close_checked(std::move(file), kConfigFile);
}

}  // namespace berth::runtime
