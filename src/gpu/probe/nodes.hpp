// SPDX-License-Identifier: Apache-2.0
// Device nodes of a machine: those in /dev, and where a tree is synthetic those of its table.
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

/// A row of a synthetic tree's dev/nodes: "path major minor mode", the mode octal.
/// Errors: corrupt, with the line.
Result<std::vector<Node>> parse_node_table(std::string_view text);

class NodeFinder {
 public:
  /// Reads /proc/devices and the table. `problems` outlives the finder.
  /// Errors: corrupt (the table), io.
  static Result<NodeFinder> open(const DriverRoot& root, std::vector<std::string>& problems);

  /// Of the driver with this name in /proc/devices.
  std::optional<uint32_t> major_of(const std::string& driver) const;

  /// The node that must have these numbers: that of /dev when it has them, else one to be made,
  /// which is_absent() then tells. A node with other numbers is a problem: it would open another
  /// device.
  Node expect(const std::string& path, uint32_t major, uint32_t minor, uint32_t mode);
  bool is_absent(const Node& node) const { return absent_.contains(node.path); }

  /// A node whose numbers only it knows.
  std::optional<Node> find(const std::string& path) const;
  /// Those in `directory` whose name is `prefix` and a number, by that number.
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

/// A number between blanks; nothing for anything else.
std::optional<uint32_t> parse_u32(std::string_view text);

}  // namespace berth::gpu
