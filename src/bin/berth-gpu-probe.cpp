// SPDX-License-Identifier: Apache-2.0
// berth-gpu-probe [--use] LIBRARY: asks NVML for facts that procfs lacks, or with --use for the
// load of the GPUs, prints them as JSON and ends. berth-gpu-probe --compute-mode GPU MODE LIBRARY:
// sets the compute mode. This is the only program that loads a vendor's library, so its callers set
// a deadline.
#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "base/text.hpp"
#include "gpu/probe/nvml_facts.hpp"
#include "gpu/probe/use.hpp"
#include "json/fields.hpp"
#include "sys/mount/null_device.hpp"

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
struct MemoryInfo2 {
  unsigned version = unsigned{sizeof(MemoryInfo2)} | 2U << 24;  // NVML_STRUCT_VERSION(Memory, 2)
  unsigned long long total, reserved, free, used;
};
struct Utilization {
  unsigned gpu, memory;  // percent of the time
};
struct Attributes {
  unsigned counts[8];
  unsigned long long memory_mib;
};
struct ProcessInfo {  // nvmlProcessInfo_v2_t
  unsigned pid;
  unsigned long long used;
  unsigned gpu_instance, compute_instance;
};
struct ProcessInfo1 {  // nvmlProcessInfo_v1_t
  unsigned pid;
  unsigned long long used;
};
constexpr unsigned kNoInstance = ~0U;
constexpr unsigned kTextSize = 96;  // NVML_DEVICE_UUID_V2_BUFFER_SIZE, the largest that we use

constexpr int kMissing = -1;  // no error code of NVML

class Nvml {
 public:
  explicit Nvml(void* library) : library_(library) {}

  /// Calls `name`, or returns kMissing if this NVML does not have it.
  template <class... Arguments>
  int call(const char* name, Arguments... arguments) const {
    void* symbol = dlsym(library_, name);
    if (symbol == nullptr) return kMissing;
    return reinterpret_cast<int (*)(Arguments...)>(symbol)(arguments...);
  }

