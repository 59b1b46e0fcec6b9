// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "engine/node/match.hpp"

namespace berth::cli {

/// The page of `match --fleet --html`: a row for each node, a column for each image, and below them
/// the reasons. One file without scripts, for a browser without a network. Pure.
class MatchPage {
 public:
  /// Adds the column of `image`. `answers` are of the same nodes each time, in the same order.
  void add(std::string image, const std::vector<engine::Answer>& answers);
  std::string text() const;

 private:
  struct Reason {
    match::Outcome outcome;
    std::string reason, remedy, lift;
    uint64_t count = 0;
    std::string example;  ///< "app:1.0 on node17"
  };
  struct Cell {
    match::Outcome outcome = match::Outcome::pass;
    size_t reason = 0;  ///< from 1 on; 0: none
    std::string label;  ///< of the chosen entry; empty: there is only one
  };
  struct Node {
    std::string name, hardware;
  };
  Cell cell_of(const std::string& image, const engine::Answer& answer);
  size_t number_of(Reason reason);

  std::vector<Node> nodes_;
  std::vector<std::string> images_;
  std::vector<std::vector<Cell>> cells_;  ///< by image, by node
  std::vector<Reason> reasons_;
  std::map<std::pair<match::Outcome, std::string>, size_t> numbers_;
};

}  // namespace berth::cli
