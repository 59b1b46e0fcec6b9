// SPDX-License-Identifier: Apache-2.0
#include "engine/slurm_step.hpp"

#include <signal.h>

#include <algorithm>

#include "base/text.hpp"
#include "engine/containers.hpp"
#include "engine/exec.hpp"
#include "engine/image_file.hpp"
#include "engine/new_container.hpp"
#include "engine/start.hpp"
#include "engine/store.hpp"
#include "slurm/hold.hpp"
#include "slurm/mounts.hpp"
#include "sys/signals.hpp"

namespace berth::engine {
namespace {

using slurm::Key;

/// Where berth-hold lies in a container: what is made in /dev leaves nothing behind.
constexpr const char* kHoldPlace = "/dev/berth-hold";

/// Directories in which the tasks of a node and Slurm's PMIx plugin meet.
constexpr const char* kMeetingPlaces[] = {"PMIX_SERVER_TMPDIR", "PMIX_SYSTEM_TMPDIR"};

Volume bound(std::string source, std::string destination, bool read_only) {
  Volume volume;
  volume.source = std::move(source);
  volume.destination = std::move(destination);
  volume.read_only = read_only;
  volume.must_exist = true;
  return volume;
}

Result<void> add_image(const SlurmStep& step, const std::string& working_directory,
                       RunRequest& request) {
  const std::string* image = step.asked.value(Key::image);
  if (image == nullptr) return {};  // that of the container with this name
  // pyxis knows a path by its first character alone.
  bool is_path = image->starts_with('/') || image->starts_with('.');
  if (!is_path) {
    request.image = slurm_reference(*image);
    return {};
  }
  std::string path = image->starts_with('/') ? *image : working_directory + "/" + *image;
  request.image_file = true;
  request.image = TRY_CTX(find_image_file(path), "--container-image");
  return {};
}

Result<void> add_mounts(const Context& context, const SlurmStep& step,
                        const std::string& working_directory, RunRequest& request) {
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
  for (const char* variable : kMeetingPlaces) {
    auto place = context.environment.get_filled(variable);
    if (!place || !place->starts_with('/')) continue;
    bool known = std::any_of(request.volumes.begin(), request.volumes.end(),
                             [&](const Volume& one) { return one.destination == *place; });
    if (!known) request.volumes.push_back(bound(std::string(*place), std::string(*place), false));
  }
  const std::string* text = step.asked.value(Key::mounts);
  if (text == nullptr) return {};
  for (slurm::Mount& mount : TRY(slurm::parse_mounts(*text, working_directory))) {
    if (mount.kind == slurm::Mount::Kind::tmpfs) {
      request.tmpfs.push_back({std::move(mount.destination), std::move(mount.options)});
      continue;
    }
    std::erase_if(request.volumes,
                  [&](const Volume& one) { return one.destination == mount.destination; });
    if (mount.kind == slurm::Mount::Kind::none) continue;
    Volume volume = bound(std::move(mount.source), std::move(mount.destination), mount.read_only);
    volume.propagation = std::move(mount.propagation);
    volume.non_recursive = !mount.recursive;
    request.volumes.push_back(std::move(volume));
  }
  return {};
}

/// Tasks talk to each other and to other nodes as the programs of the node do.
Result<void> add_namespaces(const Context& context, const SlurmStep& step, RunRequest& request) {
  slurm::Unshared own;
  if (const std::string* text = step.asked.value(Key::unshare)) {
    own = TRY(slurm::parse_unshare(*text));
  }
  const NamespaceMode host{.kind = NamespaceMode::Kind::host};
  request.network = own.net ? Network::none : Network::host;
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

Result<void> refuse_missing(const SlurmStep& step) {
  if (step.asked.value(Key::save) != nullptr) {
    return make_error(Kind::unsupported, "--container-save: not there yet", "berth commit");
  }
  return {};
}

/// "pyxis_web", or "pyxis_12_web" where names are a job's own; pyxis's, which scripts know.
std::string container_name(const SlurmStep& step, const slurm::Name& name) {
  std::string job = step.of_job ? step.job.substr(0, step.job.find('.')) + "_" : "";
  return "pyxis_" + job + name.name;
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
                          quoted(found->name) + " already exists",
                      "berth rm " + found->name);
  }
  if (name.use == slurm::NameUse::exec && !runs) {
    return make_error(Kind::usage,
                      "--container-name: \"exec\" was passed but no container of this name runs");
  }
  if (name.use == slurm::NameUse::no_exec && runs) {
    return make_error(Kind::busy,
                      "--container-name: the files of container " + quoted(found->name) +
                          " are in use, and cannot be mounted twice",
                      "without :no_exec the running container is joined");
  }
  if (!found && !has_image) {
    return make_error(Kind::not_found, "--container-name: a container with name " +
                                           quoted(name.name) +
                                           " does not exist, and --container-image is not set");
  }
  return {};
}

/// A pull takes long, and nobody knows this process but by the step's socket: it ends when there
/// is no step any more.
Result<void> pull_for_step(const Context& context, const RunRequest& request, const RunCall& call,
                           const Progress& progress) {
  if (request.image.empty()) return {};
  sys::SignalOnHangup ended(slurm::kHoldSocket, SIGTERM);
  image::Store store = TRY(open_store(context));
  TRY(find_or_pull_image(context, store, request, call, progress));
  return {};
}

/// One more berth-hold in a container that another step holds.
Result<RunOutcome> join_running(const Context& context, const SlurmStep& step,
                                const ContainerSummary& container) {
  if (step.asked.value(Key::mounts) != nullptr) {
    context.log.warn("--container-mounts: container " + quoted(container.name) +
                     " runs already, ignoring");
  }
  ExecRequest request;
  request.command = {kHoldPlace};
  request.held = true;
  for (const std::string& name : step.asked.environment()) request.environment.push_back(name);
  return exec(context, container.id, request);
}

}  // namespace