  /// A string that an NVML function writes; empty if the function fails.
  std::string text(const char* name, Device device) const {
    char out[kTextSize] = {};
    if (call(name, device, &out[0], kTextSize) != 0) return {};
    return std::string(out, strnlen(out, kTextSize));
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

bool is_in_mig_mode(const Nvml& nvml, Device device) {
  unsigned current = 0, pending = 0;
  return nvml.call("nvmlDeviceGetMigMode", device, &current, &pending) == 0 && current == 1;
}

std::vector<Device> slices_of(const Nvml& nvml, Device device) {
  std::vector<Device> slices;
  unsigned count = 0;
  if (!is_in_mig_mode(nvml, device)) return slices;
  if (nvml.call("nvmlDeviceGetMaxMigDeviceCount", device, &count) != 0) return slices;
  for (unsigned i = 0; i < count; ++i) {
    Device slice = nullptr;
    if (nvml.call("nvmlDeviceGetMigDeviceHandleByIndex", device, i, &slice) != 0) continue;
    slices.push_back(slice);
  }
  return slices;
}

template <size_t size>
std::string address_in(const char (&field)[size]) {
  return kernel_pci_address(std::string(field, strnlen(field, size)));
}

std::string address_of(const PciInfo& pci) {
  return address_in(pci.bus_id);
}

/// Empty if NVML does not report it.
std::string address_of(const Nvml& nvml, Device device) {
  PciInfo pci{};
  int code = nvml.call("nvmlDeviceGetPciInfo_v3", device, &pci);
  if (code == 0) return address_of(pci);
  // Drivers before 384: the structure is shorter, and has the address only in its first member.
  if (code == kMissing) code = nvml.call("nvmlDeviceGetPciInfo_v2", device, &pci);
  return code == 0 ? address_in(pci.bus_id_legacy) : std::string();
}

// The board, if it has two GPUs as a K80 or M60 has; boards of other GPUs are not reported.
std::string board_of(const Nvml& nvml, Device device) {
  unsigned several = 0, board = 0;
  if (nvml.call("nvmlDeviceGetMultiGpuBoard", device, &several) != 0 || several == 0) return {};
  if (nvml.call("nvmlDeviceGetBoardId", device, &board) != 0) return {};
  return std::to_string(board);
}

// The NUMA node near the GPU, if there is exactly one.
std::optional<int> numa_node_of(const Nvml& nvml, Device device) {
  constexpr unsigned kWords = 16, kBits = 64;  // 1024 nodes, the kernel's maximum
  unsigned long near[kWords] = {};
  if (nvml.call("nvmlDeviceGetMemoryAffinity", device, kWords, &near[0], 0U) != 0) return {};
  std::optional<int> found;
  for (unsigned i = 0; i < kWords * kBits; ++i) {
    if ((near[i / kBits] >> (i % kBits) & 1) == 0) continue;
    if (found) return std::nullopt;
    found = static_cast<int>(i);
  }
  return found;
}

// A link leads to another GPU or to a switch. For GPUs at a switch, NVML only reports whether two
// of them are connected.
std::vector<std::string> peers_of(const Nvml& nvml, Device device, const std::vector<Device>& all) {
  constexpr unsigned kMaxLinks = 18;  // NVML_NVLINK_MAX_LINKS
  constexpr int kOverNvlink = 2;      // NVML_P2P_CAPS_INDEX_NVLINK
  std::set<std::string> peers;
  for (unsigned link = 0; link < kMaxLinks; ++link) {
    unsigned active = 0;
    PciInfo far{};
    if (nvml.call("nvmlDeviceGetNvLinkState", device, link, &active) != 0 || active == 0) continue;
    if (nvml.call("nvmlDeviceGetNvLinkRemotePciInfo_v2", device, link, &far) == 0) {
      peers.insert(address_of(far));
    }
  }
  for (Device other : all) {
    int status = 0;
    if (other == device) continue;
    if (nvml.call("nvmlDeviceGetP2PStatus", device, other, kOverNvlink, &status) != 0) continue;
    std::string address = status == 0 ? address_of(nvml, other) : std::string();
    if (!address.empty()) peers.insert(std::move(address));
  }
  return {peers.begin(), peers.end()};
}

NvmlGpu read_gpu(const Nvml& nvml, Device device, const std::vector<Device>& all) {
  NvmlGpu gpu;
  gpu.pci_address = address_of(nvml, device);
  gpu.uuid = nvml.text("nvmlDeviceGetUUID", device);
  gpu.model = nvml.text("nvmlDeviceGetName", device);
  unsigned brand = 0;
  if (nvml.call("nvmlDeviceGetBrand", device, &brand) == 0) gpu.brand = brand_name(brand);
  int major = 0, minor = 0;
  if (nvml.call("nvmlDeviceGetCudaComputeCapability", device, &major, &minor) == 0) {
    gpu.compute_capability = std::to_string(major) + "." + std::to_string(minor);
  }
  gpu.memory_bytes = memory_of(nvml, device);
  gpu.board = board_of(nvml, device);
  gpu.numa_node = numa_node_of(nvml, device);
  gpu.nvlink_peers = peers_of(nvml, device, all);
  gpu.mig_mode = is_in_mig_mode(nvml, device);
  for (Device slice : slices_of(nvml, device)) gpu.slices.push_back(read_slice(nvml, slice));
  return gpu;
}

std::optional<MemoryUse> memory_use_of(const Nvml& nvml, Device device) {
  // The first version of this call counts the driver's reserve as used.
  MemoryInfo2 exact{};
  if (nvml.call("nvmlDeviceGetMemoryInfo_v2", device, &exact) == 0) {
    return MemoryUse{exact.used, exact.total};
  }
  MemoryInfo memory{};
  if (nvml.call("nvmlDeviceGetMemoryInfo", device, &memory) != 0) return std::nullopt;
  return MemoryUse{memory.used, memory.total};
}

/// Asks for a list of processes, which may grow between the two calls. Returns NVML's error code.
template <class Info>
int process_list(const Nvml& nvml, const std::string& name, Device device,
                 std::vector<Info>& list) {
  constexpr int kTooSmall = 7;  // NVML_ERROR_INSUFFICIENT_SIZE
  constexpr unsigned kSpare = 16, kMost = 65536;
  unsigned count = 0;
  auto ask = [&](Info* out) { return nvml.call(name.c_str(), device, &count, out); };
  int code = ask(nullptr);
  if (code != kTooSmall) return code;
  const unsigned room = std::min(count, kMost) + kSpare;
  list.resize(size_t{room} * 2);  // twice: the driver's entries may be larger
  count = room;
  code = ask(list.data());
  list.resize(code == 0 ? std::min(count, room) : 0);
  return code;
}

/// Nothing if NVML does not report them. Uses the second version of the calls, because the
/// structure of the third version has had different sizes; drivers before 450 have only the first.
std::optional<std::vector<ProcessInfo>> processes_of_kind(const Nvml& nvml, const char* kind,
                                                          Device device) {
  const std::string name = std::string("nvmlDeviceGet") + kind + "RunningProcesses";
  std::vector<ProcessInfo> list;
  int code = process_list(nvml, name + "_v2", device, list);
  if (code == 0) return list;
  std::vector<ProcessInfo1> older;
  if (code != kMissing || process_list(nvml, name, device, older) != 0) return std::nullopt;
  for (const ProcessInfo1& info : older) {
    list.push_back({info.pid, info.used, kNoInstance, kNoInstance});
  }
  return list;
}

ProcessUse process_of(const ProcessInfo& info) {
  constexpr unsigned long long kNotTold = ~0ULL;  // NVML_VALUE_NOT_AVAILABLE
  ProcessUse process;
  process.pid = info.pid;
  if (info.used != kNotTold) process.used_bytes = info.used;
  if (info.gpu_instance == kNoInstance) return process;
  process.gpu_instance = info.gpu_instance;
  process.compute_instance = info.compute_instance;
  return process;
}

using Processes = std::optional<std::vector<ProcessUse>>;

void add_once(const ProcessUse& one, std::vector<ProcessUse>& many) {
  bool known = std::ranges::any_of(many, [&](const ProcessUse& other) {
    return other.pid == one.pid && other.gpu_instance == one.gpu_instance &&
           other.compute_instance == one.compute_instance;
  });
  if (!known) many.push_back(one);
}

/// Nothing if the computing processes are unknown.
Processes processes_of(const Nvml& nvml, Device device) {
  Processes found;
  for (const char* kind : {"Compute", "MPSCompute", "Graphics"}) {
    auto list = processes_of_kind(nvml, kind, device);
    if (!list && !found) return std::nullopt;  // Compute; not all drivers have the others
    if (!list) continue;
    if (!found) found.emplace();
    for (const ProcessInfo& info : *list) {
      ProcessUse one = process_of(info);
      one.graphics = std::string_view(kind) == "Graphics";
      add_once(one, *found);
    }
  }
  return found;
}

/// Adds the processes of a slice; the list of the whole GPU may hide them from users other than
/// root.
void add_processes(const Nvml& nvml, Device slice, const SliceUse& use, Processes& found) {
  Processes more = processes_of(nvml, slice);
  if (!more) return;
  if (!found) found.emplace();
  for (ProcessUse& one : *more) {
    one.gpu_instance = use.gpu_instance;
    one.compute_instance = use.compute_instance;
    add_once(one, *found);
  }
}

constexpr std::pair<const char*, unsigned> kComputeModes[] = {  // nvmlComputeMode_t
    {kDefaultMode, 0},
    {kProhibited, 2},
    {kExclusiveProcess, 3}};

std::string compute_mode_of(const Nvml& nvml, Device device) {
  unsigned mode = 0;
  if (nvml.call("nvmlDeviceGetComputeMode", device, &mode) != 0) return {};
  for (const auto& [name, number] : kComputeModes) {
    if (number == mode) return name;
  }
  return {};
}

Use read_gpu_use(const Nvml& nvml, Device device) {
  Use use;
  use.pci_address = address_of(nvml, device);
  Utilization utilization{};
  if (nvml.call("nvmlDeviceGetUtilizationRates", device, &utilization) == 0) {
    use.busy_percent = utilization.gpu;
  }
  use.memory = memory_use_of(nvml, device);
  constexpr unsigned kOfTheChip = 0;  // NVML_TEMPERATURE_GPU
  unsigned value = 0;
  if (nvml.call("nvmlDeviceGetTemperature", device, kOfTheChip, &value) == 0) use.celsius = value;
  if (nvml.call("nvmlDeviceGetPowerUsage", device, &value) == 0) use.milliwatts = value;
  use.processes = processes_of(nvml, device);
  use.compute_mode = compute_mode_of(nvml, device);
  use.id = nvml.text("nvmlDeviceGetUUID", device);
  for (Device slice : slices_of(nvml, device)) {
    SliceUse& one = use.slices.emplace_back();
    nvml.call("nvmlDeviceGetGpuInstanceId", slice, &one.gpu_instance);
    nvml.call("nvmlDeviceGetComputeInstanceId", slice, &one.compute_instance);
    one.memory = memory_use_of(nvml, slice);
    add_processes(nvml, slice, one, use.processes);
  }
  return use;
}

Result<Nvml> open_nvml(const char* path) {
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return make_error(Kind::unsupported, dlerror());
  Nvml nvml(library);
  int code = nvml.call("nvmlInit_v2");
  if (code == kMissing) return make_error(Kind::unsupported, "this library has no nvmlInit_v2");
  if (code != 0) return make_error(Kind::unsupported, "nvmlInit_v2: " + nvml.error_text(code));
  return nvml;
}

std::vector<Device> devices_of(const Nvml& nvml) {
  unsigned count = 0;
  nvml.call("nvmlDeviceGetCount_v2", &count);
  std::vector<Device> devices;
  for (unsigned i = 0; i < count; ++i) {
    Device device = nullptr;
    if (nvml.call("nvmlDeviceGetHandleByIndex_v2", i, &device) == 0) devices.push_back(device);
  }
  return devices;
}

Uses read_use(const Nvml& nvml) {
  Uses use;
  for (Device device : devices_of(nvml)) use.gpus.push_back(read_gpu_use(nvml, device));
  return use;
}

NvmlFacts read_facts(const Nvml& nvml) {
  NvmlFacts facts;
  char version[kTextSize] = {};
  if (nvml.call("nvmlSystemGetDriverVersion", &version[0], kTextSize) == 0) {
    facts.driver_version.assign(version, strnlen(version, kTextSize));
  }
  int cuda = 0;
  int code = nvml.call("nvmlSystemGetCudaDriverVersion_v2", &cuda);
  if (code == kMissing) code = nvml.call("nvmlSystemGetCudaDriverVersion", &cuda);
  if (code == 0) {
    facts.cuda_version = std::to_string(cuda / 1000) + "." + std::to_string(cuda % 1000 / 10);
  }
  std::vector<Device> devices = devices_of(nvml);
  for (Device device : devices) facts.gpus.push_back(read_gpu(nvml, device, devices));
  return facts;
}

Result<void> change_mode(const Nvml& nvml, std::string_view gpus, std::string_view mode) {
  auto known =
      std::ranges::find_if(kComputeModes, [&](const auto& one) { return one.first == mode; });
  if (known == std::end(kComputeModes)) return make_error(Kind::usage, "no such compute mode");
  std::vector<Device> devices = devices_of(nvml);
  for (std::string_view gpu : split(gpus, ',')) {
    auto device = std::ranges::find_if(
        devices, [&](Device one) { return nvml.text("nvmlDeviceGetUUID", one) == gpu; });
    if (device == devices.end()) return make_error(Kind::not_found, "NVML knows no such GPU");
    int code = nvml.call("nvmlDeviceSetComputeMode", *device, known->second);
    if (code == 0) continue;
    return make_error(Kind::unsupported, "nvmlDeviceSetComputeMode: " + nvml.error_text(code));
  }
  return {};
}

// Returns a stream for our answer, and directs later output on standard output to standard error.
std::FILE* keep_standard_output() {
  std::FILE* kept = fdopen(dup(STDOUT_FILENO), "w");
  if (kept == nullptr) return stdout;
  dup2(STDERR_FILENO, STDOUT_FILENO);
  return kept;
}

}  // namespace
}  // namespace berth::gpu

