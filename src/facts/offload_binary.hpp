// SPDX-License-Identifier: Apache-2.0
// GPU code that clang's linker wrapper embeds for OpenMP.
#pragma once

#include <cstdint>

#include "base/result.hpp"
#include "facts/fat_binary.hpp"
#include "scan/elf.hpp"

namespace berth::facts {

/// Reads consecutive offload binaries in `size` bytes from `offset` on: the content of the section
/// .llvm.offloading. Reads their tables only, not the code.
/// Errors: corrupt (a table outside of its binary, or more binaries than any real file has),
/// unsupported (a version of the format), those of `read_at`.
/// Source: clang docs/ClangLinkerWrapper.rst, "Offloading entries"; LLVM Object/OffloadBinary.h
Result<void> read_offload_binaries(const scan::ReadAt& read_at, uint64_t offset, uint64_t size,
                                   FoundCode& found);

}  // namespace berth::facts
