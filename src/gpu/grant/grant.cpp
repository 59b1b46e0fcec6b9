// SPDX-License-Identifier: Apache-2.0
#include "gpu/grant/grant.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "base/text.hpp"
#include "gpu/grant/requirement.hpp"
#include "gpu/grant/select.hpp"
#include "gpu/grant/visible.hpp"

namespace berth::gpu {
namespace {

std::string list(const std::set<std::string>& words) {
  return join(std::vector<std::string>(words.begin(), words.end()), ",");
}

class Granter {
 public:
  Granter(const Request& request, const Inventory& inventory)
      : request_(request), inventory_(inventory) {}

  Result<Grant> run() {
    if (request_.want == Request::Want::none) return Grant{};
    selected_ = TRY(select(request_, inventory_));
    TRY(check_versions());
    choose_capabilities();
    TRY(check_requirements());
    grant_.synthetic = inventory_.synthetic;
    add_nodes();
    add_libraries();
    add_other_files();
    add_environment();
    add_procfs();
    return std::move(grant_);
  }

 private:
  Result<void> check_versions() const;
  void choose_capabilities();
  Result<void> check_requirements();
  Result<void> check_requirement(const NamedRequirement& requirement, const Requirement& parsed,
                                 const Gpu* gpu);
  std::string why_granted() const;
  void add_nodes();
  void add_libraries();
  void add_library(const DriverFile& file);
  void add_other_files();
  void add_environment();
  void add_procfs();

  bool has(std::string_view capability) const {
    return capabilities_.contains(std::string(capability));
  }
  bool wanted(const DriverFile& file) const {
    if (file.elf32 && !has("compat32")) return false;
    return std::any_of(file.capabilities.begin(), file.capabilities.end(),
                       [this](const std::string& name) { return capabilities_.contains(name); });
  }
  void add_node(const Node& node) {
    auto same = [&](const Node& other) { return other.path == node.path; };
    if (std::none_of(grant_.nodes.begin(), grant_.nodes.end(), same)) grant_.nodes.push_back(node);
  }
  void reason(std::string kind, std::string object, std::string why, bool given = true) {
    grant_.reasons.push_back({std::move(kind), std::move(object), given, std::move(why), {}});
  }