int main(int argc, char** argv) {
  if (!berth::sys::has_standard_streams("berth-gpu-probe")) return 2;
  bool use = argc == 3 && std::strcmp(argv[1], "--use") == 0;
  bool set = argc == 5 && std::strcmp(argv[1], "--compute-mode") == 0;
  if (argc != 2 && !use && !set) {
    std::fputs(
        "usage: berth-gpu-probe [--use | --compute-mode GPU MODE] LIBRARY   (a libnvidia-ml.so.1;"
        " prints JSON)\n",
        stderr);
    return 2;
  }
  // The library's output must not mix with our answer.
  std::FILE* answer = berth::gpu::keep_standard_output();
  auto nvml = berth::gpu::open_nvml(argv[argc - 1]);
  if (!nvml.ok()) {
    std::fprintf(stderr, "%s\n", berth::to_line(nvml.error()).c_str());
    return 1;
  }
  if (set) {
    auto done = berth::gpu::change_mode(*nvml, argv[2], argv[3]);
    nvml->call("nvmlShutdown");
    if (!done.ok()) std::fprintf(stderr, "%s\n", berth::to_line(done.error()).c_str());
    return done.ok() ? 0 : 1;
  }
  std::string text = use ? berth::json::write(berth::gpu::read_use(*nvml))
                         : berth::json::write(berth::gpu::read_facts(*nvml));
  nvml->call("nvmlShutdown");
  std::fprintf(answer, "%s\n", text.c_str());
  return std::fflush(answer) == 0 ? 0 : 1;
}
