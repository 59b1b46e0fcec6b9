// SPDX-License-Identifier: Apache-2.0
// Finds out why a container ended, from its status, its log and facts about the machine. Pure.
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

/// Facts about the machine and the image. Callers fill in what they know; an empty member is
/// unknown.
struct Circumstances {
  std::string processor = {};  ///< "Intel(R) Xeon(R) Platinum 8480C"
  uint32_t cpu_level = 0;      ///< level of x86-64, 1 … 4
  std::string needs = {};      ///< the program's known requirement: "x86-64-v4 (/usr/bin/app)"
  std::string machine = {};    ///< architecture, by the image-spec's name: "amd64"
  std::string image = {};      ///< architecture of the image
};

/// Whether the end can be a failure that image and machine explain: not if the container succeeded,
/// or if a user or the kernel's OOM killer ended it.
bool is_own_failure(const End& end);

/// The reason to report for an end, or nothing. `log` is the end of the container's log; empty:
/// there is no log. After SIGILL there is always a reason.
std::optional<Found> reason_of(const End& end, std::string_view log,
                               const Circumstances& circumstances);

/// The reason for a SIGILL, with the known facts about program and processor.
Found illegal_instruction(const Circumstances& circumstances);

/// Why the kernel refused to execute the command (ENOEXEC).
Found no_program(const Circumstances& circumstances);

enum class Interpreter { loader, of_script };
/// Why the kernel did not find a `program` that exists (ENOENT): `interpreter` is missing, which is
/// the ELF loader of the program, or the program in the first line of a script.  elf(5) PT_INTERP,
/// execve(2) "Interpreter scripts"
Found no_interpreter(Interpreter kind, std::string_view program, std::string_view interpreter);

}  // namespace berth::known_error
