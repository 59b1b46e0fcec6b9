// SPDX-License-Identifier: Apache-2.0
// What images, users and schedulers say of GPUs: lines of the input become the sources, and what is
// chosen is looked for on a small machine.
#include "gpu/grant/sources.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "base/text.hpp"
#include "gpu/grant/environment.hpp"
#include "gpu/grant/select.hpp"
#include "gpu/grant/visible.hpp"
#include "unit/gpu/grant/machine.hpp"

namespace {

namespace gpu = berth::gpu;
using Strings = std::vector<std::string>;

// 'i' image, 't' typed, 'c' caller, 'v' volume, 'd' device, 'l' label, 'g' the text of --gpus.
void add_line(std::string_view line, gpu::Sources& sources) {
  if (line.empty()) return;
  std::string rest(line.substr(1));
  switch (line[0]) {
    case 'i':
      return sources.image.push_back(std::move(rest));
    case 't':
      return sources.typed.push_back(std::move(rest));
    case 'c':
      return sources.caller.push_back(std::move(rest));
    case 'v':
      return sources.volumes.push_back(std::move(rest));
    case 'd':
      return sources.devices.push_back(std::move(rest));
    case 'l':
      sources.labels["com.nvidia.volumes.needed"] = std::move(rest);
      return;
    case 'g':
      sources.gpus = std::move(rest);
      return;
    default:
      return;
  }
}

void check(bool promise) {
  if (!promise) std::abort();
}

void try_on(const gpu::Inventory& machine, const gpu::Choice& choice) {
  auto selected = gpu::select(choice.request, machine);
  if (!selected.ok()) return;
  for (size_t i = 0; i < selected->size(); ++i) {
    for (size_t j = 0; j < i; ++j) check(!((*selected)[i] == (*selected)[j]));
  }
  gpu::translate_selection(choice.request, *selected);
  gpu::stale_selections(choice.request, *selected);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  gpu::Sources sources;
  for (std::string_view line : berth::split(text, '\n')) add_line(line, sources);
  berth::policy::Gpu policy;
  auto cautious = gpu::choose(sources, policy);
  // Whatever an image says, it gets nothing that nobody else asked for.
  bool asked = sources.gpus || !sources.devices.empty() || !sources.caller.empty();
  if (cautious.ok() && !asked) check(!cautious->grants());
  policy.environment = berth::policy::GpuEnvironment::grant;
  policy.devices_by_volume = true;
  for (gpu::Program program : {gpu::Program::berth, gpu::Program::nvidia_docker}) {
    sources.program = program;
    auto choice = gpu::choose(sources, policy);
    if (!choice.ok()) continue;
    try_on(gpu::gpu_machine(4), *choice);
    try_on(gpu::sliced_machine(3), *choice);
    try_on(gpu::gpu_machine(3, gpu::Vendor::amd), *choice);
  }
  return 0;
}
