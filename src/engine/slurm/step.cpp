// SPDX-License-Identifier: Apache-2.0
#include "engine/slurm/step.hpp"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "base/text.hpp"
#include "engine/container/list.hpp"
#include "engine/container/root_view.hpp"
#include "engine/context/name.hpp"
#include "engine/context/paths.hpp"
#include "engine/decide/mpi_launch.hpp"
#include "engine/files/save_squashfs.hpp"
#include "engine/image/file.hpp"
#include "engine/image/store.hpp"
#include "engine/pull/pull.hpp"
#include "engine/request/environment.hpp"
#include "engine/run/exec.hpp"
#include "engine/run/run.hpp"
#include "engine/run/start.hpp"
#include "engine/site/environment_file.hpp"
#include "engine/site/rules.hpp"
#include "engine/slurm/container_names.hpp"
#include "engine/slurm/job_fetch.hpp"
#include "engine/slurm/mpi.hpp"
#include "slurm/hold.hpp"
#include "slurm/options.hpp"
#include "slurm/task_variables.hpp"
#include "sys/file/file.hpp"
#include "sys/file/file_system.hpp"
#include "sys/process/adopt.hpp"
#include "sys/process/signals.hpp"

namespace berth::engine {
namespace {

using slurm::Key;

/// The path of berth-hold in a container: a file in /dev leaves no file in the container's layer.
constexpr const char* kHoldPlace = "/dev/berth-hold";

/// Variables that name files of NCCL and RCCL; the files are mounted if they exist on the node.
constexpr const char* kNcclFiles[] = {"NCCL_TOPO_FILE", "NCCL_GRAPH_FILE", "NCCL_NET_PLUGIN",
                                      "NCCL_TUNER_PLUGIN", "NCCL_CONF_FILE"};
/// NCCL reads this file by default: it describes the devices of a virtual machine.
constexpr const char* kNcclTopology = "/var/run/nvidia-topologyd/virtualTopology.xml";

Volume bound(std::string source, std::string destination, bool read_only) {
  Volume volume;
  volume.source = std::move(source);
  volume.destination = std::move(destination);
  volume.read_only = read_only;
  volume.must_exist = true;
  return volume;
}

/// The definition of --environment, with the options that override it; empty without --environment.
Result<edf::Definition> read_definition(const Context& context, const SlurmStep& step) {
  edf::Definition definition;
  if (const std::string* name = step.asked.value(Key::environment_file)) {
    definition = TRY(read_environment_file(context.environment, *name));
  }
  auto choose = [&](Key yes, Key no, std::optional<bool>& value) {
    if (step.asked.value(yes) != nullptr) value = true;
    if (step.asked.value(no) != nullptr) value = false;
  };
  choose(Key::entrypoint, Key::no_entrypoint, definition.entrypoint);
  choose(Key::writable, Key::readonly, definition.writable);
  return definition;
}

Result<void> add_image_of_file(const SlurmStep& step, const edf::Definition& definition,
                               RunRequest& request) {
  request.image = TRY(image_of(definition));
  request.image_file = is_image_path(request.image);
  if (request.image_file) request.image = TRY(find_image_file(request.image));
  // Without an environment file the image is that of the named container.
  const std::string* file = step.asked.value(Key::environment_file);
  bool has_other = file == nullptr || step.asked.value(Key::name) != nullptr;
  if (!request.image.empty() || has_other) return {};
  return make_error(Kind::usage, "environment " + quote(*file) + " names no image",
                    "--container-image, or 'image = ...' in its file");
}

Result<void> add_image(const SlurmStep& step, const edf::Definition& definition,
                       RunRequest& request) {
  const std::string* image = step.asked.value(Key::image);
  if (image == nullptr) return add_image_of_file(step, definition, request);
  // pyxis recognises a path by the first character alone.
  bool is_path = image->starts_with('/') || image->starts_with('.');
  if (!is_path) {
    request.image = slurm_reference(*image);
    return {};
  }
  std::string path = TRY(absolute_path(*image, step.directory));
  request.image_file = true;
  request.image = TRY_CTX(find_image_file(path), "--container-image");
  return {};
}

/// The files for NCCL that exist on the node; others may be in the image.
std::vector<std::string> nccl_files(const Context& context) {
  std::vector<std::string> out;
  auto add = [&](const std::string& path) {
    if (!path.starts_with('/') || !sys::check_access(sys::cwd(), path, R_OK).ok()) return;
    if (std::ranges::find(out, path) == out.end()) out.push_back(path);
  };
  for (const char* variable : kNcclFiles) {
    if (auto path = context.environment.get_filled(variable)) add(std::string(*path));
  }
  add(kNcclTopology);
  return out;
}

/// Adds the mounts of the node that a job needs.
Result<void> add_node_mounts(const Context& context, const SlurmStep& step, RunRequest& request) {
  bool root = step.asked.value(Key::remap_root) != nullptr;
  if (step.asked.value(Key::mount_home) != nullptr) {
    auto home = context.environment.get_filled("HOME");
    if (!home) return make_error(Kind::usage, "--container-mount-home: HOME is not set");
    request.volumes.push_back(
        bound(std::string(*home), root ? "/root" : std::string(*home), false));
  }
  if (!step.batch_script.empty()) {
    request.volumes.push_back(bound(step.batch_script, step.batch_script, true));
  }
  add_pmix(context.environment, request);
  for (std::string& path : nccl_files(context)) {
    request.volumes.push_back(bound(path, path, true));
  }
  if (context.environment.get_filled("SLURM_PTY_PORT") && context.identity != Identity::root) {
    // The terminal of srun --pty: programs look up its name. Not for root, since the /dev/pts of
    // root has all terminals.
    for (const char* path : {"/dev/pts", "/dev/ptmx"}) {
      request.volumes.push_back(bound(path, path, false));
    }
  }
  add_meeting_places(context.environment, request);
  return {};
}

void clear_place(RunRequest& request, const std::string& destination) {
  auto is_there = [&](const auto& mount) { return mount.destination == destination; };
  std::erase_if(request.volumes, is_there);
  std::erase_if(request.tmpfs, is_there);
  std::erase_if(request.image_mounts, is_there);
}

/// Adds --container-mounts, which replace other mounts at the same path.
Result<void> add_asked_mounts(const SlurmStep& step, RunRequest& request) {
  const std::string* text = step.asked.value(Key::mounts);
  if (text == nullptr) return {};
  for (slurm::Mount& mount : TRY(slurm::parse_mounts(*text, step.directory))) {
    clear_place(request, mount.destination);
    if (mount.kind == slurm::Mount::Kind::none) continue;
    if (mount.kind == slurm::Mount::Kind::tmpfs) {
      request.tmpfs.push_back({std::move(mount.destination), std::move(mount.options)});
      continue;
    }
    Volume volume = bound(std::move(mount.source), std::move(mount.destination), mount.read_only);
    volume.propagation = std::move(mount.propagation);
    volume.non_recursive = !mount.recursive;
    volume.restrictions = std::move(mount.options);
    request.volumes.push_back(std::move(volume));
  }
  return {};
}

/// Uses the namespaces of the node, so that tasks communicate with each other and with other nodes
/// like programs on the node.
Result<void> add_namespaces(const Context& context, const SlurmStep& step, RunRequest& request) {
  slurm::Unshared own;
  if (const std::string* text = step.asked.value(Key::unshare)) {
    own = TRY(slurm::parse_unshare(*text));
  }
  const NamespaceMode host{.kind = NamespaceMode::Kind::host};
  request.network = own.net ? Network::none : Network::host;
  request.network_asked = true;
  request.pid = host;
  if (!own.ipc) request.ipc = host;
  if (!own.uts) request.uts = host;
  bool root = step.asked.value(Key::remap_root) != nullptr || context.identity == Identity::root;
  if (root) {
    request.user = "0:0";
  } else {
    request.userns.kind = NamespaceMode::Kind::keep_id;
  }
  request.group_add = {"keep-groups"};
  return {};
}

/// Chooses the MPI mode, for which pyxis has no option. Tasks are usually MPI ranks, so by default
/// the MPI of the image gets the fabric.
Result<void> add_mpi_mode(const Environment& environment, const SlurmStep& step,
                          RunRequest& request) {
  request.mpi = TRY(read_mpi({}, environment));
  if (!request.mpi && environment.get_filled("BERTH_MPI") != "none") request.mpi.emplace();
  if (request.mpi) request.mpi->program = step.program;
  return {};
}

constexpr const char* kSquashfsWriter = "/usr/bin/tar2sqfs";

/// Checks early what would otherwise fail only when the tasks have done their work.
Result<void> check_save(const std::string& output) {
  if (!sys::check_access(sys::cwd(), kSquashfsWriter, X_OK).ok()) {
    return make_error(Kind::not_found, "--container-save needs " + quote(kSquashfsWriter),
                      "install squashfs-tools-ng on this node");
  }
  auto there = TRY(sys::stat_entry(sys::cwd(), output));
  if (there && !S_ISREG(there->st_mode)) {
    return make_error(Kind::usage, "--container-save: " + quote(output) + " is not a file");
  }
  std::string directory = output.substr(0, output.rfind('/') + 1);
  TRY_CTX(sys::check_access(sys::cwd(), directory, W_OK | X_OK), "--container-save");
  return {};
}

/// The absolute output path of --container-save; empty: no such option.
Result<std::string> save_place(const SlurmStep& step) {
  const std::string* path = step.asked.value(Key::save);
  if (path == nullptr) return std::string();
  return absolute_path(*path, step.directory);
}

/// "pyxis_web", or "pyxis_12_web" if names belong to a job: pyxis's names, which scripts use.
std::string container_name(const SlurmStep& step, const slurm::Name& name) {
  std::string job = step.job.substr(0, step.job.find('.'));
  return (step.of_job ? job_prefix(job) : kPyxisPrefix) + name.name;
}

/// "pyxis_12.0-", which the node's name follows.
std::string step_prefix(const std::string& job) {
  return kPyxisPrefix + job + "-";
}

/// The name of a container that is removed at the end of its step. No other container has it.
std::optional<std::string> step_name(const Context& context, const SlurmStep& step) {
  auto node = context.environment.get_filled(kNodeVariable);
  std::string name = step_prefix(step.job) + std::string(node.value_or(""));
  if (!node || !check_name(name).ok()) return std::nullopt;
  return name;
}

/// The name of the container of a single task: for the first task on the node the name of the
/// step's container, for others "pyxis_12.0.1-NODE".
std::optional<std::string> name_of_task(const Context& context, const SlurmStep& step) {
  auto task = context.environment.get_filled("SLURM_LOCALID");
  if (!task || *task == "0" || !parse_u64(*task)) return step_name(context, step);
  SlurmStep named = step;
  named.job += "." + std::string(*task);
  return step_name(context, named);
}

Result<std::optional<ContainerSummary>> find_named(const Context& context,
                                                   const std::string& name) {
  auto found = get_container(context, name);
  if (found.ok()) return std::optional<ContainerSummary>(std::move(*found));
  if (found.error().kind != Kind::not_found) return std::move(found).error();
  return std::optional<ContainerSummary>();
}

Result<void> check_use(const slurm::Name& name, const std::optional<ContainerSummary>& found,
                       bool has_image) {
  bool runs = found && is_alive(found->state);
  if (name.use == slurm::NameUse::create && found) {
    return make_error(Kind::exists,
                      "--container-name: \"create\" was passed but the container " +
                          quote(found->name) + " already exists",
                      "berth rm " + found->name);
  }
  if (name.use == slurm::NameUse::exec && !runs) {
    return make_error(Kind::usage,
                      "--container-name: \"exec\" was passed but no container of this name runs");
  }
  if (name.use == slurm::NameUse::no_exec && runs) {
    return make_error(Kind::busy,
                      "--container-name: the files of container " + quote(found->name) +
                          " are in use, and cannot be mounted twice",
                      "without :no_exec the running container is joined");
  }
  if (!found && !has_image) {
    return make_error(Kind::not_found, "--container-name: a container with name " +
                                           quote(name.name) +
                                           " does not exist, and --container-image is not set");
  }
  return {};
}

/// Pulls the image. A pull can take long, so it is aborted when the step ends, which only the
/// step's socket shows. Afterwards `job` serves other nodes.
Result<void> pull_for_step(const Context& context, const Asked& asked, const Progress& progress,
                           JobFetch& job) {
  const RunRequest& request = asked.request;
  if (request.image.empty()) return {};
  sys::SignalOnHangup ended(slurm::kHoldSocket, SIGTERM);
  image::Store store = TRY(open_store(context));
  RunCall call = asked.call;
  // Check the rules before other nodes get the image.
  if (is_of_store(request)) {
    auto here = TRY(find_present_image(store, request.image));
    TRY(check_registry(context, request, here ? &*here : nullptr));
  }
  job = JobFetch::begin(context, store, request, call.registry);
  job.add_to(call.registry);
  TRY(have_image(context, store, request, call, progress));
  return {};
}

/// The variables of a task that its container gets as defaults. Leaves out variables for which
/// Berth or the image has better values: those of GPUs, and those of locales, which the image may
/// lack.
Result<std::vector<std::string>> variables_of_task(const Context& context) {
  const std::vector<std::string> outside = TRY(node_variables(context));
  std::vector<std::string_view> kept_back = {"LANG", "LANGUAGE", "LC_ALL"};
  kept_back.insert(kept_back.end(), outside.begin(), outside.end());
  kept_back.insert(kept_back.end(), slurm::kVisible.begin(), slurm::kVisible.end());
  std::vector<std::string> variables;
  for (const std::string& entry : context.environment.entries()) {
    bool is_kept_back = std::ranges::find(kept_back, variable_name(entry)) != kept_back.end();
    if (!is_kept_back) variables.push_back(entry);
  }
  return variables;
}

/// Starts one more berth-hold in a container that another step holds.
Result<RunOutcome> join_running(const Context& context, const SlurmStep& step,
                                const ContainerSummary& container) {
  for (const auto& [key, option] : {std::pair{Key::mounts, "--container-mounts"},
                                    std::pair{Key::environment_file, "--environment"}}) {
    if (step.asked.value(key) == nullptr) continue;
    context.log.warn(std::string(option) + ": container " + quote(container.name) +
                     " runs already, ignoring");
  }
  ExecRequest request;
  request.command = {kHoldPlace};
  request.held = true;
  const oci::Spec spec = TRY(read_config(context, container));
  const Environment made(spec.process ? spec.process->env : std::vector<std::string>());
  const auto decided = split(made.get(slurm::kDecidedVariable).value_or(""), ',');
  for (const std::string& name : step.asked.environment()) {
    bool is_free = std::ranges::find(decided, name) == decided.end();
    if (is_free) request.environment.push_back(name);
  }
  return exec(context, container.id, request);
}

Result<RunOutcome> hold_named(const Context& context, const SlurmStep& step, Asked asked,
                              const Progress& progress) {
  slurm::Name name = TRY(slurm::parse_name(*step.asked.value(Key::name)));
  const std::string whole = container_name(step, name);
  auto found = TRY(find_named(context, whole));
  TRY(check_use(name, found, !asked.request.image.empty()));
  bool runs = found && is_alive(found->state);
  asked.request.name = whole;
  if (!found) {
    Asked making = asked;
    making.call.held = false;
    TRY(create_container(context, std::move(making), progress));
  }
  const auto ended = asked.call.ended;
  RunOutcome outcome = TRY(runs ? join_running(context, step, *found)
                                : start_held(context, whole, std::move(asked)));
  if (ended && !outcome.command_error) ended(outcome.id);
  return outcome;
}

}  // namespace

std::string slurm_reference(std::string_view image) {
  constexpr std::string_view kScheme = "docker://";
  if (image.starts_with(kScheme)) image.remove_prefix(kScheme.size());
  // Drop "USER@": the credentials of the registry name the user.
  size_t registry = image.find('#');
  size_t user = image.substr(0, registry).find('@');
  bool has_user = registry != image.npos && user != image.npos;
  if (has_user) image.remove_prefix(user + 1);
  std::string reference(image);
  std::ranges::replace(reference, '#', '/');
  return reference;
}

Result<Asked> slurm_container(const Context& context, const SlurmStep& step) {
  std::string output = TRY(save_place(step));
  if (!output.empty()) TRY(check_save(output));
  Asked asked;
  RunRequest& request = asked.request;
  const edf::Definition definition = TRY(read_definition(context, step));
  TRY(add_image(step, definition, request));
  request.command = {kHoldPlace};
  if (const std::string* workdir = step.asked.value(Key::workdir)) request.workdir = *workdir;
  TRY(add_node_mounts(context, step, request));
  TRY(add_definition(definition, step.directory, context.log, request));
  asked.variables = definition.variables;
  TRY(add_asked_mounts(step, request));
  TRY(add_namespaces(context, step, request));
  TRY(add_mpi_mode(context.environment, step, request));
  request.remove = step.asked.value(Key::name) == nullptr;
  if (request.remove) request.name = step_name(context, step);
  request.labels[kStepLabel] = step.job;
  request.health.off = true;
  // HOME of the job is HOME in the container; for root the image sets it.
  auto home = context.environment.get_filled("HOME");
  if (home && request.userns.kind == NamespaceMode::Kind::keep_id) {
    request.environment.push_back("HOME=" + std::string(*home));
  }
  for (const std::string& name : step.asked.environment()) {
    auto value = context.environment.get(name);
    if (value) request.environment.push_back(name + "=" + std::string(*value));
  }
  return asked;
}

Result<std::string> container_of_step(const Context& context, const std::string& job) {
  const std::string prefix = step_prefix(job);
  const std::string own =
      prefix + std::string(context.environment.get_filled(kNodeVariable).value_or(""));
  std::string found;
  for (const ContainerSummary& one : TRY(list_containers(context, Which::all))) {
    if (one.name == own) return own;
    if (found.empty() && one.name.starts_with(prefix)) found = one.name;
  }
  if (!found.empty()) return found;
  return make_error(Kind::not_found, "step " + quote(job) + " has no container on this node",
                    "JOB.STEP as 'squeue --steps' shows it, on a node of the running step");
}

std::string joined_by(const SlurmStep& step) {
  const std::string* text = step.asked.value(Key::name);
  if (text == nullptr) return "";
  auto name = slurm::parse_name(*text);
  bool may_join = name.ok() &&
                  (name->use == slurm::NameUse::join_or_reuse || name->use == slurm::NameUse::exec);
  return may_join ? container_name(step, *name) : "";
}

Result<RunOutcome> hold_slurm_step(const Context& context, const SlurmStep& step, Asked asked,
                                   const Progress& progress) {
  asked.call.held = true;
  asked.request.volumes.push_back(bound(context.paths.libexec + "/berth-hold", kHoldPlace, true));
  asked.request.command = {kHoldPlace};
  JobFetch job;  // serves other nodes until the end of the step
  TRY(pull_for_step(context, asked, progress, job));
  // No other process would end the processes that an entrypoint leaves running.
  auto orphans = TRY(sys::Orphans::adopt());
  std::optional<sys::SignalOnHangup> ended(std::in_place, slurm::kHoldSocket, SIGTERM);
  std::string output = TRY(save_place(step));
  std::optional<Error> fault;
  if (!output.empty()) {
    asked.call.ended = [&](const std::string& id) {
      auto saved = save_container_squashfs(context, id, output);
      if (!saved.ok()) fault = std::move(saved).error();
    };
  }
  bool named = step.asked.value(Key::name) != nullptr;
  auto outcome = named ? hold_named(context, step, std::move(asked), progress)
                       : run(context, std::move(asked), progress);
  orphans.end();
  ended.reset();
  job.finish();
  if (outcome.ok() && fault) return std::move(*fault);
  return outcome;
}

Result<RunOutcome> run_slurm_task(const Context& context, const SlurmStep& step, Asked asked,
                                  const Progress& progress) {
  for (Key key : {Key::name, Key::save}) {
    if (step.asked.value(key) == nullptr) continue;
    return make_error(Kind::unsupported,
                      "a container of --container ends with its task: it cannot be named or saved",
                      "unset PYXIS_CONTAINER_NAME PYXIS_CONTAINER_SAVE, or --container-image of "
                      "spank_berth.so");
  }
  asked.fallback_environment = TRY(variables_of_task(context));
  if (asked.request.name) asked.request.name = name_of_task(context, step);
  asked.request.interactive = true;
  return run(context, std::move(asked), progress);
}

}  // namespace berth::engine
