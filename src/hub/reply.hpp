// SPDX-License-Identifier: Apache-2.0
// What a client asks, and what it is answered. Pure.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "hub/config/address.hpp"

namespace berth::hub {

/// A request's head; foreign text, bounded by the server.
struct Asked {
  std::string method;
  std::string target;               ///< "/v2/team/app/manifests/latest?…"
  std::vector<std::string> accept;  ///< the values of all Accept headers
  std::string authorization;
  std::string range;
  std::string node;  ///< of Berth-Node
  Address address;
  std::string address_text;
};

struct Reply {
  unsigned status = 200;
  std::vector<std::pair<std::string, std::string>> headers;
  std::shared_ptr<const std::string> body;  ///< null: none
  std::optional<uint64_t> length;           ///< Content-Length, where it is not that of `body`
};

/// Where a blob goes while it comes; blocks while the client does not take it.
class Output {
 public:
  virtual ~Output() = default;
  /// Once, before the first bytes. Without `length` the end of the connection ends the body.
  virtual Result<void> begin(const Reply& head) = 0;
  virtual bool begun() const = 0;
  /// Errors: io (the client has gone, or takes nothing).
  virtual Result<void> write(std::string_view bytes) = 0;
};

/// What the log says beside the request.
struct Note {
  std::string user;
  std::string node;    ///< profile that was judged for
  std::string digest;  ///< of what was given
  std::string error;   ///< one line, in full: clients are told less
};

/// Either a reply or one that comes in pieces.
struct Answer {
  Reply reply;
  /// Gives the reply of what did not begin. After Output::begin() an error means that the body is
  /// not whole, and the connection is broken off.
  std::function<Result<Reply>(Output& output, Note& note)> stream;
  Note note;
};

/// An error as the distribution-spec has it: {"errors": [{"code": …, "message": …}]}.
/// Source: distribution-spec 1.1 "Error Codes".
Reply refusal(unsigned status, std::string_view code, std::string_view message);

/// The refusal of what an upstream did not give. Clients are told the class alone: the line may
/// name accounts and hosts that are the hub's.
Reply upstream_refusal(const Error& error, std::string_view unknown_code);

/// A document or its head.
Reply document_reply(std::shared_ptr<const std::string> bytes, std::string_view media_type,
                     const std::string& digest);

}  // namespace berth::hub
