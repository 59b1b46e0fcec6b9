// SPDX-License-Identifier: Apache-2.0
#include "engine/image/rootfs_driver.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/text.hpp"
#include "oci/edit.hpp"
#include "sys/file/file.hpp"
#include "sys/file/remove_tree.hpp"
#include "sys/machine/host.hpp"
#include "sys/mount/overlay.hpp"

namespace berth::engine {
namespace {

constexpr const char* kTried = "overlay-works";  ///< state file of the last successful trial

/// The kernel, the file system and the identity, on which the result of a trial depends.
Result<std::string> key_of(const Context& context, const sys::Fd& store) {
  struct stat info = TRY(sys::stat_fd(store, context.paths.root));
  return TRY(sys::kernel_release()) + " " + std::to_string(info.st_dev) + " " +
         std::string(identity_name(context.identity));
}

/// Whether the error comes from the current state of the machine, such as a full disk, and not from
/// overlay.
bool is_of_the_moment(const Error& error) {
  constexpr int kNumbers[] = {ENOSPC, EDQUOT, EMFILE, ENFILE, ENOMEM, EROFS};
  return std::ranges::find(kNumbers, error.sys_errno) != std::end(kNumbers);
}

Result<void> try_overlay_in(const sys::Fd& staging, bool user_attributes) {
  sys::TempDir place = TRY(sys::TempDir::make(staging, "trial-"));
  // Lock the directory, since a sweep skips locked entries.
  TRY(sys::wait_lock(place.fd(), sys::LockMode::exclusive, "trial"));
  return sys::try_overlay(place.fd(), user_attributes);
}

// Stores only success, so that the next call tries again, for example after a module was loaded or
// a policy was changed.
Result<void> try_overlay_once(const Context& context) {
  constexpr size_t kMaxDriverKey = 4096;
  sys::Fd store = TRY(sys::open_at(sys::cwd(), context.paths.root, O_RDONLY | O_DIRECTORY));
  std::string key = TRY(key_of(context, store));
  std::string remembered = context.paths.state + "/" + kTried;
  auto known = sys::read_file_if_exists(sys::cwd(), remembered, kMaxDriverKey);
  if (known.ok() && *known && **known == key) return {};
  TRY(sys::make_directory(store, "tmp", 0700));
  sys::Fd staging = TRY(sys::open_at(store, "tmp", O_RDONLY | O_DIRECTORY));
  bool user_attributes = context.identity != Identity::root;
  auto tried = try_overlay_in(staging, user_attributes);
  bool swept = !tried.ok() && tried.error().kind == Kind::not_found;
  if (swept) tried = try_overlay_in(staging, user_attributes);
  TRY(std::move(tried));
  ignore(sys::replace_file(sys::cwd(), remembered, key, 0600));
  return {};
}

std::string line_of(Error error) {
  error.hint.clear();
  return to_line(error);
}

RootfsChoice fall_back(const Context& context, const Error& why) {
  RootfsChoice choice;
  choice.reason = "the kernel's overlay cannot be mounted for this user on " +
                  quote(context.paths.root) + ": " + line_of(why);
  auto served = sys::check_fuse_overlay();
  if (served.ok()) {
    choice.driver = RootfsDriver::fuse_overlayfs;
    choice.cost = "using fuse-overlayfs instead, which is slower with every file";
    return choice;
  }
  choice.driver = RootfsDriver::copy;
  choice.reason += "; no fuse-overlayfs: " + line_of(served.error());
  choice.cost =
      "using a copy of the image instead, which takes time and space for each new container";
  return choice;
}

constexpr std::string_view kLowerOption = "lowerdir+=";

}  // namespace

Result<RootfsChoice> rootfs_choice(const Context& context) {
  if (context.rootfs_driver.empty()) {
    auto tried = try_overlay_once(context);
    if (tried.ok()) return RootfsChoice();
    if (is_of_the_moment(tried.error())) return std::move(tried).error();
    return fall_back(context, tried.error());
  }
  RootfsChoice choice;
  choice.driver = TRY_CTX(from_json_text(context.rootfs_driver, std::type_identity<RootfsDriver>()),
                          "--rootfs-driver");
  choice.reason = "--rootfs-driver or BERTH_ROOTFS_DRIVER asks for it";
  if (choice.driver == RootfsDriver::fuse_overlayfs) {
    TRY_CTX(sys::check_fuse_overlay(), "--rootfs-driver fuse-overlayfs");
  }
  return choice;
}

bool is_root(const oci::Mount& mount) {
  return mount.destination == "/" && (mount.type == "overlay" || mount.type == "fuse-overlayfs");
}

std::optional<RootfsDriver> rootfs_driver_of(const oci::Spec& spec) {
  if (!copied_layers(spec).empty()) return RootfsDriver::copy;
  auto root = std::ranges::find_if(spec.mounts, is_root);
  if (root == spec.mounts.end()) return std::nullopt;
  return root->type == "overlay" ? RootfsDriver::overlay : RootfsDriver::fuse_overlayfs;
}

std::vector<std::string> copied_layers(const oci::Spec& spec) {
  std::vector<std::string> layers;
  for (const auto& [key, layer] : spec.annotations) {
    if (key.starts_with(oci::kCopiedLayerAnnotation)) layers.push_back(layer);
  }
  return layers;
}

void add_lowest_layer(const std::string& layer, oci::Spec& spec) {
  if (layer.empty()) return;
  for (oci::Mount& mount : spec.mounts) {
    if (mount.destination != "/" || mount.type != "overlay") continue;
    auto last = std::find_if(mount.options.rbegin(), mount.options.rend(),
                             [](const std::string& o) { return o.starts_with(kLowerOption); });
    mount.options.insert(last.base(), std::string(kLowerOption) + layer);
  }
}

}  // namespace berth::engine
