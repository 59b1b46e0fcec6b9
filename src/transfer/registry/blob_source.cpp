// SPDX-License-Identifier: Apache-2.0
#include "transfer/registry/blob_source.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include "sys/file/file.hpp"
#include "transfer/registry/access.hpp"
#include "transfer/registry/blob_fetcher.hpp"

namespace berth::transfer {

BlobSource::BlobSource(const image::Store& store, const image::RegistryAccess& access,
                       Events& events, Cancel& cancel)
    : store_(store),
      access_(access),
      events_(events),
      cancel_(cancel),
      http_(http_options(access), cancel) {}

Result<Registry*> BlobSource::registry_of(const oci::Descriptor& blob) {
  std::optional<Error> error;
  for (const image::Reference& origin : store_.origins(blob.digest)) {
    auto found = find_at(origin, blob.digest);
    if (found.ok()) return found;
    if (found.error().kind == Kind::interrupted) return found;
    if (!error) error = std::move(found).error();
  }
  if (error) {
    return std::move(*error).with_context(
        "cannot fetch again a layer that is only kept unpacked in the store (berth pull "
        "--keep-blobs keeps it)");
  }
  return make_error(Kind::not_found,
                    fmt::format("find blob '{}': it is not kept, and its registry is not known",
                                blob.digest.text()),
                    "berth pull --keep-blobs; or import, load or build the image again");
}

Result<Registry*> BlobSource::find_at(const image::Reference& origin, const Digest& blob) {
  auto holds = [&](Registry& registry) { return registry.may_have_blob(blob); };
  std::unique_lock map_lock(mutex_);
  Origin& known = origins_[origin.registry() + "/" + origin.repository()];
  map_lock.unlock();
  std::lock_guard lock(known.mutex);
  for (const auto& registry : known.open) {
    if (holds(*registry).ok()) return registry.get();
  }
  if (known.unreachable) return *known.unreachable;
  auto found = open_source(http_, cancel_, access_, origin, events_, holds);
  if (!found.ok() && found.error().kind == Kind::io) known.unreachable = found.error();
  Registry registry = TRY(std::move(found));
  TRY(holds(registry));
  return known.open.emplace_back(std::make_unique<Registry>(std::move(registry))).get();
}

Result<sys::Fd> BlobSource::open(const oci::Descriptor& blob) {
  auto kept = sys::open_at(sys::cwd(), store_.blob_path(blob.digest), O_RDONLY);
  if (kept.ok() || kept.error().kind != Kind::not_found) return kept;
  Registry* registry = TRY(registry_of(blob));
  image::Delivery delivery = TRY(image::Delivery::begin(store_));
  image::Staged file = TRY(delivery.stage_file());
  BlobFetcher fetcher({}, cancel_);
  BlobStream stream(fetcher, blob, *registry, {.copy = &file.fd()});
  TRY(stream.finish());
  // The name of the file is removed now, its bytes when the descriptor is closed.
  return sys::duplicate(file.fd());
}

}  // namespace berth::transfer
