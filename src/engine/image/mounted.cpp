// SPDX-License-Identifier: Apache-2.0
#include "engine/image/mounted.hpp"

#include <fcntl.h>
#include <linux/mount.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>

#include "base/text.hpp"
#include "engine/context/paths.hpp"
#include "engine/image/file.hpp"
#include "engine/image/store.hpp"
#include "sys/file/file.hpp"
#include "sys/mount/layer.hpp"
#include "sys/mount/mount.hpp"
#include "sys/mount/overlay.hpp"
#include "sys/mount/table.hpp"
#include "sys/process/program.hpp"
#include "sys/user/identity.hpp"

namespace berth::engine {
namespace {

constexpr std::string_view kMountSource = "berth:";  // followed by id, blank and name
constexpr size_t kIdDigits = 12;

struct ImageSource {
  std::string name;
  std::string id;                   ///< 12 digits; empty for a file
  std::vector<std::string> layers;  ///< highest first
};

Result<ImageSource> find_source(const Context& context, const std::string& image) {
  ImageSource source;
  if (is_image_path(image)) {
    source.name = TRY(find_image_file(image));
    source.layers = {source.name};
    return source;
  }
  image::Store store = TRY(open_store(context));
  auto found = store.get_image(image);
  if (!found.ok()) {
    TRY(check_no_image_file(image));
    return std::move(found).error();
  }
  if (!found->unpacked()) {
    return make_error(Kind::not_found, "image " + quote(image) + " is not unpacked",
                      "berth pull " + image);
  }
  source.name = found->references.empty() ? found->id.text() : found->references.front().familiar();
  source.id = found->id.short_hex();
  source.layers = found->layer_directories();
  std::ranges::reverse(source.layers);
  store.note_used(found->manifest_digest);
  return source;
}

/// An open directory, since another process may replace the path.
struct OpenedPlace {
  sys::Fd handle;
  std::string path;  ///< with links resolved
};

Result<OpenedPlace> find_directory(const std::string& directory) {
  sys::Fd fd = TRY(sys::open_at(sys::cwd(), directory, O_PATH | O_DIRECTORY));
  std::string path = TRY(sys::read_link(sys::cwd(), sys::fd_path(fd)));
  return OpenedPlace{std::move(fd), std::move(path)};
}

/// An empty layer, since overlay needs at least two layers.
Result<sys::Layer> empty_layer(const Context& context) {
  std::string path = context.paths.state + "/empty";
  TRY(sys::make_directory(sys::cwd(), path, 0755));
  return sys::open_layer(path);
}

/// Fails for an ordinary user outside of a user namespace: in one that this process made, the mount
/// would vanish with the process.
Result<void> check_may_mount() {
  if (TRY(sys::identity()).effective_uid == 0) return {};
  return make_error(Kind::denied,
                    "an ordinary user can mount only in a user namespace of their own",
                    "berth unshare, and the same command in it; or berth run --mount "
                    "type=image,src=IMAGE,dst=/mnt");
}

Result<void> mount_layers(const Context& context, const ImageSource& source,
                          const sys::Fd& directory) {
  std::vector<sys::Layer> layers;
  for (const std::string& path : source.layers) layers.push_back(TRY(sys::open_layer(path)));
  layers.push_back(TRY(empty_layer(context)));
  sys::OverlayTop top;
  top.source = std::string(kMountSource) + source.id + " " + source.name;
  if (context.identity != Identity::root) top.options = {"userxattr"};
  top.attributes = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
  top.flags = MS_RDONLY | MS_NOSUID | MS_NODEV;
  TRY(sys::mount_overlay(layers, top, sys::fd_path(directory)));
  return {};
}

}  // namespace

Result<std::string> mount_image(const Context& context, const std::string& image,
                                const std::string& directory) {
  auto mount = [&]() -> Result<std::string> {
    TRY(check_may_mount());
    ImageSource source = TRY(find_source(context, image));
    OpenedPlace place = TRY(find_directory(directory));
    for (const MountedImage& mounted : TRY(list_mounted_images())) {
      if (mounted.directory != place.path) continue;
      return make_error(Kind::busy, "image " + quote(mounted.image) + " is mounted there",
                        "berth image unmount " + place.path);
    }
    TRY(mount_layers(context, source, place.handle));
    return place.path;
  };
  return TRY_CTX(mount(), "cannot mount image " + quote(image) + " at " + quote(directory));
}

Result<std::vector<MountedImage>> list_mounted_images() {
  std::vector<MountedImage> images;
  for (const sys::MountEntry& mount : TRY(sys::mount_table())) {
    if (mount.type != "overlay" || !mount.source.starts_with(kMountSource)) continue;
    std::string text = mount.source.substr(kMountSource.size());
    size_t blank = text.find(' ');
    if (blank == std::string::npos) continue;
    images.push_back({text.substr(blank + 1), text.substr(0, blank), mount.point});
  }
  return images;
}

Result<std::vector<image::Image>> find_mounted(const image::Store& store) {
  std::vector<image::Image> images;
  for (const MountedImage& mounted : TRY(list_mounted_images())) {
    if (mounted.image_id.empty()) continue;
    auto image = store.find_image(mounted.image_id);
    // A missing or damaged image needs no protection.
    if (image.ok() && *image) images.push_back(std::move(**image));
  }
  return images;
}

Result<void> unmount_image(const std::string& directory) {
  TRY(check_may_mount());
  std::string path = TRY(find_directory(directory)).path;
  // A descriptor of the mount would keep it busy, so this opens the parent. That is safe, since a
  // mount point cannot be moved.
  size_t slash = path.rfind('/');
  OpenedPlace above = TRY(find_directory(path.substr(0, slash + 1)));
  std::string place = (above.path == "/" ? "" : above.path) + path.substr(slash);
  auto images = TRY(list_mounted_images());
  bool known = std::ranges::any_of(
      images, [&](const MountedImage& image) { return image.directory == place; });
  if (!known) {
    return make_error(Kind::not_found, "no image is mounted at " + quote(directory),
                      "berth image mount");
  }
  return sys::unmount(sys::fd_path(above.handle) + path.substr(slash), UMOUNT_NOFOLLOW);
}

std::string mounted_at(std::string_view image_id) {
  std::string_view digits = image_id.substr(image_id.find(':') + 1).substr(0, kIdDigits);
  auto images = list_mounted_images();
  if (!images.ok()) return {};
  for (const MountedImage& image : *images) {
    if (!image.image_id.empty() && image.image_id == digits) return image.directory;
  }
  return {};
}

Result<void> run_unshared(const Context& context, const std::vector<std::string>& command) {
  if (context.identity == Identity::root) {
    return make_error(Kind::usage, "root has all ids and can already mount",
                      "the command itself, without berth unshare");
  }
  std::vector<std::string> words = command;
  if (words.empty()) {
    words.emplace_back(context.environment.get_filled("SHELL").value_or("/bin/sh"));
  }
  std::string program = words.front();
  if (program.find('/') == std::string::npos) program = find_in_path(context, program);
  if (program.empty()) {
    return make_error(Kind::not_found, "find " + quote(words.front()) + " in PATH");
  }
  TRY(sys::leave_mount_namespace());
  sys::reset_signals();
  return sys::execute(program, words, context.environment.entries());
}

}  // namespace berth::engine
