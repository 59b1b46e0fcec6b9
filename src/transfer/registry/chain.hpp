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

/// The machines of `access.peers`, where `reference` is the image that they have.
/// Errors: usage (an address that is none).
Result<std::vector<Registry>> open_peers(Http& http, const Cancel& cancel,
                                         const image::RegistryAccess& access,
                                         const image::Reference& reference);

/// Several places that have one image: machines of the same job, and at the end the registry, which
/// is not looked for before it is needed. What one does not give the next is asked for; one that
/// was lost is not asked again. Any thread.
class Chain {
 public:
  using Open = std::function<Result<Registry>()>;

  /// `registry` gives the last one; `log` is told when it comes to that although there are others.
  Chain(std::vector<Registry> peers, Open registry, const Cancel& cancel, Log& log);

  bool has_peers() const { return !peers_.empty(); }

  /// As Registry::get_blob(). What of a part has come from one place is not asked for at the next.
  Result<void> get_blob(const oci::Descriptor& blob, BlobPart part);

  /// After damaged bytes, which may have come to all nodes: only the registry is asked from now on.
  void distrust(const Error& error);

  /// The first answer of `ask(Registry&)` that is no error, else the last error.
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
  std::atomic<size_t> first_{0};  // those before it were lost
  std::mutex mutex_;              // guards what follows; held while the registry is looked for
  std::unique_ptr<Registry> registry_;
};

}  // namespace berth::transfer
