// SPDX-License-Identifier: Apache-2.0
#include "engine/gpu/cdi.hpp"

#include <fcntl.h>

#include <algorithm>

#include "base/text.hpp"
#include "engine/gpu/list.hpp"
#include "gpu/cdi/generate.hpp"
#include "gpu/cdi/registry.hpp"
#include "gpu/cdi_hook/hook.hpp"
#include "gpu/inventory/driver_root.hpp"
#include "gpu/place/finish.hpp"
#include "json/fields.hpp"
#include "oci/cdi.hpp"
#include "oci/edit_fields.hpp"
#include "policy/policy.hpp"
#include "sys/file/file.hpp"
#include "yaml/read.hpp"

namespace berth::engine {
namespace {

Result<std::vector<std::string>> directories_of(const Context& context) {
  if (!context.paths.cdi_directories.empty()) return context.paths.cdi_directories;
  policy::Compiled policy = TRY_CTX(policy::read_compiled(context.paths.config),
                                    "cannot read the policy of this machine");
  const std::vector<std::string>& named = policy.policy.gpu.cdi_directories;
  return named.empty() ? gpu::cdi::default_directories() : named;
}

/// The edits of `names`. If one is not found, reads the whole index for a better error.
Result<oci::ContainerEdits> find_edits(const Context& context,
                                       const std::vector<std::string>& names) {
  std::vector<std::string> directories = TRY(directories_of(context));
  auto index = TRY(gpu::cdi::make_index(directories, names));
  auto edits = gpu::cdi::edits_of(index, names);
  if (edits.ok() || edits.error().kind != Kind::not_found) return edits;
  for (const gpu::cdi::Fault& fault : index.bad_files) {
    context.log.warn(fault.text + ", ignoring this file");
  }
  index = TRY(list_cdi(context));
  return gpu::cdi::edits_of(index, names);
}

/// The loaded driver's version; empty if unknown.
std::string loaded_driver(const Context& context) {
  auto root = gpu::DriverRoot::open(context.paths.driver_root);
  if (!root.ok()) return "";
  auto version = root->read_machine("/sys/module/nvidia/version");
  return version.ok() && *version ? std::string(trim(**version)) : "";
}

/// A CDI file for another driver names files that an upgrade removed. Checked before anything is
/// created.
Result<void> check_mounts(const Context& context, const std::vector<std::string>& names,
                          const oci::ContainerEdits& edits) {
  for (const oci::Mount& mount : edits.mounts) {
    if (!mount.source.starts_with('/')) continue;
    auto there = sys::open_at(sys::cwd(), mount.source, O_PATH);
    if (there.ok() || there.error().kind != Kind::not_found) continue;
    std::string loaded = loaded_driver(context);
    return make_error(
        Kind::not_found,
        "device " + quote(join(names, ", ")) + ": its CDI file names " + quote(mount.source) +
            ", which is not there" +
            (loaded.empty() ? "" : "; driver " + escape_controls(loaded) + " is loaded"),
        "berth cdi generate --output FILE, for the driver that is here");
  }
  return {};
}

Result<gpu::cdi::Naming> naming_of(const std::string& word) {
  if (word == "index") return gpu::cdi::Naming::index;
  if (word == "uuid") return gpu::cdi::Naming::uuid;
  if (word == "type-index") return gpu::cdi::Naming::type_index;
  return make_error(Kind::usage,
                    "device name strategy " + quote(word) + ": expected index, uuid, type-index");
}

Result<gpu::cdi::GenerateOptions> generate_options(const Context& context,
                                                   const CdiGenerateRequest& request) {
  gpu::cdi::GenerateOptions options;
  options.vendor = TRY(parse_enum<gpu::Vendor>(request.vendor));
  options.kind = request.vendor + ".com/" + request.device_class;
  if (!oci::cdi::parse_name(options.kind + "=0").ok()) {
    return make_error(Kind::usage, "--class " + quote(request.device_class) +
                                       ": expected a letter, then letters, digits, '-', '_', '.'");
  }
  if (!request.name_strategies.empty()) options.namings.clear();
  for (const std::string& word : request.name_strategies) {
    gpu::cdi::Naming naming = TRY(naming_of(word));
    auto& known = options.namings;
    if (std::ranges::find(known, naming) == known.end()) known.push_back(naming);
  }
  auto versions = oci::cdi::versions();
  if (request.version && std::ranges::find(versions, *request.version) == versions.end()) {
    return make_error(Kind::usage,
                      "--cdi-version " + quote(*request.version) + ": there is no such version",
                      "one of 0.5.0, 0.6.0, 0.7.0, 1.1.0");
  }
  options.version = request.version;
  options.hook_program = context.paths.libexec + "/" + std::string(gpu::cdi::kOwnHook);
  return options;
}

}  // namespace

Result<void> check_device(const std::string& text) {
  TRY(oci::cdi::parse_name(text));
  return {};
}

Result<gpu::cdi::Index> list_cdi(const Context& context) {
  return gpu::cdi::make_index(TRY(directories_of(context)));
}

Result<bool> has_no_cdi_gpus(const Context& context) {
  auto about_gpus = [](const std::string& name) { return name.starts_with("nvidia.com/gpu="); };
  gpu::cdi::Index index = TRY(list_cdi(context));
  // A file that cannot be read may define an NVIDIA GPU.
  return index.bad_files.empty() &&
         std::ranges::none_of(index.devices,
                              [&](const auto& device) { return about_gpus(device.name); }) &&
         std::ranges::none_of(index.unavailable,
                              [&](const auto& fault) { return about_gpus(fault.object); });
}

Result<RefreshedCdi> refresh_cdi(const Context& context) {
  RefreshedCdi refreshed{context.paths.state + "/" + gpu::cdi::kIndexName, TRY(list_cdi(context))};
  std::string directory = refreshed.path.substr(0, refreshed.path.rfind('/'));
  TRY(sys::make_directories(sys::cwd(), directory, 0700));
  TRY(sys::replace_file(sys::cwd(), refreshed.path, gpu::cdi::write_index(refreshed.index), 0600));
  return refreshed;
}

Result<CdiFileFacts> check_cdi_file(const Context& context, const std::string& path) {
  oci::cdi::Spec spec = TRY(gpu::cdi::read_file(path));
  return CdiFileFacts{spec.kind,
                      spec.version,
                      std::string(oci::cdi::needed_version(spec)),
                      spec.devices.size(),
                      gpu::cdi::made_for(spec).value_or(""),
                      loaded_driver(context)};
}

Result<std::string> generate_cdi(const Context& context, const CdiGenerateRequest& request) {
  gpu::cdi::GenerateOptions options = TRY(generate_options(context, request));
  gpu::Inventory inventory = TRY(list_gpus(context, gpu::Refresh::if_stale));
  if (inventory.synthetic) {
    context.log.warn("the driver tree is synthetic: these are not real GPUs");
  }
  gpu::cdi::Generated made = TRY(gpu::cdi::generate(inventory, options));
  for (const std::string& warning : made.warnings) context.log.warn(warning);
  json::Value document = oci::cdi::to_document(made.spec);
  std::string text =
      request.format == "json" ? json::dump(document, 2) + "\n" : "---\n" + yaml::dump(document);
  if (request.output) {
    // /etc/cdi does not exist before the first file.
    std::string directory = request.output->substr(0, request.output->rfind('/'));
    if (!directory.empty()) TRY(sys::make_directories(sys::cwd(), directory, 0755));
    TRY(sys::replace_file(sys::cwd(), *request.output, text, 0644, sys::Sync::yes));
  }
  return text;
}

Result<json::Value> inspect_cdi(const Context& context, const std::string& name) {
  gpu::cdi::Index index = TRY(list_cdi(context));
  oci::ContainerEdits edits = TRY(gpu::cdi::edits_of(index, {name}));
  std::string file;
  for (const gpu::cdi::IndexDevice& device : index.devices) {
    if (device.name == name) file = index.files.at(device.file).path;
  }
  return json::Value(
      json::Object{{"name", name}, {"file", std::move(file)}, {"edits", json::to_value(edits)}});
}

Result<oci::ContainerEdits> add_cdi_devices(const Context& context,
                                            const std::vector<std::string>& names, CdiParts parts,
                                            const gpu::RealPath& real_path, oci::Spec& spec) {
  oci::ContainerEdits edits = TRY(find_edits(context, names));
  TRY(check_mounts(context, names, edits));
  // With --immutable the root is the image's on every machine, so only nodes are added.
  if (parts == CdiParts::nodes && gpu::keep_nodes(edits)) context.log.warn(gpu::kNodesAlone);
  policy::Compiled policy = TRY_CTX(policy::read_compiled(context.paths.config),
                                    "cannot read the policy of this machine");
  gpu::FinishOptions options{context.paths.state, policy.policy.gpu.forward_compatibility, nullptr};
  // Without a driver on this machine, use the CDI file as it is.
  std::optional<gpu::Inventory> inventory;
  if (gpu::wants_inventory(edits)) {
    auto found = list_gpus(context, gpu::Refresh::if_stale);
    if (found.ok()) inventory = std::move(*found);
  }
  if (inventory) options.inventory = &*inventory;
  TRY(gpu::finish_edits(edits, options));
  auto left_out = TRY_CTX(gpu::fit_places(edits.mounts, gpu::user_mounts(spec, real_path),
                                          real_path, gpu::look_at_host),
                          "cannot give the container " + quote(join(names, ", ")));
  if (!left_out.empty()) context.log.warn(gpu::left_out_text(left_out));
  oci::apply(edits, spec);
  return edits;
}

}  // namespace berth::engine
