// SPDX-License-Identifier: Apache-2.0
// Code for GPUs within files: what it was made for, read from headers alone.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string_view>

#include "base/result.hpp"
#include "facts/facts.hpp"
#include "scan/elf.hpp"

namespace berth::facts {

struct FoundCode {
  std::set<GpuCode> code;
  bool zstd = false;      ///< some of it is packed with zstd
  uint64_t members = 0;   ///< of all that was read
  uint64_t unpacked = 0;  ///< of them, whose first bytes were looked into
};

/// e_machine of NVIDIA's code objects, "cubins".
inline constexpr uint16_t kMachineCuda = 190;

/// Reads the containers that follow one another in `size` bytes from `offset` on: the sections
/// .nv_fatbin and __nv_relfatbin. Every header is read, no payload beyond its first bytes.
/// Errors: corrupt (a container or member that leads outside, or more members than any has), those
/// of `read_at`. What was found before an error stays in `found`.
/// Source: docs/decisions/0118-reading-gpu-code.md
Result<void> read_fat_binaries(const scan::ReadAt& read_at, uint64_t offset, uint64_t size,
                               FoundCode& found);

/// What a cubin was made for, from its first 64 bytes; nothing where it is none. Compilers since
/// CUDA 13 do not tell a suffix there.
std::optional<GpuCode> cubin_target(std::string_view header);

/// The same of a cubin that is a file of its own, with the suffix that its compiler's note tells.
/// Errors: those of `read_at`.
Result<std::optional<GpuCode>> read_cubin(const scan::ReadAt& read_at);

/// Reads the bundles of code for AMD's GPUs that follow one another, the section .hip_fatbin: in
/// the open, or packed with zstd.
/// Errors: corrupt, unsupported (packed with zlib), those of `read_at`.
/// Source: clang docs/ClangOffloadBundler.rst
Result<void> read_offload_bundles(const scan::ReadAt& read_at, uint64_t offset, uint64_t size,
                                  FoundCode& found);

}  // namespace berth::facts
