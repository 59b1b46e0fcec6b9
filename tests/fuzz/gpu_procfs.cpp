// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "gpu/inventory/kernel.hpp"
#include "gpu/probe/driver_capabilities.hpp"
#include "gpu/probe/files.hpp"
#include "gpu/probe/nodes.hpp"
#include "gpu/probe/nvml_facts.hpp"
#include "gpu/probe/program_version.hpp"

namespace {

namespace gpu = berth::gpu;

gpu::Inventory machine() {
  gpu::Inventory out;
  for (uint32_t i = 0; i < 2; ++i) {
    gpu::Gpu card;
    card.index = i;
    card.minor = 1 - i;
    for (uint32_t j = 0; j < 2; ++j) {
      gpu::MigDevice slice;
      slice.index = j;
      slice.gpu_instance = 7 + j;
      card.mig.push_back(slice);
    }
    out.gpus.push_back(card);
  }
  return out;
}

}  // namespace

// The texts of procfs and sysfs, and names of files: every reader gets all of them.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const gpu::Inventory kMachine = machine();
  std::string_view text(reinterpret_cast<const char*>(data), size);
  gpu::parse_labels(text);
  gpu::parse_majors(text);
  gpu::driver_versions_in(text);
  gpu::parse_module_version(text);
  gpu::parse_properties(text);
  gpu::kernel_pci_address(std::string(text));
  if (gpu::driver_version_of(text).size() > size) std::abort();
  auto node = gpu::parse_kfd_node(text);
  if (node && (node->partition > 15 || node->pci_address.size() > 20)) std::abort();
  for (const gpu::ProcText& row : gpu::mig_minor_rows(text, kMachine)) {
    if (row.text.size() > size + 1 || (row.gpu && *row.gpu > 1)) std::abort();
  }
  auto table = gpu::parse_node_table(text);
  if (table.ok()) {
    for (const gpu::Node& entry : *table) {
      if (!entry.path.starts_with('/') || entry.mode > 07777) std::abort();
    }
  }
  return 0;
}
