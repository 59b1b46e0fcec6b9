// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace berth::oci {

/// The flag of `docker run` for a member of linux.resources: "cpu.quota" → "--cpus". Empty if there
/// is none.  docs.docker.com/reference/cli/docker/container/run
std::string_view flag_of_limit(std::string_view member);

/// Replaces the members of linux.resources in an error or warning by their flags:
/// "linux.resources.cpu.quota: no permission" → "--cpus: no permission".
std::string name_flags(std::string text);

}  // namespace berth::oci
