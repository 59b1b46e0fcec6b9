// SPDX-License-Identifier: Apache-2.0
// Where glibc's loader looks for libraries: its directories, and the file /etc/ld.so.cache, which
// maps SONAMEs to paths. Source: glibc sysdeps/generic/dl-cache.h (the format), elf/cache.c
// (ldconfig's output).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "scan/elf.hpp"

namespace berth::scan {

/// The default directories of all distributions' loaders, joined by ':'.
inline constexpr const char* kDefaultDirectories =
    "/lib/x86_64-linux-gnu:/usr/lib/x86_64-linux-gnu:/lib/aarch64-linux-gnu:"
    "/usr/lib/aarch64-linux-gnu:/lib64:/usr/lib64:/lib:/usr/lib:/usr/local/lib";

/// DT_RPATH or DT_RUNPATH of a file in the directory `origin`, with $ORIGIN expanded.  ld.so(8)
std::string expand_origin(std::string directories, const std::string& origin);

/// "/usr/lib/x" → "/usr/lib".
std::string parent_of(const std::string& path);

/// One line of `ldconfig -p`.
struct LoaderEntry {
  std::string soname;
  std::string path;         ///< absolute
  int32_t flags = 0;        ///< low byte: 3 = ELF with libc6; next byte: architecture
  uint32_t os_version = 0;  ///< unused since glibc 2.33; kept as it is
  uint64_t hwcap = 0;       ///< bit 62: the low 32 bits index LoaderCache::hwcap_names
  bool operator==(const LoaderEntry&) const = default;
};

struct LoaderCache {
  std::vector<LoaderEntry> entries;
  std::vector<std::string> hwcap_names;  ///< glibc-hwcaps subdirectories, e.g. "x86-64-v3"
};

/// Parses the format of glibc ≥ 2.2, also if a cache in the older format precedes it, and the older
/// format alone (magic "ld.so-1.7.0").
/// Errors: corrupt (neither magic, a table or string beyond `bytes`, a string longer than a path,
/// or strings that are together far longer than the file), unsupported (the other byte order).
Result<LoaderCache> read_loader_cache(std::string_view bytes);

/// Writes the newer format, with the entries in the order that the loader's binary search needs.
std::string write_loader_cache(const LoaderCache& cache);

/// The flags of a library of this class and machine, e.g. 0x0303; nothing for a machine for
/// which NVIDIA has no driver.
std::optional<int32_t> loader_flags(ElfClass elf_class, uint16_t machine);

/// `base` together with `added`. Drops entries of `base` that have the SONAME and architecture of
/// an added entry, including variants for newer processors, so that no directory of an image can
/// shadow an added library.
LoaderCache merge(LoaderCache base, const std::vector<LoaderEntry>& added);

/// The bytes of a cache with the entries of the cache `image` and those of `added`: the same as
/// write_loader_cache(merge(…)). An unreadable `image` counts as empty. 1500 entries take about
/// 0.15 ms.
std::string merged_loader_cache(std::string_view image, const std::vector<LoaderEntry>& added);

/// The directories for the driver's files in a container: the usual one, and the alternative if a
/// mount of the user is in the way. See docs/decisions/0006, 0174.
inline constexpr std::string_view kDriverPlaces[] = {"/usr/local/nvidia", "/.berth/nvidia"};

/// Whether `path` is below one of kDriverPlaces.
bool is_in_driver_place(std::string_view path);

/// The cache `bytes` without the effects of `added`. Removes all entries below kDriverPlaces,
/// entries that have the SONAME and the directory of an added entry, default_links() and, if
/// `added` has a libcuda, entries in NVIDIA's compat package. Returns `bytes` unchanged if there
/// are no such entries, or if it is unreadable.
std::string loader_cache_without(std::string_view bytes, const std::vector<LoaderEntry>& added);

/// Whether the cache `own` is the result of adding `added` to `image`: all its entries are from one
/// of the two, and it has all entries of `image` except those that an added entry replaces.
/// Unreadable bytes count as an empty cache.
bool is_same_but_for(std::string_view own, std::string_view image,
                     const std::vector<LoaderEntry>& added);

/// "libcuda.so" for "libcuda.so.1": the name that linkers use, and many programs in dlopen(). A
/// name without a number is unchanged.
std::string without_number(const std::string& soname);

/// A link in a directory that every linker searches.
struct LibraryLink {
  std::string path;    ///< "/usr/lib/libcuda.so"
  std::string target;  ///< "/usr/local/nvidia/lib64/libcuda.so.1"
  bool operator==(const LibraryLink&) const = default;
};

/// The links for the driver's libraries in `entries` of this machine's own ELF class. They are in a
/// default directory, which every ldconfig reads; the ld.so.conf of an image may not include our
/// file in ld.so.conf.d. Sorted by path.
std::vector<LibraryLink> default_links(const std::vector<LoaderEntry>& entries);

/// The links that are needed even if ld.so.conf includes our directory: linkers do not search that
/// directory for "-lcuda", and ldconfig makes no link if the file has another name.
std::vector<LibraryLink> linker_links(const std::vector<LoaderEntry>& entries);

/// The content of a file in ld.so.conf.d: the directories of `entries` in the order of `entries`,
/// without duplicates.
std::string loader_configuration(const std::vector<LoaderEntry>& entries);

/// The path of that file in a container (its name sorts before those of the image's files), and the
/// file that makes ldconfig read it.
inline constexpr const char* kLoaderConfiguration = "/etc/ld.so.conf.d/00-berth.conf";
inline constexpr const char* kMainConfiguration = "/etc/ld.so.conf";
// The first line distinguishes this file from one of the image.
inline constexpr std::string_view kMainConfigurationText =
    "# for the libraries that this container was given\ninclude /etc/ld.so.conf.d/*.conf\n";

/// Compares names in the loader's order: digits compare as numbers ("libc.so.10" after
/// "libc.so.9").
/// Returns <0, 0, >0.  glibc elf/dl-cache.c _dl_cache_libcmp
int compare_library_names(std::string_view left, std::string_view right);

}  // namespace berth::scan
