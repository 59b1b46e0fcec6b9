// SPDX-License-Identifier: Apache-2.0
#include "runtime/seccomp/i386_calls.hpp"

#include <algorithm>
#include <iterator>

namespace berth::runtime {
namespace {

struct I386Call {
  std::string_view name;
  uint32_t number;
};

constexpr I386Call kI386Calls[] = {
    {"", 0},
#include <i386_calls.inc>  // made by CMakeLists.txt
};
static_assert(std::ranges::is_sorted(kI386Calls, {}, &I386Call::name));

}  // namespace

std::optional<uint32_t> find_i386_call(std::string_view name) {
  const I386Call* found = std::ranges::lower_bound(kI386Calls, name, {}, &I386Call::name);
  if (name.empty() || found == std::end(kI386Calls) || found->name != name) return std::nullopt;
  return found->number;
}

}  // namespace berth::runtime
