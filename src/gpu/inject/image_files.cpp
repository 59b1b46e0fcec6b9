// SPDX-License-Identifier: Apache-2.0
#include "gpu/inject/image_files.hpp"

#include <fcntl.h>

#include <algorithm>
#include <memory>

#include "base/text.hpp"
#include "sys/file/file.hpp"
#include "sys/file/root_walk.hpp"

namespace berth::gpu {
namespace {

constexpr const char* kWhy = "LD_LIBRARY_PATH";
constexpr size_t kMaxDirectories = 64;

#if defined(__x86_64__)
constexpr const char* kMuslLoader = "ld-musl-x86_64.so.1";
#else
constexpr const char* kMuslLoader = "ld-musl-aarch64.so.1";
#endif

class Names {
 public:
  explicit Names(const std::string& rootfs) {
    auto root = sys::open_at(sys::cwd(), rootfs, O_PATH | O_DIRECTORY);
    if (root.ok()) root_ = std::move(*root);
    if (root_) host_path_ = path_of(root_);
  }

  /// `path` with links resolved; nothing if it does not exist.
  std::optional<std::string> find(const std::string& path) const {
    if (!root_) return std::nullopt;
    auto found = sys::open_in_root(root_, path, O_PATH);
    if (!found.ok()) return std::nullopt;
    std::string there = path_of(*found);
    if (!is_below(there, host_path_)) return std::nullopt;
    return there.substr(host_path_.size() == 1 ? 0 : host_path_.size());
  }

 private:
  static std::string path_of(const sys::Fd& fd) {
    auto text = sys::read_link(sys::cwd(), sys::fd_path(fd));
    return text.ok() ? std::move(*text) : std::string();
  }

  sys::Fd root_;
  std::string host_path_;
};

std::string_view library_path_of(const oci::Spec& spec) {
  constexpr std::string_view kVariable = "LD_LIBRARY_PATH=";
  if (!spec.process) return {};
  for (const std::string& entry : spec.process->env) {
    if (entry.starts_with(kVariable)) return std::string_view(entry).substr(kVariable.size());
  }
  return {};
}

// Files in a mount do not belong to the image; the author of the mount is responsible for them.
bool in_mount(const std::string& path, const oci::Spec& spec) {
  return std::ranges::any_of(spec.mounts, [&](const oci::Mount& mount) {
    return mount.destination != "/" && is_below(path, mount.destination);
  });
}

}  // namespace

ImageFiles look_at_image(const std::string& rootfs, const oci::Spec& spec,
                         bool forward_compatibility) {
  const Names names(rootfs);
  ImageFiles image;
  auto compat = names.find(scan::kCompatDirectory);
  image.compat = compat.has_value();
  image.driver.musl = names.find(std::string("/lib/") + kMuslLoader) ||
                      names.find(std::string("/usr/lib/") + kMuslLoader);
  size_t count = 0;
  for (std::string_view directory : split(library_path_of(spec), ':')) {
    while (directory.size() > 1 && directory.ends_with('/')) directory.remove_suffix(1);
    if (directory == scan::LoaderSettings().ours || ++count > kMaxDirectories) break;
    std::string path = std::string(directory) + "/libcuda.so.1";
    auto real = directory.starts_with('/') ? names.find(path) : std::nullopt;
    if (!real || in_mount(path, spec) || in_mount(*real, spec)) continue;
    // The container's first process decides whether the package fits.
    bool left = compat && forward_compatibility && is_below(*real, *compat);
    if (!left) image.driver.libraries.push_back({path, std::move(*real), "", kWhy, true});
  }
  return image;
}

RealPath real_path_in(const std::string& rootfs) {
  auto root = sys::open_at(sys::cwd(), rootfs, O_PATH | O_DIRECTORY);
  if (!root.ok()) return [](const std::string& path) { return path; };
  return [held = std::make_shared<sys::Fd>(std::move(*root))](const std::string& path) {
    auto real = sys::real_path_in_root(*held, path);
    if (!real.ok()) return path;
    return std::move(*real);
  };
}

}  // namespace berth::gpu
