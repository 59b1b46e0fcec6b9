// SPDX-License-Identifier: Apache-2.0
#include "runtime/child/early_mounts.hpp"

#include <fcntl.h>
#include <linux/mount.h>
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <optional>

#include "base/text.hpp"
#include "runtime/mount/attach.hpp"
#include "runtime/state/id_maps.hpp"
#include "sys/file/file.hpp"
#include "sys/mount/layer.hpp"
#include "sys/mount/mount.hpp"
#include "sys/mount/overlay.hpp"
#include "sys/net/socket.hpp"
#include "sys/process/process.hpp"
#include "sys/user/credentials.hpp"
#include "sys/user/namespace.hpp"

namespace berth::runtime {
namespace {

std::string cannot_mount_early(const std::string& what, const std::string& target) {
  return "cannot mount " + quote(what) + " at " + quote(target);
}

Error explain(const Error& error, const std::string& what, const plan::IdMap& map) {
  std::string member = "config.json: " + map.member + ": idmap: ";
  switch (error.sys_errno) {
    case EINVAL:
      return make_error(Kind::unsupported,
                        member + "the file system of " + quote(what) + " has no id mapping");
    case EPERM:
      return make_error(Kind::denied, member + "no right to map the ids of " + quote(what) +
                                          ", or they are mapped already");
    case ENOSYS:
      return make_error(Kind::unsupported, member + "needs Linux 5.12");
    default:
      return sys_error(error.sys_errno, member + "map the ids of " + quote(what));
  }
}

Result<sys::Fd> user_namespace(const plan::IdMap& map) {
  if (!map.user_namespace.empty()) {
    return sys::open_at(sys::cwd(), map.user_namespace, O_RDONLY);
  }
  return make_user_namespace(map.uids, map.gids);
}

Result<void> apply_map(const sys::Fd& mount, const std::string& what, const plan::IdMap& map) {
  std::string member = "config.json: " + map.member + ": idmap: cannot make the user namespace";
  sys::Fd space = TRY_CTX(user_namespace(map), member);
  auto recursive = map.recursive ? sys::Recursive::yes : sys::Recursive::no;
  auto mapped = sys::map_mount_ids(mount, space, recursive, what);
  return mapped.ok() ? std::move(mapped) : explain(mapped.error(), what, map);
}

/// A path below the root of another process, in another mount namespace.
struct Elsewhere {
  std::string process;  ///< "/proc/7"
  std::string path;     ///< "/dev/shm", below the root of that process
};
std::optional<Elsewhere> elsewhere(const std::string& source) {
  constexpr std::string_view kProc = "/proc/", kRoot = "/root";
  size_t end = source.find_first_not_of("0123456789", kProc.size());
  bool is = source.starts_with(kProc) && end != kProc.size() && end != std::string::npos &&
            source.compare(end, kRoot.size() + 1, std::string(kRoot) + "/") == 0;
  if (!is) return std::nullopt;
  return Elsewhere{source.substr(0, end), source.substr(end + kRoot.size())};
}

Result<sys::Fd> take_view(const Elsewhere& place, const sys::Fd& space, bool recursive) {
  TRY(sys::forbid_tracing());
  TRY(sys::setns(space, CLONE_NEWNS, place.process));
  sys::Fd root = TRY(sys::open_at(sys::cwd(), "/", O_PATH | O_DIRECTORY));
  sys::Fd source = TRY(sys::open_in_root(root, place.path, O_PATH));
  return std::move(TRY(make_view(source, recursive, place.path)).detached);
}

// The kernel allows a view of a mount only to processes in its mount namespace: a child enters that
// namespace, opens the path without following links out of that root, and passes the view back.
Result<sys::Fd> view_of_other(const Elsewhere& place, bool recursive) {
  sys::Fd space = TRY(sys::open_at(sys::cwd(), place.process + "/ns/mnt", O_RDONLY));
  auto [ours, theirs] = TRY(sys::socket_pair());
  sys::Cloned child = TRY(sys::clone3(0, -1));
  if (child.pid == 0) {
    auto view = take_view(place, space, recursive);
    int failed = view.ok() ? 0 : view.error().sys_errno;
    sys::Fd found = view.ok() ? std::move(*view) : sys::Fd();
    ignore(sys::send_message(theirs, &failed, sizeof failed, found));
    ::_exit(0);
  }
  theirs.reset();
  sys::Process process(child.pid, std::move(child.pidfd));
  int failed = EPIPE;
  sys::Received received = TRY(sys::receive_message(ours, &failed, sizeof failed));
  if (received.passed) return std::move(received.passed);
  return sys_error(failed, "take a view of " + quote(place.path) + " in another container");
}

Result<sys::Fd> make(const plan::MountBind& step) {
  if (auto other = elsewhere(step.source)) return view_of_other(*other, step.recursive);
  int flags = O_PATH | (step.links.source ? O_NOFOLLOW : 0);
  sys::Fd source = TRY(sys::open_at(sys::cwd(), step.source, flags));
  auto view = make_view(source, step.recursive, step.source);
  if (!view.ok() && step.id_map) return explain(view.error(), step.source, *step.id_map);
  sys::Fd mount = std::move(TRY(std::move(view)).detached);
  if (!mount) {
    // The old mount calls cannot make a detached mount.
    return make_error(Kind::unsupported,
                      "hold a mount of " + quote(step.source) + ": needs Linux 5.2");
  }
  if (step.id_map) TRY(apply_map(mount, step.source, *step.id_map));
  if (step.peer) return mount;
  // A slave, like all mounts of the host in the container's mount namespace.
  TRY(sys::mount_setattr(mount, 0, 0, propagation_flag(plan::Propagation::slave),
                         sys::Recursive::yes, step.source));
  return mount;
}

/// Whether the file system is on a device of the host; sources of other file systems are mere
/// names.
bool is_on_device(const std::string& source) {
  auto found = sys::open_at(sys::cwd(), source, O_PATH);
  if (!found.ok()) return false;
  auto info = sys::stat_fd(*found, source);
  return info.ok() && S_ISBLK(info->st_mode);
}

Result<sys::Fd> make(const plan::MountFilesystem& step) {
  if (!step.id_map && !is_on_device(step.source)) return sys::Fd();
  NewMount made = TRY(make_file_system(step.type, step.source, step.data, step.attributes.set));
  if (!step.id_map) return std::move(made.detached);
  if (!made.detached) return explain(sys_error(ENOSYS, "fsopen"), step.type, *step.id_map);
  TRY(apply_map(made.detached, step.type, *step.id_map));
  return std::move(made.detached);
}

}  // namespace

bool is_early(const plan::MountBind& step) {
  if (step.links != plan::BindLinks()) return false;
  return step.id_map.has_value() || step.peer || elsewhere(step.source);
}

bool is_early(const plan::MountFilesystem& step) {
  // These file systems show the namespaces of the process that mounts them, so a mount by the
  // parent would show those of the host.
  bool shows_maker = step.type == "proc" || step.type == "sysfs" || step.type == "mqueue";
  return step.id_map.has_value() || (step.source.starts_with("/") && !shows_maker);
}

Result<std::vector<sys::Fd>> make_early_mounts(const plan::Plan& plan) {
  std::vector<sys::Fd> mounts;
  for (const auto& step : plan.steps) {
    if (const auto* bind = std::get_if<plan::MountBind>(&step); bind && is_early(*bind)) {
      mounts.push_back(TRY_CTX(make(*bind), cannot_mount_early(bind->source, bind->target)));
    }
    if (const auto* made = std::get_if<plan::MountFilesystem>(&step); made && is_early(*made)) {
      mounts.push_back(TRY_CTX(make(*made), cannot_mount_early(made->type, made->target)));
    }
  }
  return mounts;
}

namespace {

sys::Fd hold(const std::string& source, bool recursive, plan::BindLinks links = {}) {
  plan::MountBind step;
  step.source = source;
  step.recursive = recursive;
  step.links = links;
  auto held = make(step);
  // The container's process opens the source too, and reports the error.
  return held.ok() ? std::move(*held) : sys::Fd();
}

}  // namespace

HeldSources hold_sources(const plan::Plan& plan) {
  HeldSources held;
  for (const auto& step : plan.steps) {
    if (const auto* bind = std::get_if<plan::MountBind>(&step); bind && !is_early(*bind)) {
      held.binds.push_back(hold(bind->source, bind->recursive, bind->links));
    }
    if (const auto* node = std::get_if<plan::BindNode>(&step)) {
      held.nodes.push_back(hold(node->source, false));
    }
    if (const auto* root = std::get_if<plan::BindRoot>(&step)) held.root = hold(root->path, true);
  }
  return held;
}

namespace {

Result<LayerImages> mount_images(const std::vector<std::string>& lower) {
  LayerImages images;
  for (const std::string& path : lower) images.push_back(TRY(sys::mount_image(path)));
  return images;
}

}  // namespace

Result<LayerImages> mount_layer_images(const plan::Plan& plan) {
  const auto* root = plan::find<plan::MountOverlayRoot>(plan);
  if (root == nullptr) return LayerImages();
  return TRY_CTX(mount_images(root->lower), "cannot mount the root file system");
}

Result<std::vector<sys::Layer>> open_lower(const LayerImages& images,
                                           const std::vector<std::string>& paths) {
  std::vector<sys::Layer> lower;
  for (size_t i = 0; i < paths.size(); ++i) {
    const auto& image = images[i];
    sys::Fd root = TRY(image ? sys::duplicate(*image)
                             : sys::open_at(sys::cwd(), paths[i], O_PATH | O_DIRECTORY));
    lower.push_back({std::move(root), image.has_value()});
  }
  return lower;
}

Result<sys::OverlayTop> open_top(const plan::MountOverlayRoot& step) {
  sys::OverlayTop top;
  top.options = step.options;
  top.attributes = step.attributes.set;
  top.flags = mount_flags(step.attributes.set);
  if (step.upper.empty()) return top;
  top.upper = TRY(sys::open_at(sys::cwd(), step.upper, O_PATH | O_DIRECTORY));
  top.work = TRY(sys::open_at(sys::cwd(), step.work, O_PATH | O_DIRECTORY));
  return top;
}

Result<sys::Fd> mount_served_root(const plan::Plan& plan, const LayerImages& images) {
  const auto* root = plan::find<plan::MountOverlayRoot>(plan);
  if (root == nullptr || !root->served) return sys::Fd();
  const char* context = "cannot mount the root file system";
  std::vector<sys::Layer> lower = TRY_CTX(open_lower(images, root->lower), context);
  sys::OverlayTop top = TRY_CTX(open_top(*root), context);
  return TRY_CTX(sys::mount_fuse_overlay(lower, top), context);
}

Result<std::vector<LayerImages>> mount_data_images(const plan::Plan& plan) {
  std::vector<LayerImages> all;
  for (const auto& step : plan.steps) {
    const auto* data = std::get_if<plan::MountLayers>(&step);
    if (data == nullptr) continue;
    all.push_back(TRY_CTX(mount_images(data->lower), cannot_mount_early("image", data->target)));
  }
  return all;
}

}  // namespace berth::runtime
