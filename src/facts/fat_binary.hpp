// SPDX-License-Identifier: Apache-2.0
// GPU code within files: its targets, read from headers only.
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
  bool zstd = false;      ///< some of it is compressed with zstd
  uint64_t members = 0;   ///< number of members read
  uint64_t unpacked = 0;  ///< number of members decompressed, in their first bytes
};

/// e_machine of NVIDIA's code objects, "cubins".
inline constexpr uint16_t kMachineCuda = 190;

/// Reads consecutive containers in `size` bytes from `offset` on: the sections .nv_fatbin and
/// __nv_relfatbin. Reads every header, and of payloads only the first bytes.
/// Errors: corrupt (a container or member beyond the section, or more members than any real one),
/// those of `read_at`. Results before an error stay in `found`.
/// Source: docs/decisions/0118-reading-gpu-code.md
Result<void> read_fat_binaries(const scan::ReadAt& read_at, uint64_t offset, uint64_t size,
                               FoundCode& found);

/// The target of a cubin, from its first 64 bytes; nothing if it is none. Compilers since CUDA 13
/// do not record the suffix there.
std::optional<GpuCode> cubin_target(std::string_view header);

/// The same for a cubin file, with the suffix from its compiler's note.
/// Errors: those of `read_at`.
Result<std::optional<GpuCode>> read_cubin(const scan::ReadAt& read_at);

/// Reads consecutive bundles of code for AMD's GPUs, the section .hip_fatbin: plain, or compressed
/// with zstd.
/// Errors: corrupt, unsupported (zlib), those of `read_at`.
/// Source: clang docs/ClangOffloadBundler.rst
Result<void> read_offload_bundles(const scan::ReadAt& read_at, uint64_t offset, uint64_t size,
                                  FoundCode& found);

}  // namespace berth::facts
