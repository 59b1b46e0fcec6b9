// SPDX-License-Identifier: Apache-2.0
#include "transfer/registry/http.hpp"

#include <curl/curl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <mutex>

#include "base/text.hpp"
#include "sys/file/file.hpp"
#include "transfer/registry/shared_key.hpp"

namespace berth::transfer {
namespace {

constexpr size_t kMaxHeaderBytes = 256 << 10;
constexpr size_t kMaxRefusalBytes = 64 << 10;
constexpr int kMaxRedirects = 10;
constexpr std::chrono::seconds kUploadStall{300};  // a registry may move a blob before it answers

/// The state that the callbacks of one exchange share.
struct Exchange {
  const HttpRequest& request;
  const Cancel& cancel;
  std::optional<Nearness> sent_from = {};
  HttpResponse response = {};
  size_t header_bytes = 0;
  uint64_t body_bytes = 0;
  uint64_t upload_offset = 0;
  std::optional<Error> error = {};  // why a callback ended it
  bool enough = false;              // a callback ended it, and the bytes so far are the answer
};

size_t stop(Exchange& exchange, Error error) {
  exchange.error = std::move(error);
  return CURL_WRITEFUNC_ERROR;
}

size_t on_header(char* data, size_t, size_t size, void* user) {
  auto& exchange = *static_cast<Exchange*>(user);
  exchange.header_bytes += size;
  if (exchange.header_bytes > kMaxHeaderBytes) {
    return stop(exchange,
                make_error(Kind::corrupt, fmt::format("read '{}': headers of more than 256 KiB",
                                                      exchange.response.url.shown())));
  }
  std::string_view line = trim({data, size});
  if (line.starts_with("HTTP/")) {  // a new answer, after an interim answer
    exchange.response.headers.clear();
    std::vector<std::string_view> words = split_blank(line);
    std::optional<uint64_t> status = words.size() > 1 ? parse_u64(words[1]) : std::nullopt;
    exchange.response.status = static_cast<int>(status.value_or(0));
    return size;
  }
  size_t colon = line.find(':');
  if (colon != std::string_view::npos) {
    exchange.response.headers.emplace_back(to_lower(trim(line.substr(0, colon))),
                                           trim(line.substr(colon + 1)));
  }
  return size;
}

size_t on_body(char* data, size_t, size_t size, void* user) {
  auto& exchange = *static_cast<Exchange*>(user);
  HttpResponse& response = exchange.response;
  bool success = response.status >= 200 && response.status < 300;
  if (!success) {
    size_t room = kMaxRefusalBytes - std::min(kMaxRefusalBytes, response.body.size());
    response.body.append(data, std::min(room, size));
    if (size <= room) return size;
    exchange.enough = true;  // an endless error page is an answer too
    return CURL_WRITEFUNC_ERROR;
  }
  if (exchange.request.sink) {
    Result<void> taken = exchange.request.sink(response, {data, size});
    return taken.ok() ? size : stop(exchange, std::move(taken).error());
  }
  exchange.body_bytes += size;
  if (exchange.body_bytes > exchange.request.max_body) {
    return stop(exchange, make_error(Kind::corrupt,
                                     fmt::format("read '{}': the answer is longer than {} bytes",
                                                 response.url.shown(), exchange.request.max_body)));
  }
  response.body.append(data, size);
  return size;
}

size_t on_upload(char* data, size_t, size_t room, void* user) {
  auto& exchange = *static_cast<Exchange*>(user);
  uint64_t left = exchange.request.upload_size - exchange.upload_offset;
  Result<size_t> got = sys::read_at(*exchange.request.upload, exchange.upload_offset, data,
                                    std::min<uint64_t>(room, left), "the blob to upload");
  if (!got.ok()) {
    exchange.error = std::move(got).error();
    return CURL_READFUNC_ABORT;
  }
  exchange.upload_offset += *got;
  if (exchange.request.on_sent) exchange.request.on_sent(exchange.upload_offset);
  return *got;
}

int on_seek(void* user, curl_off_t offset, int origin) {
  if (origin != SEEK_SET) return CURL_SEEKFUNC_FAIL;
  static_cast<Exchange*>(user)->upload_offset = static_cast<uint64_t>(offset);
  return CURL_SEEKFUNC_OK;
}

int on_progress(void* user, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  return static_cast<Exchange*>(user)->cancel.requested() ? 1 : 0;
}

Result<void> check_sent(const Url& url, Nearness from, std::string_view address) {
  Nearness to = nearness(address);
  if (may_send(from, to)) return {};
  std::string by_name = address == url.host ? "" : fmt::format(" ({})", address);
  return make_error(Kind::denied,
                    fmt::format("follow the registry's redirect to '{}'{}: that is an address only "
                                "for this {}, and the registry is not on it",
                                url.shown(), by_name, to == Nearness::machine ? "machine" : "link"),
                    "the registry has to name an address that other machines can reach");
}

/// Called before each request is sent, also on a kept connection.
int on_connected(void* user, char* address, char*, int, int) {
  auto& exchange = *static_cast<Exchange*>(user);
  auto checked = check_sent(exchange.response.url, *exchange.sent_from, address);
  if (checked.ok()) return CURL_PREREQFUNC_OK;
  exchange.error = std::move(checked).error();
  return CURL_PREREQFUNC_ABORT;
}

/// Whether a proxy may connect instead, so that the visible address is that of the proxy.
bool may_have_proxy(const Url& url, const HostOptions& host) {
  if (!host.proxy.empty()) return host.proxy != "none";
  if (is_loopback(url.host)) return false;
  constexpr std::array kVariables = {"http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy",
                                     "ALL_PROXY"};
  return std::ranges::any_of(kVariables, [](const char* name) {
    const char* value = std::getenv(name);
    return value != nullptr && *value != '\0';
  });
}

/// The nearness of the connected host; every address of this machine counts as Nearness::machine.
Nearness nearness_of_peer(CURL* handle, const Url& url, const HostOptions& host) {
  if (may_have_proxy(url, host)) return nearness(url.host);
  const char* theirs = nullptr;
  const char* ours = nullptr;
  curl_easy_getinfo(handle, CURLINFO_PRIMARY_IP, &theirs);
  curl_easy_getinfo(handle, CURLINFO_LOCAL_IP, &ours);
  if (theirs == nullptr || *theirs == '\0') return nearness(url.host);
  bool is_own = ours != nullptr && std::string_view(theirs) == ours;
  return is_own ? Nearness::machine : nearness(theirs);
}

struct HeaderList {
  curl_slist* list = nullptr;
  ~HeaderList() { curl_slist_free_all(list); }
  void add(const std::string& line) { list = curl_slist_append(list, line.c_str()); }
};

std::string host_and_port(const Url& url) {
  return url.host + ":" + std::to_string(url.port);
}

CURLcode on_tls(CURL*, void* tls, void* key) {
  share_key_as_client(static_cast<ssl_ctx_st*>(tls), *static_cast<const std::string*>(key));
  return CURLE_OK;
}

/// There is no certificate, so curl itself has nothing to verify.
void set_shared_key(CURL* handle, std::string& key) {
  auto set = [handle](CURLoption option, auto value) { curl_easy_setopt(handle, option, value); };
  set(CURLOPT_SSL_VERIFYPEER, 0L);
  set(CURLOPT_SSL_VERIFYHOST, 0L);
  set(CURLOPT_CAINFO, static_cast<char*>(nullptr));
  set(CURLOPT_CAPATH, static_cast<char*>(nullptr));
  set(CURLOPT_SSL_CTX_FUNCTION, &on_tls);
  set(CURLOPT_SSL_CTX_DATA, &key);
}

/// `host` is read until the exchange is over. `replaced_ca`: HttpOptions::tls_ca is set, and
/// replaces all other authorities.
void set_host_options(CURL* handle, const Url& url, HostOptions& host, bool replaced_ca) {
  auto set = [handle](CURLoption option, auto value) { curl_easy_setopt(handle, option, value); };
  bool direct = host.proxy.empty() ? is_loopback(url.host) : host.proxy == "none";
  if (direct) {
    set(CURLOPT_NOPROXY, "*");
  } else if (!host.proxy.empty()) {
    set(CURLOPT_PROXY, host.proxy.c_str());
    set(CURLOPT_NOPROXY, "");
  }
  if (!replaced_ca && !host.tls_ca.empty()) {
    curl_blob authorities{host.tls_ca.data(), host.tls_ca.size(), CURL_BLOB_NOCOPY};
    set(CURLOPT_CAINFO_BLOB, &authorities);
  }
  if (host.tls_certificate.empty()) return;
  set(CURLOPT_SSLCERT, host.tls_certificate.c_str());
  set(CURLOPT_SSLKEY, host.tls_key.empty() ? host.tls_certificate.c_str() : host.tls_key.c_str());
}

/// Whether the machine has no ca-certificates: without that file the handshake cannot even begin.
bool lacks_authorities(CURL* handle) {
  const char* file = nullptr;
  curl_easy_getinfo(handle, CURLINFO_CAINFO, &file);
  return file != nullptr && access(file, F_OK) != 0 && errno == ENOENT;
}

std::string certificate_hint(CURL* handle, const Url& url) {
  return fmt::format("{}--tls-ca FILE with the registry's CA, or --insecure-registry {}",
                     lacks_authorities(handle) ? "install ca-certificates, " : "",
                     host_and_port(url));
}

/// The error of a final curl code, or none if a retry may help.
std::optional<Error> final_error(CURLcode code, CURL* handle, const char* detail, const Url& url) {
  std::string text = *detail != '\0' ? detail : curl_easy_strerror(code);
  switch (code) {
    case CURLE_COULDNT_RESOLVE_HOST:
      return make_error(Kind::not_found, fmt::format("find host '{}': no such name", url.host),
                        "check the registry's name and this machine's network");
    case CURLE_COULDNT_RESOLVE_PROXY:
      return make_error(Kind::not_found, "find the host of the proxy: no such name",
                        "check https_proxy, http_proxy and no_proxy");
    case CURLE_COULDNT_CONNECT: {
      long os_errno = 0;
      curl_easy_getinfo(handle, CURLINFO_OS_ERRNO, &os_errno);
      std::string what = fmt::format("connect to '{}'", host_and_port(url));
      Error error = os_errno != 0 ? sys_error(static_cast<int>(os_errno), what)
                                  : make_error(Kind::io, what + ": " + text);
      return std::move(error).with_hint("check that the registry runs and that its port is right");
    }
    case CURLE_PEER_FAILED_VERIFICATION:
      return make_error(Kind::denied,
                        fmt::format("verify the certificate of '{}': {}", host_and_port(url), text),
                        certificate_hint(handle, url));
    case CURLE_SSL_CERTPROBLEM:
      return make_error(Kind::denied, fmt::format("use the client's certificate for '{}': {}",
                                                  host_and_port(url), text));
    case CURLE_SSL_CACERT_BADFILE:
      return make_error(Kind::usage,
                        fmt::format("read the CA file for '{}': {}", host_and_port(url), text));
    case CURLE_SSL_CONNECT_ERROR:
      return make_error(
          Kind::unsupported, fmt::format("use TLS with '{}': {}", host_and_port(url), text),
          fmt::format("--insecure-registry {}, if it uses plain HTTP", host_and_port(url)));
    default:
      return std::nullopt;
  }
}

/// The peer may have ended, and another program may have got its port.
Error no_peer(const char* detail, const Url& url) {
  return make_error(Kind::io, fmt::format("speak with '{}' as a node of this job: {}",
                                          host_and_port(url), detail));
}

/// Whether a host that has answered before may soon be reachable again.
bool is_unreachable(CURLcode code) {
  return code == CURLE_COULDNT_RESOLVE_HOST || code == CURLE_COULDNT_RESOLVE_PROXY ||
         code == CURLE_COULDNT_CONNECT || code == CURLE_SSL_CONNECT_ERROR;
}

Error broken_error(CURLcode code, const char* detail, const Url& url) {
  std::string reason;
  switch (code) {
    case CURLE_OPERATION_TIMEDOUT:
      reason = "no data, or too little, arrived for too long";
      break;
    case CURLE_GOT_NOTHING:
      reason = "the connection was closed without an answer";
      break;
    case CURLE_PARTIAL_FILE:
      reason = "the connection was closed before the end";
      break;
    default:
      reason = *detail != '\0' ? detail : curl_easy_strerror(code);
  }
  return make_error(Kind::io, fmt::format("read '{}': {}", url.shown(), reason),
                    "the same command again, when the network works");
}

/// Sets the method of the request, and its body.
void set_method(CURL* handle, Exchange& exchange) {
  auto set = [handle](CURLoption option, auto value) { curl_easy_setopt(handle, option, value); };
  const HttpRequest& request = exchange.request;
  if (request.method == "HEAD") {
    set(CURLOPT_NOBODY, 1L);
  } else if (request.upload != nullptr) {
    set(CURLOPT_UPLOAD, 1L);
    set(CURLOPT_INFILESIZE_LARGE, static_cast<curl_off_t>(request.upload_size));
    set(CURLOPT_READFUNCTION, &on_upload);
    set(CURLOPT_READDATA, &exchange);
    set(CURLOPT_SEEKFUNCTION, &on_seek);
    set(CURLOPT_SEEKDATA, &exchange);
    set(CURLOPT_CUSTOMREQUEST, request.method.c_str());
  } else if (request.method != "GET") {
    set(CURLOPT_POSTFIELDS, request.body.c_str());
    set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
    set(CURLOPT_CUSTOMREQUEST, request.method.c_str());
  }
}

}  // namespace

/// curl handles with their kept connections, one for each running exchange.
class Http::Pool {
 public:
  Pool() { curl_global_init(CURL_GLOBAL_DEFAULT); }
  ~Pool() {
    for (CURL* handle : idle_) curl_easy_cleanup(handle);
  }
  CURL* take() {
    std::lock_guard lock(mutex_);
    if (idle_.empty()) return curl_easy_init();
    CURL* handle = idle_.back();
    idle_.pop_back();
    return handle;
  }
  void put_back(CURL* handle) {
    curl_easy_reset(handle);
    std::lock_guard lock(mutex_);
    idle_.push_back(handle);
  }

