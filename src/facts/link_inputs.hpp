// SPDX-License-Identifier: Apache-2.0
// GPU code in files that no program loads: object files of the host, and archives of them.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/result.hpp"
#include "facts/fat_binary.hpp"
#include "scan/elf.hpp"

namespace berth::facts {

/// The value of e_type of object files.
inline constexpr uint16_t kRelocatable = 1;

/// A thin archive has another magic: its members are files of their own.
inline constexpr std::string_view kArchiveMagic = "!<arch>\n";

/// Reads the sections with fat binaries of a 64-bit object file of `size` bytes at `offset`; a
/// `size` of UINT64_MAX means up to the end of the file. Reads nothing of other files.
/// Errors: corrupt (a table or section beyond the object), those of read_fat_binaries().
/// Source: elf(5)
Result<void> read_object(const scan::ReadAt& read_at, uint64_t offset, uint64_t size,
                         FoundCode& found);

/// Reads each object of an archive.
/// Errors: corrupt (a member beyond the archive, or more members than any real one has), those of
/// read_object().
/// Source: ar(5)
Result<void> read_archive(const scan::ReadAt& read_at, FoundCode& found);

}  // namespace berth::facts
