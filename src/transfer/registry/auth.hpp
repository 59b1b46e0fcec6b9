// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "transfer/registry/credentials.hpp"
#include "transfer/registry/http.hpp"

namespace berth::transfer {

/// One scheme of a WWW-Authenticate header. Source: RFC 7235 section 4.1.
struct Challenge {
  std::string scheme;                             ///< lower case: "basic", "bearer"
  std::map<std::string, std::string> parameters;  ///< names in lower case
};

/// Parses one header, which may hold several challenges. Skips unreadable ones.
std::vector<Challenge> parse_challenges(std::string_view header);

/// The answer of a token server.
struct Token {
  std::string value;
  std::chrono::steady_clock::time_point expires;
};

/// Answers the challenges of one registry with at most one token per scope, shared by all threads.
///
/// Sends the credential only to the registry itself (basic) and to the token server that it names
/// (bearer). A realm must be https, or plain HTTP on the registry's own host when that speaks plain
/// HTTP; link-local addresses, where clouds serve their secrets, are refused.
/// Source: distribution spec/auth/token.md.
class Authenticator {
 public:
  /// `name`: the registry as the user named it.
  Authenticator(Http& http, std::string name, std::optional<Credential> credential)
      : http_(http), name_(std::move(name)), credential_(std::move(credential)) {}

  /// The Authorization header for `scope` ("repository:library/ubuntu:pull"): empty until the
  /// registry has asked for one.
  std::string authorization(const std::string& scope);

  /// Prepares the next authorization() after `refused`, a 401 to a request that carried `used`.
  /// Errors: denied (no or wrong credentials, a realm that must not get them), unsupported (no
  /// known scheme), and those of Http::perform().
  Result<void> answer(const HttpResponse& refused, const std::string& scope,
                      const std::string& used);

 private:
  /// The caller holds mutex_.
  std::string current_authorization(const std::string& scope) const;
  Result<Token> fetch_token(const Challenge& challenge, const HttpResponse& refused,
                            const std::string& scope);

  Http& http_;
  std::string name_;
  std::optional<Credential> credential_;
  std::mutex mutex_;  // held while a token is fetched, so that one thread fetches it for all
  std::string basic_;
  std::map<std::string, Token> tokens_;  // by scope; realm and service are the registry's own
};

}  // namespace berth::transfer
