// SPDX-License-Identifier: Apache-2.0
// The file /etc/ld.so.cache, with which glibc's loader finds a library by its SONAME.
// Source: glibc sysdeps/generic/dl-cache.h (the format), elf/cache.c (what ldconfig writes).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "scan/elf.hpp"

namespace berth::scan {

/// One line of `ldconfig -p`.
struct LoaderEntry {
  std::string soname;
  std::string path;         ///< absolute
  int32_t flags = 0;        ///< low byte: 3 = ELF with libc6; next byte: architecture
  uint32_t os_version = 0;  ///< unused since glibc 2.33, kept
  uint64_t hwcap = 0;       ///< bit 62: the low 32 bits index LoaderCache::hwcap_names
  bool operator==(const LoaderEntry&) const = default;
};

struct LoaderCache {
  std::vector<LoaderEntry> entries;
  std::vector<std::string> hwcap_names;  ///< glibc-hwcaps subdirectories, e.g. "x86-64-v3"
};

/// Reads the format of glibc ≥ 2.2 (with or without the older one in front of it), and the older
/// one alone (magic "ld.so-1.7.0").
/// Errors: corrupt (neither magic, a table or string leads outside `bytes`, a string longer than a
/// path, or strings that are far longer together than the file), unsupported (the other byte
/// order).
Result<LoaderCache> read_loader_cache(std::string_view bytes);

/// Writes the newer format with the entries in the order that the loader's binary search needs.
std::string write_loader_cache(const LoaderCache& cache);

/// The flags of a library of this class and machine, e.g. 0x0303; nothing for a machine that no
/// driver is made for.
std::optional<int32_t> loader_flags(ElfClass elf_class, uint16_t machine);

/// `base` with `added` in it. An entry of `base` with the SONAME and architecture of an added one
/// is dropped, with its variants for newer processors, so that no directory of an image can shadow
/// what was added.
LoaderCache merge(LoaderCache base, const std::vector<LoaderEntry>& added);

/// The bytes of a cache with the entries of the cache `image` and those of `added`, as
/// write_loader_cache(merge(…)) has them; an `image` that cannot be read counts as empty. 1500
/// entries take some 0.15 ms.
std::string merged_loader_cache(std::string_view image, const std::vector<LoaderEntry>& added);

/// The loader's order of names: digits compare as numbers ("libc.so.10" after "libc.so.9").
/// Returns <0, 0, >0.  glibc elf/dl-cache.c _dl_cache_libcmp
int compare_library_names(std::string_view left, std::string_view right);

}  // namespace berth::scan
