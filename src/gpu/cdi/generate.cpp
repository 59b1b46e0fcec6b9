// SPDX-License-Identifier: Apache-2.0
#include "gpu/cdi/generate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/text.hpp"
#include "gpu/cdi_hook/hook.hpp"
#include "gpu/grant/grant.hpp"

namespace berth::gpu::cdi {
namespace {

constexpr std::string_view kWidelyRead = "0.5.0";  // all engines read it, even podman 4.3

bool is_in(const std::vector<Node>& nodes, const std::string& path) {
  return std::ranges::any_of(nodes, [&](const Node& one) { return one.path == path; });
}

/// A GPU or a slice of one, with its names and the nodes that no other unit has.
struct Unit {
  std::vector<std::string> names;
  std::vector<Node> nodes;
  std::vector<oci::Link> links;
};

/// The prefix of the numbers in the name of a part of a GPU: "mig0:1", "part0:1".
template <class Part>
constexpr const char* kPartWord = "part";
template <>
constexpr const char* kPartWord<MigDevice> = "mig";

class Generator {
 public:
  Generator(const Inventory& inventory, const GenerateOptions& options)
      : inventory_(inventory), options_(options) {}

  Result<Generated> run() {
    TRY(options_.vendor == Vendor::nvidia ? add_nvidia() : add_others());
    if (units_.empty()) {
      return make_error(Kind::not_found,
                        "no GPU of vendor " + enum_text(options_.vendor) + " on this machine",
                        "berth gpu list");
    }
    oci::cdi::Spec& spec = out_.spec;
    spec.kind = options_.kind;
    for (const Unit& unit : units_) add_unit(unit);
    add_all();
    TRY(set_version());
    TRY(oci::cdi::validate(spec, "the generated file"));
    return std::move(out_);
  }

 private:
  Result<void> add_nvidia();
  Result<void> add_others();
  static void add_links(const Gpu& gpu, Unit& unit);
  void add_files(const Grant& grant);
  void add_hook(const Grant& grant);
  void add_unit(const Unit& unit);
  void add_all();
  Result<void> set_version();

  /// `part` is a MigDevice or a Partition; nothing for the whole GPU.
  template <class Part>
  std::vector<std::string> names_of(const Gpu& gpu, const Part* part) const;
  std::vector<std::string> names_of(const Gpu& gpu, std::nullptr_t) const {
    return names_of<MigDevice>(gpu, nullptr);
  }
  void add_node(const Node& node, oci::cdi::Edits& edits);
  oci::cdi::Hook hook(const HookRequest& request) const {
    oci::cdi::Hook out;
    out.hook_name = "createContainer";
    out.path = options_.hook_program;
    out.args = to_words(request);
    out.args.insert(out.args.begin(), std::string(kOwnHook));
    // The list is never empty: otherwise engines would use the container's environment, which the
    // image sets.
    out.env = {std::string(kDriverVariable) + inventory_.driver.module_version};
    return out;
  }
  bool may_use(std::string_view version) const {
    return options_.version && oci::cdi::compare_versions(*options_.version, version) >= 0;
  }

