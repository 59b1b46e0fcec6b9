// SPDX-License-Identifier: Apache-2.0
// The client that sent a request, and the profile of its node. Pure.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "hub/config/address.hpp"
#include "hub/config/config.hpp"
#include "node/profile.hpp"

namespace berth::hub {

struct Login {
  std::string name;
  std::string password;
};

/// Parses an Authorization header. Nothing unless the scheme is "Basic" and name and password are
/// text.
/// Source: RFC 7617
std::optional<Login> read_basic(std::string_view value);

/// The parts of a login name.
struct LoginName {
  std::string account;  ///< the account that the password belongs to
  std::string profile;  ///< of "account+PROFILE"
  /// From MetaHub's form "account/cpu#zen2,gpu#sm_90": the same as words for node::with(),
  /// "cpu=zen2 gpu=sm_90".
  std::string axes;
};
/// A name for which `is_account` returns true is the account as a whole, even with '+' or '/' in
/// it.
LoginName read_login_name(const std::string& name,
                          const std::function<bool(std::string_view)>& is_account);

/// The profile for a request. Null: none.
using Node = std::shared_ptr<const node::Profile>;

/// Maps clients to profiles.
class Nodes {
 public:
  /// Errors: usage (an unknown profile, suggesting the nearest name; an address that check() of
  /// config.hpp refuses).
  static Result<Nodes> make(const Config& config, std::vector<node::Profile> fleet);

  struct Caller {
    std::string header;                ///< the value of the header Berth-Node, or ""
    std::optional<std::string> login;  ///< the name as sent
    LoginName name;                    ///< `login`, parsed
    Address address;
  };
  /// The first that exists of: the profile that the header names; the configured profile of the
  /// login; the "+PROFILE" or "/axis#value" in the login name; the profile with the name of the
  /// account; the profile of the narrowest network that contains the address; the default profile.
  /// Null: none.
  /// Errors: usage (the header or the login names an unknown profile, or invalid axes).
  Result<Node> node_of(const Caller& caller) const;

 private:
  struct Range {
    Network network;
    Node node;
  };

  Result<Node> named(std::string_view name, std::string_view by) const;
  Result<Node> of_login(const Caller& caller) const;

  std::map<std::string, Node, std::less<>> profiles_;
  std::map<std::string, Node, std::less<>> logins_;
  std::vector<Range> ranges_;  // narrowest first
  Node usual_;
};

}  // namespace berth::hub
