// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.hpp"

/// Sysctls of this process's network namespace. sysctl(8)
namespace berth::network {

/// The path for one interface; `family`: "ipv4" or "ipv6".
std::string switch_path(const char* family, const std::string& interface, const char* name);

/// Writes `value` into a sysctl. Errors: not_found, denied.
Result<void> set_switch(const std::string& path, const std::string& value);

bool is_off(const std::string& path);

}  // namespace berth::network
