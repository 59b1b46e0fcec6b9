// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace berth::sys {

/// Whether `path` is a file that this process may execute.
/// Errors: not_found, denied (a directory too).  stat(2), access(2)
Result<void> check_executable(const std::string& path);

/// Executes another program; returns only on failure. execve(2)
Error execute(const std::string& path, const std::vector<std::string>& args,
              const std::vector<std::string>& env);

/// Sets FD_CLOEXEC on every descriptor from `first` on. close_range(2)
Result<void> close_on_exec_from(unsigned first);

/// Closes every descriptor from `first` on except those in `kept`. Owners of the closed descriptors
/// must not be destroyed afterwards, so this is for a process that ends by exec or _exit.
Result<void> close_all_from(unsigned first, std::vector<int> kept);

/// The name that ps shows for this process; at most 15 bytes. prctl(2) PR_SET_NAME
void set_process_name(const char* name);

/// Our pid in our own pid namespace. getpid(2)
int own_pid();

/// Errors: not_found, denied.  kill(2)
Result<void> send_signal(int pid, int number);

/// Sets the default actions of all signals and unblocks them.
void reset_signals();
/// Lets SIGHUP, SIGINT, SIGQUIT and SIGTERM end this process until it executes another program,
/// even as the first process of a pid namespace, for which the kernel ignores default actions.
void end_on_signals();

/// The path of Berth's program `name` in `directory`. Errors: not_found (this installation lacks
/// it, for example because it was built with the CMake option `part` OFF).
Result<std::string> own_program(const std::string& directory, std::string_view name,
                                std::string_view part);

/// Runs `program --version`. Returns the line that ld.so(8) prints when a library, or a version of
/// a symbol, is missing on this system, with control characters escaped; empty in all other cases.
std::string loader_complaint(const std::string& program);

}  // namespace berth::sys
