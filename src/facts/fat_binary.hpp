// SPDX-License-Identifier: Apache-2.0
// The targets of GPU code within files, read from headers only.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "facts/facts.hpp"
#include "scan/elf.hpp"

namespace berth::facts {

/// GPU code that belongs together.
struct CodePiece {
  std::set<GpuCode> code;
  bool zstd = false;     ///< some of it is compressed with zstd
  uint32_t toolkit = 0;  ///< the highest cubin_toolkit() of its code objects

  void add(const CodePiece& other);
};

struct FoundCode : CodePiece {
  uint64_t members = 0;   ///< number of members read
  uint64_t unpacked = 0;  ///< number of members of which the first bytes were decompressed
};

/// Receives the offset of a container and its code.
using OnContainer = std::function<void(uint64_t at, const CodePiece& code)>;

/// e_machine of NVIDIA's code objects, "cubins".
inline constexpr uint16_t kMachineCuda = 190;

/// Reads consecutive fat binaries in `size` bytes from `offset` on: the content of the sections
/// .nv_fatbin and __nv_relfatbin. Reads every header, but only the first bytes of payloads.
/// Calls `done` after each container.
/// Errors: corrupt (a fat binary or member beyond the section, or more members than any real file
/// has), those of `read_at`. Results before an error stay in `found`.
/// Source: docs/decisions/0118-reading-gpu-code.md
Result<void> read_fat_binaries(const scan::ReadAt& read_at, uint64_t offset, uint64_t size,
                               FoundCode& found, const OnContainer& done = {});

inline constexpr std::string_view kFatBinaryMagic = "\x50\xed\x55\xba";

/// Reads a file that consists of fat binaries: nvcc -fatbin.
/// Errors: corrupt (it is shorter than its header says), those of read_fat_binaries().
Result<void> read_fat_binary_file(const scan::ReadAt& read_at, FoundCode& found);

/// The target of a cubin, from its first 64 bytes; nothing if it is not a cubin. Compilers since
/// CUDA 13 do not record the suffix ("a" in "90a") there.
std::optional<GpuCode> cubin_target(std::string_view header);

/// The compiler of a cubin, from its first 64 bytes: 124 for CUDA 12.4; 0: unknown. Compilers since
/// CUDA 13 do not record more than that: 130.
uint32_t cubin_toolkit(std::string_view header);

/// "12.4" for 124, "13" for 130 and above, of which the rest is not known; empty for 0.
std::string toolkit_text(uint32_t toolkit);

/// The target of a cubin file, with the suffix from the compiler's note in it.
/// Errors: those of `read_at`.
Result<std::optional<GpuCode>> read_cubin(const scan::ReadAt& read_at);

/// Reads the bundle of code for AMD's GPUs at `offset`, with `room` bytes up to the end of the
/// section. Returns its length; 0 if there is none, or if it does not tell (compressed, version 1).
/// Errors: as read_offload_bundles().
Result<uint64_t> read_first_bundle(const scan::ReadAt& read_at, uint64_t offset, uint64_t room,
                                   FoundCode& found);

/// Reads consecutive bundles of code for AMD's GPUs, plain or compressed with zstd: the content of
/// the section .hip_fatbin.
/// Errors: corrupt, unsupported (zlib), those of `read_at`.
/// Source: clang docs/ClangOffloadBundler.rst
Result<void> read_offload_bundles(const scan::ReadAt& read_at, uint64_t offset, uint64_t size,
                                  FoundCode& found);

}  // namespace berth::facts
