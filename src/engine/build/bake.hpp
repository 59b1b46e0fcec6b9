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

/// Builds one index of variants from a bake file: `berth bake`.
namespace berth::engine {

enum class CellState {
  waiting,
  building,   ///< or being pulled, if adopted
  checking,   ///< being loaded, scanned and compared
  built,      ///< built now, and its declaration is true
  unchanged,  ///< made from the same inputs before
  changed,    ///< in a dry run or a merge: still to be built
  lies,       ///< the findings contradict the declaration
  failed,
};
std::string to_json_text(CellState state);

struct CellReport {
  bake::Cell cell;
  CellState state = CellState::waiting;
  Digest inputs;          ///< over all its inputs; empty: unknown
  std::string digest;     ///< of its manifest; empty: none yet
  std::string reference;  ///< in the store: "repo:1.0.cell-v3"; empty: not there
  std::string text;       ///< the reason, in one line; may be empty
  std::vector<bake::Finding> findings;
  std::string log;      ///< the file with the output of its build; empty: none
  std::string log_end;  ///< its last lines, if the build failed
  double seconds = 0;
};

struct BakeReport {
  std::string image;              ///< canonical
  std::string digest;             ///< of the index; empty: not published
  std::vector<CellReport> cells;  ///< in the order of the index

  bool has(CellState state) const;
};

/// Called whenever a cell's state changes, and first for all cells.
using BakeProgress = std::function<void(const BakeReport& all, const CellReport& changed)>;

/// A cell that fails or lies prevents the publication of the index, but not the build of other
/// cells. Finished cells are kept, so the next call continues from there.
/// Errors: usage and corrupt (the bake file), not_found (a cell of that name), interrupted, and
/// those of the registry; an error of one cell is in its report.
Result<BakeReport> bake(const Context& context, const BakeRequest& request,
                        const BakeProgress& progress);

/// The cell that one node would choose.
struct BakeTake {
  std::string node;
  std::string cell;  ///< empty: none
  match::Outcome outcome = match::Outcome::fail;
  std::string reason;
};
/// Ranks by the cells' declarations, and by the findings for those in the store.
/// Errors: those of bake() and node::load_fleet().
Result<std::vector<BakeTake>> bake_fleet(const Context& context, const BakeReport& report,
                                         const std::string& directory);

}  // namespace berth::engine
