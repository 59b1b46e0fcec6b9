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

/// The packed layers of the store's images. What is unpacked is not kept packed, too: it comes from
/// where it was pulled, when somebody wants the very bytes. Any thread may call it.
class BlobSource {
 public:
  BlobSource(const image::Store& store, const image::RegistryAccess& access, Events& events,
             Cancel& cancel);

  /// A registry that has the blob now. It lives as long as this object.
  /// Errors: not_found (nobody knows where it came from, or it is there no more), those of reaching
  /// the registry.
  Result<Registry*> registry_of(const oci::Descriptor& blob);

  /// The whole blob, verified, open for reading: the store's file, or one that goes with its
  /// descriptor.  Errors: as registry_of() and Registry::get_blob(); corrupt.
  Result<sys::Fd> open(const oci::Descriptor& blob);

 private:
  /// A repository that images came from.
  struct Origin {
    std::mutex mutex;                             // guards what follows; held while it is asked
    std::vector<std::unique_ptr<Registry>> open;  // itself, mirrors among them
    std::optional<Error> unreachable;             // it is not asked again
  };
  Result<Registry*> find_at(const image::Reference& origin, const Digest& blob);

  const image::Store& store_;
  const image::RegistryAccess& access_;
  Events& events_;
  Cancel& cancel_;
  Http http_;
  std::mutex mutex_;                       // guards what follows, not what is in it
  std::map<std::string, Origin> origins_;  // by "registry/repository"
};

}  // namespace berth::transfer
