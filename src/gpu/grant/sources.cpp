// SPDX-License-Identifier: Apache-2.0
#include "gpu/grant/sources.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/text.hpp"
#include "gpu/grant/environment.hpp"
#include "gpu/grant/job.hpp"

namespace berth::gpu {
namespace {

using Want = Request::Want;
using Strings = std::vector<std::string>;

constexpr std::string_view kVisible = "NVIDIA_VISIBLE_DEVICES";
constexpr std::string_view kLabel = "com.nvidia.volumes.needed";

bool holds(const Strings& many, std::string_view one) {
  return std::ranges::find(many, one) != many.end();
}

void add_once(Strings& many, const std::string& one) {
  if (!holds(many, one)) many.push_back(one);
}

/// A bare "NAME" takes the inherited value.
Strings with_values(const Strings& typed, const Variables& inherited) {
  Strings out;
  for (const std::string& entry : typed) {
    if (entry.find('=') != std::string::npos) {
      out.push_back(entry);
    } else if (auto value = inherited.get(entry)) {
      out.push_back(entry + "=" + *value);
    }
  }
  return out;
}

class Chooser {
 public:
  Chooser(const Sources& sources, const policy::Gpu& policy)
      : sources_(sources),
        policy_(policy),
        caller_(sources.caller, {}),
        typed_(with_values(sources.typed, Variables(sources.inherited, {}))),
        user_({}, typed_),
        container_(sources.image, typed_) {}

  Result<Choice> run();

 private:
  Result<void> take_flags();
  void take_annotations();
  void take_volumes();
  void take_environment();
  void take_label_or_legacy();
  Result<void> take_policy();
  void take_job();
  void take_nv_gpu();
  void narrow_by_job();
  void translate_job();
  Result<void> choose_capabilities();
  Result<void> allow(const Strings& words);
  void take_capabilities(const Strings& words, const std::string& why);
  void choose_requirements();
  Result<void> choose_features();
  Result<void> take_mig_right(std::string_view variable, bool& right);
  void take_imex_channels();
  void note_selection();

  bool decided() const { return !decided_by_.empty(); }
  bool environment_counts() const;
  std::string why_environment() const;
  std::string place_of(std::string_view variable) const;
  void demand(std::string_view variable);
  void used(std::string source, std::string text, std::string why);
  void ignored(std::string source, std::string text, std::string why);
  void grant(const DeviceWish& wish, std::string source);

