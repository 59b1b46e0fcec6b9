// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "cli/berth/verb.hpp"
#include "cli/core/terminal.hpp"
#include "engine/build/bake.hpp"
#include "json/value.hpp"

/// The output of `berth bake`. A cell is one of the images that it builds.
namespace berth::cli {

/// The exit statuses of `berth bake`, in addition to 0 and 1.
inline constexpr int kCellFailed = 20, kCellLies = 21, kCellMissing = 22, kNodeUncovered = 12;

/// The exit status. 0: the index was published, or everything requested exists.
int bake_status(const engine::BakeReport& report, const engine::BakeRequest& request);

/// A table with the columns CELL, FOR, STATE, DIGEST, TIME, BECAUSE.
std::string bake_table(const engine::BakeReport& report);

/// A cell on one line: {"event": "cell", …}.
json::Value cell_json(const engine::CellReport& cell);

/// Shows the progress: a table that is redrawn on a terminal, lines on a pipe, JSON lines on
/// request. The last output of a failed build is printed above.
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

/// Prints a table with the columns NODE, TAKES, VERDICT, BECAUSE, then the cells that no node
/// takes. Returns the exit status: 12 if no cell runs on one of the nodes.
int print_fleet(Session& session, const engine::BakeReport& report,
                const std::vector<engine::BakeTake>& takes, bool json);

}  // namespace berth::cli
