// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace berth::transfer {

/// An absolute http or https URL without user information, parsed once.
struct Url {
  std::string scheme;  ///< "http", "https"
  std::string host;    ///< lower case; an IPv6 address keeps its brackets
  uint16_t port = 0;   ///< the scheme's default if the text has none
  std::string path;    ///< from the first '/', without query
  std::string query;   ///< without '?'

  std::string text() const;
  std::string origin() const;  ///< "https://host:443": the scope of credentials
  std::string shown() const;   ///< for messages: without query, which may contain a signature
};

/// Errors: corrupt (not a URL, another scheme, user information inside).
Result<Url> parse_url(const std::string& text);

/// The target of a Location header: absolute, or relative to `base`. Errors: as parse_url().
Result<Url> resolve_url(const Url& base, const std::string& location);

/// Appends `extra` ("mount=…&from=…") to the query.
Url with_query(Url url, const std::string& extra);

/// Everything but RFC 3986's unreserved characters becomes %XX.
std::string percent_encode(std::string_view text);

/// Whether `pattern` means the URL's host: "host", "host:port" or "*.domain", in any case.
bool is_host(std::string_view pattern, const Url& url);

/// localhost, 127.0.0.0/8 and [::1].
bool is_loopback(std::string_view host);

/// 169.254.0.0/16 and [fe80::/10]: where clouds serve their secrets.
bool is_link_local(std::string_view host);

/// How near an address is. A service for its own machine or link may trust every client there.
enum class Nearness { anywhere, link, machine };

/// `host`: an address, with or without brackets, or "localhost"; any other name counts as anywhere.
Nearness nearness(std::string_view host);

/// Whether a host may redirect us to another: never to a nearer one.
bool may_send(Nearness from, Nearness to);

}  // namespace berth::transfer
