// SPDX-License-Identifier: Apache-2.0
#include "engine/files/save_squashfs.hpp"

#include <fcntl.h>

#include <algorithm>

#include "base/text.hpp"
#include "engine/container/list.hpp"
#include "engine/container/root_view.hpp"
#include "engine/context/time.hpp"
#include "engine/decide/decide.hpp"
#include "engine/image/store.hpp"
#include "engine/image/transfer.hpp"
#include "image/foreign.hpp"
#include "sys/file/file.hpp"
#include "sys/file/mode.hpp"
#include "sys/mount/copy_tree.hpp"
#include "sys/mount/mount.hpp"
#include "sys/mount/overlay.hpp"

namespace berth::engine {
namespace {

using Layers = std::vector<sys::Layer>;

// The latest time to save. The unpacker creates directories that no layer names, with arbitrary
// times, but everything in an image is older than its config.
uint64_t latest_of(const image::Image& image, int64_t epoch) {
  return static_cast<uint64_t>(std::max(parse_time(image.config.created).value_or(0), epoch));
}

// An unattached tmpfs: the kernel removes it even if this process is killed.
Result<sys::Fd> make_top() {
  sys::Fd context = TRY(sys::fsopen("tmpfs"));
  TRY(sys::fsconfig_create(context));
  return sys::fsmount(context, 0);
}

Result<sys::Fd> read_handle(const sys::Fd& place) {
  return sys::open_at(place, ".", O_RDONLY | O_DIRECTORY);
}

Result<Layers> open_layers(const image::Image& image) {
  Layers out;
  std::vector<std::string> layers = image.layer_directories();
  for (auto layer = layers.rbegin(); layer != layers.rend(); ++layer) {
    out.push_back(TRY(sys::open_layer(*layer)));
  }
  return out;
}

/// Mounts `layers` below `top` as one tree.
Result<sys::Fd> mount_below(const Context& context, Layers layers, const sys::Fd& top,
                            const std::string& place) {
  Layers lower;
  lower.push_back({TRY(sys::duplicate(top)), true});
  for (sys::Layer& layer : layers) lower.push_back(std::move(layer));
  sys::OverlayTop options;
  if (context.identity != Identity::root) options.options.emplace_back("userxattr");
  sys::Fd root = TRY(sys::mount_overlay(lower, options, place));
  return read_handle(root);
}

Result<void> write_timed(const sys::Fd& directory, const std::string& name, std::string_view text,
                         mode_t mode, sys::FileTime time) {
  TRY(sys::write_file(directory, name, text, mode));
  sys::Fd file = TRY(sys::open_at(directory, name, O_RDONLY | O_NOFOLLOW));
  return sys::set_modified(file, time, name);
}

/// Adds enroot's files to `top`, in an /etc with the metadata of the one in `tree`.
Result<void> add_enroot_files(const Context& context, const oci::ContainerDefaults& config,
                              const sys::Fd& tree, const sys::Fd& top, sys::FileTime time) {
  image::EnrootFiles files = image::make_enroot_files(config);
  for (const std::string& name : files.left_out) {
    context.log.warn("a line of /etc/environment cannot hold " + quote(name) + ", ignoring");
  }
  auto there = TRY(sys::stat_entry(tree, "etc"));
  if (there && !S_ISDIR(there->st_mode)) {
    context.log.warn(
        "the image's /etc is not a directory: its command and environment are not saved");
    return {};
  }
  TRY(sys::make_directory(top, "etc", 0755));
  sys::Fd made = TRY(sys::open_at(top, "etc", O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
  TRY(write_timed(made, "environment", files.environment, 0644, time));
  TRY(write_timed(made, "rc", files.rc, 0755, time));
  if (!there) return sys::set_modified(made, time, "etc");
  sys::Fd etc = TRY(sys::open_at(tree, "etc", O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
  return sys::copy_directory_metadata(etc, made, "etc");
}

/// `epoch`: as in image::ArchiveRequest.
Result<void> write_squashfs(const Context& context, const sys::Fd& tree, uint64_t epoch,
                            const std::string& output) {
  image::ArchiveRequest archive;
  archive.tree = descriptor_name(tree);
  archive.output = output;
  archive.squashfs = true;
  archive.epoch = epoch;
  TRY(transfer(context, std::move(archive), {}));
  return {};
}

Result<void> save(const Context& context, const std::string& reference, const std::string& output) {
  auto date = TRY(source_date(context.environment));
  sys::FileTime time{static_cast<int64_t>(date.value_or(0)), 0};
  image::Store store = TRY(open_store(context));
  image::Image image = TRY(store.get_image(reference));
  if (!image.unpacked() || image.layers.empty()) {
    return make_error(Kind::not_found, "its layers are not unpacked", "berth pull " + reference);
  }
  // Keeps other processes from removing the layers, or changing their form, meanwhile.
  image::Delivery delivery = TRY(image::Delivery::begin(store));
  for (const image::Layer& layer : image.layers) {
    if (TRY(delivery.keep_layer(layer.diff_id))) continue;
    return make_error(Kind::not_found, "it has been removed", "berth pull " + reference);
  }
  image = TRY(store.get_image(reference));
  TRY(sys::leave_mount_namespace());
  sys::Fd empty = TRY(make_top());
  // Any directory will do: no other process sees the mount.
  std::string somewhere = TRY(mountpoint_layer(context.paths.root));
  Layers layers = TRY(open_layers(image));
  sys::Fd plain = TRY(mount_below(context, std::move(layers), empty, somewhere));
  sys::Fd place = TRY(make_top());
  sys::Fd top = TRY(read_handle(place));
  TRY(add_enroot_files(context, image.config.config, plain, top, time));
  sys::Layer highest = TRY(sys::open_layer(image.layers.back().directory));
  sys::Fd root = TRY(read_handle(highest.root));
  TRY(sys::copy_directory_metadata(root, top, "/"));
  // The unpacker made it at an arbitrary time.
  TRY(sys::set_modified(top, time, "/"));
  layers = TRY(open_layers(image));
  sys::Fd tree = TRY(mount_below(context, std::move(layers), place, somewhere));
  return write_squashfs(context, tree, latest_of(image, time.seconds), output);
}

/// Adds enroot's files to the root of a container that was made from an image; the root of an image
/// file has them already if the file contains them.
Result<sys::Fd> complete(const Context& context, const ContainerSummary& container,
                         const RootView& view) {
  sys::Fd plain = TRY(sys::duplicate(view.root()));
  if (container.image_id.empty()) return plain;
  image::Store store = TRY(open_store(context));
  image::Image image = TRY(store.get_image(container.image_id));
  sys::Fd place = TRY(make_top());
  sys::Fd top = TRY(read_handle(place));
  TRY(add_enroot_files(context, image.config.config, plain, top,
                       {nanoseconds_now() / 1'000'000'000, 0}));
  TRY(sys::copy_directory_metadata(plain, top, "/"));
  Layers lower;
  lower.push_back({std::move(plain), false});
  std::string somewhere = TRY(mountpoint_layer(context.paths.root));
  return mount_below(context, std::move(lower), place, somewhere);
}

Result<void> save_container(const Context& context, const std::string& reference,
                            const std::string& output) {
  ContainerSummary container = TRY(get_container(context, reference));
  RootView view = TRY(RootView::open_layers(context, container));
  auto written = [&]() -> Result<void> {
    sys::Fd tree = TRY(complete(context, container, view));
    auto now = static_cast<uint64_t>(nanoseconds_now() / 1'000'000'000);
    return write_squashfs(context, tree, now, output);
  }();
  auto unmounted = view.unmount();
  if (!written.ok()) return written;
  return unmounted;
}

}  // namespace

Result<void> save_container_squashfs(const Context& context, const std::string& reference,
                                     const std::string& output) {
  TRY_CTX(save_container(context, reference, output),
          "cannot save the container to " + quote(output));
  return {};
}

Result<void> save_squashfs(const Context& context, const std::string& reference,
                           const std::string& output) {
  TRY_CTX(save(context, reference, output), "cannot save " + quote(reference));
  return {};
}

}  // namespace berth::engine
