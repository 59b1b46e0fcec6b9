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

/// The settings of the server and its services.
namespace berth::hub {

inline constexpr size_t kMaxHeadBytes = size_t{16} << 10;

/// How both ends of TLS authenticate.
struct TlsOptions {
  std::string certificate = {};  ///< PEM text: the certificate, followed by its issuers
  std::string key = {};          ///< PEM text
  std::string shared_key = {};   ///< instead of both (transfer/registry/shared_key.hpp)
};

struct ServerOptions {
  std::vector<Endpoint> listen;
  sys::Fd listener;  ///< a further listening socket; may be empty
  std::optional<TlsOptions> tls;
  // Set from hub/config, or for the nodes of a job (bin/berth-hub.cpp).
  size_t connections = 0;                    ///< more wait until one ends
  size_t connections_per_address = 0;        ///< more are refused
  size_t transfers = 64;                     ///< concurrent streams; for a job always 64
  size_t document_bytes = size_t{64} << 20;  ///< of all documents that clients are about to read
  std::chrono::seconds head_time{15};        ///< for a request's headers, and for TLS's handshake
  std::chrono::seconds idle_time{60};        ///< between requests
  std::chrono::seconds refusal_time{5};      ///< instead of head_time, for refused connections
  std::chrono::seconds write_time{30};       ///< for each 64 KiB that a client reads
  std::chrono::seconds grace{5};             ///< for running answers, at shutdown
};

/// How a request ended.
struct Ended {
  unsigned status = 0;
  uint64_t bytes = 0;  ///< of the body
  std::chrono::microseconds time{0};
  bool whole = true;  ///< the client read all of it
};

using Handler = std::function<Answer(const Asked&)>;
using Observer = std::function<void(const Asked&, const Note&, const Ended&)>;

}  // namespace berth::hub