  const Sources& sources_;
  const policy::Gpu& policy_;
  Variables caller_;
  Strings typed_;
  Variables user_;       ///< variables of --env
  Variables container_;  ///< `user_` over the variables of the image
  std::optional<Job> job_;
  std::string decided_by_;
  Choice choice_;
};

void Chooser::used(std::string source, std::string text, std::string why) {
  choice_.verdicts.push_back({std::move(source), std::move(text), true, std::move(why)});
}

void Chooser::ignored(std::string source, std::string text, std::string why) {
  choice_.verdicts.push_back({std::move(source), std::move(text), false, std::move(why)});
}

/// "NVIDIA_GDS of --env", "NVIDIA_GDS of the image"
std::string Chooser::place_of(std::string_view variable) const {
  return std::string(variable) + (user_.get(variable) ? " of --env" : " of the image");
}

/// A device that the user requested with --env has to exist: its absence is an error.
void Chooser::demand(std::string_view variable) {
  if (user_.get(variable)) choice_.request.demanded.emplace_back(variable);
}

bool Chooser::environment_counts() const {
  if (sources_.program == Program::nvidia_docker) return true;
  if (policy_.environment == policy::GpuEnvironment::grant) return true;
  return policy_.environment == policy::GpuEnvironment::privileged && sources_.privileged;
}

std::string Chooser::why_environment() const {
  if (sources_.program == Program::nvidia_docker)
    return "called as nvidia-docker, or with --runtime nvidia";
  if (environment_counts()) {
    return policy_.environment == policy::GpuEnvironment::grant
               ? "policy: gpu.environment is grant"
               : "policy: gpu.environment is privileged, and the container is";
  }
  return policy_.environment == policy::GpuEnvironment::privileged
             ? "the container is not privileged, and policy asks for that"
             : "a variable grants nothing unless policy says so";
}

void Chooser::grant(const DeviceWish& wish, std::string source) {
  choice_.request.want = wish.want;
  choice_.request.devices = wish.devices;
  choice_.cdi_names = wish.cdi_names;
  choice_.request.source = source;
  decided_by_ = std::move(source);
}

Result<void> Chooser::take_flags() {
  if (sources_.gpus) {
    choice_.request = TRY(parse_request(*sources_.gpus));
    used("--gpus", *sources_.gpus, "a flag wins");
    decided_by_ = "--gpus";
  }
  for (const std::string& name : sources_.devices) {
    add_once(choice_.cdi_names, name);
    used("--device", name, "a flag wins");
    if (!decided()) decided_by_ = "--device";
  }
  return {};
}

void Chooser::take_annotations() {
  for (const std::string& name : sources_.annotations) {
    add_once(choice_.cdi_names, name);
    used("annotation", name, "CDI");
    if (!decided()) decided_by_ = "an annotation";
  }
}

void Chooser::take_volumes() {
  if (sources_.volumes.empty()) return;
  std::string text = join(sources_.volumes, ",");
  if (!policy_.devices_by_volume) {
    return ignored("volumes", text, "policy: gpu.devices-by-volume is false");
  }
  if (decided()) return ignored("volumes", text, decided_by_ + " comes before it");
  VolumeWish wish = parse_volume_devices(sources_.volumes);
  grant(wish.devices, "volumes below /var/run/nvidia-container-devices");
  choice_.request.features.imex_channels = wish.imex.channels;
  used("volumes", text, "policy: gpu.devices-by-volume is true");
}

void Chooser::take_environment() {
  // Docker Swarm passes resources in variables of its own, which have precedence.
  Strings names = policy_.swarm_resource;
  names.emplace_back(kVisible);
  for (const std::string& name : names) {
    auto value = container_.get(name);
    if (!value) continue;
    std::string source = place_of(name);
    if (decided()) return ignored(source, *value, decided_by_ + " comes before it");
    if (!environment_counts()) {
      bool asks = user_.get(name) && parse_visible_devices(*value).want != Want::none;
      if (asks) {
        choice_.warnings.push_back(
            fmt::format("{}={}: no GPUs are given for a variable here; try: --gpus all",
                        escape_controls(name), escape_controls(*value)));
      }
      return ignored(source, *value, why_environment());
    }
    used(source, *value, why_environment());
    return grant(parse_visible_devices(*value), name + "=" + escape_controls(*value));
  }
  take_label_or_legacy();
}

void Chooser::take_label_or_legacy() {
  DeviceWish all;
  all.want = Want::all;
  auto take = [&](const std::string& source, const std::string& text) {
    if (decided()) return ignored(source, text, decided_by_ + " comes before it");
    if (!environment_counts()) return ignored(source, text, why_environment());
    used(source, text, why_environment() + "; it stands for all GPUs");
    grant(all, source);
  };
  if (needs_driver_volume(sources_.labels)) {
    take(fmt::format("label {} of the image", kLabel), "nvidia_driver");
  } else if (is_legacy_image(container_)) {
    take(place_of("CUDA_VERSION"), *container_.get("CUDA_VERSION"));
  }
}

Result<void> Chooser::take_policy() {
  if (policy_.always.empty()) return {};
  std::string text = join(policy_.always, " ");
  if (decided()) {
    ignored("policy: gpu.always", text, decided_by_ + " comes before it");
    return {};
  }
  Request& request = choice_.request;
  for (const std::string& entry : policy_.always) {
    if (is_qualified_name(entry)) {
      add_once(choice_.cdi_names, entry);
      continue;
    }
    Request one = TRY_CTX(parse_request(entry), "cannot read gpu.always of the policy");
    if (one.want == Want::container) {
      return make_error(Kind::usage, "gpu.always of the policy: " + quote(entry) +
                                         ": names a container, not a GPU");
    }
    for (const std::string& id : one.devices) add_once(request.devices, id);
    request.traits.insert(request.traits.end(), one.traits.begin(), one.traits.end());
    for (const std::string& word : one.capabilities) add_once(request.capabilities, word);
    request.count = std::max(request.count, one.count);
    request.want = std::max(request.want, one.want, [](Want a, Want b) {
      // "all" has precedence over named devices, and these have precedence over a count.
      auto weight = [](Want want) {
        return want == Want::all ? 4 : want == Want::devices ? 3 : want == Want::count ? 2 : 0;
      };
      return weight(a) < weight(b);
    });
    if (one.vendor) request.vendor = one.vendor;
  }
  request.source = decided_by_ = "policy";
  if (!request.capabilities.empty()) request.capabilities_why = "gpu.always of the policy";
  used("policy: gpu.always", text, "given to every container");
  return {};
}

void Chooser::take_job() {
  if (!job_ || decided() || !job_->has_gpus()) return;
  if (policy_.scheduler != policy::Scheduler::grant) return;
  choice_.request.want = Want::all;
  choice_.request.source = decided_by_ = job_->scheduler;
  choice_.by_scheduler_alone = true;
}

void Chooser::narrow_by_job() {
  if (!job_) return;
  for (const Limit& limit : job_->limits) {
    std::string source = fmt::format("{} of the {} job", limit.variable, job_->scheduler);
    if (policy_.scheduler == policy::Scheduler::ignore) {
      ignored(source, limit.value, "policy: gpu.scheduler is ignore");
      continue;
    }
    choice_.request.limits.push_back(limit);
    used(source, limit.value,
         choice_.by_scheduler_alone ? "the job's GPUs are granted"
                                    : "the maximum that is granted in this job");
  }
}

void Chooser::translate_job() {
  if (!job_ || policy_.scheduler == policy::Scheduler::ignore) return;
  for (const std::string& name : job_->variables) {
    bool by_value = std::ranges::any_of(
        sources_.typed, [&](const std::string& e) { return e.starts_with(name + "="); });
    if (by_value) continue;
    choice_.request.translate.push_back(name);
    if (holds(sources_.typed, name)) choice_.withdrawn.push_back(name);
  }
}

// nvidia-docker 1: "NV_GPU=0,1 nvidia-docker run …". Blanks or commas separate the entries.
void Chooser::take_nv_gpu() {
  auto value = caller_.get("NV_GPU");
  if (!value) return;
  if (sources_.program != Program::nvidia_docker) {
    return ignored("NV_GPU", *value, "only nvidia-docker reads it");
  }
  if (sources_.gpus) return ignored("NV_GPU", *value, "--gpus comes before it");
  if (choice_.request.want == Want::none) {
    return ignored("NV_GPU", *value, "neither flag nor image asks for GPUs");
  }
  Limit limit;
  limit.variable = "NV_GPU";
  limit.value = *value;
  limit.rule = Limit::Rule::strict;
  for (std::string_view word : split_blank(*value)) {
    for (std::string_view id : split(word, ',')) {
      if (!id.empty()) add_once(limit.ids, std::string(id));
    }
  }
  if (limit.ids.empty()) return ignored("NV_GPU", *value, "it names none");
  choice_.request.limits.push_back(std::move(limit));
  used("NV_GPU", *value, "called as nvidia-docker");
}

/// Applies the policy to capabilities that a user names.
Result<void> Chooser::allow(const Strings& words) {
  if (policy_.capabilities.empty() || holds(policy_.capabilities, "all")) return {};
  for (const std::string& word : words) {
    if (word == "all" || holds(policy_.capabilities, word)) continue;
    return make_error(
        Kind::denied,
        fmt::format("capability {}: the policy of this machine does not allow it", quote(word)),
        "berth policy show");
  }
  return {};
}

/// Takes those of `words` that the policy allows, with "all" expanded.
void Chooser::take_capabilities(const Strings& words, const std::string& why) {
  Request& request = choice_.request;
  request.capabilities.clear();
  bool any = policy_.capabilities.empty() || holds(policy_.capabilities, "all");
  for (std::string_view name : known_capabilities()) {
    bool asked = holds(words, "all") || holds(words, name);
    if (!asked) continue;
    if (any || holds(policy_.capabilities, name)) {
      request.capabilities.emplace_back(name);
    } else if (holds(words, name)) {
      ignored("capability", std::string(name), "policy: gpu.capabilities does not contain it");
    }
  }
  request.capabilities_why = why;
}

Result<void> Chooser::choose_capabilities() {
  Request& request = choice_.request;
  if (!request.capabilities.empty()) {
    TRY(allow(request.capabilities));
    std::string why =
        request.capabilities_why.empty() ? "--gpus names them" : request.capabilities_why;
    take_capabilities(Strings(request.capabilities), why);
    return {};
  }
  constexpr std::string_view kVariable = "NVIDIA_DRIVER_CAPABILITIES";
  CapabilityWords words = parse_capabilities(container_.get(kVariable).value_or(""));
  for (const std::string& word : words.unknown) {
    ignored(place_of(kVariable), word, "there is no such capability");
  }
  if (!words.known.empty()) take_capabilities(words.known, place_of(kVariable));
  if (request.capabilities.empty() && words.known.empty() && is_legacy_image(container_)) {
    take_capabilities({"all"}, place_of("CUDA_VERSION") + ", from before capabilities");
  }
  if (!request.capabilities.empty()) {
    used("capabilities", join(request.capabilities, ","), request.capabilities_why);
    return {};
  }
  bool site = !policy_.default_capabilities.empty();
  take_capabilities(site ? policy_.default_capabilities : Strings{"compute", "utility"},
                    site ? "policy: gpu.default-capabilities" : "the default");
  used("capabilities", join(request.capabilities, ","), request.capabilities_why);
  return {};
}

void Chooser::choose_requirements() {
  if (is_true(container_.get("NVIDIA_DISABLE_REQUIRE").value_or(""))) {
    return used(place_of("NVIDIA_DISABLE_REQUIRE"), *container_.get("NVIDIA_DISABLE_REQUIRE"),
                "requirements of the image are not checked");
  }
  if (!policy_.requirements) {
    return used("policy: gpu.requirements", "false", "requirements of the image are not checked");
  }
  for (const auto& [name, value] : container_.starting("NVIDIA_REQUIRE_")) {
    if (name == "NVIDIA_REQUIRE_JETPACK" || trim(value).empty()) continue;
    choice_.request.requirements.push_back({name, value});
    used(place_of(name), value, "checked against driver and GPUs");
  }
  if (!is_legacy_image(container_)) return;
  std::string version = *container_.get("CUDA_VERSION");
  if (auto requirement = legacy_requirement(container_)) {
    used(place_of("CUDA_VERSION"), version, "stands for " + *requirement);
    choice_.request.requirements.push_back({"CUDA_VERSION", *requirement});
  } else {
    ignored(place_of("CUDA_VERSION"), version, "no version");
  }
}

Result<void> Chooser::take_mig_right(std::string_view variable, bool& right) {
  auto value = container_.get(variable);
  if (!value || value->empty()) return {};
  if (!environment_counts() && !user_.get(variable)) {
    ignored(place_of(variable), *value, why_environment());
    return {};
  }
  if (*value != "all") {
    ignored(place_of(variable), *value, "only 'all' has a meaning");
    return {};
  }
  if (!sources_.privileged) {
    return make_error(Kind::usage,
                      fmt::format("{}=all is for containers with CAP_SYS_ADMIN", variable),
                      fmt::format("leave {} out", variable));
  }
  right = true;
  demand(variable);
  used(place_of(variable), *value, "the container is privileged");
  return {};
}

void Chooser::take_imex_channels() {
  constexpr std::string_view kVariable = "NVIDIA_IMEX_CHANNELS";
  auto value = container_.get(kVariable);
  if (!value || value->empty()) return;
  if (!policy_.imex_channels) {
    return ignored(place_of(kVariable), *value, "policy: gpu.imex-channels is false");
  }
  if (!environment_counts() && !user_.get(kVariable)) {
    return ignored(place_of(kVariable), *value, why_environment());
  }
  ImexWords words = parse_imex_channels(*value);
  for (const std::string& word : words.refused) {
    ignored(place_of(kVariable), word,
            word == "all" ? "channels are named one by one" : "no channel number");
  }
  if (words.channels.empty()) return;
  demand(kVariable);
  used(place_of(kVariable), *value, "channels are named");
  auto& channels = choice_.request.features.imex_channels;
  for (uint32_t channel : words.channels) {
    if (std::ranges::find(channels, channel) == channels.end()) {
      channels.push_back(channel);
    }
  }
}

// Features open devices other than GPUs. Variables of the user count even without a grant;
// variables of the image count only if they may grant GPUs.
Result<void> Chooser::choose_features() {
  Features& features = choice_.request.features;
  const std::pair<std::string_view, bool*> gates[] = {{"NVIDIA_GDS", &features.gds},
                                                      {"NVIDIA_MOFED", &features.mofed},
                                                      {"NVIDIA_GDRCOPY", &features.gdrcopy},
                                                      {"NVIDIA_NVSWITCH", &features.nvswitch}};
  for (const auto& [variable, feature] : gates) {
    auto value = container_.get(variable);
    if (!value || value->empty()) continue;
    if (*value != "enabled") {
      ignored(place_of(variable), *value, "only 'enabled' has a meaning");
    } else if (!environment_counts() && !user_.get(variable)) {
      ignored(place_of(variable), *value, why_environment());
    } else {
      *feature = true;
      demand(variable);
      used(place_of(variable), *value, "beside the GPUs");
    }
  }
  TRY(take_mig_right("NVIDIA_MIG_CONFIG_DEVICES", features.mig_config));
  TRY(take_mig_right("NVIDIA_MIG_MONITOR_DEVICES", features.mig_monitor));
  take_imex_channels();
  return {};
}

// Records the values as they are; stale_selections() compares them with the granted GPUs.
void Chooser::note_selection() {
  for (std::string_view name : selection_variables()) {
    auto value = container_.get(name);
    if (!value || holds(choice_.request.translate, name)) continue;
    if (!user_.get(name) && !choice_.grants()) continue;
    choice_.request.typed.push_back(std::string(name) + "=" + *value);
  }
  choice_.request.device_order = container_.get("CUDA_DEVICE_ORDER").value_or("");
}

Result<Choice> Chooser::run() {
  job_ = find_job(caller_);
  TRY(take_flags());
  take_annotations();
  take_volumes();
  take_environment();
  TRY(take_policy());
  take_job();
  take_nv_gpu();
  if (choice_.grants() || sources_.nodes_by_hand) narrow_by_job();
  if (choice_.grants()) {
    TRY(choose_capabilities());
    choose_requirements();
    TRY(choose_features());
  }
  translate_job();
  note_selection();
  return std::move(choice_);
}

}  // namespace

Program program_of(std::string_view argv0) {
  std::string_view name = argv0.substr(argv0.rfind('/') + 1);
  if (name == "nvidia-docker") return Program::nvidia_docker;
  return name == "docker" ? Program::docker : Program::berth;
}

Result<Choice> choose(const Sources& sources, const policy::Gpu& policy) {
  Choice choice = TRY(Chooser(sources, policy).run());
  choice.site = policy;
  return choice;
}

}  // namespace berth::gpu
