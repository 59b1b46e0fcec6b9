// SPDX-License-Identifier: Apache-2.0
#include "engine/slurm/bundle.hpp"

#include <fcntl.h>

#include "base/text.hpp"
#include "engine/container/launch.hpp"
#include "oci/config.hpp"
#include "oci/runtime_spec.hpp"
#include "slurm/options.hpp"
#include "slurm/spelled.hpp"
#include "sys/file/file.hpp"
#include "sys/process/program.hpp"

namespace berth::engine {
namespace {

/// The environment of the task, which TaskProlog writes to a file next to config.json
/// (packaging/slurm/image-bundles). If there is no such file: the environment in config.json, which
/// slurmstepd wrote before it created tasks.
Result<Environment> variables_of_task(const sys::Fd& directory, const oci::Process& process) {
  const std::string file = "environment";
  auto text = TRY(sys::read_file_if_exists(directory, file));
  std::vector<std::string> entries = process.env;
  if (text) {
    // slurmstepd removes config.json and then the directory, so no other file may remain.
    TRY(sys::remove_entry(directory, file));
    entries.clear();
    for (std::string_view entry : split(*text, '\0')) {
      if (!entry.empty()) entries.emplace_back(entry);
    }
  }
  if (!Environment(entries).get("PATH")) {  // with --export=NONE
    entries.emplace_back("PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
  }
  return Environment(std::move(entries));
}

/// Finds the batch script, which Slurm mounts at the path that the container executes.
const oci::Mount* find_script(const oci::Spec& spec) {
  for (const oci::Mount& mount : spec.mounts) {
    if (!spec.process->args.empty() && mount.destination == spec.process->args[0]) return &mount;
  }
  return nullptr;
}

/// Since 23.02 slurmstepd writes the path that the program has on the node. The image may have the
/// program at another path, so this restores the name that the user typed.
void restore_program(std::vector<std::string>& command, const std::string& typed) {
  if (!typed.empty() && !command.empty() && command[0].ends_with("/" + typed)) command[0] = typed;
}

Result<std::vector<std::string>> words_of_task(const SlurmBundle& bundle, const oci::Spec& spec,
                                               const slurm::Spelled& asked_for,
                                               const Environment& environment) {
  slurm::Asked asked;
  TRY(asked.take(slurm::Key::image, asked_for.image));
  TRY(asked.take_variables([&](const std::string& name) -> std::optional<std::string> {
    auto value = environment.get(name);
    if (!value) return std::nullopt;
    return std::string(*value);
  }));
  std::vector<std::string> words = {"berth", "slurm", "step", "--job=" + bundle.job};
  std::vector<std::string> command = spec.process->args;
  restore_program(command, asked_for.program);
  if (const oci::Mount* script = find_script(spec)) {
    words.push_back("--batch-script=" + script->source);
    command[0] = script->source;
  }
  for (std::string& word : asked.words()) words.push_back(std::move(word));
  words.emplace_back("--");
  words.insert(words.end(), command.begin(), command.end());
  return words;
}

}  // namespace

Result<void> run_slurm_bundle(const Context& context, const SlurmBundle& bundle) {
  sys::Fd directory = TRY_CTX(sys::open_at(sys::cwd(), bundle.directory, O_PATH | O_DIRECTORY),
                              "cannot read the bundle");
  std::string text = TRY(sys::read_file(directory, "config.json"));
  oci::Spec spec = TRY(oci::parse_spec(text));
  if (!spec.process) spec.process.emplace();
  Environment environment = TRY(variables_of_task(directory, *spec.process));
  auto images = spec.annotations.find(std::string(slurm::kImagesAnnotation));
  if (images == spec.annotations.end()) {
    return sys::execute(runtime_program(context),
                        {"berth-runtime", "run", bundle.id, "-b", bundle.directory},
                        context.environment.entries());
  }
  auto asked_for =
      TRY_CTX(slurm::read_spelled(spec.root.path, images->second), "cannot run --container");
  auto words = TRY(words_of_task(bundle, spec, asked_for, environment));
  if (bundle.remove) TRY(sys::remove_entry(directory, "config.json"));
  return sys::execute(context.paths.libexec + "/berth", words, environment.entries());
}

}  // namespace berth::engine
