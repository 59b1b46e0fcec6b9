// SPDX-License-Identifier: Apache-2.0
#include "engine/gpu/gpus.hpp"

#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <map>

#include "base/text.hpp"
#include "engine/gpu/cdi.hpp"
#include "engine/gpu/host_devices.hpp"
#include "engine/gpu/list.hpp"
#include "engine/gpu/mps.hpp"
#include "engine/gpu/placement.hpp"
#include "engine/image/rootfs.hpp"
#include "engine/image/rootfs_driver.hpp"
#include "engine/request/environment.hpp"
#include "engine/state/directory.hpp"
#include "gpu/grant/environment.hpp"
#include "gpu/grant/grant.hpp"
#include "gpu/grant/reach.hpp"
#include "gpu/grant/visible.hpp"
#include "gpu/inventory/access.hpp"
#include "gpu/place/finish.hpp"
#include "gpu/place/place.hpp"
#include "oci/edit.hpp"
#include "policy/policy.hpp"
#include "sys/file/file.hpp"
#include "sys/file/file_system.hpp"

namespace berth::engine {
namespace {

/// The names of devices that mounts of /dev/null request.
std::vector<std::string> volume_devices(const RunRequest& request) {
  std::vector<std::string> out;
  for (const Volume& volume : request.volumes) {
    bool asks = volume.source == "/dev/null" && volume.destination.starts_with(gpu::kVolumeDevices);
    if (asks) out.push_back(volume.destination.substr(gpu::kVolumeDevices.size()));
  }
  return out;
}

Result<gpu::Machine> look_at_machine(const Context& context, const policy::Gpu& policy) {
  return gpu::look_for_denied(TRY(inventory_of(context, policy, gpu::Refresh::if_stale)));
}

void withdraw(const std::vector<std::string>& names, oci::Spec& spec) {
  if (!spec.process) return;
  std::erase_if(spec.process->env, [&](const std::string& entry) {
    return std::ranges::any_of(
        names, [&](const std::string& name) { return entry.starts_with(name + "="); });
  });
}

void warn_of(const std::vector<std::string>& lines, const Context& context) {
  for (const std::string& line : lines) context.log.warn(line);
}

// Whether another container than `own`, which is being started, may mount the volume: one that has
// ended may start again.
bool is_volume_of_another(const Paths& paths, const std::string& own, const std::string& volume) {
  auto users = containers_with(paths, "/" + volume + "/");
  if (users.ok()) std::erase(*users, own);
  return !users.ok() || !users->empty();
}

/// The host's own root already has the driver's files in place.
bool has_own_driver(const RunRequest& request) {
  if (!request.rootfs || request.gpu_driver) return false;
  auto host = is_host_root(*request.rootfs);
  return host.ok() && *host;
}

std::string mode_from(const RunRequest& request, const policy::Gpu& site) {
  if (request.gpu_driver) return "a flag says so";
  if (has_own_driver(request)) return "the root is the host's own, which has them";
  return site.driver_mode == policy::DriverMode::bind ? "the default" : "the policy says so";
}

// Containers of the machine's root get new nodes. For other users nodes are bound: a user without
// access still cannot open them, and the error in the container would not say why.
void warn_of_closed_nodes(const Context& context, const std::vector<gpu::Node>& nodes) {
  if (context.identity == Identity::root) return;
  for (const gpu::Node& node : nodes) {
    // Most users may not open display nodes, and computing does not need them.
    if (node.path.starts_with("/dev/dri/")) continue;
    // Programs only read capability nodes.
    int mode = node.path.starts_with("/dev/nvidia-caps/") ? R_OK : R_OK | W_OK;
    if (node.host_path.empty() || sys::check_access(sys::cwd(), node.host_path, mode).ok())
      continue;
    context.log.warn("this user may not open " + quote(node.host_path) +
                     ", but it is given to the container; see 'berth doctor gpu'");
    return;
  }
}

/// Whether GPUs are requested, and the machine has any.
bool wants_gpus(const Context& context, const gpu::Choice& choice,
                const gpu::Inventory& inventory) {
  if (choice.request.want == gpu::Request::Want::none) return false;
  if (!choice.by_scheduler_alone || !inventory.gpus.empty()) return true;
  context.log.warn(choice.request.source +
                   " says that this job has GPUs, but this machine has none, ignoring");
  return false;
}

/// Binds the container to the processors near its GPUs, unless flags name other processors.
/// Uses the affinity instead of a cpuset for ordinary users, because they usually have no cpusets,
/// and in a batch job, because the job sets the limit.
Result<void> bind_beside(const Context& context, const gpu::Choice& choice,
                         const gpu::Inventory& inventory,
                         const std::vector<gpu::Selected>& selected, const RunRequest& request,
                         oci::Spec& spec, Provenance& provenance) {
  bool named = !request.limits.cpuset_cpus.empty() || !request.limits.cpuset_mems.empty();
  if (named || selected.empty() || !request.gpus_bind || !choice.site.bind) return {};
  NumaNodes nodes = TRY(numa_nodes_of(inventory));
  std::string status = TRY(sys::read_file(sys::cwd(), "/proc/self/status"));
  auto placement = place_beside(selected, nodes, parse_allowed(status));
  if (!placement) return {};
  bool limits =
      context.identity == Identity::root && has_cpusets() && !is_in_job(context.environment);
  set_placement(*placement, limits ? KeptBy::cpuset : KeptBy::affinity, spec);
  std::string by = limits ? "by a cpuset" : "by affinity";
  provenance.grant.reasons.push_back({"processors",
                                      placement->cpus,
                                      true,
                                      "beside its GPUs, " + by + "; --gpus-bind=false for all",
                                      {}});
  return {};
}

/// The flags that limit the use of GPUs; empty: none.
std::string limits_of(const RunRequest& request) {
  if (!request.gpu_cores) return request.gpu_memory ? "--gpu-memory" : "";
  return request.gpu_memory ? "--gpu-cores, --gpu-memory" : "--gpu-cores";
}

/// Checks that limits are only requested for GPUs that --gpus grants: they work only for those.
Result<void> check_limited(const RunRequest& request, const std::vector<std::string>& beside) {
  if (limits_of(request).empty() || beside.empty()) return {};
  return make_error(Kind::unsupported,
                    limits_of(request) + ": a GPU is given by its CDI name or its path",
                    "--gpus device=");
}

/// Limits the memory of the chosen GPUs by the kernel's dmem controller.
Result<void> add_memory_limit(const GpuMemory& wanted, const MemoryRegions& regions,
                              const std::vector<gpu::Selected>& selected, oci::Spec& spec) {
  auto files = TRY(limit_gpu_memory(wanted, selected, regions));
  if (!spec.linux_.resources) spec.linux_.resources.emplace();
  spec.linux_.resources->unified.merge(files);
  return {};
}

std::string text_of(const gpu::MpsLimits& limits) {
  std::vector<std::string> parts;
  if (limits.cores_percent)
    parts.push_back(std::to_string(*limits.cores_percent) + "% of the cores");
  if (limits.memory_bytes) {
    parts.push_back(std::to_string(*limits.memory_bytes >> 20) + " MiB of the memory");
  }
  return "each program is kept to " + join(parts, " and ") + " by NVIDIA's MPS";
}

/// Connects the container to its MPS share, and starts the share.
Result<void> add_mps(const Context& context, const MpsPlan& plan, const LeasedGpus& leased,
                     const gpu::Inventory& inventory, Leasing leasing, oci::Spec& spec,
                     Provenance& provenance) {
  if (!leased.share) return {};
  const std::string& name = leased.share_name;
  add_share(gpu::place_of(context.paths.state, name), spec);
  provenance.grant.reasons.push_back({"mps", name, true, text_of(leased.share->limits), {}});
  if (leasing != Leasing::take) return {};
  return start_share(context, plan, *leased.share, leased.selected, inventory, leased.lease);
}

bool names_gpu_node(const RunRequest& request) {
  auto nodes = nodes_by_hand(request);
  return nodes.ok() && std::ranges::any_of(*nodes, is_gpu_node);
}

gpu::RealPath real_path_of(const ImageLook& look) {
  return [&view = look.view](const std::string& path) {
    auto real = view.real_path(path);
    if (!real.ok()) return path;
    return std::move(*real);
  };
}

/// Moves the copies to where links of the image lead: a directory in the container's layer would
/// hide a link of its name (/usr/lib64 → lib).
void follow_links(const gpu::RealPath& real_path, DriverCopies& copies) {
  std::map<std::string, std::string> directories;
  auto follow = [&](std::string& path) {
    const size_t slash = path.rfind('/');
    auto [found, added] = directories.try_emplace(path.substr(0, slash));
    if (added) found->second = real_path(found->first);
    path = found->second + path.substr(slash);
  };
  for (gpu::Copy& copy : copies.files) follow(copy.path);
  for (gpu::GrantedLink& link : copies.links) follow(link.path);
}

Result<void> add_granted(const Context& context, const gpu::Choice& choice,
                         const gpu::Inventory& inventory,
                         const std::vector<gpu::Selected>& selected, const ImageLook& look,
                         oci::Spec& spec, DriverCopies& copies, Provenance& provenance) {
  if (choice.request.want == gpu::Request::Want::none) return {};
  scan::DriverFiles image = TRY_CTX(driver_files_of(context, look, *spec.process),
                                    "cannot look for driver files in the image");
  gpu::GrantOptions grant_options;
  grant_options.mode = choice.site.driver_mode;
  grant_options.image = &image;
  grant_options.forward_compatibility = choice.site.forward_compatibility;
  grant_options.real_path = real_path_of(look);
  grant_options.user_mounts = gpu::user_mounts(spec, grant_options.real_path);
  grant_options.selected = &selected;
  gpu::Grant grant = TRY(gpu::make_grant(choice.request, inventory, grant_options));
  gpu::leave_out_denied(grant);
  if (context.log.is_debug()) {
    for (const gpu::Reason& reason : grant.reasons) {
      context.log.debug(reason.kind + " " + reason.object + ": " + reason.why);
    }
  }
  if (grant.synthetic) context.log.warn("the driver tree is synthetic: these are not real GPUs");
  warn_of(grant.warnings, context);
  warn_of_closed_nodes(context, grant.nodes);
  gpu::PlaceOptions options;
  options.state_dir = context.paths.state;
  options.volume_dir = context.paths.root + "/driver-volumes";
  options.keeps_volume = [&](const std::string& name) {
    return is_volume_of_another(context.paths, look.container, name);
  };
  options.musl = image.musl;
  gpu::Placement placed = TRY(gpu::place(grant, options));
  if (!choice.site.additional_gids) placed.edits.additional_gids.clear();
  copies = {std::move(placed.copies), std::move(placed.copied_links)};
  follow_links(grant_options.real_path, copies);
  add_lowest_layer(placed.mountpoint_layer, spec);
  oci::apply(placed.edits, spec);
  provenance.grant = std::move(grant);
  provenance.placed = std::move(placed.edits);
  provenance.mode_from = mode_from(look.request, choice.site);
  provenance.image = std::move(image);
  return {};
}

}  // namespace

Result<gpu::Choice> choose_gpus(const Context& context, const RunRequest& request,
                                const oci::ContainerDefaults& image,
                                const std::vector<std::string>& capabilities) {
  bool may_do_all = std::ranges::find(capabilities, "CAP_SYS_ADMIN") != capabilities.end();
  policy::Gpu policy = TRY(gpu_policy_of(context));
  gpu::Sources sources;
  sources.gpus = request.gpus;
  sources.devices = request.devices;
  sources.volumes = volume_devices(request);
  sources.image = image.env;
  sources.typed = environment_of(request);
  // A site's variable has its own effect only if the policy lets variables select GPUs.
  bool counts = policy.environment == policy::GpuEnvironment::grant ||
                (policy.environment == policy::GpuEnvironment::privileged && may_do_all);
  if (!counts) sources.typed = without_site_selection(request);
  sources.inherited = request.inherited;
  sources.labels = image.labels;
  sources.caller = context.environment.entries();
  sources.program = request.program;
  sources.privileged = may_do_all;
  sources.nodes_by_hand = request.security.privileged || !request.host_devices.empty();
  gpu::Choice choice = TRY(gpu::choose(sources, policy));
  // Users type NVIDIA's CDI names even without CDI files.
  bool nvidia = std::ranges::any_of(choice.cdi_names, [](const auto& name) {
    return gpu::vendor_of_cdi_name(name) == gpu::Vendor::nvidia;
  });
  if (nvidia && TRY(has_no_cdi_gpus(context))) {
    gpu::take_plain_gpus(choice.cdi_names, {}, "--device", choice.request);
  }
  choice.site.driver_mode = request.gpu_driver.value_or(policy.driver_mode);
  if (has_own_driver(request)) choice.site.driver_mode = policy::DriverMode::none;
  for (const gpu::Verdict& verdict : choice.verdicts) {
    context.log.debug(verdict.source + " '" + verdict.text +
                      (verdict.used ? "': counts: " : "': does not count: ") + verdict.why);
  }
  for (const std::string& warning : choice.warnings) context.log.warn(warning);
  return choice;
}

Result<void> add_host_nodes(const Context& context, const RunRequest& request,
                            const gpu::Choice& choice, oci::Spec& spec, Provenance& provenance) {
  if (!request.security.privileged && request.host_devices.empty()) return {};
  std::vector<oci::DeviceNode> named = TRY(nodes_by_hand(request));
  std::vector<oci::DeviceNode> nodes;
  if (request.security.privileged) nodes = TRY(all_nodes(context.identity));
  bool gpus = std::ranges::any_of(named, is_gpu_node) || std::ranges::any_of(nodes, is_gpu_node);
  if (gpus) {
    gpu::Machine machine = TRY(look_at_machine(context, choice.site));
    std::vector<gpu::Node> withheld = gpu::nodes_out_of_reach(choice, machine);
    auto refused = take_out(named, withheld);
    if (!refused.empty()) {
      return make_error(Kind::denied,
                        "--device " + refused.front().host_path +
                            ": the policy of this machine, or the job, does not allow it",
                        "berth policy show");
    }
    provenance.kept_back = take_out(nodes, withheld);
  }
  oci::ContainerEdits edits;
  edits.device_nodes = std::move(nodes);
  for (oci::DeviceNode& node : named) edits.device_nodes.push_back(std::move(node));
  oci::apply(edits, spec);
  // The rule of --privileged permits all devices, so deny the withheld ones after it.
  for (const oci::DeviceNode& node : provenance.kept_back) {
    if (context.identity != Identity::root) break;
    spec.linux_.resources->devices.push_back({false, node.type, node.major, node.minor, "rwm"});
  }
  std::ranges::copy_if(edits.device_nodes, std::back_inserter(provenance.by_hand), is_gpu_node);
  return {};
}

Result<gpu::HeldLease> add_gpus(const Context& context, gpu::Choice choice, const ImageLook& look,
                                Leasing leasing, oci::Spec& spec, DriverCopies& copies,
                                Provenance& provenance) {
  provenance.sources = choice.verdicts;
  withdraw(choice.withdrawn, spec);
  gpu::HeldLease lease;
  const auto& cdi = choice.cdi_names;
  bool by_name = std::ranges::any_of(
      cdi, [](const std::string& name) { return gpu::vendor_of_cdi_name(name).has_value(); });
  bool by_path = names_gpu_node(look.request);
  // If only nodes are granted, the driver numbers the GPUs, so no number in a variable is stale.
  bool by_nodes = by_path || look.request.security.privileged;
  if (!choice.grants() && !by_nodes) warn_of(gpu::stale_selections(choice.request, {}), context);
  const std::optional<GpuMemory>& memory = look.request.gpu_memory;
  bool limited = limits_of(look.request).empty();
  if (!choice.grants() && !by_path && limited) return lease;
  bool counts = choice.request.want != gpu::Request::Want::none || !choice.request.limits.empty() ||
                !choice.site.never.empty();
  if (counts || by_name || by_path) {
    gpu::Machine machine = TRY(look_at_machine(context, choice.site));
    if (counts) TRY(gpu::narrow(choice, machine));
    std::vector<std::string> beside = keys_beside(look.request, choice, machine.ours);
    if (wants_gpus(context, choice, machine.ours) || !beside.empty()) {
      TRY(check_limited(look.request, beside));
      MpsPlan mps = TRY(plan_mps(context, look.request, choice.site, machine.ours, spec));
      LeasedGpus leased = TRY(lease_gpus(context, look.request, look.container, choice.request,
                                         choice.site, machine.ours, beside, mps, leasing));
      choice.request = std::move(leased.request);
      TRY(add_granted(context, choice, machine.ours, leased.selected, look, spec, copies,
                      provenance));
      TRY(bind_beside(context, choice, machine.ours, leased.selected, look.request, spec,
                      provenance));
      // With --gpus from: the GPUs are unknown before a start.
      bool unknown = leasing == Leasing::nothing && leased.selected.empty();
      gpu::MpsLimits by_mps = limits_by_mps(mps, leased.selected);
      if (memory && !by_mps.memory_bytes && !unknown) {
        TRY(add_memory_limit(*memory, mps.regions, leased.selected, spec));
      }
      if (by_mps != gpu::MpsLimits()) TRY(check_mps(look.request, by_mps, machine.ours));
      TRY(add_mps(context, mps, leased, machine.ours, leasing, spec, provenance));
      limited = true;
      lease = std::move(leased.lease);
    }
    provenance.inventory = std::move(machine.ours);
  }
  if (!limited) {
    return make_error(Kind::usage, limits_of(look.request) + ": no GPU was requested", "--gpus 1");
  }
  if (!choice.cdi_names.empty()) {
    bool image = choice.site.driver_mode == policy::DriverMode::image;
    CdiParts parts = image ? CdiParts::nodes : CdiParts::all;
    provenance.cdi =
        TRY(add_cdi_devices(context, choice.cdi_names, parts, real_path_of(look), spec));
    provenance.cdi_names = std::move(choice.cdi_names);
  }
  return lease;
}

Result<void> check_nodes(const ImageLook& look, const oci::Spec& spec) {
  if (look.request.security.privileged) return {};
  return gpu::check_devices(spec.linux_.devices, gpu::user_mounts(spec, real_path_of(look)),
                            gpu::is_host_device);
}

}  // namespace berth::engine
