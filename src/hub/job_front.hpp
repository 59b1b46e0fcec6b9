// SPDX-License-Identifier: Apache-2.0
// The service for the other nodes of a job: a registry of one image, which is fetched once and
// passed on while it arrives (docs/decisions/0166).
#pragma once

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "base/log.hpp"
#include "base/result.hpp"
#include "hub/job_route.hpp"
#include "hub/reply.hpp"
#include "hub/spool.hpp"
#include "image/job_order.hpp"
#include "image/reference.hpp"
#include "transfer/registry/chain.hpp"
#include "transfer/registry/http.hpp"
#include "transfer/work/cancel.hpp"
#include "transfer/work/event.hpp"

namespace berth::hub {

/// Tells a client that has waited for the maximum to ask again at once.
Reply wait_a_moment();

/// Answers requests of clients that the server has admitted; thread-safe. Fetches only what is
/// requested.
class JobFront {
 public:
  /// `cancel` is requested before its destruction.  Errors: usage (an invalid reference or
  /// address), those of image::Store::open().
  static Result<std::unique_ptr<JobFront>> make(image::JobOrder order,
                                                const transfer::Cancel& cancel, Log& log);

  Answer answer(const Asked& asked);

  /// The time since the last request or served byte; 0 while a client waits for a blob's next
  /// bytes.
  std::chrono::milliseconds idle() const;

 private:
  JobFront(image::JobOrder order, image::Reference reference, image::Store store,
           const transfer::Cancel& cancel, Log& log);

  /// A requested document, or its absence.
  struct Held {
    std::mutex mutex;  // guards the following members; held while it is fetched
    bool known = false;
    std::optional<transfer::Document> document;
  };
  using Find = std::function<Result<std::optional<transfer::Document>>(transfer::Registry& place)>;

  Answer give_document(const std::string& key, Find find, const std::string& what);
  Result<Reply> document_of(Held& held, const Find& find, const std::string& what);
  std::shared_ptr<Held> hold(const std::string& key);
  Answer give_blob(const Digest& digest, const Asked& asked);
  Result<Reply> stream_blob(const oci::Descriptor& blob, const std::string& range, Output& output);
  Result<Reply> send(SpooledBlob& blob, ByteRange range, Output& output);
  void touch() const;

  const image::JobOrder order_;
  const image::Reference reference_;
  const image::Store store_;
  const transfer::Cancel& cancel_;
  transfer::Events events_;
  transfer::Http http_;
  std::optional<transfer::Chain> chain_;
  Belongings belongings_;
  mutable std::atomic<std::chrono::steady_clock::rep> touched_{0};
  std::atomic<int> streams_{0};
  std::mutex mutex_;  // guards the following members, not their elements
  std::map<std::string, std::shared_ptr<Held>> documents_;
  std::optional<Spool> spool_;  // last, so that its threads end before the members they use
};

}  // namespace berth::hub
