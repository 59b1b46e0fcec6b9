// SPDX-License-Identifier: Apache-2.0
// import: a directory or a tar becomes an image of one layer.
#include <fcntl.h>
#include <sys/stat.h>

#include "base/text.hpp"
#include "image/reference.hpp"
#include "image/store.hpp"
#include "json/fields.hpp"
#include "sys/io_at.hpp"
#include "transfer/archive.hpp"
#include "transfer/archive_members.hpp"
#include "transfer/deflate.hpp"
#include "transfer/event.hpp"
#include "transfer/give_up.hpp"
#include "transfer/image_changes.hpp"
#include "transfer/layers.hpp"
#include "transfer/outer_archive.hpp"
#include "transfer/sha256.hpp"

namespace berth::transfer {
namespace {

/// Packs a tar into a blob, hashing what comes in and, afterwards, what came out.
class LayerPacker final : public ByteSink {
 public:
  LayerPacker(const sys::Fd& fd, const Cancel& cancel) : gzip_(fd), cancel_(cancel) {}

  Result<void> write(std::string_view bytes) override {
    TRY(cancel_.check());
    sha_.update(bytes);
    return gzip_.write(bytes);
  }
  Result<Digest> finish() {
    TRY(gzip_.finish());
    return sha_.finish();
  }

 private:
  GzipWriter gzip_;
  Sha256 sha_;
  const Cancel& cancel_;
};

Result<void> write_source(const std::string& source, ByteSink& sink) {
  sys::Fd fd = TRY(open_input(source));
  struct stat status = TRY(sys::stat_fd(fd, source));
  if (S_ISDIR(status.st_mode)) return write_directory_tar(source, sink);
  ArchiveReader reader = TRY(ArchiveReader::open_raw(fd));
  auto member = TRY(reader.next());
  if (!member) return make_error(Kind::corrupt, "read " + quoted(source) + ": it is empty");
  while (true) {
    std::string_view part = TRY(reader.content());
    if (part.empty()) return {};
    TRY(sink.write(part));
  }
}

Result<oci::Descriptor> describe_blob(const sys::Fd& fd) {
  oci::Descriptor layer;
  layer.media_type = oci::media_type::kLayerGzip;
  Sha256 sha;
  std::string buffer(size_t{1} << 20, '\0');
  while (true) {
    size_t count = TRY(sys::read_at(fd, layer.size, buffer.data(), buffer.size(), "layer"));
    if (count == 0) break;
    sha.update({buffer.data(), count});
    layer.size += count;
  }
  layer.digest = sha.finish();
  return layer;
}

Result<oci::ImageConfig> make_config(const image::ImportRequest& request, const Digest& diff_id) {
  oci::Platform platform = oci::host_platform();
  if (request.platform) platform = TRY(oci::parse_platform(*request.platform));
  oci::ImageConfig config;
  config.created = image::timestamp_now();
  config.architecture = platform.architecture;
  config.os = platform.os;
  config.variant = platform.variant;
  config.rootfs.diff_ids = {diff_id};
  oci::History history;
  history.created = config.created;
  history.comment = request.message.empty() ? "Imported from " + request.source : request.message;
  config.history = {history};
  for (const auto& change : request.changes) TRY(apply_change(change, config.config));
  return config;
}

Result<image::TransferResult> import_into(const image::ImportRequest& request,
                                          const image::Store& store, Events& events,
                                          Cancel& cancel) {
  std::optional<image::Reference> reference;
  if (!request.reference.empty()) {
    reference = TRY(image::Reference::parse(request.reference));
    if (reference->digest()) {
      return make_error(Kind::usage, "name an image " + quoted(request.reference) +
                                         ": a digest cannot be given as a name");
    }
  }
  // Wrong changes are found before the work.
  TRY(make_config(request, {}));

  image::Delivery delivery = TRY(image::Delivery::begin(store));
  image::Staged staged = TRY(delivery.stage_file());
  LayerPacker packer(staged.fd(), cancel);
  TRY(write_source(request.source, packer));
  Digest diff_id = TRY(packer.finish());
  oci::Descriptor layer = TRY(describe_blob(staged.fd()));
  TRY(delivery.publish_blob(std::move(staged), layer.digest));

  oci::ImageConfig config = TRY(make_config(request, diff_id));
  std::string config_bytes = json::write(config);
  oci::Manifest manifest;
  manifest.media_type = oci::media_type::kManifest;
  manifest.config.media_type = oci::media_type::kConfig;
  manifest.config.digest = sha256_of(config_bytes);
  manifest.config.size = config_bytes.size();
  manifest.layers = {layer};
  LayerPipeline layers(store, delivery, nullptr, events, cancel);
  TRY(layers.run(manifest, config));

  std::string manifest_bytes = json::write(manifest);
  image::ImageRecord record;
  record.reference = reference;
  record.target = record.manifest = sha256_of(manifest_bytes);
  record.config = manifest.config.digest;
  TRY(delivery.put_document(record.manifest, manifest_bytes));
  TRY(delivery.put_document(record.config, config_bytes));
  TRY(delivery.publish_image(record));

  image::TransferResult result;
  if (reference) result.reference = reference->canonical();
  result.digest = record.target.text();
  result.image_id = record.config.text();
  return result;
}

}  // namespace

Result<image::TransferResult> import_image(const image::ImportRequest& request,
                                           const EventSink& sink, Cancel& cancel) {
  std::string what = "cannot import " + input_name(request.source);
  Events events(sink, Events::Layers::hidden);
  image::Store store =
      TRY_CTX(image::Store::open(request.root, {request.ownership, request.overlay_xattr}), what);
  auto result = import_into(request, store, events, cancel);
  if (result.ok()) return result;
  return give_up(store, std::move(result).error().with_context(what), events);
}

}  // namespace berth::transfer
