// SPDX-License-Identifier: Apache-2.0
// The accounts that may log in: a file of names and hashes in Apache's format, with bcrypt only.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace berth::hub {

/// Thread-safe.
class Htpasswd {
 public:
  /// `document` names the text in errors: "htpasswd:3: …". Skips blank lines and those that begin
  /// with '#'.
  /// Errors: usage (another kind of hash, a cost above 14, a duplicate name), corrupt (a malformed
  /// line).
  static Result<Htpasswd> parse(std::string_view text, std::string_view document);
  ~Htpasswd();
  Htpasswd(Htpasswd&&) noexcept;
  Htpasswd& operator=(Htpasswd&&) noexcept;

  bool has(std::string_view account) const;

  /// Whether the password is right. Takes as long for an unknown account. Remembers verified pairs
  /// of account and password, and computes at most two hashes at a time.
  bool verify(const std::string& account, const std::string& password) const;

 private:
  struct Known;
  Htpasswd();

  std::map<std::string, std::string, std::less<>> hashes_;  // by account
  std::unique_ptr<Known> known_;
};

}  // namespace berth::hub
