// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"

/// The terminal of the user, the standard streams, and the working directory.
namespace berth::sys {

enum class Echo { on, off };
/// Writes `prompt` to /dev/tty and reads one line from there, without its newline. Restores the
/// echo even if a signal ends the program meanwhile.
/// Errors: not_found (there is no terminal), interrupted (end of file), io. tcsetattr(3)
Result<std::string> ask(std::string_view prompt, Echo echo);

/// Writes to a standard stream. Errors: io. write(2)
Result<void> write_stream(int fd, std::string_view text);

/// The working directory. Errors: not_found (it was removed). getcwd(3)
Result<std::string> working_directory();

}  // namespace berth::sys