  const Inventory& inventory_;
  const GenerateOptions& options_;
  std::vector<Unit> units_;
  Generated out_;
};

Request request_for(std::vector<std::string> devices) {
  Request request;
  request.want = devices.empty() ? Request::Want::all : Request::Want::devices;
  request.devices = std::move(devices);
  for (std::string_view name : known_capabilities()) request.capabilities.emplace_back(name);
  return request;
}

/// Empty if unknown: only NVML has the UUIDs of slices, and partitions have no UUID.
std::string uuid_of(const Gpu& gpu, const MigDevice* slice) {
  return slice != nullptr ? slice->uuid : gpu.uuid;
}
std::string uuid_of(const Gpu&, const Partition*) {
  return "";
}

template <class Part>
std::vector<std::string> Generator::names_of(const Gpu& gpu, const Part* part) const {
  std::string index = std::to_string(gpu.index);
  if (part != nullptr) index += ":" + std::to_string(part->index);
  std::vector<std::string> names;
  for (Naming naming : options_.namings) {
    switch (naming) {
      case Naming::index:
        names.push_back(index);
        break;
      case Naming::type_index:
        names.push_back((part != nullptr ? kPartWord<Part> : "gpu") + index);
        break;
      case Naming::uuid:
        if (std::string uuid = uuid_of(gpu, part); !uuid.empty()) names.push_back(std::move(uuid));
        break;
    }
  }
  return names;
}

Result<void> Generator::add_nvidia() {
  // Indices count the GPUs of one vendor.
  Inventory machine = inventory_;
  std::erase_if(machine.gpus, [](const Gpu& gpu) { return gpu.vendor != Vendor::nvidia; });
  const Grant all = TRY(make_grant(request_for({}), machine));
  out_.warnings = all.warnings;  // about files of the driver that cannot be used
  auto add = [&](const Gpu& gpu, const MigDevice* slice) -> Result<void> {
    std::string wish = std::to_string(gpu.index);
    if (slice != nullptr) wish += ":" + std::to_string(slice->index);
    Grant grant = TRY(make_grant(request_for({wish}), machine));
    std::erase_if(grant.nodes,
                  [&](const Node& node) { return is_in(inventory_.control_nodes, node.path); });
    units_.push_back({names_of(gpu, slice), std::move(grant.nodes), {}});
    if (slice == nullptr) add_links(gpu, units_.back());
    return {};
  };
  for (const Gpu& gpu : machine.gpus) {
    for (const MigDevice& slice : gpu.mig) TRY(add(gpu, &slice));
    if (!gpu.mig_mode && gpu.mig.empty()) TRY(add(gpu, nullptr));
  }
  oci::cdi::Edits& common = out_.spec.edits;
  // Otherwise the hook or runtime of another toolkit would take the image's variable as a request.
  common.env = {"NVIDIA_VISIBLE_DEVICES=void"};
  for (const Node& node : all.nodes) {
    if (is_in(inventory_.control_nodes, node.path)) add_node(node, common);
  }
  add_files(all);
  add_hook(all);
  return {};
}

// Programs find the node of a display by the PCI address of the GPU.
void Generator::add_links(const Gpu& gpu, Unit& unit) {
  for (const NodeLink& link : gpu.drm_links) unit.links.push_back({link.path, link.target});
}

// Adds only nodes: the libraries of other vendors are in the images.
Result<void> Generator::add_others() {
  for (const Gpu& gpu : inventory_.gpus) {
    if (gpu.vendor != options_.vendor) continue;
    for (const Partition& part : gpu.partitions) {
      units_.push_back({names_of(gpu, &part), part.nodes, {}});
    }
    if (!gpu.partitions.empty()) continue;
    Unit unit{names_of(gpu, nullptr), gpu.drm_nodes, {}};
    if (!gpu.node.path.empty() && !is_in(unit.nodes, gpu.node.path)) unit.nodes.push_back(gpu.node);
    add_links(gpu, unit);
    units_.push_back(std::move(unit));
  }
  if (options_.vendor != Vendor::amd) return {};
  for (const Node& node : inventory_.amd_control_nodes) add_node(node, out_.spec.edits);
  return {};
}

void Generator::add_files(const Grant& grant) {
  // A tmpfs for links and mount points: nothing is written into the image's directories, and it
  // works with a read-only root too.
  oci::cdi::Mount place;
  place.host_path = "tmpfs";
  place.container_path = kDriverDirectory;
  place.options = {"nosuid", "nodev", "noexec", "mode=755", "size=1m"};
  place.type = "tmpfs";
  if (!grant.files.empty()) out_.spec.edits.mounts.push_back(std::move(place));
  for (const GrantedFile& file : grant.files) {
    // Once the service has ended, any user can make this path, for example as a link to another
    // place.
    if (file.kind == FileKind::directory && file.container_path.starts_with("/tmp/")) {
      out_.warnings.push_back(
          quote(file.host_path) +
          " is not in the file: once its service has ended anybody may make that name");
      continue;
    }
    oci::cdi::Mount mount;
    mount.host_path = file.host_path;
    mount.container_path = file.container_path;
    mount.options = {"ro", "nosuid", "nodev", "rbind", "rprivate"};
    if (file.kind == FileKind::socket) mount.options.emplace_back("noexec");
    out_.spec.edits.mounts.push_back(std::move(mount));
  }
}

void Generator::add_hook(const Grant& grant) {
  if (grant.links.empty() && grant.loader_entries.empty() && !grant.frozen_params) return;
  HookRequest request;
  std::set<std::string> paths;  // if two libraries want one development link, the first gets it
  for (const GrantedLink& link : grant.links) {
    if (paths.insert(link.path).second) request.links.push_back({link.path, link.target});
  }
  for (const scan::LoaderEntry& entry : grant.loader_entries) {
    request.loader_entries.push_back({entry.soname, entry.path, entry.flags});
  }
  request.freeze_device_nodes = grant.frozen_params;
  out_.spec.edits.hooks.push_back(hook(request));
}

// The engine that reads the file gets numbers and modes from the host's node, because majors may
// change when the module is reloaded. Only a node that does not exist yet has to be described.
void Generator::add_node(const Node& node, oci::cdi::Edits& edits) {
  oci::cdi::DeviceNode out;
  out.path = node.path;
  out.permissions = "rw";
  if (node.host_path.empty()) {
    out.type = "c";
    out.major = node.major;
    out.minor = node.minor;
    out.file_mode = node.mode;
  } else if (node.host_path != node.path) {
    out.host_path = node.host_path;
  }
  edits.device_nodes.push_back(std::move(out));
  if ((node.mode & 0006) == 0006 || node.gid == 0) return;
  auto& gids = edits.additional_gids;
  if (!may_use("0.7.0")) {
    out_.warnings.push_back(
        fmt::format("{} is for group {} alone, which the file does not give; --cdi-version 0.7.0 "
                    "can say it",
                    quote(node.path), node.gid));
  } else if (std::ranges::find(gids, node.gid) == gids.end()) {
    gids.push_back(node.gid);
  }
}

void Generator::add_unit(const Unit& unit) {
  oci::cdi::Edits edits;
  for (const Node& node : unit.nodes) add_node(node, edits);
  if (!unit.links.empty()) {
    HookRequest request;
    request.links = unit.links;
    edits.hooks.push_back(hook(request));
  }
  for (const std::string& name : unit.names) out_.spec.devices.push_back({name, {}, edits});
}

// Adds "all": the edits of all units in order, without duplicate nodes of slices.
void Generator::add_all() {
  oci::cdi::Edits edits;
  HookRequest request;
  std::set<std::string> names, paths;
  for (const Unit& unit : units_) {
    if (unit.names.empty() || !names.insert(unit.names.front()).second) continue;
    auto device = std::ranges::find_if(
        out_.spec.devices, [&](const auto& one) { return one.name == unit.names.front(); });
    for (const auto& node : device->edits.device_nodes) {
      if (paths.insert(node.path).second) edits.device_nodes.push_back(node);
    }
    request.links.insert(request.links.end(), unit.links.begin(), unit.links.end());
    for (uint32_t gid : device->edits.additional_gids) {
      auto& gids = edits.additional_gids;
      if (std::ranges::find(gids, gid) == gids.end()) gids.push_back(gid);
    }
  }
  if (!request.links.empty()) edits.hooks.push_back(hook(request));
  if (!edits.empty()) out_.spec.devices.push_back({"all", {}, std::move(edits)});
}

Result<void> Generator::set_version() {
  std::string_view needed = oci::cdi::needed_version(out_.spec);
  if (options_.version && oci::cdi::compare_versions(*options_.version, needed) < 0) {
    return make_error(Kind::usage, fmt::format("--cdi-version {}: the content needs {}",
                                               *options_.version, needed));
  }
  out_.spec.version = options_.version.value_or(std::string(needed));
  if (oci::cdi::compare_versions(out_.spec.version, kWidelyRead) > 0) {
    out_.warnings.push_back(fmt::format(
        "CDI {} is refused by podman 4.3 (Debian 12), and by every client whose CDI library is "
        "older than that version",
        out_.spec.version));
  }
  return {};
}

}  // namespace

Result<Generated> generate(const Inventory& inventory, const GenerateOptions& options) {
  return Generator(inventory, options).run();
}

std::optional<std::string> made_for(const oci::cdi::Spec& spec) {
  for (const oci::cdi::Hook& hook : spec.edits.hooks) {
    for (const std::string& assignment : hook.env) {
      if (assignment.starts_with(kDriverVariable)) {
        return assignment.substr(kDriverVariable.size());
      }
    }
  }
  return std::nullopt;
}

}  // namespace berth::gpu::cdi
