// SPDX-License-Identifier: Apache-2.0
// Other sources of GPUs for containers on this machine: CDI files, NVIDIA's toolkit, SELinux.
#include <fmt/format.h>

#include <array>

#include "doctor/checks.hpp"

namespace berth::doctor {
namespace {

constexpr const char* kRegenerate = "berth cdi generate, or nvidia-ctk cdi generate";

Finding no_files() {
  return not_applicable("this machine has no CDI file for GPUs");
}

Finding cdi_files(const Facts& facts) {
  if (facts.gpu.cdi.empty()) return no_files();
  std::vector<std::string> bad;
  for (const CdiFile& file : facts.gpu.cdi) {
    if (file.error) bad.push_back(to_line(*file.error));
  }
  if (bad.empty()) {
    return ok(counted(facts.gpu.cdi.size(), "file", "files") + ", all of them can be read");
  }
  return with(problem(bad.front(), "berth cdi validate, or remove the file"), bad);
}

Finding cdi_driver(const Facts& facts) {
  if (facts.gpu.cdi.empty()) return no_files();
  const gpu::Driver& driver = facts.gpu.inventory.driver;
  const std::string& now =
      driver.module_version.empty() ? driver.library_version : driver.module_version;
  for (const CdiFile& file : facts.gpu.cdi) {
    for (const std::string& version : file.driver_versions) {
      if (now.empty() || version == now) continue;
      return problem(quote(file.path) + " is of driver " + version + ", this machine has " + now,
                     kRegenerate);
    }
  }
  return ok("no file was generated for another driver");
}

Finding cdi_nodes(const Facts& facts) {
  if (facts.gpu.cdi.empty()) return no_files();
  for (const CdiFile& file : facts.gpu.cdi) {
    if (file.stale_nodes.empty()) continue;
    return with(problem(quote(file.path) + ": " + file.stale_nodes.front(), kRegenerate),
                file.stale_nodes);
  }
  return ok("every node in them exists, with its numbers");
}

Finding cdi_missing(const Facts& facts) {
  if (facts.gpu.cdi.empty()) return no_files();
  for (const CdiFile& file : facts.gpu.cdi) {
    if (file.missing_files.empty()) continue;
    std::string more = file.missing_files.size() > 1
                           ? fmt::format(" and {} more", file.missing_files.size() - 1)
                           : std::string();
    return with(problem(quote(file.path) + " names " + quote(file.missing_files.front()) + more +
                            ", which is not there",
                        kRegenerate),
                file.missing_files);
  }
  return ok("every file in them exists");
}

Finding toolkit_config(const Facts& facts) {
  if (facts.gpu.toolkit_config.empty()) {
    return not_applicable("NVIDIA's container toolkit has no configuration on this machine");
  }
  if (facts.gpu.toolkit_error) {
    return warning(
        "NVIDIA's toolkit cannot read its configuration: " + to_line(*facts.gpu.toolkit_error),
        "fix that line, or remove the file");
  }
  if (facts.gpu.toolkit_keys.empty()) {
    return ok(quote(facts.gpu.toolkit_config) + " has only defaults");
  }
  return with(warning(quote(facts.gpu.toolkit_config) + " sets " + facts.gpu.toolkit_keys.front() +
                          (facts.gpu.toolkit_keys.size() > 1
                               ? fmt::format(" and {} more", facts.gpu.toolkit_keys.size() - 1)
                               : std::string()) +
                          ", which Berth does not read",
                      "berth policy import " + facts.gpu.toolkit_config),
              facts.gpu.toolkit_keys);
}

Finding old_hooks(const Facts& facts) {
  if (facts.gpu.hooks.empty())
    return not_applicable("no engine is configured to call NVIDIA's hook");
  return with(
      warning(quote(facts.gpu.hooks.front()) + " makes other engines call NVIDIA's hook besides a "
                                               "CDI file: GPUs are added twice or fail",
              "remove it where CDI is used"),
      facts.gpu.hooks);
}

Finding selinux(const Facts& facts) {
  if (!facts.host.selinux_enforcing) return not_applicable("SELinux does not enforce");
  if (facts.gpu.nodes.empty()) return not_applicable("no GPU is here");
  if (facts.gpu.container_use_devices) return ok("containers may use devices");
  return warning(
      "SELinux enforces and keeps labelled containers of other engines from devices; "
      "Berth's keep the caller's label",
      "setsebool -P container_use_devices 1, as root");
}

constexpr std::array kSiteChecks = {
    Check{"gpu.cdi-files", cdi_files},
    Check{"gpu.cdi-driver", cdi_driver},
    Check{"gpu.cdi-nodes", cdi_nodes},
    Check{"gpu.cdi-missing-files", cdi_missing},
    Check{"gpu.toolkit-config", toolkit_config},
    Check{"gpu.old-hooks", old_hooks},
    Check{"gpu.selinux", selinux},
};

}  // namespace

std::span<const Check> site_checks() {
  return kSiteChecks;
}

}  // namespace berth::doctor
