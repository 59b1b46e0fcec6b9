// SPDX-License-Identifier: Apache-2.0
#include "gpu/probe/nvml_facts.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.hpp"
#include "gpu/probe/use.hpp"
#include "json/fields.hpp"
#include "sys/process/process.hpp"

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

namespace {

// Why a probe failed: its last line of output, or its exit status.
std::string reason_of(const sys::CommandOutput& output) {
  constexpr size_t kMaxReason = 200;
  auto lines = split(trim(output.err), '\n');
  std::string last = escape_controls(std::string(trim(lines.back()).substr(0, kMaxReason)));
  if (!last.empty()) return last;
  if (output.status.signal != 0) return fmt::format("killed by signal {}", output.status.signal);
  return fmt::format("ended with status {}", output.status.code);
}

// These strings come from a vendor's library and become device names and terminal output.
void clean(std::string& text) {
  constexpr size_t kMaxText = 128;
  bool plain = std::ranges::all_of(text, [](char c) { return c >= ' ' && c < '\177'; });
  if (!plain || text.size() > kMaxText) text.clear();
}

void clean(NvmlGpu& gpu) {
  for (std::string* text : {&gpu.uuid, &gpu.model, &gpu.board}) clean(*text);
  for (NvmlSlice& slice : gpu.slices) {
    clean(slice.uuid);
    clean(slice.profile);
  }
}

Result<std::string> run(const std::string& program, const std::vector<std::string>& words,
                        std::chrono::milliseconds deadline) {
  sys::SpawnOptions options;
  options.program = program;
  options.args = {program};
  options.args.insert(options.args.end(), words.begin(), words.end());
  auto output = TRY(sys::run_command(std::move(options), "", deadline, size_t{1} << 20));
  if (output.status.shell_code() != 0) return make_error(Kind::unsupported, reason_of(output));
  return std::move(output.out);
}

template <class Answer>
Result<Answer> ask(const std::string& program, const std::vector<std::string>& words,
                   std::chrono::milliseconds deadline) {
  return json::read<Answer>(TRY(run(program, words, deadline)), "berth-gpu-probe");
}

}  // namespace

Result<NvmlFacts> ask_nvml(const std::string& program, const std::string& library,
                           std::chrono::milliseconds deadline) {
  auto facts = TRY(ask<NvmlFacts>(program, {library}, deadline));
  for (NvmlGpu& gpu : facts.gpus) clean(gpu);
  return facts;
}

Result<Uses> ask_nvml_use(const std::string& program, const std::string& library,
                          std::chrono::milliseconds deadline) {
  return ask<Uses>(program, {"--use", library}, deadline);
}

Result<void> set_compute_mode(const std::string& program, const std::string& library,
                              const std::vector<std::string>& gpus, const std::string& mode,
                              std::chrono::milliseconds deadline) {
  const std::string list = join(gpus, ",");
  TRY_CTX(run(program, {"--compute-mode", list, mode, library}, deadline),
          "cannot set the compute mode of " + list);
  return {};
}

}  // namespace berth::gpu
