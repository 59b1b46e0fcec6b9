// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "gpu/inventory/inventory.hpp"

namespace berth::gpu {

/// A GPU, or one MIG slice or partition of it.
struct Selected {
  const Gpu* gpu = nullptr;
  const MigDevice* slice = nullptr;
  const Partition* partition = nullptr;

  bool operator==(const Selected&) const = default;
};

/// "GPU-…", "MIG-…", else "0" or "0:1": the name for programs and people.
std::string name_of(const Selected& selected);

/// "0", "0:1": the numbers of `berth gpu list`.
std::string index_of(const Selected& selected);

/// A key that a renumbering of GPUs does not change: "0000:1b:00.0", "0000:1b:00.0/7/0" for a
/// slice, "0000:1b:00.0/1" for a partition.
std::string key_of(const Selected& selected);

/// "NVIDIA", "AMD", "Intel".
std::string_view vendor_name(Vendor vendor);

}  // namespace berth::gpu
