// SPDX-License-Identifier: Apache-2.0
#include "engine/inspect/commit.hpp"

#include <fcntl.h>

#include <optional>

#include "base/text.hpp"
#include "engine/container/life.hpp"
#include "engine/container/list.hpp"
#include "engine/container/root_view.hpp"
#include "engine/files/changes.hpp"
#include "engine/gpu/loader.hpp"
#include "engine/image/merged.hpp"
#include "engine/image/store.hpp"
#include "engine/image/transfer.hpp"
#include "engine/inspect/container_document.hpp"
#include "engine/state/directory.hpp"
#include "engine/state/journal.hpp"
#include "sys/file/file.hpp"
#include "sys/file/remove_tree.hpp"
#include "sys/mount/layer.hpp"

namespace berth::engine {
namespace {

/// Freezes a running container until this object is destroyed.
class Pause {
 public:
  Pause(const Context& context, const ContainerSummary& container) : context_(context) {
    if (container.state != ContainerState::running) return;
    auto paused = pause_container(context, container.id);
    if (paused.ok()) {
      id_ = container.id;
    } else {
      context.log.warn(to_line(paused.error()) +
                       "; files that it writes meanwhile may be incomplete, ignoring");
    }
  }
  Pause(const Pause&) = delete;
  Pause& operator=(const Pause&) = delete;
  ~Pause() {
    if (id_.empty()) return;
    auto thawed = unpause_container(context_, id_);
    if (!thawed.ok()) context_.log.warn(to_line(thawed.error()) + ", ignoring");
  }

 private:
  const Context& context_;
  std::string id_;
};

image::OverlayXattr overlay_kind(const Context& context) {
  return context.identity == Identity::root ? image::OverlayXattr::trusted
                                            : image::OverlayXattr::user;
}

/// The changes of a container to its image, as a directory.
struct OwnLayer {
  sys::Fd upper;                       ///< the container's own layer; empty if the root is a copy
  std::optional<sys::TempDir> made{};  ///< made from the copy's changes, if the root is a copy
  Merged below{};                      ///< the layers that the root is a copy of
  const sys::Fd& directory() const { return made ? made->fd() : upper; }
};

Result<OwnLayer> own_layer(const Context& context, const ContainerSummary& container) {
  auto copy = TRY(open_copy(context, container));
  if (!copy) return OwnLayer{TRY(open_upper(context, container))};
  // In the container's directory, so that files of the copy can be hard-linked. It is removed with
  // the container at the latest.
  sys::Fd directory = TRY(sys::open_at(sys::cwd(), container_path(context.paths, container.id),
                                       O_RDONLY | O_DIRECTORY));
  OwnLayer layer;
  layer.made = TRY(sys::TempDir::make(directory, "commit-"));
  auto added = loader_entries_of(TRY(read_config(context, container)));
  auto changes = TRY(copy_changes(copy->root, copy->layers, overlay_kind(context), added));
  TRY(make_layer_of_copy(copy->root, changes, layer.made->fd()));
  layer.below = std::move(copy->layers);
  return layer;
}

Result<Merged> image_layers(const Context& context, const ContainerSummary& container) {
  Merged layers;
  for (const std::string& path : TRY(lower_layers(context, container))) {
    sys::Layer opened = TRY(sys::open_layer(path));
    layers.push_back(std::move(opened.root));
  }
  return layers;
}

/// Removes the entries of the driver from the loader cache, since they belong to this container and
/// not to an image. Returns a file with the new content of the cache.
Result<sys::Fd> leave_out_driver(const Context& context, const ContainerSummary& container,
                                 const OwnLayer& layer, image::CommitRequest& commit) {
  auto added = loader_entries_of(TRY(read_config(context, container)));
  if (added.empty()) return sys::Fd();
  auto etc = sys::open_at(layer.directory(), "etc", O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  if (!etc.ok()) return sys::Fd();  // the container has removed or replaced /etc
  Merged below = layer.below.empty() ? TRY(image_layers(context, container)) : Merged();
  OverlayAttributes attributes(overlay_kind(context));
  Below image = TRY(look_below(attributes, layer.below.empty() ? below : layer.below, "etc"));
  OwnCache cache = TRY(judge_loader_cache(*etc, image.directory, added));
  // An opaque /etc hides that of the image, so an unchanged cache cannot be left out.
  if (cache.unchanged && TRY(attributes.opaque(*etc))) {
    cache = TRY(judge_loader_cache(*etc, Merged(), added));
  }
  if (cache.unchanged) commit.left_out.emplace_back("etc/ld.so.cache");
  if (!cache.without) return sys::Fd();
  auto bytes = TRY(sys::memory_file("ld.so.cache", *cache.without));
  commit.loader_cache = descriptor_name(bytes);
  return bytes;
}

}  // namespace

Result<std::string> commit_container(const Context& context, std::string_view reference,
                                     const CommitOptions& options) {
  ContainerSummary container = TRY(get_container(context, reference));
  if (container.image_id.empty()) {
    return make_error(Kind::unsupported,
                      "container " + quote(container.name) +
                          " has no image: its root is a "
                          "directory or file of the host",
                      "berth import it");
  }
  image::Store store = TRY(open_store(context));
  image::Image base = TRY(store.get_image(container.image_id));
  ContainerFacts facts;
  facts.command = container.command;
  // A foreground container with --rm keeps no request: only the defaults of the image are known.
  facts.request = TRY(find_request(context, container)).value_or(RunRequest());
  facts.image_config = base.config;

  image::CommitRequest commit;
  commit.base = container.image_id;
  commit.reference = options.reference;
  commit.config = container_defaults(facts);
  commit.changes = options.changes;
  commit.author = options.author;
  commit.message = options.message;
  commit.created_by = join(commit.config.cmd, " ");
  std::optional<Pause> pause;
  if (options.pause) pause.emplace(context, container);
  OwnLayer layer = TRY(own_layer(context, container));
  commit.tree = descriptor_name(layer.directory());
  sys::Fd cache = TRY(leave_out_driver(context, container, layer, commit));
  image::TransferResult made = TRY(transfer(context, std::move(commit), {}));
  emit_container_event(
      context.paths, container.id, "commit",
      {{"comment", options.message}, {"imageID", made.image_id}, {"imageRef", options.reference}});
  return made.image_id;
}

}  // namespace berth::engine
