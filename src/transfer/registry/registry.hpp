// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/digest.hpp"
#include "base/result.hpp"
#include "oci/image_spec.hpp"
#include "sys/fd/fd.hpp"
#include "transfer/registry/auth.hpp"
#include "transfer/registry/http.hpp"
#include "transfer/registry/part_reader.hpp"

namespace berth::transfer {

/// The exact bytes of a manifest or index, with the type that the registry gave them.
struct Document {
  std::string bytes;
  std::string media_type;  ///< Content-Type without parameters; empty when it says nothing
  Digest digest;           ///< of `bytes`
};

/// Where progress in bytes goes.
using ByteProgress = std::function<void(uint64_t bytes)>;

enum class Delivered { uploaded, mounted };

/// A client of one repository of one registry (OCI distribution-spec 1.1); any thread may use it
/// once connect() is over.
///
/// 429, 502, 503 and 504 are tried again after Retry-After or a growing pause, a lost connection
/// after a growing pause; both a bounded number of times. A 401 is answered once.
/// Every refusal becomes one line that names the registry and the object, with the registry's own
/// words and a hint. Errors of all calls: not_found (404, no such host), denied (401, 403, TLS),
/// busy (429), unsupported, corrupt, io, interrupted.
class Registry {
 public:
  /// Says what a person should know while it happens ("… waiting 5 s").
  using Notice = std::function<void(const std::string&)>;

  /// `name` is the registry as the user knows it ("docker.io", "localhost:5000"); `repository` is
  /// empty for check_login() alone.
  static Result<Registry> make(Http& http, const Cancel& cancel, const std::string& name,
                               const std::string& repository, std::optional<Credential> credential,
                               Notice notice);

  /// Finds out how the registry is reached. Only a loopback or insecure registry is asked: HTTPS
  /// first, plain HTTP when it does not speak TLS. Elsewhere it is HTTPS, without a question.
  Result<void> connect();

  /// GET /v2/, with credentials when it asks for them: what `login` checks.
  Result<void> check_login();

  /// By tag or digest; a digest must be that of the bytes. At most 4 MiB.
  Result<Document> get_manifest(const std::string& tag_or_digest);

  /// As get_manifest(), and nothing where the registry does not have it.
  Result<std::optional<Document>> find_manifest(const std::string& tag_or_digest);

  /// The index of what refers to the manifest `subject`, as the registry keeps it, of one type
  /// where it filters; nothing where it keeps none (before distribution-spec 1.1). Not verified: no
  /// digest is known for it. At most 4 MiB.
  Result<std::optional<std::string>> find_referrers(const Digest& subject,
                                                    std::string_view artifact_type);

  /// A small blob (the config) into memory, verified. At most 4 MiB.
  Result<std::string> get_document(const oci::Descriptor& blob);

  /// A part of a blob, not verified. Goes on where a connection was lost; from a registry that does
  /// not know Range it takes the whole again and passes over what it had.
  Result<void> get_blob(const oci::Descriptor& blob, BlobPart part);
  /// "read blob 'sha256:…' at registry '…'", for errors.
  std::string read_action(const Digest& blob) const;

  Result<bool> has_blob(const Digest& digest);
  /// Whether to GET it is worth a try: it is there, or the registry does not answer HEAD.
  /// Errors: not_found, denied, busy, io.
  Result<void> may_have_blob(const Digest& digest);

  /// For a program that stands between the registry and a client, who checks what he gets: a blob's
  /// bytes as they come, neither checked nor resumed. `range` is a Range header's value or empty.
  /// The answer is a success, a 416, `broken` part way, or with Follow::no a redirect.
  enum class Follow { no, yes };
  using Sink = std::function<Result<void>(const HttpResponse& head, std::string_view bytes)>;
  Result<HttpResponse> pass_blob(const Digest& digest, const std::string& range, Follow follow,
                                 const Sink& sink);
  /// The same of a HEAD.
  Result<HttpResponse> look_at_blob(const Digest& digest, Follow follow);
  Url blob_url(const Digest& digest) const;
  /// Whether the registry has answered so far without asking who we are.
  bool is_anonymous();

  /// One page of a list, at most 4 MiB; `query` as in a URL, or empty: the first page.
  Result<HttpResponse> list_tags(const std::string& query);
  /// Of all repositories that the caller may see (/v2/_catalog); nothing where the registry gives
  /// no such list, as many do not.
  Result<std::optional<HttpResponse>> list_repositories(const std::string& query);
  /// Of what Docker's first API finds: /v1/search?q=TEXT&n=25&page=1. Nothing where the registry
  /// has no such search, as most have not.
  Result<std::optional<HttpResponse>> search(const std::string& query);

