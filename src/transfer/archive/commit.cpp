// SPDX-License-Identifier: Apache-2.0
// commit: a container's own layer becomes the highest of a new image.
#include "image/store.hpp"
#include "sys/file/file.hpp"
#include "transfer/archive/archive.hpp"
#include "transfer/archive/members.hpp"
#include "transfer/archive/new_image.hpp"
#include "transfer/layer/tree_tar.hpp"
#include "transfer/work/event.hpp"
#include "transfer/work/give_up.hpp"

namespace berth::transfer {
namespace {

constexpr size_t kMaxLoaderCache = size_t{16} << 20;

oci::History history_of(const image::CommitRequest& request, const std::string& created) {
  oci::History history;
  history.created = created;
  history.created_by = request.created_by;
  history.author = request.author;
  history.comment = request.message;
  return history;
}

Result<image::TransferResult> commit_into(const image::CommitRequest& request,
                                          const image::Store& store, Events& events,
                                          Cancel& cancel) {
  NewImage made;
  made.reference = TRY(new_name(request.reference));
  // Invalid changes are reported before the work begins.
  oci::ContainerDefaults defaults = request.config;
  for (const auto& change : request.changes) TRY(apply_change(change, defaults));

  image::Delivery delivery = TRY(image::Delivery::begin(store));
  image::Image base = TRY(store.get_image(request.base));
  for (const image::Layer& layer : base.layers) {
    if (TRY(delivery.keep_blob(layer.blob.digest))) continue;
    if (!store.origins(layer.blob.digest).empty()) continue;
    events.warn("layer " + layer.blob.digest.short_hex() +
                " of the image is only kept unpacked, and its registry is not known: the new image "
                "cannot be pushed or saved, ignoring");
  }
  image::Staged staged = TRY(delivery.stage_file());
  LayerPacker packer(staged.fd(), cancel);
  sys::Fd tree = TRY(open_input(request.tree));
  auto warn = [&events](const std::string& text) { events.warn(text); };
  TreeTarOptions options{"", Marks::layer, request.flavor.overlay_xattr, warn, request.source_date};
  for (const std::string& name : request.left_out) options.instead[name] = std::nullopt;
  if (!request.loader_cache.empty()) {
    sys::Fd cache = TRY(open_input(request.loader_cache));
    options.instead["etc/ld.so.cache"] = TRY(sys::read_all(cache, "ld.so.cache", kMaxLoaderCache));
  }
  TRY(write_tree_tar(tree, options, packer));
  Digest diff_id = TRY(packer.finish());
  oci::Descriptor layer = TRY(describe_layer(staged.fd()));
  TRY(delivery.publish_blob(std::move(staged), layer.digest));

  made.config = base.config;
  made.config.created = creation_time(request.source_date);
  made.config.author = request.author;
  made.config.config = std::move(defaults);
  made.config.rootfs.diff_ids.push_back(diff_id);
  made.config.history.push_back(history_of(request, made.config.created));
  for (const image::Layer& below : base.layers) made.layers.push_back(below.blob);
  made.layers.push_back(std::move(layer));
  return publish_new_image(store, delivery, made, events, cancel);
}

}  // namespace

Result<image::TransferResult> commit(const image::CommitRequest& request, const EventSink& sink,
                                     Cancel& cancel) {
  const char* what = "cannot make an image of the container";
  Events events(sink, Events::Layers::hidden);
  return fill_store(request, what, events, [&](const image::Store& store) {
    return commit_into(request, store, events, cancel);
  });
}

}  // namespace berth::transfer
