// SPDX-License-Identifier: Apache-2.0
#include "gpu/grant/driver_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "base/text.hpp"

namespace berth::gpu {
namespace {

/// "'PATH': WHY" of the first file of a library that cannot be used; empty: there is none.
std::string broken(const Inventory& inventory, std::string_view library) {
  const std::string start = fmt::format("{}.so", library);
  for (const UnusableFile& file : inventory.unusable) {
    std::string_view name = std::string_view(file.path).substr(file.path.rfind('/') + 1);
    if (name.starts_with(start)) return quote(file.path) + ": " + file.why;
  }
  return {};
}

}  // namespace

bool has_any(const std::vector<std::string>& capabilities, const std::set<std::string>& granted) {
  return std::ranges::any_of(capabilities,
                             [&](const std::string& name) { return granted.contains(name); });
}

Result<void> check_versions(const Inventory& inventory) {
  const Driver& driver = inventory.driver;
  if (driver.library_version.empty()) {
    std::string which = broken(inventory, "libcuda");
    if (which.empty()) which = broken(inventory, "libnvidia-ml");
    std::string found = which.empty() ? "no driver files were found below "
                                      : "no usable driver files were found below ";
    found += quote(inventory.driver_root);
    if (!which.empty()) found += ": " + which;
    return make_error(Kind::not_found,
                      fmt::format("the kernel module is {} but {}", driver.module_version, found),
                      which.empty() ? "--driver-root DIR" : "berth doctor gpu");
  }
  if (driver.library_version != driver.module_version) {
    return make_error(Kind::unsupported,
                      fmt::format("driver files are {} but the kernel module is {}",
                                  driver.library_version, driver.module_version),
                      "reboot or reload the module");
  }
  return {};
}

// Without the library most programs would go on without a GPU, and nobody would notice.
Result<void> check_needed(const Inventory& inventory, const std::set<std::string>& granted) {
  bool computes = granted.contains("compute") || granted.contains("video");
  bool manages = granted.contains("utility") && granted.size() == 1;
  if (!computes && !manages) return {};
  const std::string_view library = computes ? "libcuda" : "libnvidia-ml";
  const std::string start = fmt::format("{}.so.", library);
  bool there = std::ranges::any_of(inventory.files, [&](const DriverFile& file) {
    return file.kind == FileKind::library && !file.elf32 && file.name.starts_with(start);
  });
  if (there) return {};
  const std::string which = broken(inventory, library);
  return make_error(
      Kind::not_found,
      fmt::format("driver {} has no {}{} below {}{}", inventory.driver.library_version,
                  which.empty() ? "" : "usable ", library, quote(inventory.driver_root),
                  which.empty() ? "" : ": " + which),
      computes ? "berth doctor gpu; without CUDA: --gpus all,capabilities=utility"
               : "berth doctor gpu");
}

void warn_of_lost(const Inventory& inventory, const std::set<std::string>& granted,
                  std::vector<std::string>& warnings) {
  std::vector<const UnusableFile*> lost;
  for (const UnusableFile& file : inventory.unusable) {
    if (has_any(file.capabilities, granted)) lost.push_back(&file);
  }
  if (lost.empty()) return;
  const std::string more = lost.size() > 1 ? fmt::format(" (and {} more)", lost.size() - 1) : "";
  warnings.push_back("the container lacks a file of the driver: " + quote(lost[0]->path) + ": " +
                     lost[0]->why + more + "; see 'berth doctor gpu'");
}

}  // namespace berth::gpu
