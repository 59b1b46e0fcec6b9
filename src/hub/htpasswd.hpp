// SPDX-License-Identifier: Apache-2.0
// The accounts that may log in: Apache's file of names and hashes, bcrypt's alone.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace berth::hub {

/// Any thread may ask.
class Htpasswd {
 public:
  /// `document` names the text in errors: "htpasswd:3: …". Blank lines and those that begin with
  /// '#' are passed over.
  /// Errors: usage (another kind of hash, a cost above 14, a name twice), corrupt (no such line).
  static Result<Htpasswd> parse(std::string_view text, std::string_view document);
  ~Htpasswd();
  Htpasswd(Htpasswd&&) noexcept;
  Htpasswd& operator=(Htpasswd&&) noexcept;

  bool has(std::string_view account) const;

  /// Whether it is the account's password. As slow for an account that is not there; a pair that
  /// was right once is known again at once, and no more than two are computed at a time.
  bool verify(const std::string& account, const std::string& password) const;

 private:
  struct Known;
  Htpasswd();

  std::map<std::string, std::string, std::less<>> hashes_;  // by account
  std::unique_ptr<Known> known_;
};

}  // namespace berth::hub
