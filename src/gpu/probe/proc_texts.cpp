// SPDX-License-Identifier: Apache-2.0
#include "gpu/probe/proc_texts.hpp"

#include <fmt/format.h>

#include "base/text.hpp"
#include "gpu/probe/nodes.hpp"

namespace berth::gpu {
namespace {

constexpr const char* kProcTexts = "/proc/driver/";
// A few lines each; but the table of minors has 4300, of which few are used.
constexpr size_t kMaxText = size_t{64} << 10, kMaxTable = size_t{1} << 20;

class Texts {
 public:
  Texts(const DriverRoot& root, Inventory& inventory) : root_(root), inventory_(inventory) {}

  Result<void> read() {
    for (const char* name : {"version", "params", "registry", "suspend", "suspend_depth"}) {
      add(std::string("nvidia/") + name, {}, {});
    }
    for (const char* name : {"warnings/README", "patches/README"}) {
      add(std::string("nvidia/") + name, {}, {});
    }
    for (const char* name : {"config", "monitor"}) {
      add(std::string("nvidia/capabilities/mig/") + name, {}, {});
    }
    add("nvidia/capabilities/fabric-imex-mgmt", {}, {});
    for (const Gpu& gpu : inventory_.gpus) {
      if (gpu.vendor == Vendor::nvidia) TRY(read_gpu(gpu));
    }
    add_tables();
    return {};
  }

 private:
  Result<void> read_gpu(const Gpu& gpu);
  void add_tables();

  std::optional<std::string> text_of(const std::string& path, size_t max_bytes) const {
    auto text = root_.read_machine(kProcTexts + path);
    if (!text.ok() || !*text || (*text)->size() > max_bytes) return std::nullopt;
    return std::move(*text);
  }
  void add(const std::string& path, std::optional<uint32_t> gpu, std::optional<uint32_t> slice) {
    if (auto text = text_of(path, kMaxText)) {
      inventory_.proc_texts.push_back({path, std::move(*text), gpu, slice});
    }
  }

  const DriverRoot& root_;
  Inventory& inventory_;
};

Result<void> Texts::read_gpu(const Gpu& gpu) {
  const std::string directory = "nvidia/gpus/" + gpu.pci_address;
  for (const std::string& name : TRY(root_.list_machine(kProcTexts + directory))) {
    add(directory + "/" + name, gpu.index, {});
  }
  const std::string mig = fmt::format("nvidia/capabilities/gpu{}/mig", gpu.minor);
  for (const MigDevice& slice : gpu.mig) {
    const std::string instance = fmt::format("{}/gi{}", mig, slice.gpu_instance);
    add(instance + "/access", gpu.index, slice.index);
    add(fmt::format("{}/ci{}/access", instance, slice.compute_instance), gpu.index, slice.index);
  }
  return {};
}

void Texts::add_tables() {
  add("nvidia-caps/nvlink-minors", {}, {});
  auto table = text_of("nvidia-caps/mig-minors", kMaxTable);
  if (!table) return;
  for (ProcText& row : mig_minor_rows(*table, inventory_)) {
    inventory_.proc_texts.push_back(std::move(row));
  }
}

const Gpu* find_gpu(const Inventory& inventory, std::string_view name) {
  auto minor = numbered(name, "gpu");
  for (const Gpu& gpu : inventory.gpus) {
    if (gpu.vendor == Vendor::nvidia && minor == gpu.minor) return &gpu;
  }
  return nullptr;
}

}  // namespace

std::vector<ProcText> mig_minor_rows(std::string_view table, const Inventory& inventory) {
  std::vector<ProcText> out;
  auto add = [&](std::string_view line, std::optional<uint32_t> gpu,
                 std::optional<uint32_t> slice) {
    out.push_back({"nvidia-caps/mig-minors", std::string(line) + "\n", gpu, slice});
  };
  for (std::string_view line : split(table, '\n')) {
    auto words = split_blank(line);
    if (words.size() != 2 || !parse_u32(words[1])) continue;
    if (words[0] == "config" || words[0] == "monitor") add(line, {}, {});
    auto parts = split(words[0], '/');
    if (parts.size() < 3 || parts.size() > 4 || parts.back() != "access") continue;
    const Gpu* gpu = find_gpu(inventory, parts[0]);
    auto gi = numbered(parts[1], "gi");
    auto ci = parts.size() == 4 ? numbered(parts[2], "ci") : std::nullopt;
    if (gpu == nullptr || !gi || (parts.size() == 4 && !ci)) continue;
    for (const MigDevice& slice : gpu->mig) {
      bool same = slice.gpu_instance == *gi && (!ci || slice.compute_instance == *ci);
      if (same) add(line, gpu->index, slice.index);
    }
  }
  return out;
}

Result<void> read_proc_texts(const DriverRoot& root, Inventory& inventory) {
  return Texts(root, inventory).read();
}

}  // namespace berth::gpu