 private:
  std::mutex mutex_;
  std::vector<CURL*> idle_;
};

std::optional<std::string_view> HttpResponse::header(std::string_view name) const {
  for (const auto& [key, value] : headers) {
    if (key == name) return value;
  }
  return std::nullopt;
}

std::vector<std::string_view> HttpResponse::header_values(std::string_view name) const {
  std::vector<std::string_view> values;
  for (const auto& [key, value] : headers) {
    if (key == name) values.push_back(value);
  }
  return values;
}

bool is_redirect(const HttpResponse& response) {
  constexpr std::array kStatuses = {301, 302, 303, 307, 308};
  return std::ranges::find(kStatuses, response.status) != kStatuses.end() &&
         response.header("location").has_value();
}

Http::Http(HttpOptions options, const Cancel& cancel)
    : options_(std::move(options)), cancel_(cancel), pool_(std::make_unique<Pool>()) {}
Http::~Http() = default;

bool Http::is_insecure(const Url& url) const {
  return std::ranges::any_of(options_.insecure_registries,
                             [&](const std::string& entry) { return is_host(entry, url); });
}

Result<HttpResponse> Http::perform(const HttpRequest& request) {
  Hop hop{request.url, true, request.sent_from};
  for (int i = 0; i <= kMaxRedirects; ++i) {
    if (hop.sent_from) TRY(check_sent(hop.url, *hop.sent_from, hop.url.host));
    HttpResponse response = TRY(exchange(request, hop));
    if (!is_redirect(response) || !request.follow) return response;
    std::optional<std::string_view> location = response.header("location");
    if (request.method != "GET" && request.method != "HEAD") return response;

    Url next = TRY_CTX(resolve_url(hop.url, std::string(*location)),
                       fmt::format("cannot follow the redirect of '{}'", hop.url.shown()));
    if (hop.url.scheme == "https" && next.scheme == "http") {
      return make_error(
          Kind::denied,
          fmt::format("follow the redirect from '{}' to '{}': it goes from HTTPS to plain HTTP",
                      hop.url.shown(), next.shown()));
    }
    // Once dropped, the authorization stays dropped, even if another host redirects back.
    hop.authorized = hop.authorized && next.origin() == request.url.origin();
    hop.url = std::move(next);
    hop.sent_from = response.from;
  }
  return make_error(Kind::corrupt, fmt::format("read '{}': more than {} redirects",
                                               request.url.shown(), kMaxRedirects));
}

Result<HttpResponse> Http::exchange(const HttpRequest& request, const Hop& hop) {
  TRY(cancel_.check());
  const Url& url = hop.url;
  HostOptions host;
  if (options_.host) host = TRY(options_.host(url));
  Exchange exchange{request, cancel_, hop.sent_from};
  exchange.response.url = url;
  CURL* handle = pool_->take();
  BERTH_ASSERT(handle != nullptr);
  char detail[CURL_ERROR_SIZE] = "";

  auto set = [handle](CURLoption option, auto value) { curl_easy_setopt(handle, option, value); };
  std::string target = url.text();
  set(CURLOPT_URL, target.c_str());
  set(CURLOPT_PROTOCOLS_STR, "http,https");
  set(CURLOPT_FOLLOWLOCATION, 0L);
  set(CURLOPT_NOSIGNAL, 1L);
  // One stream per connection: HTTP/2's windows would slow down a few large blobs.
  set(CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  set(CURLOPT_USERAGENT, "berth/0.1");
  set(CURLOPT_ERRORBUFFER, detail);
  set(CURLOPT_BUFFERSIZE, static_cast<long>(options_.buffer_bytes));
  set(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
  bool uploads = request.upload != nullptr;
  std::chrono::seconds stall = uploads ? kUploadStall : options_.stall_timeout;
  set(CURLOPT_CONNECTTIMEOUT, static_cast<long>(options_.connect_timeout.count()));
  set(CURLOPT_LOW_SPEED_LIMIT, 1024L);
  set(CURLOPT_LOW_SPEED_TIME, static_cast<long>(stall.count()));
  // Answers without a sink are short. A host that sends one very slowly could block us for an hour.
  bool is_document = request.sink == nullptr && !uploads;
  set(CURLOPT_TIMEOUT, is_document ? static_cast<long>(2 * stall.count()) : 0L);

  set_host_options(handle, url, host, options_.tls_ca.has_value());
  if (options_.tls_ca) {
    set(CURLOPT_CAINFO, options_.tls_ca->c_str());
    set(CURLOPT_CAPATH, static_cast<char*>(nullptr));
  } else if (lacks_authorities(handle)) {
    set(CURLOPT_CAINFO, static_cast<char*>(nullptr));  // so that plain HTTP is still detected
  }
  if (!host.shared_key.empty()) {
    set_shared_key(handle, host.shared_key);
  } else if (is_insecure(url)) {
    set(CURLOPT_SSL_VERIFYPEER, 0L);
    set(CURLOPT_SSL_VERIFYHOST, 0L);
  }

  HeaderList headers;
  for (const std::string& line : request.headers) headers.add(line);
  if (hop.authorized && !request.authorization.empty()) {
    headers.add("Authorization: " + request.authorization);
  }
  headers.add("Expect:");
  set_method(handle, exchange);
  set(CURLOPT_HTTPHEADER, headers.list);
  set(CURLOPT_HEADERFUNCTION, &on_header);
  set(CURLOPT_HEADERDATA, &exchange);
  set(CURLOPT_WRITEFUNCTION, &on_body);
  set(CURLOPT_WRITEDATA, &exchange);
  set(CURLOPT_NOPROGRESS, 0L);
  set(CURLOPT_XFERINFOFUNCTION, &on_progress);
  set(CURLOPT_XFERINFODATA, &exchange);
  if (hop.sent_from && !may_have_proxy(url, host)) {
    set(CURLOPT_PREREQFUNCTION, &on_connected);
    set(CURLOPT_PREREQDATA, &exchange);
  }

  CURLcode code = curl_easy_perform(handle);
  std::optional<Error> final;
  bool no_handshake = code == CURLE_SSL_CONNECT_ERROR || code == CURLE_PEER_FAILED_VERIFICATION;
  if (no_handshake && !host.shared_key.empty()) {
    final = no_peer(detail, url);
  } else if (code != CURLE_OK) {
    final = final_error(code, handle, detail, url);
  }
  exchange.response.from = nearness_of_peer(handle, url, host);
  pool_->put_back(handle);

  if (exchange.error) return *std::move(exchange.error);
  if (exchange.enough) return std::move(exchange.response);
  if (code == CURLE_ABORTED_BY_CALLBACK)
    return make_error(Kind::interrupted, "stopped by a signal");
  if (final && !(request.resumes && is_unreachable(code))) return *std::move(final);
  if (final) {
    exchange.response.broken = std::move(final);
  } else if (code != CURLE_OK) {
    exchange.response.broken = broken_error(code, detail, url);
  }
  return std::move(exchange.response);
}

}  // namespace berth::transfer
