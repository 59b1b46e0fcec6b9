// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

namespace berth::gpu {

/// The caller's id outside of the user namespace that it is in; nothing for root of the machine.
std::optional<unsigned> calling_user();

/// Where Berth keeps what a reboot may take away: /run/berth for the machine's root, else
/// `runtime_directory`/berth where that is an absolute path of a directory of ours, else
/// /tmp/berth-<user>.
std::string state_directory(std::optional<unsigned> user, const std::string& runtime_directory);

/// The same for the calling user and $XDG_RUNTIME_DIR.
std::string default_state_directory();

}  // namespace berth::gpu
