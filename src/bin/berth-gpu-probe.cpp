// SPDX-License-Identifier: Apache-2.0
// berth-gpu-probe LIBRARY: asks NVML for what procfs does not tell, prints it as JSON and ends. The
// only program of ours that loads a library of a vendor: whoever starts it sets a deadline.
#include <dlfcn.h>

#include <cstdio>
#include <cstring>
#include <string>

#include "base/text.hpp"
#include "gpu/probe/nvml_facts.hpp"
#include "json/fields.hpp"

namespace berth::gpu {
namespace {

// NVML's public ABI: the parts we call. Handles are opaque; every call returns 0 on success.
using Device = void*;
struct PciInfo {
  char bus_id_legacy[16];
  unsigned domain, bus, device, pci_device_id, pci_subsystem_id;
  char bus_id[32];
};
struct MemoryInfo {
  unsigned long long total, free, used;
};
struct Attributes {
  unsigned counts[8];
  unsigned long long memory_mib;
};
constexpr unsigned kTextSize = 96;  // NVML_DEVICE_UUID_V2_BUFFER_SIZE, the largest that we use

class Nvml {
 public:
  explicit Nvml(void* library) : library_(library) {}

  /// Calls `name`, or gives -1 when this NVML does not have it.
  template <class... Arguments>
  int call(const char* name, Arguments... arguments) const {
    void* symbol = dlsym(library_, name);
    if (symbol == nullptr) return -1;
    return reinterpret_cast<int (*)(Arguments...)>(symbol)(arguments...);
  }

  /// A text that a function fills in; empty when it does not answer.
  std::string text(const char* name, Device device) const {
    char out[kTextSize] = {};
    return call(name, device, &out[0], kTextSize) == 0 ? std::string(out) : std::string();
  }

  std::string error_text(int code) const {
    void* symbol = dlsym(library_, "nvmlErrorString");
    if (symbol == nullptr) return "error " + std::to_string(code);
    return reinterpret_cast<const char* (*)(int)>(symbol)(code);
  }

 private:
  void* library_;
};

// nvmlBrandType_t, spelled as the values of NVIDIA_REQUIRE_*.
std::optional<std::string> brand_name(unsigned brand) {
  static constexpr const char* kNames[] = {
      "unknown",   "quadro",      "tesla",     "nvs",        "grid",      "geforce",
      "titan",     "nvidiavapps", "nvidiavpc", "nvidiavcs",  "nvidiavws", "nvidiacloudgaming",
      "quadrortx", "nvidiartx",   "nvidia",    "geforcertx", "titanrtx"};
  if (brand == 0 || brand >= std::size(kNames)) return std::nullopt;
  return kNames[brand];
}

std::optional<uint64_t> memory_of(const Nvml& nvml, Device device) {
  MemoryInfo memory{};
  if (nvml.call("nvmlDeviceGetMemoryInfo", device, &memory) != 0) return std::nullopt;
  return memory.total;
}

NvmlSlice read_slice(const Nvml& nvml, Device slice) {
  NvmlSlice out;
  nvml.call("nvmlDeviceGetGpuInstanceId", slice, &out.gpu_instance);
  nvml.call("nvmlDeviceGetComputeInstanceId", slice, &out.compute_instance);
  out.uuid = nvml.text("nvmlDeviceGetUUID", slice);
  // "NVIDIA H100 80GB HBM3 MIG 1g.10gb"
  std::string name = nvml.text("nvmlDeviceGetName", slice);
  if (size_t at = name.rfind("MIG "); at != std::string::npos) out.profile = name.substr(at + 4);
  Attributes attributes{};
  if (nvml.call("nvmlDeviceGetAttributes_v2", slice, &attributes) == 0) {
    out.memory_bytes = uint64_t{attributes.memory_mib} << 20;
  }
  return out;
}

void read_slices(const Nvml& nvml, Device device, NvmlGpu& gpu) {
  unsigned current = 0, pending = 0, count = 0;
  if (nvml.call("nvmlDeviceGetMigMode", device, &current, &pending) != 0) return;
  gpu.mig_mode = current == 1;
  if (!gpu.mig_mode || nvml.call("nvmlDeviceGetMaxMigDeviceCount", device, &count) != 0) return;
  for (unsigned i = 0; i < count; ++i) {
    Device slice = nullptr;
    if (nvml.call("nvmlDeviceGetMigDeviceHandleByIndex", device, i, &slice) != 0) continue;
    gpu.slices.push_back(read_slice(nvml, slice));
  }
}

NvmlGpu read_gpu(const Nvml& nvml, Device device) {
  NvmlGpu gpu;
  PciInfo pci{};
  if (nvml.call("nvmlDeviceGetPciInfo_v3", device, &pci) == 0) {
    gpu.pci_address = kernel_pci_address(std::string(pci.bus_id, strnlen(pci.bus_id, 32)));
  }
  gpu.uuid = nvml.text("nvmlDeviceGetUUID", device);
  gpu.model = nvml.text("nvmlDeviceGetName", device);
  unsigned brand = 0;
  if (nvml.call("nvmlDeviceGetBrand", device, &brand) == 0) gpu.brand = brand_name(brand);
  int major = 0, minor = 0;
  if (nvml.call("nvmlDeviceGetCudaComputeCapability", device, &major, &minor) == 0) {
    gpu.compute_capability = std::to_string(major) + "." + std::to_string(minor);
  }
  gpu.memory_bytes = memory_of(nvml, device);
  read_slices(nvml, device, gpu);
  return gpu;
}

Result<NvmlFacts> read_facts(const char* path) {
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return make_error(Kind::unsupported, dlerror());
  Nvml nvml(library);
  int code = nvml.call("nvmlInit_v2");
  if (code == -1) return make_error(Kind::unsupported, "this library has no nvmlInit_v2");
  if (code != 0) return make_error(Kind::unsupported, "nvmlInit_v2: " + nvml.error_text(code));
  NvmlFacts facts;
  char version[kTextSize] = {};
  if (nvml.call("nvmlSystemGetDriverVersion", &version[0], kTextSize) == 0) {
    facts.driver_version = version;
  }
  int cuda = 0;
  if (nvml.call("nvmlSystemGetCudaDriverVersion_v2", &cuda) == 0) {
    facts.cuda_version = std::to_string(cuda / 1000) + "." + std::to_string(cuda % 1000 / 10);
  }
  unsigned count = 0;
  nvml.call("nvmlDeviceGetCount_v2", &count);
  for (unsigned i = 0; i < count; ++i) {
    Device device = nullptr;
    if (nvml.call("nvmlDeviceGetHandleByIndex_v2", i, &device) != 0) continue;
    facts.gpus.push_back(read_gpu(nvml, device));
  }
  nvml.call("nvmlShutdown");
  return facts;
}

}  // namespace
}  // namespace berth::gpu

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: berth-gpu-probe LIBRARY   (a libnvidia-ml.so.1; prints JSON)\n", stderr);
    return 2;
  }
  auto facts = berth::gpu::read_facts(argv[1]);
  if (!facts.ok()) {
    std::fprintf(stderr, "%s\n", berth::to_line(facts.error()).c_str());
    return 1;
  }
  std::printf("%s\n", berth::json::write(*facts).c_str());
  return std::fflush(stdout) == 0 ? 0 : 1;
}
