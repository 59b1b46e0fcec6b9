// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace berth::oci {

/// Replaces the members of linux.resources in an error or warning by their flags:
/// "linux.resources.cpu.quota: no permission" → "--cpus: no permission".
std::string name_flags(std::string text);

}  // namespace berth::oci
