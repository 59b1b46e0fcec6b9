// SPDX-License-Identifier: Apache-2.0
#include "hub/response_head.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/beast/http/status.hpp>
#include <ctime>

namespace berth::hub {
namespace {

namespace http = boost::beast::http;

/// Source: RFC 9110 section 5.6.7
std::string http_date() {
  std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  std::array<char, 64> text{};
  size_t size = std::strftime(text.data(), text.size(), "%a, %d %b %Y %H:%M:%S GMT", &parts);
  return {text.data(), size};
}

bool is_clean(std::string_view value) {
  return std::ranges::none_of(value, [](char c) {
    auto byte = static_cast<unsigned char>(c);
    return (byte < 0x20 && c != '\t') || byte == 0x7f;
  });
}

}  // namespace

std::string head_text(const Reply& reply, std::optional<uint64_t> length, bool closes) {
  auto phrase = http::obsolete_reason(http::int_to_status(reply.status));
  std::string_view reason(phrase.data(), phrase.size());
  std::string text = fmt::format("HTTP/1.1 {} {}\r\n", reply.status, reason);
  auto add = [&text](std::string_view name, std::string_view value) {
    if (is_clean(value)) text += fmt::format("{}: {}\r\n", name, value);
  };
  add("Date", http_date());
  add("Server", "berth-hub");
  add("Docker-Distribution-Api-Version", "registry/2.0");
  add("X-Content-Type-Options", "nosniff");
  for (const auto& [name, value] : reply.headers) add(name, value);
  if (length) add("Content-Length", std::to_string(*length));
  if (closes) add("Connection", "close");
  return text + "\r\n";
}

}  // namespace berth::hub
