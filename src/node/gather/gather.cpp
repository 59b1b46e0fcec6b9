// SPDX-License-Identifier: Apache-2.0
#include "node/gather/gather.hpp"

#include <fcntl.h>

#include <algorithm>

#include "node/archspec.hpp"
#include "node/check.hpp"
#include "node/cpuinfo.hpp"
#include "node/gather/parts.hpp"
#include "sys/file/file.hpp"
#include "sys/machine/host.hpp"

namespace berth::node {
namespace {

#if defined(__x86_64__)
constexpr const char* kArchitecture = "amd64";
#elif defined(__aarch64__)
constexpr const char* kArchitecture = "arm64";
#elif defined(__powerpc64__) && defined(__LITTLE_ENDIAN__)
constexpr const char* kArchitecture = "ppc64le";
#elif defined(__riscv) && __riscv_xlen == 64
constexpr const char* kArchitecture = "riscv64";
#else
#error "say what images for this machine are called"
#endif

// The first processor of the largest machine takes some three kilobytes.
constexpr size_t kMaxCpuinfo = size_t{64} << 10;

NodeDriver driver_of(const gpu::Driver& driver) {
  NodeDriver out;
  auto version = [](const std::string& text) { return is_version(text) ? text : std::string(); };
  out.module_version = version(driver.module_version);
  out.library_version = version(driver.library_version);
  out.cuda_version = version(driver.cuda_version);
  out.glibc_needed = version(driver.glibc_needed);
  return out;
}

}  // namespace

std::string start_of(const gpu::DriverRoot& root, const std::string& path, size_t max_bytes) {
  auto found = root.find_on_machine(path);
  if (!found || !S_ISREG(found->info.st_mode)) return {};
  auto file = sys::open_at(sys::cwd(), sys::fd_path(found->fd), O_RDONLY | O_NONBLOCK);
  if (!file.ok()) return {};
  // Files of procfs and sysfs do not report their size.
  auto size = static_cast<size_t>(found->info.st_size);
  auto text = sys::read_at(*file, 0, size == 0 ? max_bytes : std::min(size, max_bytes), path);
  return text.ok() ? std::move(*text) : std::string();
}

Profile gather(const gpu::DriverRoot& root, const gpu::Inventory& inventory) {
  std::optional<gpu::DriverRoot> machine;
  if (root.synthetic()) {
    auto opened = gpu::DriverRoot::open("/");
    if (opened.ok()) machine = std::move(*opened);
  }
  // A tree without `path` does not describe that part.
  auto root_with = [&](const char* path) -> const gpu::DriverRoot& {
    return machine && !root.stat_machine(path) ? *machine : root;
  };
  Profile profile;
  profile.architecture = kArchitecture;
  profile.synthetic = inventory.synthetic;
  auto name = sys::host_name();
  if (name.ok()) profile.name = *name;
  std::string cpuinfo = start_of(root_with("/proc/cpuinfo"), "/proc/cpuinfo", kMaxCpuinfo);
  profile.cpu = read_cpuinfo(cpuinfo, family_of_architecture(kArchitecture));
  const gpu::DriverRoot& kernel = root_with("/proc/sys/kernel/osrelease");
  profile.kernel = gather_kernel(kernel, !kernel.synthetic());
  profile.driver = driver_of(inventory.driver);
  profile.gpus = gpus_of(inventory);
  profile.rocm = gather_rocm(root);
  profile.fabric = gather_fabric(root);
  const gpu::DriverRoot& host = root_with("/etc/os-release");
  std::vector<scan::LoaderEntry> libraries = loader_entries(host);
  profile.libc = gather_libc(host, libraries);
  profile.mpi = mpi_of(libraries);
  return profile;
}

}  // namespace berth::node
