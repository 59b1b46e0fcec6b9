// SPDX-License-Identifier: Apache-2.0
#include "gpu/grant/grant.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "base/text.hpp"
#include "gpu/grant/requirement.hpp"
#include "gpu/grant/select.hpp"

namespace berth::gpu {
namespace {

std::optional<std::string> variable(const std::vector<std::string>& env, std::string_view name) {
  for (const std::string& assignment : env) {
    if (assignment.size() > name.size() && assignment.starts_with(name) &&
        assignment[name.size()] == '=') {
      return assignment.substr(name.size() + 1);
    }
  }
  return std::nullopt;
}

// Go's strconv.ParseBool, which is what NVIDIA's toolkit reads NVIDIA_DISABLE_REQUIRE with.
bool is_true(std::string_view text) {
  static const std::set<std::string_view> kTrue = {"1", "t", "T", "true", "TRUE", "True"};
  return kTrue.contains(text);
}

std::string list(const std::set<std::string>& words) {
  return join(std::vector<std::string>(words.begin(), words.end()), ",");
}

class Granter {
 public:
  Granter(const Request& request, const Inventory& inventory,
          const std::vector<std::string>& image_env)
      : request_(request), inventory_(inventory), image_env_(image_env) {}

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
  Result<void> check_requirement(const std::string& name, const std::string& text);
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
  const std::vector<std::string>& image_env_;
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

// The user's words first; the image may name what it needs, never more than that.
void Granter::choose_capabilities() {
  const auto& known = known_capabilities();
  auto take = [&](std::string_view word) {
    if (word == "all") {
      capabilities_.insert(known.begin(), known.end());
    } else {
      capabilities_.emplace(word);
    }
  };
  if (!request_.capabilities.empty()) {
    for (const std::string& word : request_.capabilities) take(word);
    reason("capabilities", list(capabilities_), "--gpus names them");
    return;
  }
  std::string image = variable(image_env_, "NVIDIA_DRIVER_CAPABILITIES").value_or("");
  for (std::string_view word : split(image, ',')) {
    word = trim(word);
    bool is_known = word == "all" || std::find(known.begin(), known.end(), word) != known.end();
    if (is_known) take(word);
    if (!is_known && !word.empty()) {
      reason("capability", escape_controls(std::string(word)), "there is no such capability",
             false);
    }
  }
  if (!capabilities_.empty()) {
    reason("capabilities", list(capabilities_),
           "NVIDIA_DRIVER_CAPABILITIES of the image or of --env");
    return;
  }
  capabilities_ = {"compute", "utility"};
  reason("capabilities", "compute,utility", "the default");
}

Result<void> Granter::check_requirements() {
  if (is_true(variable(image_env_, "NVIDIA_DISABLE_REQUIRE").value_or(""))) {
    reason("requirement", "all", "NVIDIA_DISABLE_REQUIRE: not checked", false);
    return {};
  }
  constexpr std::string_view kPrefix = "NVIDIA_REQUIRE_";
  for (const std::string& assignment : image_env_) {
    size_t equals = assignment.find('=');
    if (!assignment.starts_with(kPrefix) || equals == std::string::npos) continue;
    std::string name = assignment.substr(0, equals);
    if (name == "NVIDIA_REQUIRE_JETPACK" || equals + 1 == assignment.size()) continue;
    TRY(check_requirement(name, assignment.substr(equals + 1)));
  }
  return {};
}

Result<void> Granter::check_requirement(const std::string& name, const std::string& text) {
  auto requirement = parse_requirement(text);
  if (!requirement.ok()) {
    // A spelling that only a newer toolkit knows is no reason not to run.
    reason("requirement", escape_controls(name), "not checked: " + requirement.error().what, false);
    return {};
  }
  for (const Selected& selected : selected_) {
    RequirementFacts facts;
    const Driver& driver = inventory_.driver;
    if (!driver.cuda_version.empty()) facts.cuda = driver.cuda_version;
    facts.driver = driver.module_version;
    facts.arch = selected.gpu->compute_capability;
    facts.brand = selected.gpu->brand;
    Truth truth = evaluate(*requirement, facts);
    if (truth == Truth::no) {
      std::string found = fmt::format("driver {}", driver.module_version);
      if (facts.cuda) found += fmt::format(" with CUDA {}", *facts.cuda);
      if (facts.brand) found += fmt::format(", brand {}", *facts.brand);
      if (facts.arch) found += fmt::format(", arch {}", *facts.arch);
      return make_error(Kind::unsupported,
                        fmt::format("the image requires {} ({}), GPU {} has {}", quoted(text),
                                    escape_controls(name), selected.gpu->index, found),
                        "another image, or -e NVIDIA_DISABLE_REQUIRE=1");
    }
    if (truth == Truth::unknown) {
      reason("requirement", escape_controls(name),
             fmt::format("may fail on GPU {}: NVML does not tell what it asks for",
                         selected.gpu->index));
    }
  }
  return {};
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
    reason("gpu", name_of(selected),
           request_.want == Request::Want::all     ? "--gpus all"
           : request_.want == Request::Want::count ? fmt::format("the first {}", request_.count)
                                                   : "--gpus names it");
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
  grant_.env.push_back("NVIDIA_VISIBLE_DEVICES=" + join(names, ","));
  grant_.env.push_back("NVIDIA_DRIVER_CAPABILITIES=" + list(capabilities_));
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
  for (uint32_t index : grant_.gpus) {
    grant_.visible_pci_addresses.push_back(inventory_.gpus[index].pci_address);
  }
}

}  // namespace

Result<Grant> make_grant(const Request& request, const Inventory& inventory,
                         const std::vector<std::string>& image_env) {
  return Granter(request, inventory, image_env).run();
}

}  // namespace berth::gpu
