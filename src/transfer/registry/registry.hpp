// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/digest.hpp"
#include "base/result.hpp"
#include "base/text.hpp"
#include "oci/image_spec.hpp"
#include "sys/fd/fd.hpp"
#include "transfer/registry/auth.hpp"
#include "transfer/registry/http.hpp"

namespace berth::transfer {

/// Bytes [begin, end) of a blob, and their receiver.
struct BlobPart {
  uint64_t begin = 0;
  uint64_t end = 0;
  /// The registry has answered for this blob before: if it is unreachable now, the request is
  /// repeated, as after a lost connection.
  bool answered = false;
  std::function<Result<void>(std::string_view bytes)> take;  ///< each byte once, in order
  /// Called before the first byte if the registry sends only the whole blob: `end` is then the end
  /// of the blob.
  std::function<Result<void>()> on_whole = {};
};

/// The first byte of "bytes 100-199/200". Source: RFC 9110 section 14.4.
inline std::optional<uint64_t> parse_content_range_start(std::string_view value) {
  constexpr std::string_view kUnit = "bytes ";
  if (!value.starts_with(kUnit)) return std::nullopt;
  value.remove_prefix(kUnit.size());
  return parse_u64(value.substr(0, value.find('-')));
}

/// Reassembles a part of a blob from answers: passes on every byte once, in order.
class PartReader {
 public:
  PartReader(const oci::Descriptor& blob, BlobPart& part) : blob_(blob), part_(part) {}

  uint64_t next() const { return next_; }
  uint64_t end() const { return part_.end; }
  /// The Range header; empty: none is needed.
  std::string range() const {
    if (next_ == 0 && end() == blob_.size) return "";
    return end() == blob_.size ? fmt::format("bytes={}-", next_)
                               : fmt::format("bytes={}-{}", next_, end() - 1);
  }
  void expect_answer() { begun_ = false; }
  /// The next answer is the whole blob.
  void forget_ranges() { ranges_ = false; }
  bool ranges() const { return ranges_; }

  Result<void> take(const HttpResponse& head, std::string_view bytes) {
    if (!begun_) TRY(begin(head));
    begun_ = true;
    if (bytes.size() > end() - at_) {
      return make_error(
          Kind::corrupt,
          fmt::format("check its size: more than the {} bytes of its descriptor", blob_.size));
    }
    uint64_t known = std::min<uint64_t>(next_ - std::min(next_, at_), bytes.size());
    at_ += bytes.size();
    bytes.remove_prefix(known);
    if (bytes.empty()) return {};
    next_ += bytes.size();
    return part_.take(bytes);
  }

 private:
  /// A registry may answer a Range request with the range or, without Range support, with the whole
  /// blob.
  Result<void> begin(const HttpResponse& head) {
    if (head.status != 206) {
      at_ = 0;
      if (part_.end == blob_.size) return {};
      part_.end = blob_.size;
      return part_.on_whole ? part_.on_whole() : Result<void>();
    }
    at_ = next_;
    std::string_view range = head.header("content-range").value_or("");
    if (parse_content_range_start(range) == next_) return {};
    return make_error(Kind::corrupt,
                      "check its range: the registry sent another part than requested");
  }

  const oci::Descriptor& blob_;
  BlobPart& part_;
  uint64_t next_ = part_.begin;  ///< the first byte that has not arrived
  uint64_t at_ = 0;              ///< the offset of the answer's next byte in the blob
  bool begun_ = false;
  bool ranges_ = true;
};

/// The exact bytes of a manifest or index, with the registry's media type.
struct Document {
  std::string bytes;
  std::string media_type;  ///< Content-Type without parameters; empty if absent
  Digest digest;           ///< of `bytes`
};

/// Receives progress in bytes.
using ByteProgress = std::function<void(uint64_t bytes)>;

enum class Delivered { uploaded, mounted };

/// A client of one repository of one registry (OCI distribution-spec 1.1); thread-safe after
/// connect().
///
/// 429, 502, 503 and 504 are retried after Retry-After or a growing pause, a lost connection after
/// a growing pause; both a bounded number of times. A 401 is answered once. Every failure becomes
/// one line that names the registry and the object, with the registry's own message and a hint.
/// Errors of all calls: not_found (404, no such host), denied (401, 403, TLS), busy (429),
/// unsupported, corrupt, io, interrupted.
class Registry {
 public:
  /// Receives messages for the user meanwhile ("… waiting 5 s").
  using Notice = std::function<void(const std::string&)>;

  /// `name`: the registry as the user named it ("docker.io", "localhost:5000"); `repository` is
  /// empty only for check_login().
  static Result<Registry> make(Http& http, const Cancel& cancel, const std::string& name,
                               const std::string& repository, std::optional<Credential> credential,
                               Notice notice);

  /// Finds out how to reach the registry. Only a loopback or insecure registry is probed: HTTPS
  /// first, plain HTTP if it does not speak TLS. For others it is HTTPS, without a request.
  Result<void> connect();

  /// GET /v2/, with credentials when it asks for them: the check of `login`.
  Result<void> check_login();

  /// Gets a manifest by tag or digest; with a digest it is verified. At most 4 MiB.
  Result<Document> get_manifest(const std::string& tag_or_digest);

  /// As get_manifest(), but nothing if the registry does not have it.
  Result<std::optional<Document>> find_manifest(const std::string& tag_or_digest);

