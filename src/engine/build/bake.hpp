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
#include "match/choose.hpp"
#include "match/verdict.hpp"

/// From a bake file to one index of variants: `berth bake`.
namespace berth::engine {

enum class CellState {
  waiting,
  building,   ///< or being pulled, where it is adopted
  checking,   ///< loaded, looked through and compared
  built,      ///< made now, and what it declares holds
  unchanged,  ///< it was made of the same things before
  changed,    ///< of a dry run and a merge: it is still to be made
  lies,       ///< what was found contradicts what is declared
  failed,
};
std::string to_json_text(CellState state);

struct CellReport {
  bake::Cell cell;
  CellState state = CellState::waiting;
  Digest inputs;          ///< of all that it is made of; empty: could not be found out
  std::string digest;     ///< of its manifest; empty: not there
  std::string reference;  ///< in the store: "repo:1.0.cell-v3"; empty: not there
  std::string text;       ///< why, in a line; empty where there is nothing to say
  std::vector<bake::Finding> findings;
  std::string log;      ///< file with what its build has printed; empty: none
  std::string log_end;  ///< its last lines, of a build that has failed
  double seconds = 0;
};

struct BakeReport {
  std::string image;              ///< canonical
  std::string digest;             ///< of the index; empty: not published
  std::vector<CellReport> cells;  ///< in the order of the index

  bool has(CellState state) const;
};

/// Is called whenever a cell's state changes, and first for all of them.
using BakeProgress = std::function<void(const BakeReport& all, const CellReport& changed)>;

/// A cell that fails or lies keeps the index from being published, and no other cell from being
/// made; what is made is kept, so the next call goes on from there.
/// Errors: usage and corrupt (the bake file), not_found (a cell of that name), interrupted, and
/// those of the registry; what is wrong with one cell is told in its report.
Result<BakeReport> bake(const Context& context, const BakeRequest& request,
                        const BakeProgress& progress);

/// What one node would take of it.
struct BakeTake {
  std::string node;
  std::string cell;  ///< empty: none
  match::Outcome outcome = match::Outcome::fail;
  std::string reason;
};
/// By what the cells declare and, of those in the store, by what was found in them.
/// Errors: those of bake() and node::load_fleet().
Result<std::vector<BakeTake>> bake_fleet(const Context& context, const BakeReport& report,
                                         const std::string& directory);

}  // namespace berth::engine
