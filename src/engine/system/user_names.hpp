// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <map>
#include <string>

#include "sys/user/identity.hpp"

namespace berth::engine {

/// User names, each looked up once.
class UserNames {
 public:
  /// The name, or the uid if there is none.
  const std::string& name(uid_t user) {
    auto [found, is_new] = names_.try_emplace(user);
    if (is_new) found->second = sys::user_name(user);
    if (found->second.empty()) found->second = std::to_string(user);
    return found->second;
  }

 private:
  std::map<uid_t, std::string> names_;
};

}  // namespace berth::engine
