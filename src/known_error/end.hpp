// SPDX-License-Identifier: Apache-2.0
// Finds the reason for a container's end, from the facts left behind. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "known_error/find.hpp"

namespace berth::known_error {

/// How a container ended.
struct End {
  int status = 0;        ///< 128 + n for a signal
  bool stopped = false;  ///< a user ended it
  bool oom_killed = false;
};

/// Facts about the machine and the image; callers fill in what they know. Empty: unknown.
struct Circumstances {
  std::string processor = {};  ///< "Intel(R) Xeon(R) Platinum 8480C"
  uint32_t cpu_level = 0;      ///< of x86-64, 1 … 4
  std::string needs = {};      ///< the program's known requirement: "x86-64-v4 (/usr/bin/app)"
  std::string machine = {};    ///< architecture, by the image-spec's name: "amd64"
  std::string image = {};      ///< that of the image
};

/// Whether a failure can be due to image and machine at all: not after success, nor if a user or
/// the kernel's OOM killer ended it.
bool is_own_failure(const End& end);

/// The reason to report for an end with `log` (its last bytes; empty: none), or nothing. With
/// SIGILL there always is one.
std::optional<Found> reason_of(const End& end, std::string_view log,
                               const Circumstances& circumstances);

/// A SIGILL, with the known facts about program and processor.
Found illegal_instruction(const Circumstances& circumstances);

/// Why the kernel refused to execute the command (ENOEXEC).
Found no_program(const Circumstances& circumstances);

/// Why an existing `program` was not found (ENOENT): `interpreter`, its ELF loader or the program
/// in a script's first line, is missing.  elf(5) PT_INTERP, execve(2) "Interpreter scripts"
enum class Interpreter { loader, of_script };
Found no_interpreter(Interpreter kind, std::string_view program, std::string_view interpreter);

}  // namespace berth::known_error
