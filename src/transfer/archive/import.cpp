// SPDX-License-Identifier: Apache-2.0
// import: a directory, a tar, or an image file of another engine becomes an image of one layer.
#include <fcntl.h>
#include <sys/stat.h>

#include "base/text.hpp"
#include "image/store.hpp"
#include "sys/file/file.hpp"
#include "transfer/archive/archive.hpp"
#include "transfer/archive/foreign_import.hpp"
#include "transfer/archive/members.hpp"
#include "transfer/archive/new_image.hpp"
#include "transfer/layer/tree_tar.hpp"
#include "transfer/tar/outer_archive.hpp"
#include "transfer/work/event.hpp"
#include "transfer/work/give_up.hpp"

namespace berth::transfer {
namespace {

/// The source, and its configuration for containers.
struct Source {
  sys::Fd fd;
  std::optional<ForeignImage> foreign;
  oci::ContainerDefaults says;
};

Result<Source> open_import(const std::string& path, image::Delivery& delivery,
                           const Cancel& cancel) {
  Source source;
  source.fd = TRY(open_input(path));
  source.foreign = TRY(ForeignImage::open(source.fd, path, delivery, cancel));
  if (source.foreign) source.says = TRY(source.foreign->describe());
  return source;
}

Result<void> write_source(const Source& opened, const image::ImportRequest& request, ByteSink& sink,
                          const Cancel& cancel) {
  const std::string& source = request.source;
  if (opened.foreign) return opened.foreign->write_tar(sink, cancel);
  const sys::Fd& fd = opened.fd;
  struct stat status = TRY(sys::stat_fd(fd, source));
  if (S_ISDIR(status.st_mode)) {
    return write_tree_tar(fd, {".", Marks::plain, {}, {}, request.source_date}, sink);
  }
  ArchiveReader reader = TRY(ArchiveReader::open_raw(fd));
  auto member = TRY(reader.next());
  if (!member) return make_error(Kind::corrupt, "read " + quote(source) + ": it is empty");
  while (true) {
    std::string_view part = TRY(reader.content());
    if (part.empty()) return {};
    TRY(sink.write(part));
  }
}

// With a source date, equal files give equal digests wherever they come from.
std::string where_from(const image::ImportRequest& request) {
  if (request.source_date) return "Imported";
  return "Imported from " + (is_descriptor(request.source) ? "-" : request.source);
}

Result<oci::ImageConfig> make_config(const image::ImportRequest& request, const Digest& diff_id,
                                     const oci::ContainerDefaults& says) {
  oci::Platform platform = oci::host_platform();
  if (request.platform) platform = TRY(oci::parse_platform(*request.platform));
  oci::ImageConfig config;
  config.config = says;
  config.created = creation_time(request.source_date);
  config.architecture = platform.architecture;
  config.os = platform.os;
  config.variant = platform.variant;
  config.rootfs.diff_ids = {diff_id};
  oci::History history;
  history.created = config.created;
  history.comment = request.message.empty() ? where_from(request) : request.message;
  config.history = {history};
  for (const auto& change : request.changes) TRY(apply_change(change, config.config));
  return config;
}

Result<image::TransferResult> import_into(const image::ImportRequest& request,
                                          const image::Store& store, Events& events,
                                          Cancel& cancel) {
  NewImage made;
  made.reference = TRY(new_name(request.reference));
  // Wrong changes are found before the work.
  TRY(make_config(request, {}, {}));

  image::Delivery delivery = TRY(image::Delivery::begin(store));
  Source source = TRY(open_import(request.source, delivery, cancel));
  image::Staged staged = TRY(delivery.stage_file());
  LayerPacker packer(staged.fd(), cancel);
  TRY(write_source(source, request, packer, cancel));
  Digest diff_id = TRY(packer.finish());
  made.layers.push_back(TRY(describe_layer(staged.fd())));
  TRY(delivery.publish_blob(std::move(staged), made.layers[0].digest));
  made.config = TRY(make_config(request, diff_id, source.says));
  return publish_new_image(store, delivery, made, events, cancel);
}

}  // namespace

Result<image::TransferResult> import_image(const image::ImportRequest& request,
                                           const EventSink& sink, Cancel& cancel) {
  std::string what = "cannot import " + input_name(request.source);
  Events events(sink, Events::Layers::hidden);
  image::Store store =
      TRY_CTX(image::Store::open(request.root,
                                 {request.ownership, request.overlay_xattr, request.layer_format},
                                 request.additional_stores),
              what);
  auto result = import_into(request, store, events, cancel);
  if (result.ok()) return result;
  return give_up(store, std::move(result).error().with_context(what), events);
}

}  // namespace berth::transfer
