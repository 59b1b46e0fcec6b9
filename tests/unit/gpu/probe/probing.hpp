// SPDX-License-Identifier: Apache-2.0
// Inventories of synthetic trees.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "gpu/probe/probe.hpp"
#include "unit/gpu/driver_tree.hpp"

namespace berth::gpu::testing {

class Warnings final : public Log {
 public:
  void warn(const std::string& text) override { lines.push_back(text); }
  void debug(const std::string&) override {}
  std::vector<std::string> lines;
};

inline ProbeOptions options_for(const DriverTree& tree, bool nvml) {
  ProbeOptions options;
  options.driver_root = tree.root();
  if (nvml) options.probe_program = build_directory() + "/bin/berth-gpu-probe";
  return options;
}

inline Inventory inventory_of(const DriverTree& tree, bool nvml = false) {
  NullLog log;
  auto inventory = probe(options_for(tree, nvml), log);
  EXPECT_TRUE(inventory.ok()) << to_line(inventory.error());
  return inventory.ok() ? *inventory : Inventory{};
}

inline const DriverFile* find_file(const Inventory& inventory, const std::string& name,
                                   bool elf32 = false) {
  for (const DriverFile& file : inventory.files) {
    if (file.name == name && file.elf32 == elf32) return &file;
  }
  return nullptr;
}

inline bool has_problem(const Inventory& inventory, const std::string& part) {
  for (const std::string& problem : inventory.problems) {
    if (problem.find(part) != std::string::npos) return true;
  }
  return false;
}

}  // namespace berth::gpu::testing
