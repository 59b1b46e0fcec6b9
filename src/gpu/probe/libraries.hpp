// SPDX-License-Identifier: Apache-2.0
// The driver's libraries below a root.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "gpu/inventory/driver_root.hpp"
#include "gpu/inventory/inventory.hpp"
#include "scan/elf.hpp"

namespace berth::gpu {

/// The architecture of a shared object: this machine's 64-bit one, its 32-bit one, or another.
enum class Fit { native, twin, foreign };

struct ElfObject {
  std::string host_path;
  Fit fit = Fit::foreign;
  scan::ElfFile elf;
};

/// The ELF file at `path` below the root; nothing if it is not a regular file or not a valid ELF
/// file. An invalid ELF file is added to `unusable`, with `capabilities` (comma separated).
std::optional<ElfObject> open_elf(const DriverRoot& root, const std::string& path,
                                  std::string_view capabilities,
                                  std::vector<UnusableFile>& unusable);

/// Adds `file` unless its path is there already, or too many others are.
void add_unusable(UnusableFile file, std::vector<UnusableFile>& unusable);

/// Why a file of version `found` is none of the driver `driver`.
std::string of_other_driver(std::string_view found, std::string_view driver);

/// Why the name `path` below the root gives no file: "a link to 'TARGET' that leads nowhere".
/// Empty if there is no such name, or a regular file that can be read.
std::string why_no_file(const DriverRoot& root, const std::string& path);

/// Fills files, unusable, driver.library_version and problems. Returns the directories below the
/// root in which it found the driver. Searches `configured`, then the directories of the root's
/// loader cache and ld.so.conf, then those of the distributions. Of the versions found, the version
/// of the loaded module wins, else the newest one. Errors: corrupt (an endless ld.so.conf), io.
Result<std::vector<std::string>> read_libraries(const DriverRoot& root,
                                                const std::vector<std::string>& configured,
                                                Inventory& inventory);

/// The directories below `root` that read_libraries() searches, in its order, except the configured
/// ones. They may not exist.
Result<std::vector<std::string>> searched_directories(const DriverRoot& root);

/// The highest version of glibc that the driver's libraries for computing and for managing GPUs
/// require ("2.17"): an image into which they are bound needs that version. Empty: unknown.
std::string glibc_needed(const Inventory& inventory);

}  // namespace berth::gpu
