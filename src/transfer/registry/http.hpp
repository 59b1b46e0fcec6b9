// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "sys/fd/fd.hpp"
#include "transfer/registry/url.hpp"
#include "transfer/work/cancel.hpp"

namespace berth::transfer {

/// The settings of one host.
struct HostOptions {
  std::string tls_ca;  ///< PEM text: authorities besides the system's; not with HttpOptions::tls_ca
  std::string tls_certificate;  ///< PEM file of the client; empty: none
  std::string tls_key;          ///< PEM file; empty: the key is in `tls_certificate`
  std::string proxy;            ///< its URL, or "none"; empty: the environment's
  /// Replaces the certificates of both ends (transfer/registry/shared_key.hpp); empty: none.
  std::string shared_key;
};

struct HttpOptions {
  std::optional<std::string> tls_ca;             ///< PEM file that replaces the system's CAs
  std::vector<std::string> insecure_registries;  ///< patterns of is_host(): TLS is not verified
  std::chrono::seconds connect_timeout{15};
  /// An answer slower than 1 kB/s for so long is aborted. An answer without a sink is aborted after
  /// twice this time in any case.
  std::chrono::seconds stall_timeout{30};
  size_t buffer_bytes = size_t{512} << 10;  ///< of each connection
  /// Called before each exchange, from any thread; may be empty.
  std::function<Result<HostOptions>(const Url& url)> host = {};
};

struct HttpResponse {
  int status = 0;  ///< 0: the connection ended before an answer came
  std::vector<std::pair<std::string, std::string>> headers;  ///< names in lower case
  std::string body;                    ///< empty if a sink took it; for an error at most 64 KiB
  Url url;                             ///< after redirects
  Nearness from = Nearness::anywhere;  ///< of the host that answered; see url.hpp
  std::optional<Error> broken;         ///< the connection was lost midway: worth a retry

  bool ok() const { return status >= 200 && status < 300 && !broken; }
  std::optional<std::string_view> header(std::string_view name) const;  ///< the first of that name
  std::vector<std::string_view> header_values(std::string_view name) const;
};

/// Whether the response redirects to another URL.
bool is_redirect(const HttpResponse& response);

struct HttpRequest {
  std::string method = "GET";
  Url url;
  std::vector<std::string> headers;  ///< "Name: value"
  std::string authorization;         ///< the header's value; sent only to the origin of `url`
  std::string body;
  const sys::Fd* upload = nullptr;  ///< when set: its first `upload_size` bytes are the body
  uint64_t upload_size = 0;
  std::function<void(uint64_t sent)> on_sent;
  /// The server has answered before: if it is unreachable now, that is a lost connection
  /// (HttpResponse::broken), not an error.
  bool resumes = false;
  bool follow = true;  ///< follow redirects of GET and HEAD
  /// Nearness of the host that named `url`; empty: the user named it.
  std::optional<Nearness> sent_from;
  uint64_t max_body = 1 << 20;  ///< bytes of a 2xx answer without a sink; more is corrupt
  /// Receives the bytes of a 2xx answer as they arrive; an error ends the exchange and is returned.
  std::function<Result<void>(const HttpResponse& head, std::string_view bytes)> sink;
};

/// HTTP and HTTPS with persistent connections; perform() is thread-safe.
/// - Follows redirects of GET and HEAD, at most 10; drops the authorization when scheme, host or
///   port change; https never becomes http.
/// - No host may redirect us to an address that is nearer to us than its own address, under any
///   name. If a proxy connects, the proxy resolves the name, and only the name is checked.
/// - The environment's proxy variables apply, except to loopback hosts, and unless HostOptions say
///   otherwise.
/// - Headers above 256 KiB end the exchange.
class Http {
 public:
  Http(HttpOptions options, const Cancel& cancel);
  ~Http();
  Http(Http&&) = delete;

  /// One exchange with its redirects. Any status is an answer, not an error. One attempt;
  /// Registry::send_with_retries() tries again.
  /// Errors: not_found (no such host), io (no connection), denied (an invalid certificate, a
  /// redirect to plain HTTP or to a nearer host), unsupported (the server does not speak TLS),
  /// corrupt (an answer over its limit, a redirect loop), interrupted, and errors of the sink.
  Result<HttpResponse> perform(const HttpRequest& request);

  bool is_insecure(const Url& url) const;

 private:
  class Pool;
  struct Hop {
    Url url;
    bool authorized = true;
    std::optional<Nearness> sent_from;
  };
  Result<HttpResponse> exchange(const HttpRequest& request, const Hop& hop);

  HttpOptions options_;
  const Cancel& cancel_;
  std::unique_ptr<Pool> pool_;
};

}  // namespace berth::transfer
