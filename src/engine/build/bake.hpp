// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "bake/bake_file.hpp"
#include "bake/compare.hpp"
#include "base/result.hpp"
#include "engine/build/bake_request.hpp"
#include "engine/context/context.hpp"
#include "image/transfer_protocol.hpp"
#include "match/rank.hpp"
#include "match/verdict.hpp"

/// Builds an index of image variants, the cells of a bake file: `berth bake`.
namespace berth::engine {

enum class CellState {
  waiting,
  building,   ///< or the image that the cell adopts is being pulled
  checking,   ///< being loaded, scanned and compared
  built,      ///< built in this run; its declaration is true
  unchanged,  ///< built earlier, from the same inputs
  changed,    ///< in a dry run or a merge: still to be built
  lies,       ///< the findings contradict the declaration
  failed,
};
std::string to_json_text(CellState state);

struct CellReport {
  bake::Cell cell;
  CellState state = CellState::waiting;
  Digest inputs;          ///< over all inputs of the cell; empty: unknown
  std::string digest;     ///< of the cell's manifest; empty: none yet
  std::string reference;  ///< in the store: "repo:1.0.cell-v3"; empty: not there
  std::string text;       ///< why the cell has this state, in one line; may be empty
  std::vector<bake::Finding> findings;
  std::string log;      ///< the file with the output of the build; empty: none
  std::string log_end;  ///< the last lines of `log`, if the build failed
  double seconds = 0;
};

struct BakeReport {
  std::string image;              ///< canonical
  std::string digest;             ///< of the index; empty: not published
  std::vector<CellReport> cells;  ///< in the order of the index

  bool has(CellState state) const;
};

/// Called once for each cell at the start, then whenever the state of a cell changes.
using BakeProgress = std::function<void(const BakeReport& all, const CellReport& changed)>;

/// A cell in state `failed` or `lies` prevents the publication of the index, but not the build of
/// other cells. Finished cells are kept, so the next call continues from there.
/// Errors: usage and corrupt (the bake file), not_found (no cell has that name), interrupted, and
/// those of the registry. The error of a single cell is in the report of that cell.
Result<BakeReport> bake(const Context& context, const BakeRequest& request,
                        const BakeProgress& progress);

/// The cell that one node would choose.
struct BakeTake {
  std::string node;
  std::string cell;  ///< empty: none
  match::Outcome outcome = match::Outcome::fail;
  std::string reason;
};
/// Ranks the cells by their declarations; for cells in the store, also by the findings.
/// Errors: those of bake() and node::load_fleet().
Result<std::vector<BakeTake>> bake_fleet(const Context& context, const BakeReport& report,
                                         const std::string& directory);

}  // namespace berth::engine
