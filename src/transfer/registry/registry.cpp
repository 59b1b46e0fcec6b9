// SPDX-License-Identifier: Apache-2.0
#include "transfer/registry/registry.hpp"

#include <curl/curl.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <thread>

#include "base/text.hpp"
#include "json/fields.hpp"
#include "sys/file/file.hpp"
#include "transfer/work/sha256.hpp"

namespace berth::transfer {
namespace {

using std::chrono::milliseconds;

constexpr std::chrono::seconds kLongestWait{60};
constexpr uint64_t kProgressThatCounts = 1 << 20;  // a connection that delivered less has failed

struct RegistryMessage {
  std::string code;
  std::string message;
};
void fields(auto& v, RegistryMessage& m) {
  v.optional("code", m.code);
  v.optional("message", m.message);
}

/// Source: distribution-spec "Error Codes".
struct RegistryMessages {
  std::vector<RegistryMessage> errors;
};
void fields(auto& v, RegistryMessages& m) {
  v.optional("errors", m.errors);
}

/// The registry's own message, or nothing if it sends none that we can parse.
std::string registry_words(const std::string& body) {
  Result<RegistryMessages> messages = json::read<RegistryMessages>(body, "answer");
  if (!messages.ok() || messages->errors.empty()) return {};
  const RegistryMessage& first = messages->errors.front();
  return (first.message.empty() ? first.code : first.message).substr(0, 200);
}

std::string_view reason_phrase(int status) {
  static constexpr std::pair<int, std::string_view> kPhrases[] = {
      {400, "Bad Request"},       {401, "Unauthorized"},          {403, "Forbidden"},
      {404, "Not Found"},         {405, "Method Not Allowed"},    {413, "Content Too Large"},
      {429, "Too Many Requests"}, {500, "Internal Server Error"}, {501, "Not Implemented"},
      {502, "Bad Gateway"},       {503, "Service Unavailable"},   {504, "Gateway Timeout"},
  };
  auto known = std::ranges::find(kPhrases, status, &std::pair<int, std::string_view>::first);
  return known == std::end(kPhrases) ? "" : known->second;
}

bool knows_no_head(const HttpResponse& response) {
  return response.status == 405 || response.status == 501;
}

bool asks_to_wait(int status) {
  return status == 429 || status == 502 || status == 503 || status == 504;
}

milliseconds growing_pause(int attempt) {
  return std::min(milliseconds(250) * (1 << std::min(attempt, 5)), milliseconds(8000));
}

/// "application/json; charset=utf-8" → "application/json"; generic types become empty.
std::string plain_media_type(std::string_view header) {
  std::string type = to_lower(trim(header.substr(0, header.find(';'))));
  bool says_nothing =
      type == "application/json" || type == "application/octet-stream" || type == "text/plain";
  return says_nothing ? "" : type;
}

}  // namespace

Registry::Registry(Http& http, const Cancel& cancel, std::string name, std::string repository,
                   Url base, std::optional<Credential> credential, Notice notice)
    : http_(http),
      cancel_(cancel),
      name_(std::move(name)),
      repository_(std::move(repository)),
      base_(std::move(base)),
      auth_(std::make_unique<Authenticator>(http, name_, std::move(credential))),
      notice_(std::move(notice)) {}

Result<Registry> Registry::make(Http& http, const Cancel& cancel, const std::string& name,
                                const std::string& repository, std::optional<Credential> credential,
                                Notice notice) {
  // The API of Docker Hub has another host.
  std::string host = name == "docker.io" ? "registry-1.docker.io" : name;
  Result<Url> base = parse_url("https://" + host);
  if (!base.ok() || base->path != "/") {
    return make_error(Kind::usage,
                      "reach registry " + quote(name) + ": expected HOST or HOST:PORT");
  }
  return Registry(http, cancel, name, repository, std::move(base).value(), std::move(credential),
                  std::move(notice));
}

Result<void> Registry::connect() {
  if (!is_loopback(base_.host) && !http_.is_insecure(base_)) return {};
  HttpRequest request;
  request.url = at("/v2/");
  Result<HttpResponse> answer = http_.perform(request);
  bool own_port = base_.port != 443;
  bool plain = answer.ok() ? answer->status == 0
                           : answer.error().kind == Kind::unsupported ||
                                 (answer.error().kind == Kind::io && !own_port);
  if (plain) {
    base_.scheme = "http";
    if (!own_port) base_.port = 80;
    return {};
  }
  if (!answer.ok()) return std::move(answer).error();
  return {};
}

void Registry::connect_to_peer() {
  attempts_ = kPeerAttempts;
  lost_attempts_ = kPeerLosses;
}

Result<void> Registry::check_login() {
  HttpRequest request;
  request.url = at("/v2/");
  std::string action = fmt::format("log in to registry '{}'", name_);
  HttpResponse response = TRY(send_with_retries(std::move(request), "", action));
  if (response.status == 401) {
    return make_error(Kind::denied, action + ": 401 Unauthorized: wrong user name or password");
  }
  if (!response.ok()) return refusal(response, action);
  return {};
}

std::string Registry::manifest_action(std::string_view verb,
                                      const std::string& tag_or_digest) const {
  bool by_digest = tag_or_digest.find(':') != std::string::npos;
  return fmt::format("{} {}", verb,
                     object("manifest", repository_ + (by_digest ? "@" : ":") + tag_or_digest));
}

Result<HttpResponse> Registry::ask_for_manifest(const std::string& tag_or_digest,
                                                const std::string& action) {
  HttpRequest request;
  request.url = at("/v2/" + repository_ + "/manifests/" + tag_or_digest);
  request.max_body = oci::kMaxManifestBytes;
  request.headers = {fmt::format("Accept: {}, {}, {}, {}", oci::media_type::kIndex,
                                 oci::media_type::kManifest, oci::media_type::kDockerIndex,
                                 oci::media_type::kDockerManifest)};
  return send_with_retries(std::move(request), pull_scope(), action);
}

Result<Document> Registry::read_manifest(HttpResponse response, const std::string& tag_or_digest,
                                         const std::string& action) const {
  if (!response.ok()) return refusal(response, action);
  Document document;
  document.media_type = plain_media_type(response.header("content-type").value_or(""));
  if (document.media_type == "text/html") {
    return make_error(Kind::corrupt, action + ": the answer is a web page, not a manifest",
                      "the same address in a browser: a proxy or a login page may answer in the "
                      "registry's place");
  }
  document.digest = sha256_of(response.body);
  document.bytes = std::move(response.body);
  bool by_digest = tag_or_digest.find(':') != std::string::npos;
  if (by_digest && document.digest.text() != tag_or_digest) {
    return make_error(Kind::corrupt, fmt::format("{}: its bytes have digest '{}'", action,
                                                 document.digest.text()));
  }
  return document;
}

Result<Document> Registry::get_manifest(const std::string& tag_or_digest) {
  std::string action = manifest_action("read", tag_or_digest);
  HttpResponse response = TRY(ask_for_manifest(tag_or_digest, action));
  return read_manifest(std::move(response), tag_or_digest, action);
}

Result<std::optional<Document>> Registry::find_manifest(const std::string& tag_or_digest) {
  std::string action = manifest_action("read", tag_or_digest);
  HttpResponse response = TRY(ask_for_manifest(tag_or_digest, action));
  if (response.status == 404) return std::optional<Document>();
  Document document = TRY(read_manifest(std::move(response), tag_or_digest, action));
  return std::optional<Document>(std::move(document));
}

Result<std::string> Registry::get_document(const oci::Descriptor& blob) {
  std::string action = "read " + object("blob", blob.digest.text());
  if (blob.size > oci::kMaxConfigBytes) {
    return make_error(Kind::corrupt,
                      fmt::format("{}: {} bytes are more than 4 MiB", action, blob.size));
  }
  HttpRequest request;
  request.url = at("/v2/" + repository_ + "/blobs/" + blob.digest.text());
  request.max_body = blob.size;
  HttpResponse response = TRY(send_with_retries(std::move(request), pull_scope(), action));
  if (!response.ok()) return refusal(response, action);
  if (response.body.size() != blob.size) {
    return make_error(Kind::corrupt, fmt::format("{}: {} of {} bytes arrived", action,
                                                 response.body.size(), blob.size));
  }
  Digest digest = sha256_of(response.body);
  if (digest != blob.digest) {
    return make_error(Kind::corrupt,
                      fmt::format("{}: its bytes have digest '{}'", action, digest.text()));
  }
  return std::move(response.body);
}

Result<void> Registry::get_blob(const oci::Descriptor& blob, BlobPart part) {
  std::string action = read_action(blob.digest);
  PartReader reader(blob, part);
  bool answered = part.answered;
  for (int lost = 0;;) {
    uint64_t before = reader.next();
    reader.expect_answer();
    HttpRequest request;
    request.url = blob_url(blob.digest);
    std::string range = reader.ranges() ? reader.range() : "";
    if (!range.empty()) request.headers = {"Range: " + range};
    request.resumes = answered;
    request.sink = [&reader](const HttpResponse& head, std::string_view bytes) {
      return reader.take(head, bytes);
    };
    HttpResponse response = TRY(send_with_retries(std::move(request), pull_scope(), action));
    answered = true;
    bool moved = reader.next() > before;
    bool all = reader.next() == reader.end();
    if (response.ok() && all) return {};
    if (response.ok() && !(response.status == 206 && moved)) {
      Error cut_short = make_error(
          Kind::corrupt,
          fmt::format("check its size: {} of {} bytes arrived", reader.next(), blob.size));
      return std::move(cut_short).with_context("cannot " + action);
    }
    if (response.ok()) {  // a smaller range than requested
      if (reader.next() >= before + kProgressThatCounts) lost = 0;
      if (++lost < kMaxAttempts) continue;
      Error drips = make_error(
          Kind::corrupt, fmt::format("check its size: it comes in pieces of {} bytes, after {} of "
                                     "{}",
                                     reader.next() - before, reader.next(), blob.size));
      return std::move(drips).with_context("cannot " + action);
    }
    if (response.broken) {
      if (all) return {};
      if (reader.next() >= before + kProgressThatCounts) lost = 0;
      if (++lost >= lost_attempts_) {
        return (*std::move(response.broken)).with_context("cannot " + action);
      }
      notice_(fmt::format("{}: connection lost after {} of {} bytes, trying again",
                          blob.digest.short_hex(), reader.next(), blob.size));
      TRY(wait(growing_pause(lost)));
    } else if (response.status == 416 && !range.empty()) {
      reader.forget_ranges();
      if (++lost >= kMaxAttempts) return refusal(response, action);
    } else {
      return refusal(response, action);
    }
  }
}

Result<bool> Registry::has_blob(const Digest& digest) {
  std::string action = "look for " + object("blob", digest.text());
  HttpRequest request;
  request.method = "HEAD";
  request.url = at("/v2/" + repository_ + "/blobs/" + digest.text());
  HttpResponse response = TRY(send_with_retries(std::move(request), push_scope(), action));
  if (response.ok()) return true;
  // If the registry does not answer HEAD, the blob is sent, even if it may be there already.
  if (response.status == 404 || knows_no_head(response)) return false;
  return refusal(response, action);
}

Result<HttpResponse> Registry::pass_blob(const Digest& digest, const std::string& range,
                                         Follow follow, const Sink& sink) {
  std::string action = read_action(digest);
  HttpRequest request;
  request.url = blob_url(digest);
  if (!range.empty()) request.headers = {"Range: " + range};
  request.follow = follow == Follow::yes;
  request.sink = sink;
  HttpResponse response = TRY(send_with_retries(std::move(request), pull_scope(), action));
  if (response.ok() || response.broken || response.status == 416) return response;
  if (is_redirect(response)) return response;
  return refusal(response, action);
}

Result<HttpResponse> Registry::look_at_blob(const Digest& digest, Follow follow) {
  std::string action = "look for " + object("blob", digest.text());
  HttpRequest request;
  request.method = "HEAD";
  request.url = blob_url(digest);
  request.follow = follow == Follow::yes;
  HttpResponse response = TRY(send_with_retries(std::move(request), pull_scope(), action));
  if (response.ok() || is_redirect(response)) return response;
  return refusal(response, action);
}

Result<void> Registry::may_have_blob(const Digest& digest) {
  std::string action = "look for " + object("blob", digest.text());
  HttpRequest request;
  request.method = "HEAD";
  request.url = blob_url(digest);
  HttpResponse response = TRY(send_with_retries(std::move(request), pull_scope(), action));
  if (response.ok() || knows_no_head(response)) return {};
  return refusal(response, action);
}

Url Registry::blob_url(const Digest& digest) const {
  return at("/v2/" + repository_ + "/blobs/" + digest.text());
}

bool Registry::is_anonymous() {
  return auth_->authorization(pull_scope()).empty();
}

Result<Delivered> Registry::put_blob(const oci::Descriptor& blob, const OpenBlob& open,
                                     const std::optional<std::string>& from,
                                     const ByteProgress& progress) {
  std::string action = "upload " + object("blob", blob.digest.text());
  sys::Fd file;
  for (int lost = 0;;) {
    // An interrupted upload is not resumed: registries disagree on what they have kept.
    auto request = TRY(start_upload(blob.digest, lost == 0 ? from : std::nullopt));
    if (!request) return Delivered::mounted;
    if (!file) file = TRY(open());
    request->method = "PUT";
    request->url = with_query(request->url, "digest=" + percent_encode(blob.digest.text()));
    request->headers = {"Content-Type: application/octet-stream"};
    request->upload = &file;
    request->upload_size = blob.size;
    request->on_sent = progress;
    HttpResponse response = TRY(send_with_retries(*std::move(request), push_scope(), action));
    if (response.ok()) return Delivered::uploaded;
    if (!response.broken) return refusal(response, action);
    if (++lost >= kMaxAttempts) {
      return (*std::move(response.broken)).with_context("cannot " + action);
    }
    notice_(fmt::format("{}: connection lost, sending it again", blob.digest.short_hex()));
    TRY(wait(growing_pause(lost)));
  }
}

Result<std::optional<HttpRequest>> Registry::start_upload(const Digest& digest,
                                                          const std::optional<std::string>& from) {
  std::string action = "upload " + object("blob", digest.text());
  HttpRequest request;
  request.method = "POST";
  request.url = at("/v2/" + repository_ + "/blobs/uploads/");
  std::string scope = push_scope();
  if (from) {
    request.url = with_query(
        request.url, "mount=" + percent_encode(digest.text()) + "&from=" + percent_encode(*from));
    scope += " repository:" + *from + ":pull";
  }
  HttpResponse response = TRY(send_with_retries(std::move(request), scope, action));
  if (from && response.status == 201) return std::optional<HttpRequest>();
  if (from && !response.ok()) return start_upload(digest, std::nullopt);
  std::optional<std::string_view> location = response.header("location");
  if (!response.ok() || !location) return refusal(response, action);
  Url place = TRY_CTX(resolve_url(response.url, std::string(*location)), "cannot " + action);
  if (base_.scheme == "https" && place.scheme == "http") {
    return make_error(Kind::denied,
                      fmt::format("{}: the registry asks for it over plain HTTP, at '{}'", action,
                                  place.shown()));
  }
  HttpRequest upload;
  upload.url = std::move(place);
  upload.sent_from = response.from;
  return std::optional(std::move(upload));
}

Result<oci::Descriptor> Registry::put_bytes(std::string_view media_type, std::string_view bytes) {
  oci::Descriptor blob;
  blob.media_type = media_type;
  blob.digest = sha256_of(bytes);
  blob.size = bytes.size();
  bool present = TRY(has_blob(blob.digest));
  if (present) return blob;
  sys::Fd file = TRY(sys::memory_file("blob", bytes));
  TRY(put_blob(blob, [&] { return std::move(file); }, std::nullopt, {}));
  return blob;
}

Result<HttpResponse> Registry::send_manifest(const std::string& tag_or_digest,
                                             const Document& document) {
  std::string action = manifest_action("write", tag_or_digest);
  HttpRequest request;
  request.method = "PUT";
  request.url = at("/v2/" + repository_ + "/manifests/" + tag_or_digest);
  request.headers = {"Content-Type: " + document.media_type};
  request.body = document.bytes;
  HttpResponse response = TRY(send_with_retries(std::move(request), push_scope(), action));
  if (!response.ok()) return refusal(response, action);
  std::optional<std::string_view> digest = response.header("docker-content-digest");
  if (digest && *digest != document.digest.text()) {
    return make_error(Kind::corrupt,
                      fmt::format("{}: the registry has stored {} instead of '{}'", action,
                                  berth::quote(*digest), document.digest.text()));
  }
  return response;
}

Result<void> Registry::put_manifest(const std::string& tag_or_digest, const Document& document) {
  TRY(send_manifest(tag_or_digest, document));
  return {};
}

Result<bool> Registry::put_referrer(const Document& document) {
  HttpResponse response = TRY(send_manifest(document.digest.text(), document));
  return response.header("oci-subject").has_value();
}

Url Registry::at(const std::string& path) const {
  Url url = base_;
  url.path = path;
  return url;
}

std::string Registry::read_action(const Digest& blob) const {
  return "read " + object("blob", blob.text());
}

std::string Registry::object(std::string_view kind, std::string_view name) const {
  return fmt::format("{} '{}' at registry '{}'", kind, name, name_);
}

Result<HttpResponse> Registry::send_with_retries(HttpRequest request, const std::string& scope,
                                                 const std::string& action) {
  bool ours = request.url.origin() == base_.origin();  // an upload may go to another host
  bool streams = request.sink || request.upload != nullptr;
  bool answered = false;
  for (int attempt = 0;;) {
    request.authorization = ours ? auth_->authorization(scope) : "";
    HttpResponse response = TRY_CTX(http_.perform(request), "cannot " + action);
    if (response.broken && streams) return response;  // the caller knows where to go on
    // Only the registry's own challenge counts: another host that asks for a login, at the end of a
    // redirect or as the target of an upload, would choose the host that gets the password (the
    // kind of CVE-2020-15157).
    if (response.status == 401 && is_foreign(response)) return refusal(response, action);
    if (response.status == 401 && ours && !answered) {
      answered = true;
      TRY_CTX(auth_->answer(response, scope, request.authorization), "cannot " + action);
      continue;
    }
    if (!response.broken && !asks_to_wait(response.status)) return response;

    ++attempt;
    std::optional<std::string_view> header = response.header("retry-after");
    std::optional<std::chrono::seconds> asked =
        header ? parse_retry_after(*header, std::time(nullptr)) : std::nullopt;
    bool too_long = asked && *asked > kLongestWait;
    if (attempt >= (response.broken ? lost_attempts_ : attempts_) || too_long) {
      if (response.broken) return std::move(*response.broken).with_context("cannot " + action);
      return response;
    }
    milliseconds pause = asked ? milliseconds(*asked) : growing_pause(attempt);
    notice_(fmt::format("registry '{}': {}, waiting {:.3g} s", name_,
                        response.broken ? "connection lost" : std::to_string(response.status),
                        static_cast<double>(pause.count()) / 1000));
    TRY(wait(pause));
  }
}

Result<void> Registry::wait(milliseconds pause) {
  auto end = std::chrono::steady_clock::now() + pause;
  while (std::chrono::steady_clock::now() < end) {
    TRY(cancel_.check());
    std::this_thread::sleep_for(milliseconds(20));
  }
  return {};
}

bool Registry::is_foreign(const HttpResponse& response) const {
  return response.url.origin() != base_.origin();
}

Error Registry::refusal(const HttpResponse& response, const std::string& action) const {
  bool foreign = is_foreign(response);
  std::string what = action;
  if (foreign)
    what += fmt::format(": '{}', to which the registry redirects", response.url.origin());
  what += fmt::format(": {} {}", response.status, reason_phrase(response.status));
  while (what.ends_with(' ')) what.pop_back();
  std::string words = registry_words(response.body);
  if (!words.empty()) what += ": " + words;

  int status = response.status;
  if (foreign && (status == 401 || status == 403)) {
    return make_error(
        Kind::denied, what,
        "again later: a signed address may have expired, and a login is never sent there");
  }
  if (status == 401) {
    return make_error(Kind::denied, what,
                      fmt::format("berth login {}, or another name: some registries answer so for "
                                  "names they do not have",
                                  name_));
  }
  if (status == 403) {
    return make_error(Kind::denied, what,
                      fmt::format("berth login {} with an account that may do this", name_));
  }
  if (status == 404) {
    return make_error(Kind::not_found, what, "another name or tag; the registry does not have it");
  }
  if (status == 429) {
    std::optional<std::string_view> after = response.header("retry-after");
    std::optional<std::chrono::seconds> asked =
        after ? parse_retry_after(*after, std::time(nullptr)) : std::nullopt;
    return make_error(
        Kind::busy, what,
        asked ? fmt::format("again in {} s, or berth login {} for a higher limit", asked->count(),
                            name_)
              : fmt::format("again later, or berth login {} for a higher limit", name_));
  }
  if (status >= 500)
    return make_error(Kind::io, what, "again later; the registry reports an internal error");
  return make_error(Kind::io, what);
}

std::optional<std::chrono::seconds> parse_retry_after(std::string_view value, int64_t now) {
  if (std::optional<uint64_t> number = parse_u64(trim(value))) {
    return std::chrono::seconds(std::min<uint64_t>(*number, 1'000'000));
  }
  time_t date = curl_getdate(std::string(value).c_str(), nullptr);
  if (date < 0) return std::nullopt;
  return std::chrono::seconds(std::max<int64_t>(0, date - now));
}

}  // namespace berth::transfer
