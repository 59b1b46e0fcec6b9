// SPDX-License-Identifier: Apache-2.0
#include "transfer/registry/auth.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.hpp"
#include "json/fields.hpp"
#include "transfer/work/base64.hpp"

namespace berth::transfer {
namespace {

constexpr uint64_t kMaxTokenBytes = 1 << 20;

struct TokenAnswer {
  std::string token;
  std::string access_token;
  uint64_t expires_in = 60;  // token.md: "if omitted, this defaults to 60 seconds"
};

void fields(auto& v, TokenAnswer& answer) {
  v.optional("token", answer.token);
  v.optional("access_token", answer.access_token);
  v.optional("expires_in", answer.expires_in);
}

bool is_token_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
}

/// Parses tokens, quoted strings and separators from the front of a header value.
class HeaderReader {
 public:
  explicit HeaderReader(std::string_view text) : text_(text) {}

  void skip(std::string_view characters) {
    text_.remove_prefix(std::min(text_.find_first_not_of(characters), text_.size()));
  }
  bool done() const { return text_.empty(); }
  bool take(char c) {
    if (text_.empty() || text_.front() != c) return false;
    text_.remove_prefix(1);
    return true;
  }
  std::string token() {
    size_t length = 0;
    while (length < text_.size() && is_token_char(text_[length])) ++length;
    std::string token(text_.substr(0, length));
    text_.remove_prefix(length);
    return token;
  }
  std::string value() {
    if (!take('"')) return token();
    std::string value;
    while (!text_.empty() && text_.front() != '"') {
      if (text_.front() == '\\' && text_.size() > 1) text_.remove_prefix(1);
      value += text_.front();
      text_.remove_prefix(1);
    }
    take('"');
    return value;
  }
  void drop_one() { text_.remove_prefix(std::min<size_t>(1, text_.size())); }

 private:
  std::string_view text_;
};

Result<Url> checked_realm(const Challenge& challenge, const Url& registry,
                          const std::string& name) {
  auto entry = challenge.parameters.find("realm");
  std::string text = entry == challenge.parameters.end() ? "" : entry->second;
  Url realm = TRY_CTX(parse_url(text), fmt::format("cannot ask for a token for '{}'", name));
  bool same_host = realm.host == registry.host;
  bool both_here = is_loopback(realm.host) && is_loopback(registry.host);
  bool plain_allowed = registry.scheme == "http" && (same_host || both_here);
  if (realm.scheme != "https" && !plain_allowed) {
    return make_error(
        Kind::denied,
        fmt::format("ask '{}' for a token for '{}': credentials would be sent over plain HTTP",
                    realm.shown(), name));
  }
  if (is_link_local(realm.host) && !same_host) {
    return make_error(
        Kind::denied,
        fmt::format("ask '{}' for a token for '{}': a link-local address cannot be a token server",
                    realm.shown(), name));
  }
  return realm;
}

std::string basic_value(const Credential& credential) {
  return "Basic " + base64_encode(credential.username + ":" + credential.password);
}

}  // namespace

std::vector<Challenge> parse_challenges(std::string_view header) {
  std::vector<Challenge> challenges;
  HeaderReader reader(header);
  while (true) {
    reader.skip(" \t,");
    if (reader.done()) return challenges;
    std::string word = reader.token();
    if (word.empty()) {
      reader.drop_one();
    } else if (reader.take('=')) {
      std::string value = reader.value();
      if (!challenges.empty()) challenges.back().parameters[to_lower(word)] = std::move(value);
    } else {
      challenges.push_back({to_lower(word), {}});
    }
  }
}

std::string Authenticator::authorization(const std::string& scope) {
  std::lock_guard lock(mutex_);
  return current_authorization(scope);
}

std::string Authenticator::current_authorization(const std::string& scope) const {
  auto token = tokens_.find(scope);
  if (token == tokens_.end()) return basic_;
  if (std::chrono::steady_clock::now() >= token->second.expires) return {};
  return "Bearer " + token->second.value;
}

