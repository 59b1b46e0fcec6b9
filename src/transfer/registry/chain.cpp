// SPDX-License-Identifier: Apache-2.0
#include "transfer/registry/chain.hpp"

#include <utility>

#include "base/text.hpp"

namespace berth::transfer {
Result<std::vector<Registry>> open_peers(Http& http, const Cancel& cancel,
                                         const image::RegistryAccess& access,
                                         const image::Reference& reference) {
  std::vector<Registry> peers;
  if (!access.peers || access.peers->reference != reference.canonical()) return peers;
  for (const std::string& address : access.peers->addresses) {
    // Notices about waiting would come every second.
    auto silent = [](const std::string&) {};
    peers.push_back(TRY(Registry::make(http, cancel, address, reference.repository(), {}, silent)));
    peers.back().connect_to_peer();
  }
  return peers;
}

Chain::Chain(std::vector<Registry> peers, Open registry, const Cancel& cancel, Log& log)
    : peers_(std::move(peers)), open_(std::move(registry)), cancel_(cancel), log_(log) {}

Result<Registry*> Chain::at(size_t place) {
  if (place < peers_.size()) return &peers_[place];
  std::lock_guard lock(mutex_);
  if (registry_) return registry_.get();
  if (!peers_.empty()) {
    log_.warn("no node of this job sends the image any more; asking the registry instead");
  }
  registry_ = std::make_unique<Registry>(TRY(open_()));
  return registry_.get();
}

/// Whether to ask the source after `place`. A source that lacks one object may have another one,
/// but a source that does not answer is skipped from now on.
bool Chain::goes_on(size_t place, const Error& error) {
  if (cancel_.requested() || error.kind == Kind::interrupted) return false;
  if (error.kind != Kind::io) return true;
  size_t first = place;
  first_.compare_exchange_strong(first, place + 1);
  return true;
}

void Chain::distrust(const Error& error) {
  if (first_.exchange(peers_.size()) == peers_.size()) return;
  log_.warn("a node of this job sent damaged data: " + to_line(error));
}

Result<void> Chain::get_blob(const oci::Descriptor& blob, BlobPart part) {
  std::optional<Error> refused;  // the receiver's error: other sources have the same bytes
  bool answered = part.answered;
  auto fetch = [&](Registry& place) -> Result<void> {
    BlobPart rest;
    rest.begin = part.begin;
    rest.end = part.end;
    rest.answered = answered;
    rest.take = [&](std::string_view bytes) -> Result<void> {
      auto taken = part.take(bytes);
      if (!taken.ok()) refused = taken.error();
      part.begin += bytes.size();
      return taken;
    };
    rest.on_whole = [&]() -> Result<void> {
      part.end = blob.size;
      return part.on_whole ? part.on_whole() : Result<void>();
    };
    answered = false;  // the next source may not answer at all
    return place.get_blob(blob, std::move(rest));
  };
  for (size_t i = first_;; ++i) {
    Registry* place = TRY(at(i));
    auto done = fetch(*place);
    if (done.ok() || refused || i == peers_.size() || !goes_on(i, done.error())) return done;
  }
}

}  // namespace berth::transfer
