// SPDX-License-Identifier: Apache-2.0
#include "transfer/registry/url.hpp"

#include <arpa/inet.h>
#include <curl/curl.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>

#include "base/text.hpp"

namespace berth::transfer {
namespace {

using Handle = std::unique_ptr<CURLU, decltype(&curl_url_cleanup)>;

std::string part(const Handle& url, CURLUPart which, unsigned flags = 0) {
  char* raw = nullptr;
  if (curl_url_get(url.get(), which, &raw, flags) != CURLUE_OK) return {};
  std::string text = raw;
  curl_free(raw);
  return text;
}

Result<Url> take_apart(const Handle& handle, const std::string& text) {
  Url url;
  url.scheme = part(handle, CURLUPART_SCHEME);
  url.host = to_lower(part(handle, CURLUPART_HOST));
  url.path = part(handle, CURLUPART_PATH);
  url.query = part(handle, CURLUPART_QUERY);
  std::optional<uint64_t> port = parse_u64(part(handle, CURLUPART_PORT, CURLU_DEFAULT_PORT));
  bool valid = (url.scheme == "http" || url.scheme == "https") && !url.host.empty() && port &&
               *port > 0 && *port < 65536 && part(handle, CURLUPART_USER).empty();
  if (!valid) return make_error(Kind::corrupt, "read URL " + quote(text.substr(0, 200)));
  url.port = static_cast<uint16_t>(*port);
  return url;
}

bool is_ipv4(std::string_view host) {
  size_t numbers = 0;
  for (std::string_view number : split(host, '.')) {
    std::optional<uint64_t> value = parse_u64(number);
    if (!value || *value > 255) return false;
    ++numbers;
  }
  return numbers == 4;
}

// connect(2) to any of 0.0.0.0/8 reaches this machine.
Nearness nearness_of(const std::array<uint8_t, 4>& address) {
  if (address[0] == 127 || address[0] == 0) return Nearness::machine;
  return address[0] == 169 && address[1] == 254 ? Nearness::link : Nearness::anywhere;
}

}  // namespace

std::string Url::text() const {
  return origin() + path + (query.empty() ? "" : "?" + query);
}

std::string Url::origin() const {
  return scheme + "://" + host + ":" + std::to_string(port);
}

std::string Url::shown() const {
  bool usual = port == (scheme == "https" ? 443 : 80);
  return scheme + "://" + host + (usual ? "" : ":" + std::to_string(port)) + path;
}

Result<Url> parse_url(const std::string& text) {
  Handle handle(curl_url(), &curl_url_cleanup);
  // A control character or a blank could end the request line early.
  bool clean = text.find_first_of(" \t\r\n") == std::string::npos;
  if (!clean || curl_url_set(handle.get(), CURLUPART_URL, text.c_str(), 0) != CURLUE_OK) {
    return make_error(Kind::corrupt, "read URL " + quote(text.substr(0, 200)));
  }
  return take_apart(handle, text);
}

Result<Url> resolve_url(const Url& base, const std::string& location) {
  Handle handle(curl_url(), &curl_url_cleanup);
  bool clean = location.find_first_of(" \t\r\n") == std::string::npos;
  if (!clean || curl_url_set(handle.get(), CURLUPART_URL, base.text().c_str(), 0) != CURLUE_OK ||
      curl_url_set(handle.get(), CURLUPART_URL, location.c_str(), 0) != CURLUE_OK) {
    return make_error(Kind::corrupt, "read URL " + quote(location.substr(0, 200)));
  }
  return take_apart(handle, location);
}

Url with_query(Url url, const std::string& extra) {
  url.query += (url.query.empty() ? "" : "&") + extra;
  return url;
}

std::string percent_encode(std::string_view text) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  std::string encoded;
  for (char c : text) {
    bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                 c == '-' || c == '.' || c == '_' || c == '~';
    if (plain) {
      encoded += c;
    } else {
      auto byte = static_cast<unsigned char>(c);
      encoded += '%';
      encoded += kDigits[byte >> 4];
      encoded += kDigits[byte & 15];
    }
  }
  return encoded;
}

bool is_host(std::string_view pattern, const Url& url) {
  std::string wanted = to_lower(pattern);
  if (wanted.starts_with("*.")) return url.host.ends_with(std::string_view(wanted).substr(1));
  return wanted == url.host || wanted == url.host + ":" + std::to_string(url.port);
}

bool is_loopback(std::string_view host) {
  return host == "localhost" || host == "[::1]" || (host.starts_with("127.") && is_ipv4(host));
}

bool is_link_local(std::string_view host) {
  return (host.starts_with("169.254.") && is_ipv4(host)) || host.starts_with("[fe8") ||
         host.starts_with("[fe9") || host.starts_with("[fea") || host.starts_with("[feb");
}

Nearness nearness(std::string_view host) {
  if (host == "localhost" || host == "localhost." || host.ends_with(".localhost")) {
    return Nearness::machine;
  }
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  std::string text(host.substr(0, host.find('%')));  // "fe80::1%eth0"
  std::array<uint8_t, 16> six{};
  std::array<uint8_t, 4> four{};
  if (inet_pton(AF_INET, text.c_str(), four.data()) == 1) return nearness_of(four);
  if (inet_pton(AF_INET6, text.c_str(), six.data()) != 1) return Nearness::anywhere;
  // ::, ::1, and embedded IPv4 addresses: "::127.0.0.1", "::ffff:127.0.0.1".
  bool has_four =
      std::all_of(six.begin(), six.begin() + 10, [](uint8_t one) { return one == 0; }) &&
      ((six[10] == 0 && six[11] == 0) || (six[10] == 0xff && six[11] == 0xff));
  if (has_four) {
    std::copy(six.begin() + 12, six.end(), four.begin());
    return nearness_of(four);
  }
  return six[0] == 0xfe && (six[1] & 0xc0) == 0x80 ? Nearness::link : Nearness::anywhere;
}

bool may_send(Nearness from, Nearness to) {
  return to == Nearness::anywhere || to == from;
}

}  // namespace berth::transfer
