// SPDX-License-Identifier: Apache-2.0
#include "engine/system/doctor.hpp"

#include "base/text.hpp"
#include "cli/berth/common.hpp"
#include "cli/berth/show/doctor_text.hpp"
#include "engine/state/log_end.hpp"
#include "known_error/find.hpp"

namespace berth::cli {
namespace {

struct DoctorOptions {
  bool quiet = false;
  std::optional<std::string> log;
  std::string format = "text";
};

FlagTable doctor_flags(DoctorOptions& o) {
  return {
      {"quiet", 'q', "", "Show only problems and warnings", &o.quiet},
      choice_flag("format", "FORMAT", "Output format: text or json", &o.format, {"text", "json"}),
      file_flag("log", 0, "Diagnose a program's output, from any engine; '-' for stdin", &o.log),
  };
}

Result<doctor::Scope> scope_of(const std::vector<std::string>& arguments) {
  if (arguments.empty()) return doctor::Scope::everything;
  if (arguments[0] == "gpu") return doctor::Scope::gpu;
  return unknown_word("subject", arguments[0], {"gpu"}, "berth doctor");
}

Result<int> run_log(Session& session, const DoctorOptions& o) {
  auto found = known_error::find(TRY(engine::read_log_end(*o.log)));
  auto answers = log_answers(found);
  if (o.format == "json") {
    print_json(session, doctor_json(answers));
  } else {
    session.terminal.write_as_is(Stream::out, log_text(found, look_of(session, o.quiet)));
  }
  return count_of(answers, doctor::Status::problem) > 0 ? 1 : 0;
}

Result<int> run_doctor(Session& session, const DoctorOptions& o, Arguments arguments) {
  if (o.log && !arguments.empty()) {
    return make_error(Kind::usage, "'--log' cannot be used together with " + quote(arguments[0]));
  }
  if (o.log) return run_log(session, o);
  doctor::Scope scope = TRY(scope_of(arguments));
  auto answers = engine::examine(session.context, scope);
  int status = count_of(answers, doctor::Status::problem) > 0 ? 1 : 0;
  if (o.format == "json") {
    print_json(session, doctor_json(answers));
    return status;
  }
  session.terminal.write_as_is(Stream::out, doctor_text(answers, look_of(session, o.quiet)));
  return status;
}

}  // namespace

const Verb doctor_verb{
    .text = {.name = "doctor",
             .arguments = "[gpu]",
             .summary = "Find problems that keep containers or GPUs from working here",
             .example = "berth doctor gpu",
             .words = "gpu"},
    .arity = {0, 1},
    .store = Store::none,
    .error_status = 125,
    .command = [] { return make_command(doctor_flags, run_doctor); },
};

}  // namespace berth::cli