  const Request& request_;
  const Inventory& inventory_;
  std::vector<Selected> selected_;
  std::set<std::string> capabilities_;
  Grant grant_;
};

// A package upgrade replaces the files and leaves the module: every CUDA call would then fail with
// a version mismatch inside of the container, where nobody can see why.
Result<void> Granter::check_versions() const {
  const Driver& driver = inventory_.driver;
  if (driver.library_version.empty()) {
    return make_error(Kind::not_found,
                      fmt::format("the kernel module is {} but no driver files were found below {}",
                                  driver.module_version, quoted(inventory_.driver_root)),
                      "--driver-root DIR");
  }
  if (driver.library_version != driver.module_version) {
    return make_error(Kind::unsupported,
                      fmt::format("driver files are {} but the kernel module is {}",
                                  driver.library_version, driver.module_version),
                      "reboot or reload the module");
  }
  return {};
}

void Granter::choose_capabilities() {
  const auto& known = known_capabilities();
  std::string why = request_.capabilities_why;
  if (why.empty()) why = request_.capabilities.empty() ? "the default" : "--gpus names them";
  for (const std::string& word : request_.capabilities) {
    if (word == "all") {
      capabilities_.insert(known.begin(), known.end());
    } else {
      capabilities_.insert(word);
    }
  }
  if (request_.capabilities.empty()) capabilities_ = {"compute", "utility"};
  reason("capabilities", list(capabilities_), why);
}

Result<void> Granter::check_requirements() {
  for (const NamedRequirement& requirement : request_.requirements) {
    auto parsed = parse_requirement(requirement.text);
    if (!parsed.ok()) {
      // A spelling that only a newer toolkit knows is no reason not to run.
      reason("requirement", escape_controls(requirement.name),
             "not checked: " + parsed.error().what, false);
      continue;
    }
    // Without a GPU the driver still has a version.
    if (selected_.empty()) TRY(check_requirement(requirement, *parsed, nullptr));
    for (const Selected& one : selected_) {
      TRY(check_requirement(requirement, *parsed, one.gpu));
    }
  }
  return {};
}

Result<void> Granter::check_requirement(const NamedRequirement& requirement,
                                        const Requirement& parsed, const Gpu* gpu) {
  const Driver& driver = inventory_.driver;
  RequirementFacts facts;
  if (!driver.cuda_version.empty()) facts.cuda = driver.cuda_version;
  facts.driver = driver.module_version;
  if (gpu != nullptr) facts.arch = gpu->compute_capability;
  if (gpu != nullptr) facts.brand = gpu->brand;
  Truth truth = evaluate(parsed, facts);
  std::string who = gpu == nullptr ? "this machine" : fmt::format("GPU {}", gpu->index);
  if (truth == Truth::no) {
    std::string found = fmt::format("driver {}", driver.module_version);
    if (facts.cuda) found += fmt::format(" with CUDA {}", *facts.cuda);
    if (facts.brand) found += fmt::format(", brand {}", *facts.brand);
    if (facts.arch) found += fmt::format(", arch {}", *facts.arch);
    return make_error(Kind::unsupported,
                      fmt::format("the image requires {} ({}), {} has {}", quoted(requirement.text),
                                  escape_controls(requirement.name), who, found),
                      "another image, or -e NVIDIA_DISABLE_REQUIRE=1");
  }
  if (truth == Truth::unknown && gpu != nullptr) {
    reason("requirement", escape_controls(requirement.name),
           fmt::format("may fail on {}: NVML does not tell what it asks for", who));
  }
  return {};
}

std::string Granter::why_granted() const {
  std::string who = request_.source.empty() ? "--gpus" : request_.source;
  std::string why = request_.want == Request::Want::all ? who + " all"
                    : request_.want == Request::Want::count
                        ? fmt::format("the first {}", request_.count)
                        : who + " names it";
  if (!request_.source.empty()) why = who;
  for (const Limit& limit : request_.limits)
    why += fmt::format(", within {}={}", limit.variable, escape_controls(limit.value));
  return why;
}

void Granter::add_nodes() {
  std::set<uint32_t> indices;
  for (const Selected& selected : selected_) {
    indices.insert(selected.gpu->index);
    add_node(selected.gpu->node);
    if (selected.slice != nullptr) {
      for (const Node& node : selected.slice->nodes) add_node(node);
    }
    // A slice has no display engine: its GPU's DRM nodes would open the whole GPU.
    if (selected.slice == nullptr && (has("graphics") || has("display"))) {
      for (const Node& node : selected.gpu->drm_nodes) add_node(node);
    }
    reason("gpu", name_of(selected), why_granted());
  }
  grant_.gpus.assign(indices.begin(), indices.end());
  for (const Node& node : inventory_.control_nodes) {
    if (node.path.starts_with("/dev/nvidia-uvm") && !has("compute")) continue;
    if (node.path == "/dev/nvidia-modeset" && !has("display") && !has("graphics")) continue;
    add_node(node);
  }
}

void Granter::add_library(const DriverFile& file) {
  std::string directory = fmt::format("{}/{}", kDriverDirectory, file.elf32 ? "lib" : "lib64");
  grant_.files.push_back({FileKind::library, file.host_path, directory + "/" + file.name});
  if (file.soname != file.name) {
    grant_.links.push_back({directory + "/" + file.soname, file.name});
    // "libcuda.so" as compilers and dlopen() in careless programs ask for it.
    size_t dot = file.soname.find(".so.");
    if (dot != std::string::npos) {
      grant_.links.push_back({directory + "/" + file.soname.substr(0, dot + 3), file.soname});
    }
  }
  if (file.soname == "libGLX_nvidia.so.0") {
    // GLVND asks for it when the X server names no vendor.
    grant_.links.push_back({directory + "/libGLX_indirect.so.0", file.name});
  }
  if (file.soname == "libnvidia-allocator.so.1") {
    grant_.links.push_back({directory + "/gbm/nvidia-drm_gbm.so", "../" + file.soname});
  }
  grant_.loader_entries.push_back({.soname = file.soname,
                                   .path = directory + "/" + file.soname,
                                   .flags = file.loader_flags,
                                   .os_version = 0,
                                   .hwcap = 0});
}

void Granter::add_libraries() {
  bool any32 = false;
  for (const DriverFile& file : inventory_.files) {
    if (file.kind != FileKind::library || !wanted(file)) continue;
    any32 = any32 || file.elf32;
    add_library(file);
  }
  grant_.library_directories.push_back(fmt::format("{}/lib64", kDriverDirectory));
  if (any32) grant_.library_directories.push_back(fmt::format("{}/lib", kDriverDirectory));
}

void Granter::add_other_files() {
  for (const DriverFile& file : inventory_.files) {
    if (file.kind == FileKind::library || !wanted(file)) continue;
    grant_.files.push_back({file.kind, file.host_path, file.container_path});
    if (file.kind == FileKind::binary) {
      // For images whose PATH starts with NVIDIA's directory.
      grant_.links.push_back(
          {fmt::format("{}/bin/{}", kDriverDirectory, file.name), file.container_path});
    }
  }
}

void Granter::add_environment() {
  std::vector<std::string> names;
  for (const Selected& selected : selected_) names.push_back(name_of(selected));
  if (names.empty()) names.emplace_back("none");
  grant_.env.push_back("NVIDIA_VISIBLE_DEVICES=" + join(names, ","));
  grant_.env.push_back("NVIDIA_DRIVER_CAPABILITIES=" + list(capabilities_));
  for (std::string& one : translate_selection(request_, selected_)) {
    reason("variable", one, "the job's value, as the container counts");
    grant_.env.push_back(std::move(one));
  }
  grant_.warnings = stale_selections(request_, selected_);
}

// Only where the container's own procfs has these files: a synthetic tree is not in it.
void Granter::add_procfs() {
  if (inventory_.synthetic || inventory_.params.empty()) return;
  constexpr std::string_view kModify = "ModifyDeviceFiles: 1";
  size_t at = inventory_.params.find(kModify);
  if (at != std::string::npos) {
    grant_.params = inventory_.params;
    grant_.params[at + kModify.size() - 1] = '0';
    reason("proc", "/proc/driver/nvidia/params",
           "ModifyDeviceFiles is 0, so that NVML makes no node of another GPU");
  }
  grant_.hide_other_gpus = grant_.gpus.size() < inventory_.gpus.size() + inventory_.left_out;
  std::set<std::string> visible;
  for (const Selected& selected : selected_) visible.insert(selected.gpu->pci_address);
  grant_.visible_pci_addresses.assign(visible.begin(), visible.end());
}

}  // namespace

Result<Grant> make_grant(const Request& request, const Inventory& inventory) {
  return Granter(request, inventory).run();
}

}  // namespace berth::gpu
