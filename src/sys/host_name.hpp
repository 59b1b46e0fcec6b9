// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.hpp"

namespace berth::sys {

/// The machine's name as the UTS namespace of this process has it. uname(2)
Result<std::string> host_name();

}  // namespace berth::sys
