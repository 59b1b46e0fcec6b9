// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.hpp"

namespace berth::sys {

/// The host name in the UTS namespace of this process. uname(2)
Result<std::string> host_name();

/// The kernel's: "6.1.0-18-amd64". uname(2)
Result<std::string> kernel_release();

}  // namespace berth::sys
