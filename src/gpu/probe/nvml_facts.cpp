// SPDX-License-Identifier: Apache-2.0
#include "gpu/probe/nvml_facts.hpp"

#include <fmt/format.h>

#include "base/text.hpp"
#include "json/fields.hpp"
#include "sys/process.hpp"

namespace berth::gpu {

std::string kernel_pci_address(std::string text) {
  text = to_lower(text);
  size_t domain = text.find(':');
  while (domain != std::string::npos && domain > 4 && text.front() == '0') {
    text.erase(0, 1);
    --domain;
  }
  return text;
}

Result<NvmlFacts> ask_nvml(const std::string& program, const std::string& library,
                           std::chrono::milliseconds deadline) {
  sys::SpawnOptions options;
  options.program = program;
  options.args = {program, library};
  auto output = TRY(sys::run_command(std::move(options), "", deadline, size_t{1} << 20));
  if (output.status.shell_code() != 0) {
    std::string why(trim(output.err));
    if (why.empty()) why = fmt::format("ended with status {}", output.status.shell_code());
    return make_error(Kind::unsupported, why);
  }
  return json::read<NvmlFacts>(output.out, "berth-gpu-probe");
}

}  // namespace berth::gpu