std::string slurm_reference(std::string_view image) {
  constexpr std::string_view kScheme = "docker://";
  if (image.starts_with(kScheme)) image.remove_prefix(kScheme.size());
  // Who asks is told by the registry's credentials, not by the reference.
  size_t registry = image.find('#');
  size_t user = image.substr(0, registry).find('@');
  bool has_user = registry != image.npos && user != image.npos;
  if (has_user) image.remove_prefix(user + 1);
  std::string reference(image);
  std::replace(reference.begin(), reference.end(), '#', '/');
  return reference;
}

Result<RunRequest> slurm_container(const Context& context, const SlurmStep& step,
                                   const std::string& working_directory) {
  TRY(refuse_missing(step));
  RunRequest request;
  TRY(add_image(step, working_directory, request));
  TRY(add_mounts(context, step, working_directory, request));
  TRY(add_namespaces(context, step, request));
  request.remove = step.asked.value(Key::name) == nullptr;
  if (const std::string* workdir = step.asked.value(Key::workdir)) request.workdir = *workdir;
  request.read_only = step.asked.value(Key::readonly) != nullptr;
  request.labels["dev.berth.slurm.step"] = step.job;
  request.volumes.push_back(bound(context.paths.libexec + "/berth-hold", kHoldPlace, true));
  request.command = {kHoldPlace};
  bool entrypoint = step.asked.value(Key::entrypoint) != nullptr;
  if (!entrypoint) request.entrypoint = "";
  request.health.off = true;
  // Where it is in the container is for the job to say, and what root has there for the image.
  auto home = context.environment.get_filled("HOME");
  if (home && request.userns.kind == NamespaceMode::Kind::keep_id) {
    request.environment.push_back("HOME=" + std::string(*home));
  }
  for (const std::string& name : step.asked.environment()) {
    auto value = context.environment.get(name);
    if (value) request.environment.push_back(name + "=" + std::string(*value));
  }
  return request;
}

std::string joined_by(const SlurmStep& step) {
  const std::string* text = step.asked.value(Key::name);
  if (text == nullptr) return "";
  auto name = slurm::parse_name(*text);
  bool may_join = name.ok() &&
                  (name->use == slurm::NameUse::join_or_reuse || name->use == slurm::NameUse::exec);
  return may_join ? container_name(step, *name) : "";
}

Result<RunOutcome> hold_slurm_step(const Context& context, const SlurmStep& step,
                                   RunRequest request, const RunCall& call,
                                   const Progress& progress) {
  TRY(pull_for_step(context, request, call, progress));
  const std::string* text = step.asked.value(Key::name);
  if (text == nullptr) return run(context, request, call, progress);
  slurm::Name name = TRY(slurm::parse_name(*text));
  auto found = TRY(find_named(context, container_name(step, name)));
  TRY(check_use(name, found, step.asked.value(Key::image) != nullptr));
  if (found && is_alive(found->state)) return join_running(context, step, *found);
  request.name = container_name(step, name);
  if (!found) {
    RunCall making = call;
    making.held = false;
    TRY(create_container(context, request, making, progress));
  }
  return start_held(context, container_name(step, name), std::move(request));
}

}  // namespace berth::engine
