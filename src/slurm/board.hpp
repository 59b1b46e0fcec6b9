// SPDX-License-Identifier: Apache-2.0
// How the nodes of a step find a node to fetch an image from (docs/decisions/0166): srun keeps a
// board, to which each node reports its address, and which answers with the nodes to ask. Pure:
// messages, the tree, and the order of answers.
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

/// The variable with which srun tells the nodes of a step about its board. Slurm passes on
/// variables that begin with SLURM_, whatever --export says.
inline constexpr const char* kBoardVariable = "SLURM_BERTH_BOARD";

/// How many nodes fetch from one. They share its bandwidth, so few are fast; that a tree of 1,024
/// nodes is then ten deep costs little, as bytes are passed on while they arrive (./dev bench
/// fetch).
inline constexpr uint32_t kArity = 2;
inline constexpr uint32_t kMaxNodes = 1 << 20;
inline constexpr size_t kMaxLine = 512;  ///< of a message, with its newline
inline constexpr size_t kSecretDigits = 64;

/// The node from which `node` fetches; 0 for node 0, which asks the registry.
uint32_t parent_of(uint32_t node, uint32_t arity);
/// Whether another of `nodes` fetches from this one.
bool has_children(uint32_t node, uint32_t nodes, uint32_t arity);

/// The value of kBoardVariable: "2:PORT:ARITY:DOOR:KEY". Both secrets are kSecretDigits hexadecimal
/// digits.
struct Invitation {
  uint16_t port = 0;
  uint32_t arity = kArity;
  std::string door;  ///< sent to the board, so an impostor that listens in its place learns it: it
                     ///< opens nothing else
  std::string key;   ///< of the TLS between the nodes, and never sent
};
std::string to_text(const Invitation& invitation);
/// Errors: corrupt (another form).
Result<Invitation> parse_invitation(std::string_view text);

/// "10.1.2.3:4567", "[fd00::1]:4567": only digits and separators, safe in a URL.
bool is_address(std::string_view text);

/// The first message of a node: "join DOOR NODE NODES ADDRESS".
struct Hello {
  std::string door;
  uint32_t node = 0;
  uint32_t nodes = 0;
  std::string address;  ///< where it serves; empty, "-" on the line: nowhere
};
std::string to_line(const Hello& hello);
/// `line` is without its newline.  Errors: corrupt (another form, an invalid node).
Result<Hello> parse_hello(std::string_view line);

/// The answer: "from ADDRESS…", or "later".
struct Directions {
  bool later = false;             ///< too many are waiting: retry
  std::vector<std::string> from;  ///< the nodes to ask, the nearest first; empty: the registry
};
std::string to_line(const Directions& directions);
/// Errors: corrupt (another form, an invalid address, more than 32).
Result<Directions> parse_directions(std::string_view line);

/// The connections (guests), and which of them wait for an answer.
class Board {
 public:
  using Time = std::chrono::milliseconds;  ///< of a monotonic clock

  /// How long a node waits for its parent, and for any ancestor at all. After that the present ones
  /// are used, or the registry.
  static constexpr Time kForParent{10'000};
  static constexpr Time kForAnybody{60'000};

  Board(std::string door, uint32_t arity) : door_(std::move(door)), arity_(arity) {}

  /// Errors: denied (another door), corrupt (no message).
  Result<void> arrive(int guest, std::string_view line, Time now);
  /// It has disconnected without an answer, or was told "later".
  void leave(int guest) { waiting_.erase(guest); }

  struct Answer {
    int guest = -1;
    Directions directions;
  };
  /// The answers that are possible now, each once.
  std::vector<Answer> answers(Time now);
  /// When an answer becomes possible without another arrival; nothing: never.
  std::optional<Time> next() const;
  /// The guest that has waited longest; nothing: none waits.
  std::optional<int> oldest() const;

 private:
  struct Waiting {
    uint32_t node;
    Time since;
  };
  std::optional<Directions> directions_of(const Waiting& one, Time now) const;

  const std::string door_;
  const uint32_t arity_;
  std::map<uint32_t, std::string> places_;  // addresses by node, of all arrivals
  std::map<int, Waiting> waiting_;          // by guest
};

}  // namespace berth::slurm
