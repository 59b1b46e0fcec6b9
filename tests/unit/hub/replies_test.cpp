// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>

#include "hub/reply.hpp"
#include "hub/request_log.hpp"
#include "hub/sources.hpp"
#include "json/value.hpp"

namespace berth::hub {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Held held(const std::string& digest, size_t size) {
  return {std::make_shared<const std::string>(size, 'x'), "type", digest};
}

TEST(HubReply, a_refusal_is_the_specs_error) {
  Reply reply = refusal(404, "MANIFEST_UNKNOWN", "needs \"v4\"\n");
  EXPECT_EQ(reply.status, 404u);
  EXPECT_EQ(*reply.body,
            R"({"errors":[{"code":"MANIFEST_UNKNOWN","message":"needs \"v4\"\n","detail":null}]})"
            "\n");
}

TEST(HubReply, clients_are_not_told_the_hubs_accounts) {
  for (Kind kind : {Kind::denied, Kind::io, Kind::unsupported, Kind::corrupt, Kind::busy}) {
    Error error = make_error(kind, "log in to 'registry' as 'robot': 401 Unauthorized");
    Reply reply = upstream_refusal(error, "MANIFEST_UNKNOWN");
    EXPECT_GE(reply.status, 400u);
    EXPECT_THAT(*reply.body, Not(HasSubstr("robot")));
  }
  EXPECT_EQ(upstream_refusal(make_error(Kind::not_found, "x"), "BLOB_UNKNOWN").status, 404u);
}

TEST(HubCache, drops_what_was_not_used_for_longest) {
  DocumentCache cache(40'000);
  for (int i = 0; i < 5; ++i) cache.put(std::to_string(i), held(std::to_string(i), 9000));
  EXPECT_LE(cache.bytes(), 40'000u);
  EXPECT_EQ(cache.find("0").bytes, nullptr);
  EXPECT_NE(cache.find("1").bytes, nullptr);
  cache.put("5", held("5", 9000));
  EXPECT_NE(cache.find("1").bytes, nullptr) << "it was used after 2 was";
  EXPECT_EQ(cache.find("2").bytes, nullptr);
}

TEST(HubCache, has_one_of_a_document_and_none_that_is_too_large) {
  DocumentCache cache(40'000);
  Held first = cache.put("a", held("a", 100));
  EXPECT_EQ(cache.put("a", held("a", 100)).bytes, first.bytes);
  EXPECT_NE(cache.put("large", held("large", 10'001)).bytes, nullptr);
  EXPECT_EQ(cache.find("large").bytes, nullptr);
}

TEST(HubLog, is_one_line_without_secrets) {
  Asked asked;
  asked.method = "GET";
  asked.target = "/v2/app/manifests/1.0 \r\nx?token=secret";
  asked.authorization = "Basic c2VjcmV0";
  asked.address_text = "10.0.0.7";
  Note note{"alice", "k80", "sha256:aa", "no\nway"};
  Ended ended{404, 12, std::chrono::microseconds(12'345), true};
  EXPECT_EQ(request_line(LogForm::text, asked, note, ended, 0),
            "1970-01-01T00:00:00Z 10.0.0.7 alice k80 GET /v2/app/manifests/1.0_\\x0d\\nx 404 12 "
            "0.012 sha256:aa no\\nway\n");
  std::string json = request_line(LogForm::json, asked, note, ended, 0);
  EXPECT_THAT(json, Not(HasSubstr("secret")));
  EXPECT_EQ(std::count(json.begin(), json.end(), '\n'), 1);
  EXPECT_TRUE(json::parse(json, "line").ok());
}

TEST(HubLog, is_utf8_whatever_is_asked) {
  Asked asked;
  asked.method = "GET";
  asked.target = "/\xff\xc3\xa9\xe2\x89\xa5\xf0\x9f\x9a\xa2\xc3";
  asked.address_text = "::1";
  Note note;
  note.error = "no \xed\xa0\x80 \xc0\xaf \xf5 \xe0\x80\x80";
  std::string line = request_line(LogForm::text, asked, note, {}, 0);
  EXPECT_THAT(line, HasSubstr("/\\xff\xc3\xa9\xe2\x89\xa5\xf0\x9f\x9a\xa2\\xc3 "));
  EXPECT_THAT(line, HasSubstr("no \\xed\\xa0\\x80 \\xc0\\xaf \\xf5 \\xe0\\x80\\x80"));
  std::string json = request_line(LogForm::json, asked, note, {}, 0);
  EXPECT_TRUE(json::parse(json, "line").ok());
}

TEST(HubLog, an_empty_request_has_its_place_too) {
  Ended ended;
  ended.status = 400;
  EXPECT_EQ(request_line(LogForm::text, {}, {}, ended, 0),
            "1970-01-01T00:00:00Z - - - - - 400 0 0.000 - -\n");
}

}  // namespace
}  // namespace berth::hub
