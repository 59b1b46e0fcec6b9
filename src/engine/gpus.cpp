// SPDX-License-Identifier: Apache-2.0
#include "engine/gpus.hpp"

#include <algorithm>
#include <iterator>

#include "gpu/grant/grant.hpp"
#include "gpu/place/place.hpp"
#include "oci/edit.hpp"

namespace berth::engine {
namespace {

constexpr std::string_view kLowerOption = "lowerdir+=";

// Below every other layer of the root, so that the image's own files win.
void add_lowest_layer(const std::string& layer, oci::Spec& spec) {
  if (layer.empty()) return;
  for (oci::Mount& mount : spec.mounts) {
    if (mount.destination != "/" || mount.type != "overlay") continue;
    auto last = std::find_if(mount.options.rbegin(), mount.options.rend(),
                             [](const std::string& o) { return o.starts_with(kLowerOption); });
    mount.options.insert(last.base(), std::string(kLowerOption) + layer);
  }
}

}  // namespace

Result<gpu::Inventory> list_gpus(const Context& context, gpu::Refresh refresh) {
  gpu::ProbeOptions options;
  options.driver_root = context.paths.driver_root;
  options.state_dir = context.paths.state;
  options.probe_program = context.paths.libexec + "/berth-gpu-probe";
  return gpu::cached_inventory(options, refresh, context.log);
}

std::vector<std::string> gpu_environment(std::vector<std::string> image,
                                         const std::vector<std::string>& container) {
  auto overrules = [](const std::string& entry) {
    return entry.starts_with("NVIDIA_DRIVER_CAPABILITIES=") ||
           entry.starts_with("NVIDIA_DISABLE_REQUIRE=");
  };
  std::erase_if(image, overrules);
  std::copy_if(container.begin(), container.end(), std::back_inserter(image), overrules);
  return image;
}

Result<void> add_gpus(const Context& context, const std::string& wish,
                      const std::vector<std::string>& environment,
                      const std::vector<std::string>& layers, oci::Spec& spec) {
  gpu::Request request = TRY(gpu::parse_request(wish));
  if (request.want == gpu::Request::Want::none) return {};
  gpu::Inventory inventory = TRY(list_gpus(context, gpu::Refresh::if_stale));
  gpu::Grant grant = TRY(gpu::make_grant(request, inventory, environment));
  for (const gpu::Reason& reason : grant.reasons) {
    context.log.debug(reason.kind + " " + reason.object + ": " + reason.why);
  }
  if (grant.synthetic) context.log.warn("the driver tree is synthetic: these are no real GPUs");
  gpu::PlaceOptions options{context.paths.state, layers};
  gpu::Placement placed = TRY(gpu::place(grant, options));
  add_lowest_layer(placed.placeholder_layer, spec);
  oci::apply(placed.edits, spec);
  return {};
}

}  // namespace berth::engine
