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
#include "sys/fd.hpp"
#include "transfer/cancel.hpp"
#include "transfer/url.hpp"

namespace berth::transfer {

/// What is particular to one host.
struct HostOptions {
  std::string tls_ca;  ///< PEM text: authorities beside the system's; not with HttpOptions::tls_ca
  std::string tls_certificate;  ///< PEM file of the client; empty: none
  std::string tls_key;          ///< PEM file; empty: the key is in `tls_certificate`
  std::string proxy;            ///< its URL, or "none"; empty: the environment's
  /// In the place of certificates, both ends' (transfer/shared_key.hpp); empty: none.
  std::string shared_key;
};

struct HttpOptions {
  std::optional<std::string> tls_ca;             ///< PEM file that replaces the system's CAs
  std::vector<std::string> insecure_registries;  ///< as is_host() has them: TLS is not verified
  std::chrono::seconds connect_timeout{15};
  /// An answer below 1 kB/s for so long is broken off; one without a sink after twice that anyway.
  std::chrono::seconds stall_timeout{30};
  size_t buffer_bytes = size_t{512} << 10;  ///< of each connection
  /// Asked before each exchange, from any thread; may be empty.
  std::function<Result<HostOptions>(const Url& url)> host = {};
};

struct HttpResponse {
  int status = 0;  ///< 0: the connection ended before an answer came
  std::vector<std::pair<std::string, std::string>> headers;  ///< names in lower case
  std::string body;                    ///< empty where a sink took it; of a refusal at most 64 KiB
  Url url;                             ///< after redirects
  Nearness from = Nearness::anywhere;  ///< where the host is that has answered
  std::optional<Error> broken;         ///< the connection was lost part way: worth another try

  bool ok() const { return status >= 200 && status < 300 && !broken; }
  std::optional<std::string_view> header(std::string_view name) const;  ///< the first of that name
  std::vector<std::string_view> header_values(std::string_view name) const;
};

/// Whether it names another place.
bool is_redirect(const HttpResponse& response);

struct HttpRequest {
  std::string method = "GET";
  Url url;
  std::vector<std::string> headers;  ///< "Name: value"
  std::string authorization;         ///< its value; goes to the origin of `url` and no further
  std::string body;
  const sys::Fd* upload = nullptr;  ///< when set: its first `upload_size` bytes are the body
  uint64_t upload_size = 0;
  std::function<void(uint64_t sent)> on_sent;
  /// The other side has answered before: that it cannot be reached now is a lost connection
  /// (HttpResponse::broken), not an error.
  bool resumes = false;
  bool follow = true;  ///< redirects of GET and HEAD
  /// Where the host is that has named `url`; empty: the user has.
  std::optional<Nearness> sent_from;
  uint64_t max_body = 1 << 20;  ///< bytes of a 2xx answer without a sink; more is corrupt
  /// Takes the bytes of a 2xx answer as they come; an error ends the exchange and is returned.
  std::function<Result<void>(const HttpResponse& head, std::string_view bytes)> sink;
};

/// HTTP and HTTPS with kept connections; any thread may call perform().
/// - Redirects of GET and HEAD are followed here, at most 10; the authorization stays behind when
///   scheme, host or port change; https never becomes http.
/// - No host sends us to an address that is nearer to us than its own, by whichever name. Where a
///   proxy connects, which address that is, is the proxy's affair, and a name counts alone.
/// - The proxy variables of the environment count, but not for loopback hosts, nor where
///   HostOptions say something else.
/// - Headers above 256 KiB end the exchange.
class Http {
 public:
  Http(HttpOptions options, const Cancel& cancel);
  ~Http();
  Http(Http&&) = delete;

  /// One exchange with its redirects. Any status is an answer, not an error.
  /// Errors: not_found (no such host), io (no connection), denied (the certificate does not hold,
  /// a redirect to plain HTTP or to what is nearer), unsupported (the other side does not speak
  /// TLS), corrupt (an answer beyond its cap, a redirect loop), interrupted, and whatever the sink
  /// returns.
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
