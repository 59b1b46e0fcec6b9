// SPDX-License-Identifier: Apache-2.0
#include "transfer/push.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>

#include "base/text.hpp"
#include "image/store.hpp"
#include "sys/file.hpp"
#include "transfer/access.hpp"
#include "transfer/threads.hpp"

namespace berth::transfer {
namespace {

using image::LayerPhase;
using image::Reference;
using image::TransferResult;

constexpr size_t kUploads = 4;

/// Repositories of the same registry that, as far as the store knows, hold a blob already.
std::map<Digest, std::string> mount_sources(const std::vector<image::Image>& images,
                                            const Reference& target) {
  std::map<Digest, std::string> sources;
  for (const image::Image& image : images) {
    for (const Reference& reference : image.references) {
      bool elsewhere = reference.registry() == target.registry() &&
                       reference.repository() != target.repository();
      if (!elsewhere) continue;
      sources.emplace(image.manifest.config.digest, reference.repository());
      for (const oci::Descriptor& layer : image.manifest.layers) {
        sources.emplace(layer.digest, reference.repository());
      }
    }
  }
  return sources;
}

/// The blobs of one image on their way to one repository.
class Upload {
 public:
  Upload(const image::Store& store, Registry& registry, Events& events, Cancel& cancel,
         std::map<Digest, std::string> sources)
      : store_(store),
        registry_(registry),
        events_(events),
        cancel_(cancel),
        sources_(std::move(sources)) {}

  Result<void> run(const oci::Manifest& manifest) {
    std::vector<oci::Descriptor> blobs = manifest.layers;
    blobs.push_back(manifest.config);
    std::ranges::sort(blobs, {}, [](const oci::Descriptor& b) { return b.digest; });
    auto twins = [](const oci::Descriptor& a, const oci::Descriptor& b) {
      return a.digest == b.digest;
    };
    blobs.erase(std::unique(blobs.begin(), blobs.end(), twins), blobs.end());

    std::atomic<size_t> next = 0;
    auto work = [&] {
      for (size_t i = next++; i < blobs.size(); i = next++) {
        Result<void> sent = send(blobs[i], blobs[i].digest != manifest.config.digest);
        if (sent.ok()) continue;
        std::lock_guard lock(mutex_);
        if (!error_) error_ = std::move(sent).error();
        cancel_.request();
        return;
      }
    };
    run_in_threads(std::min(kUploads, blobs.size()), work);
    if (error_) return *std::move(error_);
    return {};
  }

 private:
  Result<void> send(const oci::Descriptor& blob, bool is_layer) {
    std::string id = blob.digest.short_hex();
    auto report = [&](LayerPhase phase, uint64_t done) {
      if (is_layer) events_.layer(id, phase, done, blob.size);
    };
    report(LayerPhase::waiting, 0);
    bool present = TRY(registry_.has_blob(blob.digest));
    if (present) {
      report(LayerPhase::exists, blob.size);
      return {};
    }
    sys::Fd file = TRY(sys::open_at(sys::cwd(), store_.blob_path(blob.digest), O_RDONLY));
    auto source = sources_.find(blob.digest);
    std::optional<std::string> from;
    if (source != sources_.end()) from = source->second;
    Delivered delivered = TRY(registry_.put_blob(
        blob, file, from, [&](uint64_t bytes) { report(LayerPhase::uploading, bytes); }));
    if (is_layer && delivered == Delivered::mounted) {
      events_.status(fmt::format("{}: Mounted from {}", id, *from));
    }
    report(LayerPhase::done, blob.size);
    return {};
  }

  const image::Store& store_;
  Registry& registry_;
  Events& events_;
  Cancel& cancel_;
  std::map<Digest, std::string> sources_;
  std::mutex mutex_;
  std::optional<Error> error_;
};

Result<TransferResult> push_image(const image::PushRequest& request, Events& events,
                                  Cancel& cancel) {
  Reference reference = TRY(Reference::parse(request.reference));
  image::Store store = TRY(image::Store::open(request.root, {}));
  image::Image image = TRY(store.get_image(reference.canonical()));
  Document document;
  document.bytes = TRY(store.read_document(image.manifest_digest));
  document.digest = image.manifest_digest;
  document.media_type = image.manifest.media_type.empty() ? std::string(oci::media_type::kManifest)
                                                          : image.manifest.media_type;

  Http http(http_options(request.access), cancel);
  Registry registry = TRY(open_registry(http, cancel, request.access, reference, events));
  TRY(registry.connect());
  events.status(fmt::format("The push refers to repository [{}/{}]", reference.registry(),
                            reference.repository()));
  std::vector<image::Image> images = TRY(store.list());
  Upload upload(store, registry, events, cancel, mount_sources(images, reference));
  TRY(upload.run(image.manifest));
  TRY(registry.put_manifest(reference.manifest_reference(), document));

  TransferResult result;
  result.reference = reference.canonical();
  result.digest = document.digest.text();
  result.image_id = image.id.text();
  result.size = document.bytes.size();
  return result;
}

}  // namespace

Result<TransferResult> push(const image::PushRequest& request, const EventSink& sink,
                            Cancel& cancel) {
  Events events(sink, request.quiet ? Events::Layers::hidden : Events::Layers::shown);
  return TRY_CTX(push_image(request, events, cancel),
                 fmt::format("cannot push '{}'", escape_controls(request.reference)));
}

}  // namespace berth::transfer
