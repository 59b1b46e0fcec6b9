// SPDX-License-Identifier: Apache-2.0
// How the nodes of a step learn from which of them they have an image (docs/decisions/0166): srun
// keeps a board, on which each node says where it can be asked, and reads whom it is to ask. Pure:
// messages, the tree, and who is told what and when.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace berth::slurm {

/// The variable by which srun tells the nodes of a step of its board. Slurm passes on what begins
/// with SLURM_ whatever --export says.
inline constexpr const char* kBoardVariable = "SLURM_BERTH_BOARD";

/// How many nodes ask one. What one gives on they share, so few are fast; that a tree of 1,024
/// nodes is then ten deep costs little where bytes are given on while they come (./dev bench
/// fetch).
inline constexpr uint32_t kArity = 2;
inline constexpr uint32_t kMaxNodes = 1 << 20;
inline constexpr size_t kMaxLine = 512;  ///< of a message, with its newline
inline constexpr size_t kSecretDigits = 64;

/// The node that `node` asks; of node 0, which asks the registry, 0.
uint32_t parent_of(uint32_t node, uint32_t arity);
/// Whether another of `nodes` asks this one.
bool has_children(uint32_t node, uint32_t nodes, uint32_t arity);

/// The value of kBoardVariable: "2:PORT:ARITY:DOOR:KEY". Both secrets are kSecretDigits hexadecimal
/// digits.
struct Invitation {
  uint16_t port = 0;
  uint32_t arity = kArity;
  std::string door;  ///< said to the board, so a process that listens in its place learns it: it
                     ///< opens that alone
  std::string key;   ///< of the TLS between the nodes, and never sent
};
std::string to_text(const Invitation& invitation);
/// Errors: corrupt (another form).
Result<Invitation> parse_invitation(std::string_view text);

/// "10.1.2.3:4567", "[fd00::1]:4567": digits and separators alone, which may become a URL.
bool is_address(std::string_view text);

/// What a node says first: "join DOOR NODE NODES ADDRESS".
struct Hello {
  std::string door;
  uint32_t node = 0;
  uint32_t nodes = 0;
  std::string address;  ///< where it can be asked; empty, "-" on the line: nowhere
};
std::string to_line(const Hello& hello);
/// `line` is without its newline.  Errors: corrupt (another form, a node that is none).
Result<Hello> parse_hello(std::string_view line);

/// What it is told: "from ADDRESS…", or "later".
struct Directions {
  bool later = false;             ///< too many wait: it may ask again
  std::vector<std::string> from;  ///< whom to ask, the nearest first; empty: the registry
};
std::string to_line(const Directions& directions);
/// Errors: corrupt (another form, an address that is none, more than 32).
Result<Directions> parse_directions(std::string_view line);

/// The connections (guests), and those of them that wait for an answer.
class Board {
 public:
  using Time = std::chrono::milliseconds;  ///< of a clock that only goes forward

  /// How long a node waits for the one that it is to ask, and for any above it at all. Then those
  /// that are there are asked, or the registry.
  static constexpr Time kForParent{10'000};
  static constexpr Time kForAnybody{60'000};

  Board(std::string door, uint32_t arity) : door_(std::move(door)), arity_(arity) {}

  /// Errors: denied (another door), corrupt (no message).
  Result<void> arrive(int guest, std::string_view line, Time now);
  /// It has gone without an answer, or has been told "later".
  void leave(int guest) { waiting_.erase(guest); }

  struct Answer {
    int guest = -1;
    Directions directions;
  };
  /// What can be said now, each once.
  std::vector<Answer> answers(Time now);
  /// When there may be something to say although nobody comes; nothing: never.
  std::optional<Time> next() const;
  /// The one that has waited longest; nothing: none waits.
  std::optional<int> oldest() const;

 private:
  struct Waiting {
    uint32_t node;
    Time since;
  };
  std::optional<Directions> directions_of(const Waiting& one, Time now) const;

  const std::string door_;
  const uint32_t arity_;
  std::map<uint32_t, std::string> places_;  // addresses by node, of all that have come
  std::map<int, Waiting> waiting_;          // by guest
};

}  // namespace berth::slurm
