// SPDX-License-Identifier: Apache-2.0
#include "node/cpuinfo.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "node/archspec.hpp"

// The first byte says which machine the text is of.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace node = berth::node;
  constexpr std::array<std::string_view, 6> kFamilies = {"x86_64",  "aarch64", "ppc64le",
                                                         "riscv64", "x86",     "s390x"};
  if (size == 0) return 0;
  std::string_view family = kFamilies[data[0] % kFamilies.size()];
  std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  node::Cpu cpu = node::read_cpuinfo(text, family);
  if (cpu.microarchitecture.empty() || cpu.features.size() > 1024) std::abort();
  if (!node::runs(cpu, cpu.microarchitecture)) std::abort();
  for (const std::string& name : cpu.ancestors) {
    if (!node::closeness(cpu, name)) std::abort();
  }
  node::fit(cpu, text.substr(0, 64));
  node::nearest_microarchitecture(text.substr(0, 64));
  return 0;
}
