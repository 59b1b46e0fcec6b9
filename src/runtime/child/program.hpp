// SPDX-License-Identifier: Apache-2.0
// Runs as: the container's first process, inside its root. Capabilities: those of the config from
// set_capabilities() on. Hostile: all files; also args, env and cwd of the config, which may come
// from an image.
#pragma once

#include "base/result.hpp"
#include "runtime/child/inside.hpp"

namespace berth::runtime {

// One function per step of plan/plan.hpp.

/// Opens the working directory inside the root, makes it when missing, and enters it. If only the
/// container's user may enter it, set_identity() tries again.
Result<void> enter_directory(Inside& inside, const plan::EnterDirectory& step);
Result<void> set_identity(Inside& inside, const plan::SetIdentity& step,
                          const plan::EnterDirectory& directory);
Result<void> set_capabilities(const plan::SetCapabilities& step);

/// Finds the program as execvp would, and keeps it in `inside`.
/// Errors: not_found ("execute 'x': executable file not found in $PATH"), denied (no permission, a
/// directory).
Result<void> find_program(Inside& inside, const plan::FindProgram& step);

/// Keeps the home of the user in `inside`: from /etc/passwd, else "/", or "/root" for root.
Result<void> find_home(Inside& inside, const plan::FindHome& step);

/// Tells the parent that the process is ready and waits for `start`.
Result<void> await_start(Inside& inside);

/// Executes the container's program; returns only on failure.
Error execute(Inside& inside, const plan::Execute& step);

}  // namespace berth::runtime
