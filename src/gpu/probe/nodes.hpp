// SPDX-License-Identifier: Apache-2.0
// Device nodes of a machine: those in /dev, and those in the table of a synthetic tree.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "gpu/inventory/driver_root.hpp"
#include "gpu/inventory/inventory.hpp"

namespace berth::gpu {

/// Parses the dev/nodes of a synthetic tree: rows of "path major minor mode", the mode octal.
/// Errors: corrupt, with the line.
Result<std::vector<Node>> parse_node_table(std::string_view text);

class NodeFinder {
 public:
  /// Reads /proc/devices and the table. `problems` has to outlive the finder.
  /// Errors: corrupt (the table), io.
  static Result<NodeFinder> open(const DriverRoot& root, std::vector<std::string>& problems);

  /// The major of the driver with this name in /proc/devices.
  std::optional<uint32_t> major_of(const std::string& driver) const;

  /// The node with these numbers: the one in /dev if its numbers match, else a node to be made, for
  /// which is_absent() holds. A node with other numbers is added to `problems`: it would open
  /// another device.
  Node expect(const std::string& path, uint32_t major, uint32_t minor, uint32_t mode);
  bool is_absent(const Node& node) const { return absent_.contains(node.path); }

  /// The node at `path`, for devices with numbers that only the node itself shows.
  std::optional<Node> find(const std::string& path) const;
  /// The nodes in `directory` with names of the form `prefix`<N>, ordered by N.
  Result<std::vector<Node>> find_numbered(const std::string& directory,
                                          std::string_view prefix) const;

 private:
  NodeFinder(const DriverRoot& root, std::vector<std::string>& problems)
      : root_(&root), problems_(&problems) {}

  const DriverRoot* root_;
  std::vector<std::string>* problems_;
  std::map<std::string, uint32_t> majors_;
  std::vector<Node> table_;
  std::set<std::string> absent_;
};

/// "gi7" with prefix "gi" → 7.
std::optional<uint32_t> numbered(std::string_view name, std::string_view prefix);

/// Parses a number that blanks may surround; nothing for other strings.
std::optional<uint32_t> parse_u32(std::string_view text);

}  // namespace berth::gpu
