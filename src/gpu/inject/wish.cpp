// SPDX-License-Identifier: Apache-2.0
#include "gpu/inject/wish.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.hpp"
#include "gpu/grant/environment.hpp"
#include "gpu/grant/job.hpp"
#include "gpu/grant/select.hpp"
#include "oci/edit.hpp"

namespace berth::gpu {
namespace {

using Strings = std::vector<std::string>;

constexpr std::string_view kVisible = "NVIDIA_VISIBLE_DEVICES=";
constexpr std::string_view kCapabilities = "NVIDIA_DRIVER_CAPABILITIES=";

/// dockerd looks for the first name in PATH; packages for podman and CRI-O use either name.
bool is_nvidia_hook(const oci::Hook& hook) {
  std::string_view name = hook.path;
  name.remove_prefix(name.rfind('/') + 1);
  return name == "nvidia-container-runtime-hook" || name == "nvidia-container-toolkit";
}

std::string_view value_of(std::string_view assignment) {
  return assignment.substr(assignment.find('=') + 1);
}

/// A field of CSV.
std::string field(std::string_view key, std::string_view value) {
  std::string out = fmt::format("\"{}=", key);
  for (char c : value) out.append(c == '"' ? 2 : 1, c);
  return out + "\"";
}

/// Reconstructs the value of --gpus from which dockerd made `env`: dockerd appends the devices, and
/// after them the capabilities if they were named. Nothing for "--gpus 0", for which dockerd
/// appends nothing.
std::optional<std::string> docker_flag(const Strings& env) {
  size_t last = env.size();
  std::string capabilities;
  if (last > 0 && env[last - 1].starts_with(kCapabilities)) {
    capabilities = "," + field("capabilities", value_of(env[--last]));
  }
  if (last == 0 || !env[last - 1].starts_with(kVisible)) return std::nullopt;
  std::string_view devices = value_of(env[last - 1]);
  if (devices.empty() || devices == "void") return std::nullopt;
  return field("device", devices) + capabilities;
}

Result<void> check_length(std::string_view name, std::string_view value) {
  if (value.size() <= kLongestWish) return {};
  return make_error(
      Kind::usage, fmt::format("config.json: {}: longer than {} bytes", quote(name), kLongestWish));
}

bool is_privileged(const oci::Spec& spec) {
  if (!spec.process || !spec.process->capabilities) return false;
  const auto& bounding = spec.process->capabilities->bounding;
  return std::ranges::find(bounding, "CAP_SYS_ADMIN") != bounding.end();
}

bool variables_count(const policy::Gpu& policy, bool privileged) {
  using policy::GpuEnvironment;
  return policy.environment == GpuEnvironment::grant ||
         (policy.environment == GpuEnvironment::privileged && privileged);
}

Result<void> take_annotations(const oci::Spec& spec, const policy::Gpu& policy, Wish& wish) {
  bool of_images = oci::may_be_images(spec.annotations);
  bool count = !of_images || variables_count(policy, wish.sources.privileged);
  for (const auto& [key, value] : spec.annotations) {
    auto begins = [&name = key](const std::string& prefix) { return name.starts_with(prefix); };
    const auto& prefixes = policy.annotation_prefixes;
    if (std::ranges::none_of(prefixes, begins)) continue;
    if (!count) {
      wish.warnings.push_back(fmt::format(
          "annotation {} may be the image's, which grants nothing unless policy says so; ignoring",
          quote(key)));
      continue;
    }
    TRY(check_length(key, value));
    for (std::string_view name : split(value, ',')) {
      if (!trim(name).empty()) wish.sources.annotations.emplace_back(trim(name));
    }
  }
  return {};
}

Result<void> take_volumes(const oci::Spec& spec, const policy::Gpu& policy, Sources& sources) {
  size_t bytes = 0;
  for (const oci::Mount& mount : spec.mounts) {
    bool asks = mount.source == "/dev/null" && mount.destination.starts_with(kVolumeDevices);
    if (!asks) continue;
    sources.volumes.push_back(mount.destination.substr(kVolumeDevices.size()));
    bytes += sources.volumes.back().size();
  }
  if (!policy.devices_by_volume || bytes <= kLongestWish) return {};
  return make_error(Kind::usage, fmt::format("config.json: mounts below {}: more than {} bytes",
                                             kVolumeDevices, kLongestWish));
}

/// Takes only variables that will be read: unused ones may contain anything.
Result<void> take_environment(const oci::Spec& spec, const policy::Gpu& policy, Wish& wish) {
  if (!spec.process) return {};
  wish.sources.image = spec.process->env;
  bool count = wish.sources.gpus || variables_count(policy, wish.sources.privileged);
  for (const std::string& entry : wish.sources.image) {
    std::string_view name = std::string_view(entry).substr(0, entry.find('='));
    const auto& swarm = policy.swarm_resource;
    bool read = name.starts_with("NVIDIA_") || name == "CUDA_VERSION" ||
                std::ranges::find(swarm, name) != swarm.end();
    if (count && read) TRY(check_length(name, value_of(entry)));
  }
  return {};
}

}  // namespace

bool take_nvidia_hook(oci::Hooks& hooks) {
  size_t removed = 0;
  for (auto* stage : {&hooks.prestart, &hooks.create_runtime, &hooks.create_container}) {
    removed += std::erase_if(*stage, is_nvidia_hook);
  }
  return removed > 0;
}

Result<Wish> take_wish(oci::Spec& spec, const policy::Gpu& policy) {
  Wish wish;
  wish.sources.privileged = is_privileged(spec);
  bool hook = take_nvidia_hook(spec.hooks);
  // podman adds the hook to every container if its hooks directory says so.
  if (hook && spec.process && !oci::may_be_images(spec.annotations)) {
    wish.sources.gpus = docker_flag(spec.process->env);
  }
  if (hook && !wish.sources.gpus && !variables_count(policy, wish.sources.privileged)) {
    wish.warnings.emplace_back(
        "NVIDIA's hook is not run, and variables grant nothing unless policy says so; ignoring");
  }
  TRY(take_annotations(spec, policy, wish));
  TRY(take_volumes(spec, policy, wish.sources));
  TRY(take_environment(spec, policy, wish));
  return wish;
}

void take_job(const Strings& caller, Sources& sources, policy::Gpu& policy) {
  sources.caller = caller;
  if (policy.scheduler == policy::Scheduler::grant) policy.scheduler = policy::Scheduler::limit;
  const Variables job(caller, {});
  const Variables container(sources.image, {});
  for (std::string_view name : selection_variables()) {
    auto value = container.get(name);
    if (value && value != job.get(name))
      sources.typed.push_back(fmt::format("{}={}", name, *value));
  }
}

void keep_last(std::vector<std::string>& env) {
  for (std::string_view name : {kVisible, kCapabilities}) {
    size_t left = static_cast<size_t>(
        std::ranges::count_if(env, [&](const auto& e) { return e.starts_with(name); }));
    std::erase_if(env, [&](const std::string& entry) {
      return left > 1 && entry.starts_with(name) && left-- > 1;
    });
  }
}

}  // namespace berth::gpu
