// SPDX-License-Identifier: Apache-2.0
#include "engine/container/root_view.hpp"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include <algorithm>

#include "base/text.hpp"
#include "engine/image/rootfs_driver.hpp"
#include "oci/config.hpp"
#include "record/record.hpp"
#include "sys/file/file.hpp"
#include "sys/mount/layer.hpp"
#include "sys/mount/mount.hpp"
#include "sys/mount/overlay.hpp"
#include "sys/process/process.hpp"

namespace berth::engine {
namespace {

constexpr size_t kMaxViewedConfig = size_t{16} << 20;
constexpr int kPathDirectory = O_PATH | O_DIRECTORY;

std::string bundle_of(const Context& context, const ContainerSummary& container) {
  return files_of(context, container) + "/" + std::string(kBundleDirectory);
}

bool has_option(const oci::Mount& mount, std::string_view option) {
  return std::ranges::find(mount.options, option) != mount.options.end();
}

struct OverlayPaths {
  RootfsDriver driver = RootfsDriver::overlay;
  std::vector<std::string> lower;
  std::string upper;
  std::string work;
  std::vector<std::string> options;
};

Result<OverlayPaths> overlay_of(const oci::Spec& spec) {
  OverlayPaths paths;
  auto driver = rootfs_driver_of(spec);
  if (driver) paths.driver = *driver;
  if (driver == RootfsDriver::copy) {
    paths.lower = copied_layers(spec);
    return paths;
  }
  for (const oci::Mount& mount : spec.mounts) {
    if (mount.destination != "/" || !driver) continue;
    for (const std::string& option : mount.options) {
      auto value = [&](std::string_view key) {
        return option.starts_with(key) ? option.substr(key.size()) : std::string();
      };
      if (std::string layer = value("lowerdir+="); !layer.empty()) paths.lower.push_back(layer);
      if (std::string upper = value("upperdir="); !upper.empty()) paths.upper = upper;
      if (std::string work = value("workdir="); !work.empty()) paths.work = work;
      if (option == "userxattr") paths.options.push_back(option);
    }
    return paths;
  }
  return make_error(Kind::unsupported, "the root of this container is a directory of the host",
                    "the directory itself");
}

// The kernel provides the files at these paths only while a container runs.
bool is_of_the_kernel(std::string_view path) {
  for (std::string_view top : {"/proc", "/sys", "/dev"}) {
    if (path == top || path.starts_with(std::string(top) + "/")) return true;
  }
  return false;
}

Result<sys::Fd> open_target(const sys::Fd& root, const std::string& path,
                            const struct stat& source) {
  auto found = sys::open_in_root(root, path, O_PATH);
  if (found.ok() || found.error().kind != Kind::not_found || !S_ISDIR(source.st_mode)) return found;
  // A container that never ran has no mount points for its volumes yet.
  sys::Fd here = TRY(sys::open_in_root(root, "/", kPathDirectory));
  std::string reached;
  for (std::string_view part : split(path, '/')) {
    if (part.empty()) continue;
    reached += "/" + std::string(part);
    auto below = sys::open_in_root(root, reached, kPathDirectory);
    if (!below.ok() && below.error().kind == Kind::not_found) {
      TRY(sys::make_directory(here, std::string(part), 0755));
      below = sys::open_in_root(root, reached, kPathDirectory);
    }
    here = TRY(std::move(below));
  }
  return here;
}

Result<void> bind(const sys::Fd& root, const oci::Mount& mount) {
  auto source = TRY(sys::open_if_exists(sys::cwd(), mount.source, O_PATH));
  if (!source) return {};
  struct stat status = TRY(sys::stat_fd(*source, mount.source));
  auto target = open_target(root, mount.destination, status);
  if (!target.ok() && target.error().kind == Kind::not_found) return {};
  sys::Fd place = TRY(std::move(target));
  unsigned recursive = has_option(mount, "bind") ? 0 : AT_RECURSIVE;
  sys::Fd clone = TRY(sys::open_tree(*source, "", OPEN_TREE_CLONE | AT_EMPTY_PATH | recursive));
  if (has_option(mount, "ro")) {
    auto how = recursive != 0 ? sys::Recursive::yes : sys::Recursive::no;
    TRY(sys::mount_setattr(clone, MOUNT_ATTR_RDONLY, 0, 0, how, mount.destination));
  }
  return sys::move_mount_to_fd(clone, place, mount.destination);
}

Result<std::vector<sys::Layer>> open_all(const std::vector<std::string>& lower) {
  std::vector<sys::Layer> layers;
  for (const std::string& path : lower) layers.push_back(TRY(sys::open_layer(path)));
  return layers;
}

/// Attaches a detached mount at `target`.
Result<sys::Fd> attach_root(sys::Fd mount, const std::string& target) {
  sys::Fd place = TRY(sys::open_at(sys::cwd(), target, kPathDirectory));
  TRY(sys::move_mount_to_fd(mount, place, target));
  return mount;
}

/// Mounts the overlay of `paths` with its driver.
Result<sys::Fd> mount_root(const OverlayPaths& paths, const sys::OverlayTop& top,
                           const std::string& target) {
  std::vector<sys::Layer> lower = TRY(open_all(paths.lower));
  if (paths.driver == RootfsDriver::overlay) return sys::mount_overlay(lower, top, target);
  return attach_root(TRY(sys::mount_fuse_overlay(lower, top)), target);
}

/// A bind mount of a copied root, to which the read-only flag can be applied.
Result<sys::Fd> view_copy(const oci::Spec& spec, const std::string& target) {
  sys::Fd copy = TRY(sys::open_at(sys::cwd(), spec.root.path, kPathDirectory));
  return attach_root(TRY(sys::open_tree(copy, "", OPEN_TREE_CLONE | AT_EMPTY_PATH)), target);
}

Result<sys::Fd> mount_writable_root(const std::string& target, const oci::Spec& spec) {
  OverlayPaths paths = TRY(overlay_of(spec));
  if (paths.driver == RootfsDriver::copy) return view_copy(spec, target);
  sys::OverlayTop top;
  top.options = paths.options;
  top.upper = TRY(sys::open_at(sys::cwd(), paths.upper, kPathDirectory));
  top.work = TRY(sys::open_at(sys::cwd(), paths.work, kPathDirectory));
  return mount_root(paths, top, target);
}

Result<sys::Fd> mount_stopped(const std::string& target, const oci::Spec& spec) {
  sys::Fd root = TRY(mount_writable_root(target, spec));
  for (const oci::Mount& mount : spec.mounts) {
    bool binds = mount.type == "bind" || has_option(mount, "bind") || has_option(mount, "rbind");
    if (!binds || is_of_the_kernel(mount.destination)) continue;
    TRY_CTX(bind(root, mount), "cannot mount " + quote(mount.destination));
  }
  // Read-only as in the running container: a link in a volume may point into the root.
  if (spec.root.readonly) {
    TRY(sys::mount_setattr(root, MOUNT_ATTR_RDONLY, 0, 0, sys::Recursive::no, target));
  }
  return sys::open_at(root, ".", O_RDONLY | O_DIRECTORY);
}

// The pid may be reused before we use it, so check the start time before and after.
Result<sys::Fd> open_running(const ContainerSummary& container, const record::Start* start) {
  std::string process = "/proc/" + std::to_string(*container.pid);
  auto pid = static_cast<pid_t>(*container.pid);
  uint64_t before = TRY(sys::process_start_time(pid));
  sys::Fd root = TRY(sys::open_at(sys::cwd(), process + "/root", O_RDONLY | O_DIRECTORY));
  uint64_t after = TRY(sys::process_start_time(pid));
  bool same = before == after && (start == nullptr || after == start->start_ticks);
  if (same) return root;
  return make_error(Kind::busy, "container " + quote(container.name) + " has just ended");
}

/// Removes from `layers` those that were made for this container: they contain the GPU driver,
/// which belongs to the machine.
void drop_own_layers(const Context& context, const ContainerSummary& container,
                     std::vector<std::string>& layers) {
  std::string kept = container_files(context.paths, container.id, Lifetime::kept) + "/";
  std::string removed = container_files(context.paths, container.id, Lifetime::removed) + "/";
  std::erase_if(layers, [&](const std::string& layer) {
    return layer.starts_with(kept) || layer.starts_with(removed);
  });
}

}  // namespace

Result<oci::Spec> read_config(const Context& context, const ContainerSummary& container) {
  std::string path = bundle_of(context, container) + "/config.json";
  std::string text = TRY(sys::read_file(sys::cwd(), path, kMaxViewedConfig));
  return oci::parse_spec(text, "config.json of container " + quote(container.name));
}

Result<RootView> RootView::open(const Context& context, const ContainerSummary& container) {
  RootView view;
  oci::Spec spec = TRY(read_config(context, container));
  view.read_only_ = spec.root.readonly;
  if (is_alive(container.state) && container.pid) {
    ContainerFiles files = TRY(read_container(context.paths, container.id));
    view.root_ = TRY(open_running(container, files.start ? &*files.start : nullptr));
    return view;
  }
  view.lock_ = TRY(ContainerDirectory::take_over(context.paths, container.id));
  if (!view.lock_) {
    return make_error(
        Kind::busy, "container " + quote(container.name) + " is being changed by another process");
  }
  TRY(sys::leave_mount_namespace());
  view.root_ =
      TRY(mount_stopped(bundle_of(context, container) + "/" + std::string(kRootDirectory), spec));
  return view;
}

Result<RootView> RootView::open_layers(const Context& context, const ContainerSummary& container) {
  oci::Spec spec = TRY(read_config(context, container));
  OverlayPaths paths = TRY(overlay_of(spec));
  RootView view;
  view.read_only_ = true;
  if (paths.driver == RootfsDriver::copy) {
    view.root_ = TRY(sys::open_at(sys::cwd(), spec.root.path, O_RDONLY | O_DIRECTORY));
    return view;
  }
  TRY(sys::leave_mount_namespace());
  drop_own_layers(context, container, paths.lower);
  paths.lower.insert(paths.lower.begin(), paths.upper);
  sys::OverlayTop top;
  top.options = paths.options;
  view.place_ = bundle_of(context, container) + "/" + std::string(kRootDirectory);
  sys::Fd root = TRY(mount_root(paths, top, view.place_));
  view.root_ = TRY(sys::open_at(root, ".", O_RDONLY | O_DIRECTORY));
  return view;
}

Result<void> RootView::unmount() const {
  if (place_.empty()) return {};
  return sys::unmount(place_, MNT_DETACH);
}

Result<sys::Fd> open_upper(const Context& context, const ContainerSummary& container) {
  std::string path =
      container_path(context.paths, container.id) + "/" + std::string(kUpperDirectory);
  return sys::open_at(sys::cwd(), path, O_RDONLY | O_DIRECTORY);
}

Result<std::optional<RootCopy>> open_copy(const Context& context,
                                          const ContainerSummary& container) {
  oci::Spec spec = TRY(read_config(context, container));
  if (rootfs_driver_of(spec) != RootfsDriver::copy) return std::optional<RootCopy>();
  RootCopy copy;
  copy.root = TRY(sys::open_at(sys::cwd(), spec.root.path, O_RDONLY | O_DIRECTORY));
  for (const std::string& path : copied_layers(spec)) {
    sys::Layer opened = TRY(sys::open_layer(path));
    copy.layers.push_back(std::move(opened.root));
  }
  return std::optional<RootCopy>(std::move(copy));
}

Result<std::vector<std::string>> lower_layers(const Context& context,
                                              const ContainerSummary& container) {
  oci::Spec spec = TRY(read_config(context, container));
  OverlayPaths paths = TRY(overlay_of(spec));
  drop_own_layers(context, container, paths.lower);
  return std::move(paths.lower);
}

}  // namespace berth::engine
