// SPDX-License-Identifier: Apache-2.0
// The host's libc, MPI and ROCm.
#include <algorithm>
#include <array>

#include "base/text.hpp"
#include "node/check.hpp"
#include "node/gather/parts.hpp"
#include "scan/loader.hpp"
#include "scan/mpi.hpp"

namespace berth::node {
namespace {

constexpr size_t kMaxCache = size_t{16} << 20;
constexpr size_t kMaxLibc = size_t{32} << 20;

#if defined(__x86_64__)
constexpr uint16_t kMachine = scan::kMachineX86_64;
#elif defined(__aarch64__)
constexpr uint16_t kMachine = scan::kMachineAarch64;
#else
constexpr uint16_t kMachine = 0;  // all entries of the cache are kept
#endif
// Where libc is looked up if there is no cache.
constexpr std::array<const char*, 3> kLibc = {"/lib64/libc.so.6", "/usr/lib64/libc.so.6",
                                              "/usr/lib/libc.so.6"};

bool has_musl(const gpu::DriverRoot& root) {
  auto names = root.list_machine("/lib");
  return names.ok() && std::ranges::any_of(*names, [](const std::string& name) {
           return name.starts_with("ld-musl-") && name.ends_with(".so.1");
         });
}

}  // namespace

std::vector<scan::LoaderEntry> loader_entries(const gpu::DriverRoot& root) {
  auto cache = scan::read_loader_cache(start_of(root, "/etc/ld.so.cache", kMaxCache));
  if (!cache.ok()) return {};
  auto flags = scan::loader_flags(scan::ElfClass::elf64, kMachine);
  std::erase_if(cache->entries,
                [&](const scan::LoaderEntry& entry) { return flags && entry.flags != *flags; });
  return std::move(cache->entries);
}

std::string glibc_version(std::string_view bytes) {
  // "GNU C Library (Debian GLIBC 2.36-9) stable release version 2.36."
  constexpr std::string_view kBanner = "GNU C Library ", kVersion = " release version ";
  constexpr size_t kMaxBanner = 256;
  for (size_t at = bytes.find(kBanner); at != bytes.npos; at = bytes.find(kBanner, at + 1)) {
    std::string_view line = bytes.substr(at, kMaxBanner);
    line = line.substr(0, line.find_first_of(std::string_view("\n\0", 2)));
    size_t version = line.find(kVersion);
    if (version == line.npos) continue;
    std::string_view number = line.substr(version + kVersion.size());
    number = number.substr(0, number.find_first_not_of("0123456789."));
    while (number.ends_with('.')) number.remove_suffix(1);
    if (is_version(number)) return std::string(number);
  }
  return {};
}

std::string gather_libc(const gpu::DriverRoot& root,
                        const std::vector<scan::LoaderEntry>& entries) {
  std::vector<std::string> paths;
  for (const scan::LoaderEntry& entry : entries) {
    if (entry.soname == "libc.so.6") paths.push_back(entry.path);
  }
  paths.insert(paths.end(), kLibc.begin(), kLibc.end());
  for (const std::string& path : paths) {
    std::string version = glibc_version(start_of(root, path, kMaxLibc));
    if (!version.empty()) return "glibc " + version;
  }
  return has_musl(root) ? "musl" : "";
}

std::vector<Mpi> mpi_of(const std::vector<scan::LoaderEntry>& entries) {
  std::vector<Mpi> out;
  for (const scan::LoaderEntry& entry : entries) {
    std::string_view family = scan::mpi_family(entry.soname);
    bool known =
        std::ranges::any_of(out, [&](const Mpi& mpi) { return mpi.soname == entry.soname; });
    if (family.empty() || known) continue;
    out.push_back({std::string(family), entry.soname, entry.path});
  }
  std::ranges::sort(out, [](const Mpi& a, const Mpi& b) { return a.soname < b.soname; });
  return out;
}

std::string gather_rocm(const gpu::DriverRoot& root) {
  constexpr size_t kMaxVersion = 256;
  std::string text = start_of(root, "/opt/rocm/.info/version", kMaxVersion);
  std::string_view version = trim(text);
  version = version.substr(0, version.find('-'));
  return is_version(version) ? std::string(version) : std::string();
}

}  // namespace berth::node
