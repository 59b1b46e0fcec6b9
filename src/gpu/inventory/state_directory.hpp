// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

namespace berth::gpu {

/// The caller's user id outside of its user namespace; nothing for root of the machine.
std::optional<unsigned> calling_user();

/// The directory for Berth's volatile state: /run/berth for the machine's root, else
/// `runtime_directory`/berth if that is an absolute path of a directory that this user owns, else
/// /tmp/berth-<user>.
std::string state_directory(std::optional<unsigned> user, const std::string& runtime_directory);

/// state_directory() for the calling user and $XDG_RUNTIME_DIR.
std::string default_state_directory();

}  // namespace berth::gpu
