// SPDX-License-Identifier: Apache-2.0
#include "known_error/end.hpp"

#include <algorithm>
#include <array>

#include "base/text.hpp"

namespace berth::known_error {
namespace {

constexpr int kSignal = 128;
constexpr int kIllegalInstruction = kSignal + 4;
/// Signals that a program causes itself: ILL, TRAP, ABRT, BUS, FPE, SEGV, SYS.
constexpr std::array<int, 7> kOwnSignals = {4, 5, 6, 7, 8, 11, 31};
constexpr int kLastSignal = 64;

/// "Intel(R) Xeon(R), x86-64-v3"; empty if neither is known.
std::string processor_of(const Circumstances& known) {
  std::string out = known.processor;
  if (known.cpu_level > 0) {
    out += out.empty() ? "" : ", ";
    out += known.cpu_level == 1 ? "x86-64" : "x86-64-v" + std::to_string(known.cpu_level);
  }
  return out;
}

/// Whether a known error explains a SIGILL better than the signal alone.
bool is_of_processor(const Found& found) {
  return found.id == "cpu.level" || found.id == "cpu.features" || found.id == "cpu.emulated";
}

}  // namespace

Found illegal_instruction(const Circumstances& known) {
  std::string processor = processor_of(known);
  std::string that = processor.empty() ? "this processor" : "this processor (" + processor + ")";
  Found found{.id = "cpu.illegal-instruction"};
  if (!known.needs.empty()) {
    found.why = "the program needs " + known.needs + ", which " + that + " does not have (SIGILL)";
  } else {
    found.why = "a program used an instruction that " + that +
                " does not have, or stopped itself with ud2 (SIGILL)";
  }
  found.remedy = known.cpu_level > 1 ? "a build for x86-64-v" + std::to_string(known.cpu_level) +
                                           " or lower, or another machine"
                                     : "a build for this processor, or another machine";
  return found;
}

bool is_own_failure(const End& end) {
  if (end.status == 0 || end.stopped || end.oom_killed) return false;
  int signal = end.status - kSignal;
  if (signal <= 0 || signal > kLastSignal) return true;
  return std::ranges::find(kOwnSignals, signal) != kOwnSignals.end();
}

std::optional<Found> reason_of(const End& end, std::string_view log, const Circumstances& known) {
  if (!is_own_failure(end)) return std::nullopt;
  std::vector<Found> all = find(log);
  if (end.status == kIllegalInstruction) {
    auto more = std::ranges::find_if(all, is_of_processor);
    return more != all.end() ? *more : illegal_instruction(known);
  }
  if (all.empty() || all.front().level == Level::sign) return std::nullopt;
  if (all.front().id == "cpu.illegal-instruction") {
    std::string text = std::move(all.front().text);
    all.front() = illegal_instruction(known);
    all.front().text = std::move(text);
  }
  return std::move(all.front());
}

Found no_program(const Circumstances& known) {
  Found found{.id = "cpu.architecture"};
  if (!known.image.empty() && !known.machine.empty() && known.image != known.machine) {
    found.why = "the image is for " + known.image + ", and this machine is " + known.machine;
    found.remedy = "an image that has " + known.machine + ", or --platform linux/" + known.machine;
    return found;
  }
  found.why =
      "the command is for another architecture than this machine's, or is a script without '#!'";
  found.remedy = "an image for this machine, or the shell before the script";
  return found;
}

Found no_interpreter(Interpreter kind, std::string_view program, std::string_view interpreter) {
  Found found{.id = "program.interpreter"};
  bool script = kind == Interpreter::of_script;
  found.why = quote(program) + " exists, but " + (script ? "its '#!' line names " : "its loader ") +
              quote(interpreter) + (script ? ", which does not exist" : " does not");
  found.remedy = script ? "an image that has it, or another program before the script"
                        : "an image for the C library of the program; where a layer has made a "
                          "directory of a link such as /lib64, one without that layer";
  return found;
}

}  // namespace berth::known_error
