// SPDX-License-Identifier: Apache-2.0
// The requesting client, and its node. Pure.
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

/// Parses an Authorization header; nothing unless it is "Basic" with a text name and password.
/// Source: RFC 7617
std::optional<Login> read_basic(std::string_view value);

/// The parts of a login name.
struct LoginName {
  std::string account;  ///< the account of the password
  std::string profile;  ///< of "account+PROFILE"
  /// Of MetaHub's "account/cpu#zen2,gpu#sm_90": words of node::with(), "cpu=zen2 gpu=sm_90".
  std::string axes;
};
/// A name for which `is_account` returns true is taken whole, whatever it contains.
LoginName read_login_name(const std::string& name,
                          const std::function<bool(std::string_view)>& is_account);

/// The profile used for a request, shared by all its parts.
using Node = std::shared_ptr<const node::Profile>;

/// Maps clients to profiles.
class Nodes {
 public:
  /// Errors: usage (an unknown profile, with the nearest name; an address that config's check()
  /// refuses).
  static Result<Nodes> make(const Config& config, std::vector<node::Profile> fleet);

  struct Caller {
    std::string header;                ///< Berth-Node's value, or ""
    std::optional<std::string> login;  ///< the name as sent
    LoginName name;                    ///< its parsed form
    Address address;
  };
  /// The first of: the header; the login's table, its "+PROFILE" or "/axis#value", the profile of
  /// the account's own name; the narrowest network that contains the address; the default. Null:
  /// none.
  /// Errors: usage (header or login name an unknown profile, or invalid axes).
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
