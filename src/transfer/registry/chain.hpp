// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "image/reference.hpp"
#include "image/registry_access.hpp"
#include "oci/image_spec.hpp"
#include "transfer/registry/http.hpp"
#include "transfer/registry/registry.hpp"
#include "transfer/work/cancel.hpp"
#include "transfer/work/event.hpp"

namespace berth::transfer {

/// The machines of `access.peers`, if `reference` is their image.
/// Errors: usage (an invalid address).
Result<std::vector<Registry>> open_peers(Http& http, const Cancel& cancel,
                                         const image::RegistryAccess& access,
                                         const image::Reference& reference);

/// Several sources of one image: machines of the same job, and last the registry, which is not
/// contacted before it is needed. Bytes that one source does not deliver are requested from the
/// next; a source that was lost is not asked again. Thread-safe.
class Chain {
 public:
  using Open = std::function<Result<Registry>()>;

  /// `registry` opens the last source. A line in `log` says when it is used although there are
  /// peers.
  Chain(std::vector<Registry> peers, Open registry, const Cancel& cancel, Log& log);

  bool has_peers() const { return !peers_.empty(); }

  /// As Registry::get_blob(). Bytes that one source has delivered are not requested from the next.
  Result<void> get_blob(const oci::Descriptor& blob, BlobPart part);

  /// Call it after damaged bytes, which may have reached all nodes. From then on only the registry
  /// is asked.
  void distrust(const Error& error);

  /// The first result of `ask(Registry&)` that is not an error, else the last error.
  template <class Ask>
  auto ask(Ask ask) -> decltype(ask(std::declval<Registry&>())) {
    for (size_t i = first_;; ++i) {
      Registry* place = TRY(at(i));
      auto answer = ask(*place);
      if (answer.ok() || i == peers_.size() || !goes_on(i, answer.error())) return answer;
    }
  }

 private:
  Result<Registry*> at(size_t place);
  bool goes_on(size_t place, const Error& error);

  std::vector<Registry> peers_;
  const Open open_;
  const Cancel& cancel_;
  Log& log_;
  std::atomic<size_t> first_{0};  // the sources before this index were lost
  std::mutex mutex_;              // guards the following members; held while connecting
  std::unique_ptr<Registry> registry_;
};

}  // namespace berth::transfer
