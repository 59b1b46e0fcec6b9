// SPDX-License-Identifier: Apache-2.0
// The request of a client and the answer to it. Pure.
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

/// The head of a request: foreign text, whose size the server bounds.
struct Asked {
  std::string method;
  std::string target;               ///< "/v2/team/app/manifests/latest?…"
  std::vector<std::string> accept;  ///< the values of all Accept headers
  std::string authorization;
  std::string range;
  std::string node;  ///< the value of the header Berth-Node
  Address address;
  std::string address_text;
};

struct Reply {
  unsigned status = 200;
  std::vector<std::pair<std::string, std::string>> headers;
  std::shared_ptr<const std::string> body;  ///< null: none
  std::optional<uint64_t> length;           ///< Content-Length, if it is not the size of `body`
};

/// Receives a blob as it arrives; blocks while the client does not read.
class Output {
 public:
  virtual ~Output() = default;
  /// Called once, before the first bytes. If `head` has no `length`, the end of the connection
  /// marks the end of the body.
  virtual Result<void> begin(const Reply& head) = 0;
  virtual bool begun() const = 0;
  /// Errors: io (the client has disconnected, or does not read).
  virtual Result<void> write(std::string_view bytes) = 0;
};

/// Facts about the answer, for the log.
struct Note {
  std::string user;
  std::string node;    ///< the profile that was used
  std::string digest;  ///< of the served object
  std::string error;   ///< one line with all details, which clients do not get
};

/// Either a reply or a stream.
struct Answer {
  Reply reply;
  /// Streams the answer, or returns a reply without having called Output::begin(). An error after
  /// Output::begin() means that the body is incomplete; the server then closes the connection.
  std::function<Result<Reply>(Output& output, Note& note)> stream;
  Note note;
};

/// An error in the format of the distribution-spec: {"errors": [{"code": …, "message": …}]}.
/// Source: distribution-spec 1.1 "Error Codes".
Reply refusal(unsigned status, std::string_view code, std::string_view message);

/// The reply for an error of an upstream registry. Clients only see the class of the error: its
/// message may name accounts and hosts of the hub.
Reply upstream_refusal(const Error& error, std::string_view unknown_code);

/// A document, or only its headers.
Reply document_reply(std::shared_ptr<const std::string> bytes, std::string_view media_type,
                     const std::string& digest);

/// The status line and the headers of a reply, followed by an empty line. Leaves out a header with
/// a control character in its value; only a registry can have sent one. `length`: none if the end
/// of the connection marks the end of the body.
/// Source: RFC 9112 sections 4 and 5
std::string head_text(const Reply& reply, std::optional<uint64_t> length, bool closes);

}  // namespace berth::hub
