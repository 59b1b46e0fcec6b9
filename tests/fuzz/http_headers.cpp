// SPDX-License-Identifier: Apache-2.0
// What registries send beside bodies: challenges, locations, links, ranges, times.
#include <cstddef>
#include <cstdint>

#include "transfer/registry/auth.hpp"
#include "transfer/registry/credentials.hpp"
#include "transfer/registry/registry.hpp"
#include "transfer/registry/url.hpp"
#include "transfer/work/base64.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace transfer = berth::transfer;
  std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const auto& challenge : transfer::parse_challenges(text)) {
    BERTH_ASSERT(!challenge.scheme.empty());
  }
  transfer::parse_retry_after(text, 0);
  transfer::parse_content_range_start(text);
  transfer::base64_decode(text);
  transfer::HttpResponse response;
  response.headers.emplace_back("link", text);
  auto query = transfer::next_page(response);
  if (query.ok() && *query) {
    BERTH_ASSERT((**query).find_first_of("\r\n #") == std::string::npos);
  }
  static const transfer::Url kBase = transfer::parse_url("https://registry.example/v2/").value();
  auto url = transfer::resolve_url(kBase, std::string(text));
  if (url.ok()) {
    // What was read once reads the same again, or two parts of the program see two hosts.
    auto again = transfer::parse_url(url->text());
    BERTH_ASSERT(again.ok() && again->origin() == url->origin());
  }
  return 0;
}
