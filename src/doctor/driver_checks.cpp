// SPDX-License-Identifier: Apache-2.0
// NVIDIA's driver: module, files, NVML.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "doctor/checks.hpp"

namespace berth::doctor {
namespace {

using namespace std::chrono_literals;

// A start that has to ask NVML and takes longer than this is noticeable; sleeping GPUs take 2 s and
// more.
constexpr auto kSlowProbe = 1500ms;

const gpu::Driver& driver_of(const Facts& facts) {
  return facts.gpu.inventory.driver;
}

Finding no_nvidia() {
  return not_applicable("this machine has no NVIDIA GPU and no NVIDIA driver");
}

std::vector<const gpu::Gpu*> nvidia_gpus(const Facts& facts) {
  std::vector<const gpu::Gpu*> out;
  for (const gpu::Gpu& gpu : facts.gpu.inventory.gpus) {
    if (gpu.vendor == gpu::Vendor::nvidia) out.push_back(&gpu);
  }
  return out;
}

Finding present(const Facts& facts) {
  const GpuFacts& gpu = facts.gpu;
  if (gpu.error) return problem(to_line(*gpu.error), "--driver-root DIR");
  const std::vector<gpu::Gpu>& gpus = gpu.inventory.gpus;
  std::string suffix =
      gpu.synthetic ? " (synthetic: read from " + quote(gpu.driver_root) + ")" : std::string();
  if (!gpus.empty()) return ok(counted(gpus.size(), "GPU", "GPUs") + suffix);
  if (!gpu.pci.empty()) {
    std::string cause =
        counted(gpu.pci.size(), "GPU is", "GPUs are") + " on the PCI bus, and no driver offers one";
    return problem(std::move(cause), has_nvidia(facts) ? "see gpu.module" : "modprobe amdgpu");
  }
  if (driver_of(facts).module_version.empty()) return not_applicable("this machine has no GPU");
  return problem("the NVIDIA module is loaded and lists no GPU", "dmesg | grep NVRM");
}

Finding module(const Facts& facts) {
  if (!has_nvidia(facts)) return no_nvidia();
  const gpu::Driver& driver = driver_of(facts);
  const std::string& listed = facts.gpu.listed_version;
  if (!driver.module_version.empty() && !listed.empty() && listed != driver.module_version) {
    return warning("/sys/module/nvidia/version says " + driver.module_version +
                       ", which counts here, and /proc/driver/nvidia/version says " + listed,
                   "reboot, so that both come from the loaded module");
  }
  if (!driver.module_version.empty()) return ok("nvidia " + driver.module_version + " is loaded");
  if (facts.gpu.nouveau) {
    return problem("the module nouveau has the GPUs, NVIDIA's is not loaded",
                   "blacklist nouveau, update the initramfs and reboot");
  }
  for (const PciGpu& gpu : facts.gpu.pci) {
    if (gpu.vendor == "10de" && gpu.driver.starts_with("vfio")) {
      return problem("the GPU at " + gpu.address + " is given to virtual machines (" + gpu.driver +
                         "), NVIDIA's module is not loaded",
                     "unbind it from " + gpu.driver + ", then modprobe nvidia");
    }
  }
  return problem("the NVIDIA kernel module is not loaded",
                 "modprobe nvidia; at boot: order the service after systemd-modules-load.service");
}

Finding version_mismatch(const Facts& facts) {
  const gpu::Driver& driver = driver_of(facts);
  if (!has_nvidia(facts)) return no_nvidia();
  if (driver.module_version.empty() || driver.library_version.empty()) {
    return not_applicable("module or files are missing");
  }
  if (driver.module_version == driver.library_version) {
    return ok("module and files are both " + driver.module_version);
  }
  return problem("driver files are " + driver.library_version + " but the kernel module is " +
                     driver.module_version,
                 "reboot, or end what uses the GPUs and: rmmod nvidia_uvm nvidia_drm "
                 "nvidia_modeset nvidia; modprobe nvidia");
}

bool has_library(const Facts& facts, std::string_view name, bool elf32) {
  const auto& files = facts.gpu.inventory.files;
  return std::ranges::any_of(files, [&](const gpu::DriverFile& file) {
    return file.elf32 == elf32 && file.name.starts_with(name);
  });
}

Finding libraries(const Facts& facts) {
  if (!has_nvidia(facts)) return no_nvidia();
  const std::string below = " below " + quote(facts.gpu.driver_root);
  if (!has_library(facts, "libcuda.so.", false)) {
    std::string only32 = has_library(facts, "libcuda.so.", true) ? ", only a 32-bit one" : "";
    return with(
        problem("no libcuda.so.<version> was found" + below + only32 + "; " +
                    counted(facts.gpu.searched.size(), "directory was", "directories were") +
                    " searched",
                "install the driver's libraries, or --driver-root DIR"),
        facts.gpu.searched);
  }
  if (!has_library(facts, "libnvidia-ml.so.", false)) {
    return with(warning("no libnvidia-ml.so.<version> was found" + below +
                            ": nvidia-smi and NVML do not work in containers",
                        "install the driver's package that has it (libnvidia-ml1)"),
                facts.gpu.searched);
  }
  for (const gpu::DriverFile& file : facts.gpu.inventory.files) {
    if (!file.name.starts_with("libcuda.so.") || file.elf32) continue;
    return ok(file.host_path);
  }
  return ok("found");
}

// Mesa's libraries have the same names, but cannot drive this GPU.
Finding graphics(const Facts& facts) {
  if (!has_nvidia(facts)) return no_nvidia();
  bool gl = has_library(facts, "libGLX_nvidia.so.", false) ||
            has_library(facts, "libEGL_nvidia.so.", false);
  bool gl32 = has_library(facts, "libGLX_nvidia.so.", true);
  if (gl)
    return ok(gl32 ? "the driver's GL is installed, also for 32-bit"
                   : "the driver's GL is installed");
  return ok(
      "the driver's GL is not installed: capability graphics brings none, and GL of another "
      "vendor is never given");
}

Finding kfd(const Facts& facts) {
  const auto& gpus = facts.gpu.inventory.gpus;
  bool any =
      std::ranges::any_of(gpus, [](const gpu::Gpu& gpu) { return gpu.vendor == gpu::Vendor::amd; });
  if (!any) return not_applicable("this machine has no AMD GPU");
  if (!facts.gpu.inventory.amd_control_nodes.empty()) return ok("/dev/kfd exists");
  return problem("there is no '/dev/kfd': ROCm does not start", "modprobe amdgpu");
}

Finding damaged_files(const Facts& facts) {
  if (!has_nvidia(facts)) return no_nvidia();
  std::vector<std::string> lines;
  for (const gpu::UnusableFile& file : facts.gpu.inventory.unusable) {
    lines.push_back(quote(file.path) + ": " + file.why);
  }
  if (lines.empty()) return ok("every file of the driver can be used");
  return with(warning(counted(lines.size(), "file", "files") +
                          " of the driver cannot be used: " + lines.front(),
                      "install the driver again, all packages of one version"),
              lines);
}

Finding noexec(const Facts& facts) {
  if (!has_nvidia(facts)) return no_nvidia();
  if (!facts.gpu.libraries) return not_applicable("no library was found");
  if (!facts.gpu.libraries->no_exec) return ok("the driver's files can be executed");
  return problem(
      "the driver's files are on a file system that is mounted noexec: no container can "
      "load them",
      "mount -o remount,exec, or --driver-root DIR");
}

Finding nvml(const Facts& facts) {
  if (!has_nvidia(facts)) return no_nvidia();
  const gpu::Inventory& inventory = facts.gpu.inventory;
  if (inventory.nvml == "ok") return ok("answers");
  if (inventory.driver.module_version.empty()) return not_applicable("no module is loaded");
  if (inventory.driver.module_version != inventory.driver.library_version) {
    return not_applicable("not queried while module and files differ");
  }
  if (inventory.nvml == "missing") {
    return warning(
        "NVML is missing: brand, memory and compute capability are not known, "
        "requirements of images are not checked in full",
        "install the driver's package that has libnvidia-ml.so.1");
  }
  return problem("NVML fails: " + inventory.nvml, "nvidia-smi; dmesg | grep -e NVRM -e Xid");
}

Finding persistence(const Facts& facts) {
  if (nvidia_gpus(facts).empty()) return no_nvidia();
  std::string time = fmt::format("reading the driver took {:.1f} s",
                                 std::chrono::duration<double>(facts.gpu.probe_time).count());
  bool slow = facts.gpu.probe_time >= kSlowProbe;
  if (facts.gpu.persistence_daemon) {
    return slow ? warning(time + " although nvidia-persistenced runs",
                          "nvidia-smi -q -d PERFORMANCE; dmesg | grep NVRM")
                : ok("nvidia-persistenced runs; " + time);
  }
  if (!slow) return ok("nvidia-persistenced does not run; " + time);
  return warning(time + ": unused GPUs are shut down",
                 "systemctl enable --now nvidia-persistenced");
}

Finding lost(const Facts& facts) {
  if (!has_nvidia(facts)) return no_nvidia();
  std::vector<std::string> lost;
  for (const PciGpu& gpu : facts.gpu.pci) {
    if (gpu.driver == "nvidia" && !gpu.listed) lost.push_back(gpu.address);
  }
  if (lost.empty()) return ok("every GPU that the module has is listed");
  return with(problem("the module has the GPU at " + lost.front() + " and does not list it",
                      "dmesg | grep -e NVRM -e Xid; a reset of the GPU or a reboot"),
              lost);
}

Finding left_out(const Facts& facts) {
  if (!has_nvidia(facts)) return no_nvidia();
  uint32_t count = facts.gpu.inventory.left_out;
  if (count == 0) return ok("no GPU is left out");
  std::string cause = counted(count, "GPU is", "GPUs are") + " left out: ";
  if (!facts.host.job.empty()) return ok(cause + "not given to " + facts.host.job);
  return warning(cause + "excluded by the driver, or without a node here",
                 "grep Excluded /proc/driver/nvidia/gpus/*/information; see gpu.nodes-missing");
}

Finding index_minor(const Facts& facts) {
  auto gpus = nvidia_gpus(facts);
  if (gpus.empty()) return no_nvidia();
  for (const gpu::Gpu* gpu : gpus) {
    if (gpu->index == gpu->minor) continue;
    return ok(fmt::format("GPU {} is /dev/nvidia{}: the numbers differ, which is harmless",
                          gpu->index, gpu->minor));
  }
  return ok("GPU numbers and node numbers are the same");
}

Finding forward_compat(const Facts& facts) {
  auto gpus = nvidia_gpus(facts);
  if (gpus.empty()) return no_nvidia();
  std::vector<std::string> consumer;
  for (const gpu::Gpu* gpu : gpus) {
    if (!gpu->brand) return not_applicable("the GPU's brand is not known without NVML");
    if (*gpu->brand == "geforce" || *gpu->brand == "titan") {
      consumer.push_back(fmt::format("GPU {} ({})", gpu->index, *gpu->brand));
    }
  }
  if (consumer.empty()) return ok("images may bring a newer CUDA than the driver's");
  return with(ok(consumer.front() + ": images cannot bring a newer CUDA than the driver's"),
              consumer);
}

Finding fabric_manager(const Facts& facts) {
  if (!facts.gpu.nvswitch) return not_applicable("this machine has no NVSwitch");
  if (facts.gpu.fabric_manager) return ok("runs");
  return problem(
      "this machine has NVSwitch, but the fabric manager does not run: CUDA ends with error 802",
      "systemctl enable --now nvidia-fabricmanager");
}

Finding mig_slices(const Facts& facts) {
  auto gpus = nvidia_gpus(facts);
  if (gpus.empty()) return no_nvidia();
  size_t slices = 0, enabled = 0;
  for (const gpu::Gpu* gpu : gpus) {
    enabled += gpu->mig_mode ? 1 : 0;
    slices += gpu->mig.size();
    if (gpu->mig_mode && gpu->mig.empty()) {
      return problem(
          fmt::format("GPU {} is in MIG mode and has no slice: nothing can run on it", gpu->index),
          fmt::format("nvidia-smi mig -i {0} -cgi 19 -C, or nvidia-smi -i {0} -mig 0", gpu->index));
    }
  }
  if (enabled == 0) return not_applicable("no GPU is in MIG mode");
  return ok(counted(slices, "slice", "slices") + " on " + counted(enabled, "GPU", "GPUs"));
}

constexpr std::array kDriverChecks = {
    Check{"gpu.present", present},
    Check{"gpu.module", module},
    Check{"gpu.version-mismatch", version_mismatch},
    Check{"gpu.libraries", libraries},
    Check{"gpu.graphics", graphics},
    Check{"gpu.damaged-files", damaged_files},
    Check{"gpu.noexec", noexec},
    Check{"gpu.nvml", nvml},
    Check{"gpu.persistence", persistence},
    Check{"gpu.lost", lost},
    Check{"gpu.left-out", left_out},
    Check{"gpu.index-minor", index_minor},
    Check{"gpu.forward-compat", forward_compat},
    Check{"gpu.fabric-manager", fabric_manager},
    Check{"gpu.mig-slices", mig_slices},
    Check{"gpu.kfd", kfd},
};

}  // namespace

std::span<const Check> driver_checks() {
  return kDriverChecks;
}

}  // namespace berth::doctor
