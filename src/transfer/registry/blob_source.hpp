// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "image/store.hpp"
#include "oci/image_spec.hpp"
#include "sys/fd/fd.hpp"
#include "transfer/registry/registry.hpp"
#include "transfer/work/cancel.hpp"
#include "transfer/work/event.hpp"

namespace berth::transfer {

/// The compressed layers of the store's images. The store does not keep the compressed form of an
/// unpacked layer; when it is needed, the original bytes are fetched again from the registry.
/// Thread-safe.
class BlobSource {
 public:
  BlobSource(const image::Store& store, const image::RegistryAccess& access, Events& events,
             Cancel& cancel);

  /// A registry that has the blob now. It lives as long as this object.
  /// Errors: not_found (the origin is unknown, or does not have it any more), those of reaching the
  /// registry.
  Result<Registry*> registry_of(const oci::Descriptor& blob);

  /// The whole blob, verified, open for reading: the store's file, or an unnamed copy.  Errors: as
  /// registry_of() and Registry::get_blob(); corrupt.
  Result<sys::Fd> open(const oci::Descriptor& blob);

 private:
  /// A repository that images came from.
  struct Origin {
    std::mutex mutex;                             // guards the next members; held while connecting
    std::vector<std::unique_ptr<Registry>> open;  // the repository itself and mirrors
    std::optional<Error> unreachable;             // if set, do not try again
  };
  Result<Registry*> find_at(const image::Reference& origin, const Digest& blob);

  const image::Store& store_;
  const image::RegistryAccess& access_;
  Events& events_;
  Cancel& cancel_;
  Http http_;
  std::mutex mutex_;                       // guards the following map, not its elements
  std::map<std::string, Origin> origins_;  // by "registry/repository"
};

}  // namespace berth::transfer
