// SPDX-License-Identifier: Apache-2.0
// Why a container has ended, of what is known afterwards. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "complaint/complaint.hpp"

namespace berth::complaint {

/// How a container has ended.
struct End {
  int status = 0;        ///< 128 + n for a signal
  bool stopped = false;  ///< somebody asked for it
  bool oom_killed = false;
};

/// What is known of the machine and the image; whoever knows more fills in more. Empty: unknown.
struct Circumstances {
  std::string processor = {};  ///< "Intel(R) Xeon(R) Platinum 8480C"
  uint32_t cpu_level = 0;      ///< of x86-64, 1 … 4
  std::string needs = {};  ///< what the program is known to need of it: "x86-64-v4 (/usr/bin/app)"
  std::string machine = {};  ///< architecture, as the image-spec writes it: "amd64"
  std::string image = {};    ///< that of the image
};

/// Whether a failure can be of the image and the machine at all: not after success, nor when
/// somebody or the kernel's memory killer ended it.
bool is_own_failure(const End& end);

/// The one reason to be told for an end with `log` (its last bytes; empty: there is none), or
/// nothing. With SIGILL there is always one.
std::optional<Found> reason_of(const End& end, std::string_view log,
                               const Circumstances& circumstances);

/// A SIGILL, with what is known of program and processor.
Found illegal_instruction(const Circumstances& circumstances);

/// Why the kernel took the command for no program (ENOEXEC).
Found no_program(const Circumstances& circumstances);

/// Why a `program` that is there was not found (ENOENT): `interpreter`, the ELF loader or what a
/// script's first line names, is not.  elf(5) PT_INTERP, execve(2) "Interpreter scripts"
enum class Interpreter { loader, of_script };
Found no_interpreter(Interpreter kind, std::string_view program, std::string_view interpreter);

}  // namespace berth::complaint
