// SPDX-License-Identifier: Apache-2.0
// A file of its own: a static program that does not ask for names must not pull in the name
// service.
#include <pwd.h>

#include <array>

#include "sys/identity.hpp"

namespace berth::sys {

std::string user_name(uid_t uid) {
  std::array<char, 16384> buffer;
  struct passwd entry {};
  struct passwd* found = nullptr;
  int failure = getpwuid_r(uid, &entry, buffer.data(), buffer.size(), &found);
  return failure == 0 && found != nullptr ? found->pw_name : std::string();
}

}  // namespace berth::sys