Result<void> Authenticator::answer(const HttpResponse& refused, const std::string& scope,
                                   const std::string& used) {
  std::lock_guard lock(mutex_);
  // If several threads were refused with the same authorization, or without one, one thread gets a
  // new authorization while the others wait for the lock.
  std::string current = current_authorization(scope);
  if (!current.empty() && current != used) return {};

  bool basic_offered = false;
  for (std::string_view header : refused.header_values("www-authenticate")) {
    for (const Challenge& challenge : parse_challenges(header)) {
      if (challenge.scheme == "bearer") {
        tokens_[scope] = TRY(fetch_token(challenge, refused, scope));
        return {};
      }
      basic_offered = basic_offered || challenge.scheme == "basic";
    }
  }
  std::string hint = fmt::format("berth login {}", name_);
  if (!basic_offered) {
    return make_error(Kind::unsupported,
                      fmt::format("log in to '{}': it asks for neither basic nor bearer "
                                  "authentication",
                                  name_));
  }
  if (!credential_) {
    return make_error(Kind::denied,
                      fmt::format("log in to '{}': 401 Unauthorized: no credentials", name_), hint);
  }
  if (!basic_.empty()) {
    return make_error(Kind::denied,
                      fmt::format("log in to '{}' as '{}': 401 Unauthorized: wrong user name or "
                                  "password",
                                  name_, credential_->username),
                      hint);
  }
  basic_ = basic_value(*credential_);
  return {};
}

Result<Token> Authenticator::fetch_token(const Challenge& challenge, const HttpResponse& refused,
                                         const std::string& scope) {
  Url realm = TRY(checked_realm(challenge, refused.url, name_));
  auto parameter = [&](const char* key) {
    auto entry = challenge.parameters.find(key);
    return entry == challenge.parameters.end() ? std::string() : entry->second;
  };
  std::string query = "service=" + percent_encode(parameter("service"));
  // Our own scope has precedence, as it covers the whole transfer.
  std::string wanted = scope.empty() ? parameter("scope") : scope;
  for (std::string_view one : split_blank(wanted)) query += "&scope=" + percent_encode(one);

  HttpRequest request;
  request.url = realm;
  request.sent_from = refused.from;
  request.max_body = kMaxTokenBytes;
  if (credential_ && !credential_->identity_token.empty()) {
    request.method = "POST";
    request.headers = {"Content-Type: application/x-www-form-urlencoded"};
    request.body = query + "&grant_type=refresh_token&client_id=berth&refresh_token=" +
                   percent_encode(credential_->identity_token);
  } else {
    request.url = with_query(realm, query);
    if (credential_) request.authorization = basic_value(*credential_);
  }

  std::string action = fmt::format("get a token for '{}' from '{}'", name_, realm.shown());
  HttpResponse response = TRY(http_.perform(request));
  if (response.broken) return std::move(*response.broken).with_context("cannot " + action);
  if (response.status == 401 || response.status == 403) {
    std::string who = credential_ ? fmt::format(" as '{}'", credential_->username) : "";
    return make_error(Kind::denied,
                      fmt::format("{}{}: {}: {}", action, who,
                                  response.status == 401 ? "401 Unauthorized" : "403 Forbidden",
                                  credential_ ? "wrong user name or password" : "no credentials"),
                      fmt::format("berth login {}", name_));
  }
  if (!response.ok()) {
    return make_error(response.status == 429 ? Kind::busy : Kind::io,
                      fmt::format("{}: the answer is {}", action, response.status));
  }
  TokenAnswer answer = TRY_CTX(json::read<TokenAnswer>(response.body, "token"), "cannot " + action);
  std::string value = answer.token.empty() ? answer.access_token : answer.token;
  bool clean =
      !value.empty() && value.find_first_of(std::string_view("\r\n\0", 3)) == std::string::npos;
  if (!clean) return make_error(Kind::corrupt, fmt::format("{}: no token in the answer", action));

  // A token that expires within seconds still has to serve one request; a very long life is not
  // trusted.
  std::chrono::seconds life(std::clamp<uint64_t>(answer.expires_in, 10, 3600));
  return Token{std::move(value), std::chrono::steady_clock::now() + life * 9 / 10};
}

}  // namespace berth::transfer
