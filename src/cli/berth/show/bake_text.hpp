// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "cli/berth/verb.hpp"
#include "cli/core/terminal.hpp"
#include "engine/build/bake.hpp"
#include "json/value.hpp"

/// The output of `berth bake`.
namespace berth::cli {

/// Exit statuses of `berth bake` besides 0 and 1.
inline constexpr int kCellFailed = 20, kCellLies = 21, kCellMissing = 22, kNodeUncovered = 12;

/// 0: published, or everything requested exists.
int bake_status(const engine::BakeReport& report, const engine::BakeRequest& request);

/// CELL, FOR, STATE, DIGEST, TIME, BECAUSE.
std::string bake_table(const engine::BakeReport& report);

/// A cell on one line: {"event": "cell", …}.
json::Value cell_json(const engine::CellReport& cell);

/// A table that is redrawn on a terminal, lines on a pipe, JSON lines on request; the last output
/// of a failed build is shown above.
class BakeDisplay {
 public:
  BakeDisplay(Session& session, bool live, bool json);
  BakeDisplay(BakeDisplay&&) = delete;
  ~BakeDisplay() { finish(); }

  engine::BakeProgress progress();
  /// Further output is printed below the table.
  void finish();

 private:
  void show(const engine::BakeReport& all, const engine::CellReport& changed);
  void show_log(const engine::CellReport& cell);

  enum class Mode { none, table, lines, json };
  Session& session_;
  Mode mode_;
  LiveLines lines_;
};

/// The final message: what was published, or why not.
void print_end(Session& session, const engine::BakeReport& report,
               const engine::BakeRequest& request, bool json);

/// NODE, TAKES, VERDICT, BECAUSE; then cells that no node takes. Returns the exit status: 12 if a
/// node has none.
int print_fleet(Session& session, const engine::BakeReport& report,
                const std::vector<engine::BakeTake>& takes, bool json);

}  // namespace berth::cli