  /// From now on no request is tried twice: somebody waits who can do something else.
  void try_once() { attempts_ = lost_attempts_ = 1; }
  void try_again() { attempts_ = lost_attempts_ = kMaxAttempts; }  ///< as at first

  /// In the place of connect(): it is a machine of the same job (image::JobPeers), which
  /// HostOptions::shared_key tells.
  /// It says 503 as long as it has to wait itself, and is asked again; a line that is lost is given
  /// up soon, for there are others.
  void connect_to_peer();

  /// Asks the registry to take the blob from its repository `from`; where it will not, or without
  /// `from`, sends it whole (POST, then PUT): what `open` gives, which is called at most once.
  using OpenBlob = std::function<Result<sys::Fd>()>;
  Result<Delivered> put_blob(const oci::Descriptor& blob, const OpenBlob& open,
                             const std::optional<std::string>& from, const ByteProgress& progress);

  /// The same of bytes in memory, without a mount; gives their descriptor.
  Result<oci::Descriptor> put_bytes(std::string_view media_type, std::string_view bytes);

  /// Puts the exact bytes under a tag (or a digest). The registry's idea of the digest must agree.
  Result<void> put_manifest(const std::string& tag_or_digest, const Document& document);

  /// Puts a manifest that refers to another one, by its digest. Gives whether the registry lists it
  /// among the referrers (OCI-Subject); else that is left to the client.
  Result<bool> put_referrer(const Document& document);

 private:
  static constexpr int kMaxAttempts = 5;
  static constexpr int kPeerAttempts = 1'000'000;  // as long as it answers
  static constexpr int kPeerLosses = 3;

  Registry(Http& http, const Cancel& cancel, std::string name, std::string repository, Url base,
           std::optional<Credential> credential, Notice notice);

  std::string pull_scope() const { return "repository:" + repository_ + ":pull"; }
  std::string push_scope() const { return "repository:" + repository_ + ":pull,push"; }
  Url at(const std::string& path) const;
  Result<HttpResponse> get_list(const std::string& path, const std::string& query,
                                const std::string& scope, const std::string& action);
  Result<std::optional<HttpResponse>> find_list(const std::string& path, const std::string& query,
                                                const std::string& scope,
                                                const std::string& action);
  std::string manifest_action(std::string_view verb, const std::string& tag_or_digest) const;
  Result<HttpResponse> ask_for_manifest(const std::string& tag_or_digest,
                                        const std::string& action);
  Result<Document> read_manifest(HttpResponse response, const std::string& tag_or_digest,
                                 const std::string& action) const;
  Result<HttpResponse> send_manifest(const std::string& tag_or_digest, const Document& document);
  std::string object(std::string_view kind, std::string_view name) const;
  Result<HttpResponse> send(HttpRequest request, const std::string& scope,
                            const std::string& action);
  Result<void> wait(std::chrono::milliseconds pause);
  /// Whether it is another's answer: of where a redirect ended, or an upload went.
  bool is_foreign(const HttpResponse& response) const;
  Error refusal(const HttpResponse& response, const std::string& action) const;
  /// To whom the blob goes then; nothing: it was mounted from `from`.
  Result<std::optional<HttpRequest>> start_upload(const Digest& digest,
                                                  const std::optional<std::string>& from);

  Http& http_;
  const Cancel& cancel_;
  std::string name_;        // as the user knows it: "docker.io"
  std::string repository_;  // "library/ubuntu"
  Url base_;                // "https://registry-1.docker.io"
  std::unique_ptr<Authenticator> auth_;
  Notice notice_;
  int attempts_ = kMaxAttempts;
  int lost_attempts_ = kMaxAttempts;  // of lost connections
};

/// The query of the next page of a list, which the registry names in a Link header; nothing at the
/// last one. Where the list itself is, the caller knows.  Errors: corrupt (the link has no query).
/// Source: distribution-spec "Listing Tags", RFC 8288 section 3.
Result<std::optional<std::string>> next_page(const HttpResponse& response);

/// How long a 429 or 503 asks to wait: seconds or an HTTP date, seen at `now` (seconds since 1970).
std::optional<std::chrono::seconds> parse_retry_after(std::string_view value, int64_t now);

}  // namespace berth::transfer
