// SPDX-License-Identifier: Apache-2.0
// A client's request and the answer. Pure.
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
  std::optional<uint64_t> length;           ///< Content-Length, if it is not that of `body`
};

/// Receives a blob as it arrives; blocks while the client does not read.
class Output {
 public:
  virtual ~Output() = default;
  /// Once, before the first bytes. Without `length` the end of the connection marks the end of the
  /// body.
  virtual Result<void> begin(const Reply& head) = 0;
  virtual bool begun() const = 0;
  /// Errors: io (the client has disconnected, or does not read).
  virtual Result<void> write(std::string_view bytes) = 0;
};

/// Facts for the log, besides the request.
struct Note {
  std::string user;
  std::string node;    ///< the profile that was used
  std::string digest;  ///< of the served object
  std::string error;   ///< one line, in full: clients get less
};

/// Either a reply or a stream.
struct Answer {
  Reply reply;
  /// Returns the reply if nothing was streamed. After Output::begin() an error means that the body
  /// is incomplete, and the connection is closed.
  std::function<Result<Reply>(Output& output, Note& note)> stream;
  Note note;
};

/// An error in the format of the distribution-spec: {"errors": [{"code": …, "message": …}]}.
/// Source: distribution-spec 1.1 "Error Codes".
Reply refusal(unsigned status, std::string_view code, std::string_view message);

/// The refusal for an upstream's error. Clients only see its class: the message may name accounts
/// and hosts of the hub.
Reply upstream_refusal(const Error& error, std::string_view unknown_code);

/// A document or its headers.
Reply document_reply(std::shared_ptr<const std::string> bytes, std::string_view media_type,
                     const std::string& digest);

/// The status line and headers of a reply, with the empty line behind them. Leaves out a header
/// with control characters in its value, which only a registry can have caused. `length`: none if
/// the end of the connection marks the end of the body.
/// Source: RFC 9112 sections 4 and 5
std::string head_text(const Reply& reply, std::optional<uint64_t> length, bool closes);

}  // namespace berth::hub
