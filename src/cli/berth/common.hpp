// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/berth/verb.hpp"
#include "cli/core/progress.hpp"
#include "cli/core/terminal.hpp"
#include "cli/core/words.hpp"
#include "engine/context/filter.hpp"
#include "engine/image/transfer.hpp"
#include "engine/state/outcome.hpp"
#include "json/value.hpp"

/// Shared by several verbs.
namespace berth::cli {

/// --format of lists that only Berth has: a table for people or JSON for programs.
Flag format_flag(std::string& target);

/// Options of a verb that has only --format.
struct FormatOptions {
  std::string format = "table";
};
FlagTable format_flags(FormatOptions& options);

/// --format of lists that docker has too (cli/template/listing.hpp).
Flag template_flag(std::string& target);

/// `given`, or if it is empty the format in docker's user configuration: `member` is "psFormat", …
std::string format_or_usual(const Session& session, const std::string& given,
                            std::string_view member);

/// --filter KEY=VALUE
Flag filter_flag(std::vector<engine::Filter>& target);

/// --detach-keys.
Flag detach_keys_flag(std::optional<std::string>& target);

/// Parses a time in the form of docker's --since and --until into nanoseconds since 1970.
ReadValue read_moment(std::optional<int64_t>& target);

/// --label K[=V]; adds each label to `target`.
ReadValue read_label(std::map<std::string, std::string>& target);

/// Options of stop and restart.
struct GraceOptions {
  std::optional<int64_t> grace;
};
FlagTable grace_flags(GraceOptions& options);

/// Prints a message if the detach keys were typed.
void print_detached(Session& session, const engine::RunOutcome& outcome);

/// Prints why the container failed, if known: "berth: why: …; try: …".
void print_reason(Session& session, const engine::RunOutcome& outcome);

/// --tls-ca and --insecure-registry.
void add_registry_flags(FlagTable& flags, image::RegistryAccess& access);

/// While this object exists, it draws the events of a transfer; warnings appear above the bars.
class TransferDisplay {
 public:
  TransferDisplay(Session& session, Stream stream, Direction direction, bool quiet);
  ~TransferDisplay();
  TransferDisplay(TransferDisplay&&) = delete;

  engine::Progress progress();
  /// Further output is printed below the bars.
  void finish();

 private:
  Session& session_;
  ProgressPrinter printer_;
};

/// Runs one engine call while a TransferDisplay shows its events.
Result<image::TransferResult> transfer_shown(Session& session, image::TransferRequest request,
                                             Stream stream, Direction direction, bool quiet);

/// The width of the terminal on stdout; 0: it is not a terminal.
size_t columns_of(const Session& session);

void print(Session& session, std::string_view text);          ///< to stdout
void print_json(Session& session, const json::Value& value);  ///< indented

/// Calls `act` for each argument in order, as docker does: reports a failure at once, continues
/// with the rest, and returns status 1 at the end.
int for_each_argument(Session& session, const std::vector<std::string>& arguments,
                      const std::function<Result<void>(const std::string&)>& act);

/// "2026-11-20T12:00:00Z"; null for an unknown time.
json::Value json_time(std::optional<int64_t> seconds);
json::Value json_strings(const std::vector<std::string>& strings);

std::string ago(int64_t seconds);  ///< human_ago() from now

/// Shows the progress of a command in one line below the warnings: for a layer "0123456789ab:
/// Converting 12MB of 300MB", otherwise the text of the last status event. Prints nothing if
/// standard error is not a terminal.
class WorkDisplay {
 public:
  /// `words`: what is done with layers: "Converting".
  WorkDisplay(Session& session, std::string words, bool quiet);
  ~WorkDisplay();
  WorkDisplay(WorkDisplay&&) = delete;

  engine::Progress progress();
  /// Removes the line.
  void finish();

 private:
  void draw(const std::string& line);

  Session& session_;
  std::string words_;
  bool shown_;
  LiveLines lines_;
  std::optional<std::chrono::steady_clock::time_point> drawn_at_;
};

}  // namespace berth::cli
