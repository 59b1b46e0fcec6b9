// SPDX-License-Identifier: Apache-2.0
#include "transfer/registry/auth.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace berth::transfer {
namespace {

TEST(Challenges, reads_a_bearer_challenge) {
  auto challenges = parse_challenges(
      R"(Bearer realm="https://auth.example/token",service="registry.example",scope="repository:a/b:pull,push")");
  ASSERT_EQ(challenges.size(), 1u);
  EXPECT_EQ(challenges[0].scheme, "bearer");
  EXPECT_EQ(challenges[0].parameters["realm"], "https://auth.example/token");
  EXPECT_EQ(challenges[0].parameters["scope"], "repository:a/b:pull,push");
}

TEST(Challenges, reads_several_in_one_header) {
  auto challenges =
      parse_challenges(R"(Basic realm="a, b", BEARER Realm=plain , service="q\"uote")");
  ASSERT_EQ(challenges.size(), 2u);
  EXPECT_EQ(challenges[0].scheme, "basic");
  EXPECT_EQ(challenges[0].parameters["realm"], "a, b");
  EXPECT_EQ(challenges[1].scheme, "bearer");
  EXPECT_EQ(challenges[1].parameters["realm"], "plain");
  EXPECT_EQ(challenges[1].parameters["service"], "q\"uote");
}

TEST(Challenges, survives_what_is_no_challenge) {
  for (const char* header :
       {"", ",", "=", "=x", "Bearer realm=\"open", "\"\"\"", "a=b", "\x01\x02"}) {
    for (const Challenge& challenge : parse_challenges(header)) {
      EXPECT_FALSE(challenge.scheme.empty()) << header;
    }
  }
}

class RealmRules : public ::testing::Test {
 protected:
  std::string refusal(const std::string& registry, const std::string& header) {
    HttpResponse refused;
    refused.status = 401;
    refused.url = parse_url(registry).value();
    refused.headers = {{"www-authenticate", header}};
    Authenticator auth(http_, "registry.example", Credential{"u", "secret", {}});
    Result<void> answer = auth.answer(refused, "repository:a:pull", "");
    return answer.ok() ? "" : to_line(answer.error());
  }

  Cancel cancel_;
  Http http_{HttpOptions{}, cancel_};
};

TEST_F(RealmRules, sends_no_credential_in_plain_http_from_an_https_registry) {
  EXPECT_EQ(refusal("https://registry.example/v2/", R"(Bearer realm="http://auth.example/token")"),
            "ask 'http://auth.example/token' for a token for 'registry.example': credentials would "
            "be sent over plain HTTP");
}

TEST_F(RealmRules, sends_no_credential_to_another_plain_host) {
  EXPECT_EQ(refusal("http://127.0.0.1:5000/v2/", R"(Bearer realm="http://auth.example/token")"),
            "ask 'http://auth.example/token' for a token for 'registry.example': credentials would "
            "be sent over plain HTTP");
}

TEST_F(RealmRules, sends_no_remote_registrys_credential_to_a_server_of_this_machine) {
  EXPECT_EQ(refusal("http://registry.example/v2/", R"(Bearer realm="http://127.0.0.1:5001/token")"),
            "ask 'http://127.0.0.1:5001/token' for a token for 'registry.example': credentials "
            "would be sent over plain HTTP");
}

TEST_F(RealmRules, asks_no_link_local_address) {
  EXPECT_EQ(refusal("https://registry.example/v2/",
                    R"(Bearer realm="https://169.254.169.254/latest/meta-data")"),
            "ask 'https://169.254.169.254/latest/meta-data' for a token for 'registry.example': a "
            "link-local address cannot be a token server");
}

TEST_F(RealmRules, needs_a_scheme_that_it_knows) {
  EXPECT_EQ(refusal("https://registry.example/v2/", "Negotiate"),
            "log in to 'registry.example': it asks for neither basic nor bearer authentication");
}

TEST(Authenticator, sends_nothing_before_it_is_asked_and_basic_after) {
  Cancel cancel;
  Http http(HttpOptions{}, cancel);
  Authenticator auth(http, "registry.example", Credential{"Aladdin", "open sesame", {}});
  EXPECT_EQ(auth.authorization("repository:a:pull"), "");

  HttpResponse refused;
  refused.status = 401;
  refused.url = parse_url("https://registry.example/v2/").value();
  refused.headers = {{"www-authenticate", "Basic realm=\"r\""}};
  ASSERT_TRUE(auth.answer(refused, "repository:a:pull", "").ok());
  // The example of RFC 7617.
  EXPECT_EQ(auth.authorization("repository:a:pull"), "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==");

  Result<void> again = auth.answer(refused, "repository:a:pull", auth.authorization(""));
  ASSERT_FALSE(again.ok());
  EXPECT_EQ(to_line(again.error()),
            "log in to 'registry.example' as 'Aladdin': 401 Unauthorized: wrong user name or "
            "password; try: berth login registry.example");
}

TEST(Authenticator, threads_that_were_refused_at_once_share_one_answer) {
  Cancel cancel;
  Http http({}, cancel);
  HttpResponse refused;
  refused.headers = {{"www-authenticate", "Basic realm=\"x\""}};
  for (int round = 0; round < 300; ++round) {
    Authenticator auth(http, "registry.example", Credential{"u", "secret", {}});
    std::atomic<int> failed = 0;
    {
      std::vector<std::jthread> threads;
      for (int i = 0; i < 4; ++i) {
        threads.emplace_back([&] { failed += auth.answer(refused, "scope", "").ok() ? 0 : 1; });
      }
    }
    ASSERT_EQ(failed, 0) << "round " << round;
  }
}

TEST(Authenticator, says_that_there_is_no_credential) {
  Cancel cancel;
  Http http(HttpOptions{}, cancel);
  Authenticator auth(http, "registry.example", std::nullopt);
  HttpResponse refused;
  refused.url = parse_url("https://registry.example/v2/").value();
  refused.headers = {{"www-authenticate", "Basic realm=\"r\""}};
  Result<void> answer = auth.answer(refused, "repository:a:pull", "");
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(to_line(answer.error()),
            "log in to 'registry.example': 401 Unauthorized: no credentials; try: berth login "
            "registry.example");
}

}  // namespace
}  // namespace berth::transfer
