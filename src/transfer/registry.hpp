// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/digest.hpp"
#include "base/result.hpp"
#include "image/reference.hpp"
#include "oci/image_spec.hpp"
#include "sys/fd.hpp"
#include "transfer/auth.hpp"
#include "transfer/http.hpp"

namespace berth::transfer {

/// The exact bytes of a manifest or index, with the type that the registry gave them.
struct Document {
  std::string bytes;
  std::string media_type;  ///< Content-Type without parameters
  Digest digest;           ///< of `bytes`
};

/// Where progress in bytes goes; the count may fall back to 0 when a blob starts anew.
using Progress = std::function<void(uint64_t bytes)>;

/// A client of one repository of one registry (OCI distribution-spec 1.1); any thread may use it.
///
/// 429, 502, 503 and 504 are tried again after Retry-After or a growing pause, a lost connection
/// after a growing pause; both a bounded number of times. A 401 is answered once.
/// Every refusal becomes one line that names the registry and the object, with the registry's own
/// words and a hint. Errors of all calls: not_found (404, no such host), denied (401, 403, TLS),
/// busy (429), unsupported, corrupt, io, interrupted.
class Registry {
 public:
  /// Says what a person should know while it happens ("… asks to wait 5 s").
  using Notice = std::function<void(const std::string&)>;

  Registry(Http& http, const Cancel& cancel, const image::Reference& reference,
           std::optional<Credential> credential, Notice notice);

  /// Finds out how the registry is reached. Only a loopback or insecure registry is asked: HTTPS
  /// first, plain HTTP when it does not speak TLS. Elsewhere it is HTTPS, without a question.
  Result<void> connect();

  /// GET /v2/, with credentials when it asks for them: what `login` checks.
  Result<void> check_login();

  /// By tag or digest; a digest must be that of the bytes. At most 4 MiB.
  Result<Document> get_manifest(const std::string& tag_or_digest);

  /// A small blob (the config) into memory, verified. At most 4 MiB.
  Result<std::string> get_document(const oci::Descriptor& blob);

  /// A blob into the empty file `file`: hashed while it streams, size and digest checked. Goes on
  /// where a connection was lost if the registry knows Range, else from the start.
  Result<void> get_blob(const oci::Descriptor& blob, const sys::Fd& file, const Progress& progress);

  Result<bool> has_blob(const Digest& digest);

  /// Asks the registry to take the blob from another of its repositories, or starts an upload where
  /// it will not. Returns the place of the upload; none: the blob is there.
  Result<std::optional<Url>> mount_or_start_upload(const Digest& digest,
                                                   const std::optional<std::string>& from);
  /// Sends the blob whole (POST then PUT).
  Result<void> upload_blob(const Url& place, const oci::Descriptor& blob, const sys::Fd& file,
                           const Progress& progress);

  /// Puts the exact bytes under a tag (or a digest). The registry's idea of the digest must agree.
  Result<void> put_manifest(const std::string& tag_or_digest, const Document& document);

 private:
  struct Attempt;
  std::string pull_scope() const { return "repository:" + repository_ + ":pull"; }
  std::string push_scope() const { return "repository:" + repository_ + ":pull,push"; }
  Url at(const std::string& path) const;
  Result<HttpResponse> send(HttpRequest request, const std::string& scope,
                            const std::string& action);
  Result<void> pause(const HttpResponse& response, int attempt, const std::string& action);
  Error refusal(const HttpResponse& response, const std::string& action) const;

  Http& http_;
  const Cancel& cancel_;
  std::string name_;        // as the user knows it: "docker.io"
  std::string repository_;  // "library/ubuntu"
  std::string shown_;       // "ubuntu", for messages
  Url base_;                // "https://registry-1.docker.io"
  Authenticator auth_;
  Notice notice_;
};

/// How long a 429 or 503 asks to wait: seconds or an HTTP date, seen at `now` (seconds since 1970).
std::optional<std::chrono::seconds> parse_retry_after(std::string_view value, int64_t now);

}  // namespace berth::transfer
