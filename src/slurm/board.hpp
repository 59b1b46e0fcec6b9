// SPDX-License-Identifier: Apache-2.0
// How the nodes of a step find a node to fetch an image from (docs/decisions/0166): srun runs a
// board; each node reports its address to the board, and the board answers with the nodes to ask.
// This file has the messages, the tree and the order of the answers. Pure.
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

/// The variable with which srun tells the nodes of a step about its board. Slurm passes variables
/// that begin with SLURM_ on to the nodes regardless of --export.
inline constexpr const char* kBoardVariable = "SLURM_BERTH_BOARD";

/// How many nodes fetch from one node. They share the bandwidth of that node, so a small number is
/// fast. A tree of 1,024 nodes is then ten levels deep, which costs little, because each node
/// passes bytes on while they arrive (./dev bench fetch).
inline constexpr uint32_t kArity = 2;
inline constexpr uint32_t kMaxNodes = 1 << 20;
inline constexpr size_t kMaxLine = 512;  ///< of a message, including the newline
inline constexpr size_t kSecretDigits = 64;

/// The node from which `node` fetches; 0 for node 0, which asks the registry.
uint32_t parent_of(uint32_t node, uint32_t arity);
/// Whether another of the `nodes` nodes fetches from `node`.
bool has_children(uint32_t node, uint32_t nodes, uint32_t arity);

/// The value of kBoardVariable: "2:PORT:ARITY:DOOR:KEY". Both secrets are kSecretDigits hexadecimal
/// digits.
struct Invitation {
  uint16_t port = 0;
  uint32_t arity = kArity;
  std::string door;  ///< sent to the board: an impostor at the board's port learns it, but it gives
                     ///< access to nothing else
  std::string key;   ///< for TLS between the nodes; never sent
};
std::string to_text(const Invitation& invitation);
/// Errors: corrupt (not of this form).
Result<Invitation> parse_invitation(std::string_view text);

/// Whether `text` has the form "10.1.2.3:4567" or "[fd00::1]:4567": safe in a URL.
bool is_address(std::string_view text);

/// The first message of a node: "join DOOR NODE NODES ADDRESS".
struct Hello {
  std::string door;
  uint32_t node = 0;
  uint32_t nodes = 0;
  std::string address;  ///< where it serves; empty ("-" in the message): nowhere
};
std::string to_line(const Hello& hello);
/// `line` is without the newline.  Errors: corrupt (not of this form, an invalid node).
Result<Hello> parse_hello(std::string_view line);

/// The answer: "from ADDRESS…", or "later".
struct Directions {
  bool later = false;             ///< too many nodes are waiting: retry
  std::vector<std::string> from;  ///< the nodes to ask, the nearest first; empty: the registry
};
std::string to_line(const Directions& directions);
/// Errors: corrupt (not of this form, an invalid address, more than 32).
Result<Directions> parse_directions(std::string_view line);

/// The state of a board: the reported addresses, and the connections (guests) that wait for an
/// answer.
class Board {
 public:
  using Time = std::chrono::milliseconds;  ///< of a monotonic clock

  /// How long a node waits until its parent has arrived, and until any ancestor has. After that the
  /// node is sent to the ancestors that have arrived, or to the registry.
  static constexpr Time kForParent{10'000};
  static constexpr Time kForAnybody{60'000};

  Board(std::string door, uint32_t arity) : door_(std::move(door)), arity_(arity) {}

  /// Handles the first message of a guest. Errors: denied (a wrong door secret, or a node that has
  /// arrived with another address), corrupt (not a message).
  Result<void> arrive(int guest, std::string_view line, Time now);
  /// Call if the guest has disconnected without an answer, or was answered "later".
  void leave(int guest) { waiting_.erase(guest); }

  struct Answer {
    int guest = -1;
    Directions directions;
  };
  /// The answers that are possible now; each is returned only once.
  std::vector<Answer> answers(Time now);
  /// The time when an answer becomes possible without another arrival; nothing: never.
  std::optional<Time> next() const;
  /// The guest that has waited longest; nothing: no guest waits.
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
