// SPDX-License-Identifier: Apache-2.0
#include "engine/node/node.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "cli/berth/common.hpp"
#include "cli/berth/document_format.hpp"
#include "cli/core/table.hpp"
#include "json/fields.hpp"

namespace berth::cli {
namespace {

// ---- node show ----------------------------------------------------------------------------------

struct NodeShowOptions {
  std::optional<std::string> node;
  std::string format;
};

FlagTable node_show_flags(NodeShowOptions& o) {
  return {
      file_flag("node", 0, "Use a saved profile instead of this machine", &o.node),
      {"format", 'f', "FORMAT",
       "Output format: json or a template such as '{{.cpu.microarchitecture}}'", &o.format},
  };
}

using Properties = std::vector<std::pair<std::string, std::string>>;

/// "1g.10gb 1g.10gb 3g.40gb" → "2 × 1g.10gb, 3g.40gb".
std::string counted(const std::vector<std::string>& words) {
  std::vector<std::string> out;
  for (auto at = words.begin(); at != words.end();) {
    auto end = std::find_if(at, words.end(), [&](const std::string& word) { return word != *at; });
    auto count = end - at;
    out.push_back(count == 1 ? *at : std::to_string(count) + " × " + *at);
    at = end;
  }
  return join(out, ", ");
}

std::string gpu_words(const node::NodeGpu& gpu) {
  std::vector<std::string> words = {gpu.model.empty() ? gpu.vendor : gpu.model};
  if (!gpu.compute_capability.empty()) words.push_back("sm " + gpu.compute_capability);
  if (!gpu.architecture.empty()) words.push_back(gpu.architecture);
  if (gpu.memory_bytes) words.push_back(human_bytes(*gpu.memory_bytes));
  if (!gpu.brand.empty()) words.push_back(gpu.brand);
  if (gpu.mig) {
    std::string slices = counted(gpu.mig_profiles);
    words.push_back(slices.empty() ? "MIG" : "MIG: " + slices);
  }
  return join(words, ", ");
}

std::string cpu_words(const node::Cpu& cpu) {
  if (cpu.microarchitecture.empty()) return cpu.model.empty() ? "unknown" : cpu.model;
  return cpu.microarchitecture + (cpu.model.empty() ? "" : " (" + cpu.model + ")");
}

std::string driver_words(const node::NodeDriver& driver) {
  std::string words = driver.module_version.empty() ? "no module" : driver.module_version;
  if (!driver.cuda_version.empty()) words += ", CUDA " + driver.cuda_version;
  if (driver.library_version != driver.module_version) {
    words += ", libraries " + (driver.library_version.empty() ? "none" : driver.library_version);
  }
  if (!driver.glibc_needed.empty()) words += ", needs glibc " + driver.glibc_needed;
  return words;
}

std::string mpi_words(const std::vector<node::Mpi>& libraries) {
  std::vector<std::string> words;
  for (const node::Mpi& mpi : libraries) words.push_back(mpi.family + " (" + mpi.soname + ")");
  return join(words, ", ");
}

std::string text_of(const node::Profile& profile) {
  Properties lines;
  auto add = [&](std::string title, std::string value) {
    if (!value.empty()) lines.emplace_back(std::move(title), std::move(value));
  };
  add("Node", profile.name + (profile.synthetic ? " (GPUs of a tree made for tests)" : ""));
  add("Platform", profile.os + "/" + profile.architecture);
  add("CPU", cpu_words(profile.cpu));
  if (profile.cpu.level > 0) add("x86-64 level", std::to_string(profile.cpu.level));
  add("Runs code for", join(profile.cpu.ancestors, " "));
  add("Kernel", profile.kernel.release);
  add("Abilities", join(profile.kernel.abilities, " "));
  add("libc", profile.libc);
  const node::NodeDriver& driver = profile.driver;
  if (!driver.module_version.empty() || !driver.library_version.empty()) {
    add("NVIDIA driver", driver_words(driver));
  }
  if (profile.gpus.empty()) add("GPUs", "none");
  for (size_t i = 0; i < profile.gpus.size(); ++i) {
    add("GPU " + std::to_string(i), gpu_words(profile.gpus[i]));
  }
  add("ROCm", profile.rocm);
  add("Fabric", join(profile.fabric, " "));
  add("MPI", mpi_words(profile.mpi));
  return property_list(lines);
}

Result<int> run_node_show(Session& session, const NodeShowOptions& o, Arguments) {
  auto format = TRY(DocumentFormat::make_if_given(o.format));
  node::Profile profile = TRY(engine::node_of(session.context, o.node));
  return print_document(session, format, json::to_value(profile), text_of(profile));
}

// ---- node save ----------------------------------------------------------------------------------

Result<int> run_node_save(Session& session, const NoOptions&, Arguments arguments) {
  if (arguments.empty() || arguments.front() == "-") {
    print_json(session, json::to_value(TRY(engine::this_node(session.context))));
    return 0;
  }
  TRY(engine::save_node(session.context, arguments.front()));
  return 0;
}

// ---- node check ---------------------------------------------------------------------------------

json::Value to_json(const std::vector<node::Difference>& differences) {
  json::Array out;
  for (const node::Difference& one : differences) {
    out.push_back(
        json::Object{{"member", one.member}, {"written", one.written}, {"here", one.here}});
  }
  return json::Object{{"differences", std::move(out)}};
}

Result<int> run_node_check(Session& session, const FormatOptions& o, Arguments arguments) {
  const std::string& file = arguments.front();
  auto differences = TRY(engine::compare_node(session.context, file));
  int status = differences.empty() ? 0 : 1;
  if (o.format == "json") {
    print_json(session, to_json(differences));
    return status;
  }
  if (differences.empty()) {
    print(session, escape_controls(file) + ": good: this machine is as it says\n");
    return status;
  }
  Table table({"MEMBER", "WRITTEN", "HERE"});
  for (node::Difference& one : differences) {
    table.add({std::move(one.member), std::move(one.written), std::move(one.here)});
  }
  print(session, table.text());
  return status;
}

}  // namespace

const Verb node_show_verb{
    .text = {.name = "node show",
             .summary = "Show the properties of this machine that images depend on",
             .example = "berth node show --format '{{.cpu.microarchitecture}}'"},
    .command = [] { return make_command(node_show_flags, run_node_show); },
};
const Verb node_save_verb{
    .text = {.name = "node save",
             .arguments = "[FILE|-]",
             .summary = "Save the profile of this machine to a .json or .toml file",
             .example = "berth node save nodes/$(hostname).toml",
             .complete = Complete::file},
    .arity = {0, 1},
    .command = [] { return make_command(no_flags, run_node_save); },
};
const Verb node_check_verb{
    .text = {.name = "node check",
             .arguments = "FILE",
             .summary = "Check a saved profile for errors, and for changes since it was saved",
             .example = "berth node check nodes/$(hostname).toml",
             .complete = Complete::file},
    .arity = {1, 1},
    .command = [] { return make_command(format_flags, run_node_check); },
};

}  // namespace berth::cli
