// SPDX-License-Identifier: Apache-2.0
#include "hub/reply.hpp"

#include "json/value.hpp"

namespace berth::hub {

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

}  // namespace berth::hub
