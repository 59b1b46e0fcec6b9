// SPDX-License-Identifier: Apache-2.0
#include "gpu/probe/glibc_needed.hpp"

#include <fcntl.h>

#include <algorithm>

#include "facts/versions.hpp"
#include "scan/driver_files.hpp"
#include "scan/elf.hpp"
#include "sys/file/file.hpp"
#include "sys/file/io_at.hpp"

namespace berth::gpu {
namespace {

bool counts(const DriverFile& file) {
  return file.kind == FileKind::library && !file.elf32 &&
         std::ranges::any_of(file.capabilities, [](const std::string& one) {
           return one == "compute" || one == "utility";
         });
}

/// Empty for an unreadable file: its finder has reported it.
std::string needed_by(const std::string& path) {
  auto file = sys::open_at(sys::cwd(), path, O_RDONLY | O_NONBLOCK);
  if (!file.ok()) return {};
  auto read_at = [&](uint64_t offset, size_t length) {
    return sys::read_at(*file, offset, length, path);
  };
  auto elf = scan::read_elf(read_at);
  if (!elf.ok()) return {};
  auto versions = facts::read_symbol_versions(*elf, read_at);
  if (!versions.ok()) return {};
  auto glibc = versions->needs.find("GLIBC");
  return glibc == versions->needs.end() ? std::string() : glibc->second;
}

}  // namespace

std::string glibc_needed(const Inventory& inventory) {
  std::string highest;
  for (const DriverFile& file : inventory.files) {
    if (!counts(file)) continue;
    std::string version = needed_by(file.host_path);
    if (version.empty()) continue;
    if (highest.empty() || scan::compare_versions(version, highest) > 0) highest = version;
  }
  return highest;
}

}  // namespace berth::gpu