  /// The registry's index of referrers of the manifest `subject`, of one type if the registry
  /// filters; nothing without a referrers API (before distribution-spec 1.1). Not verified: its
  /// digest is unknown. At most 4 MiB.
  Result<std::optional<std::string>> find_referrers(const Digest& subject,
                                                    std::string_view artifact_type);

  /// A small blob (the config) into memory, verified. At most 4 MiB.
  Result<std::string> get_document(const oci::Descriptor& blob);

  /// Fetches a part of a blob, not verified. Resumes after a lost connection; from a registry
  /// without Range support it reads the whole blob again and skips the bytes that it already had.
  Result<void> get_blob(const oci::Descriptor& blob, BlobPart part);
  /// "read blob 'sha256:…' at registry '…'", for errors.
  std::string read_action(const Digest& blob) const;

  Result<bool> has_blob(const Digest& digest);
  /// Checks whether a GET is worth trying: the blob exists, or the registry does not answer HEAD.
  /// Errors: not_found, denied, busy, io.
  Result<void> may_have_blob(const Digest& digest);

  enum class Follow { no, yes };
  using Sink = std::function<Result<void>(const HttpResponse& head, std::string_view bytes)>;
  /// For a proxy whose client verifies: passes a blob's bytes to `sink` as they arrive, neither
  /// checked nor resumed. `range` is the value of a Range header, or empty. Returns a success, a
  /// 416, a response with HttpResponse::broken if the connection was lost, or with Follow::no
  /// possibly a redirect.
  Result<HttpResponse> pass_blob(const Digest& digest, const std::string& range, Follow follow,
                                 const Sink& sink);
  /// The same for a HEAD.
  Result<HttpResponse> look_at_blob(const Digest& digest, Follow follow);
  Url blob_url(const Digest& digest) const;
  /// Whether the registry has answered so far without authentication.
  bool is_anonymous();

  /// One page of a list, at most 4 MiB; `query` as in a URL, or empty: the first page.
  Result<HttpResponse> list_tags(const std::string& query);
  /// A page of all repositories that the caller may see (/v2/_catalog); nothing if the registry has
  /// no such list, which is common.
  Result<std::optional<HttpResponse>> list_repositories(const std::string& query);
  /// A page of Docker's first API: /v1/search?q=TEXT&n=25&page=1. Nothing if the registry has no
  /// such search, which is common.
  Result<std::optional<HttpResponse>> search(const std::string& query);

  /// From now on no request is retried: the caller has an alternative.
  void try_once() { attempts_ = lost_attempts_ = 1; }
  void try_again() { attempts_ = lost_attempts_ = kMaxAttempts; }  ///< as initially

  /// Instead of connect(), for a machine of the same job (image::JobPeers), which has a
  /// HostOptions::shared_key. Such a machine answers 503 while it waits for the bytes itself, and
  /// is asked again. A machine with lost connections is given up soon, as there are other machines.
  void connect_to_peer();

  using OpenBlob = std::function<Result<sys::Fd>()>;
  /// Asks the registry to mount the blob from its repository `from`; if that fails, or without
  /// `from`, sends it whole (POST, then PUT) from `open`, which is called at most once.
  Result<Delivered> put_blob(const oci::Descriptor& blob, const OpenBlob& open,
                             const std::optional<std::string>& from, const ByteProgress& progress);

  /// The same for bytes in memory, without a mount; returns their descriptor.
  Result<oci::Descriptor> put_bytes(std::string_view media_type, std::string_view bytes);

  /// Puts the exact bytes under a tag (or a digest). The digest that the registry returns must be
  /// the same.
  Result<void> put_manifest(const std::string& tag_or_digest, const Document& document);

  /// Puts a manifest that refers to another one, by its digest. Returns whether the registry lists
  /// it among the referrers (OCI-Subject); otherwise the client has to.
  Result<bool> put_referrer(const Document& document);

 private:
  static constexpr int kMaxAttempts = 5;           // the first one included
  static constexpr int kPeerAttempts = 1'000'000;  // no limit as long as it answers
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
  Result<HttpResponse> send_with_retries(HttpRequest request, const std::string& scope,
                                         const std::string& action);
  Result<void> wait(std::chrono::milliseconds pause);
  /// Whether another host than the registry answered, after a redirect or for an upload.
  bool is_foreign(const HttpResponse& response) const;
  Error refusal(const HttpResponse& response, const std::string& action) const;
  /// The request that uploads the blob; nothing: it was mounted from `from`.
  Result<std::optional<HttpRequest>> start_upload(const Digest& digest,
                                                  const std::optional<std::string>& from);

  Http& http_;
  const Cancel& cancel_;
  std::string name_;        // as the user named it: "docker.io"
  std::string repository_;  // "library/ubuntu"
  Url base_;                // "https://registry-1.docker.io"
  std::unique_ptr<Authenticator> auth_;
  Notice notice_;
  int attempts_ = kMaxAttempts;
  int lost_attempts_ = kMaxAttempts;  // the limit of attempts after lost connections
};

/// The query of the next page of a list, from the registry's Link header; nothing at the last page.
/// The caller knows the path.  Errors: corrupt (the link has no query).
/// Source: distribution-spec "Listing Tags", RFC 8288 section 3.
Result<std::optional<std::string>> next_page(const HttpResponse& response);

/// The pause that a 429 or 503 asks for: seconds or an HTTP date, at `now` (seconds since 1970).
std::optional<std::chrono::seconds> parse_retry_after(std::string_view value, int64_t now);

}  // namespace berth::transfer
