// SPDX-License-Identifier: Apache-2.0
// Files of code for AMD's GPUs that are not part of a program: ".hsaco", ".co".
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/result.hpp"
#include "facts/fat_binary.hpp"
#include "scan/elf.hpp"

namespace berth::facts {

/// e_machine of AMD's code objects.
inline constexpr uint16_t kMachineAmdGpu = 224;

/// The target of a code object, from its first 64 bytes: "gfx90a:xnack+"; nothing if it is not a
/// code object, or for a processor that is not known.
/// Source: LLVM docs/AMDGPUUsage.rst "Header", tables of e_flags
std::optional<GpuCode> code_object_target(std::string_view header);

/// Whether a file with these first bytes may be a bundle of code objects.
bool begins_like_bundle(std::string_view first_bytes);

/// Reads a file that is one bundle, plain or compressed: hipcc --genco.
/// Errors: corrupt (it is longer than its file), those of read_offload_bundles().
Result<void> read_bundle_file(const scan::ReadAt& read_at, FoundCode& found);

}  // namespace berth::facts
