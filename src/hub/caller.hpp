// SPDX-License-Identifier: Apache-2.0
// The client that asks, and its node. Pure.
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

/// The value of an Authorization header; nothing for what is not "Basic" with a name and a password
/// that are text.  Source: RFC 7617
std::optional<Login> read_basic(std::string_view value);

/// What a name asks for.
struct LoginName {
  std::string account;  ///< whose password it is
  std::string profile;  ///< of "account+PROFILE"
  /// Of MetaHub's "account/cpu#zen2,gpu#sm_90": words of node::with(), "cpu=zen2 gpu=sm_90".
  std::string axes;
};
/// A name that `is_account` knows is one as it stands, whatever is in it.
LoginName read_login_name(const std::string& name,
                          const std::function<bool(std::string_view)>& is_account);

/// The profile that a request is judged for, shared by all of its requests.
using Node = std::shared_ptr<const node::Profile>;

/// Which client has which profile.
class Nodes {
 public:
  /// Errors: usage (a profile that is named and not there, with the nearest; an address as config's
  /// check() refuses it).
  static Result<Nodes> make(const Config& config, std::vector<node::Profile> fleet);

  struct Caller {
    std::string header;                ///< of Berth-Node, or ""
    std::optional<std::string> login;  ///< the name that was sent
    LoginName name;                    ///< what it says
    Address address;
  };
  /// The first of: the header; the login's table, its "+PROFILE" or "/axis#value", the profile of
  /// the account's own name; the narrowest network that has the address; the default. Null: none.
  /// Errors: usage (header or login name a profile that is not there, or axes that are none).
  Result<Node> node_of(const Caller& caller) const;

  size_t size() const { return profiles_.size(); }

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
