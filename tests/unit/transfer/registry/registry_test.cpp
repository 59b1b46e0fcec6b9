// SPDX-License-Identifier: Apache-2.0
#include "transfer/registry/registry.hpp"

#include <gtest/gtest.h>

#include "transfer/work/event.hpp"
#include "transfer/work/sha256.hpp"

namespace berth::transfer {
namespace {

TEST(NextPage, is_the_query_of_the_link_with_that_relation) {
  auto next = [](std::vector<std::string> links) {
    HttpResponse response;
    for (std::string& link : links) response.headers.emplace_back("link", std::move(link));
    Result<std::optional<std::string>> page = next_page(response);
    return page.ok() ? page->value_or("-") : page.error().what;
  };
  EXPECT_EQ(next({}), "-");
  EXPECT_EQ(next({"</v2/_catalog?last=a%2Fb&n=2>; rel=\"next\""}), "last=a%2Fb&n=2");
  EXPECT_EQ(next({"<https://elsewhere.example/x?last=a#part>;rel=next"}), "last=a");
  EXPECT_EQ(next({"</x?page=0>; rel=\"prev\", </x?page=2>; title=\"t\"; REL=\"NEXT\", </x?page=9>; "
                  "rel=last"}),
            "page=2");
  EXPECT_EQ(next({"</x?page=0>; rel=prev", "</x?page=2>; rel=next"}), "page=2");
  EXPECT_EQ(next({"</x>; rel=prev", "</x?a=b; rel=next", "rel=next", "<", "<>"}), "-");
  for (const std::string& bad : {std::string("/x"), std::string("/x?"), std::string("/x?a b"),
                                 "/x?" + std::string(9000, 'a')}) {
    EXPECT_EQ(next({"<" + bad + ">; rel=next"}), "find the page after it: '" + bad.substr(0, 200) +
                                                     "' is not an address with a query");
  }
}

TEST(RetryAfter, reads_seconds_and_dates) {
  EXPECT_EQ(parse_retry_after("7", 0), std::chrono::seconds(7));
  EXPECT_EQ(parse_retry_after(" 0 ", 0), std::chrono::seconds(0));
  // RFC 9110's example of a date is 784111777 seconds after 1970.
  EXPECT_EQ(parse_retry_after("Sun, 06 Nov 1994 08:49:37 GMT", 784111770), std::chrono::seconds(7));
  EXPECT_EQ(parse_retry_after("Sun, 06 Nov 1994 08:49:37 GMT", 784111780), std::chrono::seconds(0));
  EXPECT_EQ(parse_retry_after("soon", 0), std::nullopt);
  EXPECT_EQ(parse_retry_after("99999999999999", 0), std::chrono::seconds(1000000));
}

TEST(ContentRange, gives_the_first_byte) {
  EXPECT_EQ(parse_content_range_start("bytes 100-199/200"), 100u);
  EXPECT_EQ(parse_content_range_start("bytes 0-0/*"), 0u);
  EXPECT_EQ(parse_content_range_start("bytes */200"), std::nullopt);
  EXPECT_EQ(parse_content_range_start("items 1-2/3"), std::nullopt);
  EXPECT_EQ(parse_content_range_start(""), std::nullopt);
}

TEST(Sha256, agrees_with_the_standard) {
  EXPECT_EQ(sha256_of("abc").hex(),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  Sha256 hash;
  hash.update("ab");
  hash.reset();
  hash.update("a");
  hash.update("bc");
  EXPECT_EQ(hash.finish(), sha256_of("abc"));
}

TEST(Events, sends_the_first_and_last_of_a_phase_and_few_between) {
  std::vector<image::LayerEvent> seen;
  Events events(
      [&](const image::TransferEvent& e) { seen.push_back(std::get<image::LayerEvent>(e)); },
      Events::Layers::shown);
  events.layer("a", image::LayerPhase::waiting, 0, 1000);
  for (uint64_t done = 1; done <= 1000; ++done) {
    events.layer("a", image::LayerPhase::downloading, done, 1000);
  }
  events.layer("b", image::LayerPhase::downloading, 1, 1000);
  ASSERT_GE(seen.size(), 4u);
  EXPECT_LT(seen.size(), 20u);
  EXPECT_EQ(seen[1].done, 1u);
  EXPECT_EQ(seen[seen.size() - 2].done, 1000u);
  EXPECT_EQ(seen.back().id, "b");
}

TEST(Events, hides_layers_but_no_warnings_when_quiet) {
  size_t seen = 0;
  Events events([&](const image::TransferEvent&) { ++seen; }, Events::Layers::hidden);
  events.layer("a", image::LayerPhase::waiting, 0, 1);
  EXPECT_EQ(seen, 0u);
  events.warn("odd, ignoring");
  EXPECT_EQ(seen, 1u);
}

}  // namespace
}  // namespace berth::transfer
