// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "hub/config/address.hpp"
#include "hub/reply.hpp"
#include "sys/fd/fd.hpp"

/// What the server is told, and by what it serves.
namespace berth::hub {

inline constexpr size_t kMaxHeadBytes = size_t{16} << 10;

/// By what both ends of TLS know each other.
struct TlsOptions {
  std::string certificate = {};  ///< PEM text, then those above it
  std::string key = {};          ///< PEM text
  std::string shared_key = {};   ///< in the place of both (transfer/registry/shared_key.hpp)
};

struct ServerOptions {
  std::vector<Endpoint> listen;
  sys::Fd listener;  ///< one more, which listens already; may be empty
  std::optional<TlsOptions> tls;
  size_t connections = 512;                  ///< more wait until one ends
  size_t connections_per_address = 512;      ///< more are refused
  size_t transfers = 64;                     ///< answers that come in pieces, at a time
  size_t document_bytes = size_t{64} << 20;  ///< of documents that clients are about to take
  std::chrono::seconds head_time{15};        ///< for a request's head, and for TLS's first words
  std::chrono::seconds idle_time{60};        ///< between requests
  std::chrono::seconds refusal_time{5};      ///< in the place of head_time, when it is refused
  std::chrono::seconds write_time{30};       ///< for each 64 KiB that a client takes
  std::chrono::seconds grace{5};             ///< for answers on their way, when it is to end
};

/// How a request ended.
struct Ended {
  unsigned status = 0;
  uint64_t bytes = 0;  ///< of the body
  std::chrono::microseconds time{0};
  bool whole = true;  ///< the client took all of it
};

using Handler = std::function<Answer(const Asked&)>;
using Observer = std::function<void(const Asked&, const Note&, const Ended&)>;

}  // namespace berth::hub
