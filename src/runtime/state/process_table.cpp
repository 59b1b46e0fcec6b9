// SPDX-License-Identifier: Apache-2.0
#include "runtime/state/process_table.hpp"

#include <algorithm>
#include <chrono>

#include "base/text.hpp"
#include "sys/file/file.hpp"
#include "sys/process/process.hpp"

namespace berth::runtime {
namespace {

// Not looked up in PATH: the environment must not decide which program is executed.
constexpr const char* kPrograms[] = {"/bin/ps", "/usr/bin/ps"};
constexpr std::chrono::seconds kTablePatience{60};

std::string list_text(const std::vector<pid_t>& processes) {
  std::string text;
  for (pid_t process : processes) text += (text.empty() ? "" : ",") + std::to_string(process);
  return text;
}

/// The output of ps, with at least `processes`.
Result<std::string> list_all(const std::vector<pid_t>& processes,
                             const std::vector<std::string>& words) {
  sys::SpawnOptions options;
  for (const char* program : kPrograms) {
    if (TRY(sys::stat_entry(sys::cwd(), program))) options.program = program;
  }
  if (options.program.empty()) return make_error(Kind::not_found, "execute '/bin/ps'");
  auto print = [&](const std::vector<std::string>& more) {
    options.args = {"ps"};
    options.args.insert(options.args.end(), words.begin(), words.end());
    options.args.insert(options.args.end(), more.begin(), more.end());
    options.env.emplace();
    return sys::run_command(options, "", kTablePatience);
  };
  // Without a selection such as -e, ps shows the processes of its own terminal. ps refuses some
  // selections together with -q; then only the user's selection is used.
  if (!words.empty() && !processes.empty()) {
    sys::CommandOutput printed = TRY(print({"-q", list_text(processes)}));
    if (printed.status.shell_code() == 0) return std::move(printed.out);
  }
  sys::CommandOutput printed =
      TRY(print(words.empty() ? std::vector<std::string>{"-ef"} : std::vector<std::string>()));
  if (printed.status.shell_code() == 0) return std::move(printed.out);
  return make_error(Kind::usage,
                    "execute 'ps': " + std::string(split(trim(printed.err), '\n').front()));
}

}  // namespace

Result<std::string> rows_of(const std::string& table, const std::vector<pid_t>& processes) {
  auto lines = split(table, '\n');
  auto heading = split_blank(lines.front());
  auto column = std::ranges::find(heading, "PID") - heading.begin();
  if (static_cast<size_t>(column) == heading.size()) {
    return make_error(Kind::usage, "find the column PID in the output of ps");
  }
  std::string text(lines.front());
  text += "\n";
  for (size_t i = 1; i < lines.size(); ++i) {
    auto words = split_blank(lines[i]);
    if (words.size() <= static_cast<size_t>(column)) continue;
    auto pid = parse_i64(words[static_cast<size_t>(column)]);
    bool ours = pid && std::ranges::find(processes, *pid) != processes.end();
    if (ours) text += std::string(lines[i]) + "\n";
  }
  return text;
}

Result<std::string> process_table(const std::vector<pid_t>& processes,
                                  const std::vector<std::string>& words) {
  std::string table = TRY(list_all(processes, words));
  return rows_of(table, processes);
}

}  // namespace berth::runtime
