// SPDX-License-Identifier: Apache-2.0
#include "hub/reply.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/beast/http/status.hpp>
#include <ctime>

#include "json/value.hpp"

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

Reply refusal(unsigned status, std::string_view code, std::string_view message) {
  json::Object one{{"code", code}, {"message", message}, {"detail", nullptr}};
  json::Array errors;
  errors.emplace_back(std::move(one));
  Reply reply;
  reply.status = status;
  reply.headers = {{"Content-Type", "application/json"}};
  json::Object all{{"errors", std::move(errors)}};
  reply.body = std::make_shared<const std::string>(json::dump(all) + "\n");
  return reply;
}

Reply upstream_refusal(const Error& error, std::string_view unknown_code) {
  switch (error.kind) {
    case Kind::not_found:
      return refusal(404, unknown_code, "the registry behind this hub does not have it");
    case Kind::denied:
      return refusal(403, "DENIED", "the registry behind this hub does not give it to the hub");
    case Kind::busy: {
      Reply reply = refusal(429, "TOOMANYREQUESTS", "the registry behind this hub asks to wait");
      reply.headers.emplace_back("Retry-After", "10");
      return reply;
    }
    case Kind::interrupted:
      return refusal(503, "UNKNOWN", "this hub is about to end");
    case Kind::corrupt:
    case Kind::unsupported:
      return refusal(502, "UNKNOWN", "what the registry behind this hub has is not in order");
    default:
      return refusal(502, "UNKNOWN", "the registry behind this hub does not answer");
  }
}

Reply document_reply(std::shared_ptr<const std::string> bytes, std::string_view media_type,
                     const std::string& digest) {
  Reply reply;
  reply.headers = {{"Content-Type", std::string(media_type)}, {"Docker-Content-Digest", digest}};
  reply.headers.emplace_back("ETag", "\"" + digest + "\"");
  reply.body = std::move(bytes);
  return reply;
}

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
