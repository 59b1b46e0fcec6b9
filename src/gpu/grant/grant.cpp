// SPDX-License-Identifier: Apache-2.0
#include "gpu/grant/grant.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/text.hpp"
#include "gpu/grant/driver_files.hpp"
#include "gpu/grant/extra_devices.hpp"
#include "gpu/grant/gbm.hpp"
#include "gpu/grant/requirement.hpp"
#include "gpu/grant/visible.hpp"

namespace berth::gpu {
namespace {

using policy::DriverMode;

std::string list(const std::set<std::string>& words) {
  return join(std::vector<std::string>(words.begin(), words.end()), ",");
}

class Granter {
 public:
  Granter(const Request& request, const Inventory& inventory, const GrantOptions& options)
      : request_(request), inventory_(inventory), options_(options) {}

  Result<Grant> run() {
    if (request_.want == Request::Want::none) return Grant{};
    if (options_.selected != nullptr) {
      selected_ = *options_.selected;
    } else {
      selected_ = TRY(select(request_, inventory_));
    }
    grant_.vendor = vendor_of(request_, inventory_);
    grant_.synthetic = inventory_.synthetic;
    grant_.mode = is_nvidia() ? options_.mode : DriverMode::none;
    if (is_nvidia()) {
      TRY(add_nvidia());
    } else {
      add_nodes();
    }
    TRY(add_features());
    add_selection();
    add_procfs();
    warn_of_hidden();
    if (is_nvidia() && has_files()) warn_of_lost(inventory_, capabilities_, grant_.warnings);
    return std::move(grant_);
  }

 private:
  bool is_nvidia() const { return grant_.vendor == Vendor::nvidia; }
  Result<void> add_nvidia();
  void choose_capabilities();
  Result<void> check_requirements();
  Result<void> check_requirement(const NamedRequirement& requirement, const Requirement& parsed,
                                 const Gpu* gpu);
  std::string why_granted() const;
  void add_nodes();
  void add_nodes_of(const Selected& selected);
  void add_control_nodes();
  Result<void> add_features();
  void grant_file(const DriverFile& file);
  void choose_egl_gpus();
  bool has_files() const {
    return grant_.mode != DriverMode::image && grant_.mode != DriverMode::none;
  }
  bool has_screen() const { return has("graphics") || has("display"); }
  void add_files();
  void add_library(const DriverFile& file);
  void add_gbm(const DriverFile& file);
  void add_file(const DriverFile& file);
  Result<void> consider_image();
  Result<void> check_image_driver();
  Result<void> shadow(const scan::ImageLibrary& library);
  bool use_compat();
  void put_compat_first(const scan::CompatPackage& compat);
  void leave_to_cache();
  void ask_for_compat();
  const UserMount* mount_over(const std::string& path) const {
    if (options_.user_mounts.empty()) return nullptr;
    return gpu::mount_over(options_.user_mounts, options_.real_path(path));
  }
  void leave_out(const std::string& path, const std::string& host_path, const UserMount& mount);
  void warn_of_hidden();
  bool shows(const ProcText& text) const;
  void add_environment();
  void add_selection();
  void add_procfs();

  bool has(std::string_view capability) const {
    return capabilities_.contains(std::string(capability));
  }
  bool wanted(const DriverFile& file) const {
    return (!file.elf32 || has("compat32")) && has_any(file.capabilities, capabilities_);
  }
  void add_node(const Node& node) {
    auto same = [&](const Node& other) { return other.path == node.path; };
    if (std::ranges::none_of(grant_.nodes, same)) grant_.nodes.push_back(node);
  }
  void reason(std::string kind, std::string object, std::string why, bool given = true) {
    grant_.reasons.push_back({std::move(kind), std::move(object), given, std::move(why), {}});
  }

  const Request& request_;
  const Inventory& inventory_;
  const GrantOptions& options_;
  std::vector<Selected> selected_;
  std::set<std::string> capabilities_;
  Grant grant_;
  struct {
    std::vector<std::string> programs;
    std::vector<std::string> files;
  } hidden_;  ///< paths of the container over which the user has a mount
};

Result<void> Granter::add_nvidia() {
  if (has_files()) TRY(check_versions(inventory_));
  choose_capabilities();
  if (has_files()) TRY(check_needed(inventory_, capabilities_));
  TRY(check_requirements());
  grant_.driver_version = inventory_.driver.library_version;
  add_nodes();
  choose_egl_gpus();
  if (has_files()) {
    grant_.directory = TRY(choose_directory(options_.user_mounts, options_.real_path));
    add_files();
  }
  TRY(consider_image());
  add_environment();
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
      // Do not refuse a requirement in a syntax that only a newer toolkit knows.
      reason("requirement", escape_controls(requirement.name),
             "not checked: " + parsed.error().what, false);
      continue;
    }
    // Requirements on the driver's version can be checked even without a GPU.
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
                      fmt::format("the image requires {} ({}), {} has {}", quote(requirement.text),
                                  escape_controls(requirement.name), who, found),
                      "another image, or -e NVIDIA_DISABLE_REQUIRE=1");
  }
  if (truth == Truth::unknown && gpu != nullptr) {
    reason("requirement", escape_controls(requirement.name),
           fmt::format("may fail on {}: NVML does not report what it requires", who));
  }
  return {};
}

std::string Granter::why_granted() const {
  std::string who = request_.source.empty() ? "--gpus" : request_.source;
  std::string why = request_.want == Request::Want::all ? who + " all"
                    : request_.want == Request::Want::count
                        ? fmt::format("the {} least used", request_.count)
                    : request_.want == Request::Want::keys
                        ? fmt::format("{} from:{}", who, escape_controls(request_.from))
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
    add_nodes_of(selected);
    reason("gpu", name_of(selected), why_granted());
  }
  grant_.gpus.assign(indices.begin(), indices.end());
  add_control_nodes();
}

void Granter::add_nodes_of(const Selected& selected) {
  // Each partition has its own render node; the node of the GPU is that of the first partition.
  if (selected.partition != nullptr) {
    for (const Node& node : selected.partition->nodes) add_node(node);
    return;
  }
  add_node(selected.gpu->node);
  if (selected.slice != nullptr) {
    // A slice has no display engine, and the DRM nodes of its GPU would open the whole GPU.
    for (const Node& node : selected.slice->nodes) add_node(node);
    return;
  }
  // Other vendors have only DRM nodes.
  if (is_nvidia() && !has_screen()) return;
  for (const Node& node : selected.gpu->drm_nodes) add_node(node);
  for (const NodeLink& link : selected.gpu->drm_links) grant_.node_links.push_back(link);
}

void Granter::add_control_nodes() {
  if (grant_.vendor == Vendor::amd && !selected_.empty()) {
    for (const Node& node : inventory_.amd_control_nodes) add_node(node);
  }
  if (!is_nvidia()) return;
  for (const Node& node : inventory_.control_nodes) {
    if (node.path.starts_with("/dev/nvidia-uvm") && !has("compute")) continue;
    if (node.path == "/dev/nvidia-modeset" && !has_screen()) continue;
    add_node(node);
  }
}

// By default EGL and Vulkan enumerate all GPUs of the machine.
void Granter::choose_egl_gpus() {
  grant_.egl_gpus = has_files() && (has("graphics") || has("display")) &&
                    std::ranges::any_of(selected_, [](const Selected& one) {
                      return one.gpu->vendor == Vendor::nvidia;
                    });
  if (grant_.egl_gpus) reason("config", "EGLVisibleDGPUDevices", "the GPUs of this container");
}

// A library is found by each of its names: in the driver's directory, and in the loader's cache.
void Granter::add_library(const DriverFile& file) {
  std::string directory = grant_.directory + (file.elf32 ? "/lib" : "/lib64");
  grant_.files.push_back({FileKind::library, file.host_path, directory + "/" + file.name});
  auto add_name = [&](const std::string& name, const std::string& target,
                      const std::string& entry) {
    if (name != file.name) grant_.links.push_back({directory + "/" + name, target});
    // If two libraries want the same name (libnvidia-nvvm), the first one gets it.
    auto is_taken = [&](const scan::LoaderEntry& one) {
      return one.soname == name && one.flags == file.loader_flags;
    };
    if (std::ranges::any_of(grant_.loader_entries, is_taken)) return;
    grant_.loader_entries.push_back({.soname = name,
                                     .path = directory + "/" + entry,
                                     .flags = file.loader_flags,
                                     .os_version = 0,
                                     .hwcap = 0});
  };
  add_name(file.soname, file.name, file.soname);
  std::string plain = scan::without_number(file.soname);
  if (plain != file.soname && plain != file.name) add_name(plain, file.soname, file.soname);
  if (file.name != file.soname) add_name(file.name, file.name, file.name);
  if (file.soname == "libGLX_nvidia.so.0") {
    // GLVND loads this library if the X server names no vendor.
    const std::string indirect = "libGLX_indirect.so.0";
    add_name(indirect, file.name, indirect);
  }
  bool is_backend = file.soname == kGbmLibrary &&
                    scan::compare_versions(grant_.driver_version, kFirstGbmDriver) >= 0;
  if (!is_backend) return;
  grant_.links.push_back({directory + "/gbm" + std::string(kGbmBackend), "../" + file.soname});
  if (has_screen()) add_gbm(file);
}

// A variable with another directory (GBM_BACKENDS_PATH) would hide the image's own backends.
void Granter::add_gbm(const DriverFile& file) {
  std::set<std::string> known;  // /usr/lib64 may be a link to /usr/lib
  for (const std::string& directory : gbm_directories(file.elf32)) {
    std::string path = options_.real_path(directory) + std::string(kGbmBackend);
    if (!known.insert(path).second) continue;
    if (const UserMount* mount = mount_over(path)) {
      leave_out(path, file.host_path, *mount);
    } else {
      grant_.files.push_back({FileKind::module, file.host_path, path});
    }
  }
}

void Granter::add_file(const DriverFile& file) {
  if (file.kind == FileKind::library) return add_library(file);
  const UserMount* mount = mount_over(file.container_path);
  if (mount != nullptr && file.kind != FileKind::binary) {
    return leave_out(file.container_path, file.host_path, *mount);
  }
  bool hidden = mount != nullptr;
  // In mode `volume` the programs are in the volume, and are mounted from there at their usual
  // places in PATH. In the other modes the driver's directory has links to these places.
  bool inside = file.kind == FileKind::binary && (hidden || grant_.mode == DriverMode::volume);
  std::string in_directory = fmt::format("{}/bin/{}", grant_.directory, file.name);
  grant_.files.push_back({file.kind, file.host_path, inside ? in_directory : file.container_path});
  if (hidden) hidden_.programs.push_back(file.container_path);
  if (inside && !hidden) grant_.volume_programs.push_back({file.container_path, in_directory});
  if (file.kind == FileKind::binary && !inside) {
    // For images with NVIDIA's directory first in PATH.
    grant_.links.push_back({in_directory, file.container_path});
  }
}

void Granter::add_files() {
  grant_.files.reserve(inventory_.files.size());
  for (const DriverFile& file : inventory_.files) {
    if (wanted(file)) grant_file(file);
  }
}

void Granter::grant_file(const DriverFile& file) {
  bool copy = grant_.mode == DriverMode::copy;
  if (copy && file.kind == FileKind::socket) {
    reason("socket", file.container_path, "a socket cannot be copied", false);
  } else if (copy && file.kind == FileKind::directory) {
    reason("directory", file.container_path, "sockets come and go in it, which cannot be copied",
           false);
  } else {
    add_file(file);
  }
}

Result<void> Granter::add_features() {
  ExtraDevices items = TRY(find_extra_devices(request_, inventory_));
  for (const Node& node : items.nodes) add_node(node);
  for (Reason& reason : items.reasons) grant_.reasons.push_back(std::move(reason));
  for (const DriverFile& file : items.files) {
    if (has_files()) grant_file(file);
  }
  return {};
}

// Nothing is created in the user's mounts, and no file in them is hidden.
void Granter::leave_out(const std::string& path, const std::string& host_path,
                        const UserMount& mount) {
  bool is_same = mount.source + path.substr(mount.destination.size()) == host_path;
  reason("file", path, "of the mount at " + mount.destination, is_same);
  if (!is_same) hidden_.files.push_back(path);
}

void Granter::warn_of_hidden() {
  if (!hidden_.programs.empty()) {
    grant_.warnings.push_back("something is mounted over " + quote(hidden_.programs[0]) +
                              ": the driver's programs are in " + quote(grant_.directory + "/bin"));
  }
  if (!hidden_.files.empty()) {
    grant_.warnings.push_back(
        "something is mounted over " + quote(hidden_.files[0]) +
        (hidden_.files.size() == 1 ? "" : fmt::format(" and {} more", hidden_.files.size() - 1)) +
        ": the container has what is there in place of the driver's");
  }
}

// Decides about the libcuda files of the image: which one the program will load, and whether it
// may.
Result<void> Granter::consider_image() {
  if (options_.compat_later) ask_for_compat();
  if (options_.image == nullptr || grant_.mode == DriverMode::none) return {};
  if (grant_.mode == DriverMode::image) return check_image_driver();
  if (!has("compute") && !has("video")) return {};
  bool compat = use_compat();
  for (const scan::ImageLibrary& library : options_.image->libraries) {
    if (library.path.starts_with(grant_.directory + "/")) continue;
    if (compat && library.path.starts_with(options_.image->compat->directory + "/")) continue;
    if (library.before_cache) {
      TRY(shadow(library));
    } else {
      reason("library", library.path,
             "the image's own, found by " + library.why +
                 "; the driver's comes before it in the loader's cache",
             false);
    }
  }
  return {};
}

// Binds the host's file over the image's library: if the library's version differs from the
// module's, every CUDA call fails.
Result<void> Granter::shadow(const scan::ImageLibrary& library) {
  auto ours = std::ranges::find_if(inventory_.files, [](const auto& file) {
    return file.kind == FileKind::library && file.soname == "libcuda.so.1" && !file.elf32;
  });
  if (ours == inventory_.files.end()) return {};
  if (mount_over(library.real_path) != nullptr) {
    return make_error(
        Kind::unsupported,
        fmt::format("{} (by {}) would be loaded in place of the driver's libcuda, and "
                    "lies in a volume",
                    quote(library.path), library.why),
        "--gpu-driver image, or another volume");
  }
  grant_.files.push_back({FileKind::config, ours->host_path, library.real_path});
  reason("library", library.path,
         "the image's own" + (library.version.empty() ? "" : " (" + library.version + ")") +
             ", found by " + library.why + ": the driver's is laid over it");
  return {};
}

bool Granter::use_compat() {
  const scan::DriverFiles& image = *options_.image;
  if (!image.compat) {
    if (!image.no_compat_why.empty()) reason("compat", "libcuda.so.1", image.no_compat_why, false);
    return false;
  }
  std::vector<std::string> brands;
  for (const Selected& selected : selected_) brands.push_back(selected.gpu->brand.value_or(""));
  scan::CompatVerdict verdict = scan::judge_compat(*image.compat, inventory_.driver.module_version,
                                                   inventory_.driver.cuda_version, brands);
  if (verdict.use && !options_.forward_compatibility) {
    verdict = {false, "forward compatibility is switched off by the policy"};
  }
  reason("compat", image.compat->directory, verdict.why, verdict.use);
  if (!verdict.use) return false;
  if (!grant_.loader_entries.empty()) put_compat_first(*image.compat);
  return true;
}

void Granter::ask_for_compat() {
  if (!options_.forward_compatibility || !has_files() || !has("compute")) return;
  leave_to_cache();
  oci::CompatRequest& request = grant_.compat.emplace();
  request.container_root = scan::kCompatDirectory;
  request.host_driver_version = inventory_.driver.module_version;
  request.host_cuda_version = inventory_.driver.cuda_version;
  for (const Selected& selected : selected_) {
    if (selected.gpu->brand) request.brands.push_back(*selected.gpu->brand);
  }
  reason("compat", scan::kCompatDirectory, "the container's first process looks whether it fits");
}

// Puts the package first in the loader's cache, and also in our directory: NVIDIA's images have
// that directory in LD_LIBRARY_PATH, which precedes the cache.
void Granter::put_compat_first(const scan::CompatPackage& compat) {
  scan::put_first(compat, scan::LoaderSettings().machine, grant_.loader_entries);
  const std::string ours = grant_.directory + "/lib64/";
  for (const std::string& name : compat.libraries) {
    std::erase_if(grant_.links, [&](const GrantedLink& link) { return link.path == ours + name; });
    grant_.links.push_back({ours + name, compat.directory + "/" + name});
  }
}

// Like put_compat_first(), for the case that the container's first process decides: our directory
// gets no names of libraries that such a package may replace, so that the loader finds them only in
// its cache.
void Granter::leave_to_cache() {
  constexpr std::string_view kReplaced[] = {"libcuda.so", "libcudadebugger.so", "libnvidia-nvvm",
                                            "libnvidia-ptxjitcompiler.so", "libnvidia-pkcs11"};
  const std::string ours = grant_.directory + "/lib64/";
  auto replaced = [&](std::string_view path) {
    return path.starts_with(ours) && std::ranges::any_of(kReplaced, [&](std::string_view name) {
             return path.substr(ours.size()).starts_with(name);
           });
  };
  for (scan::LoaderEntry& entry : grant_.loader_entries) {
    if (!replaced(entry.path)) continue;
    for (const GrantedLink& link : grant_.links) {
      if (link.path == entry.path) entry.path = ours + link.target;
    }
  }
  std::erase_if(grant_.links, [&](const GrantedLink& link) { return replaced(link.path); });
}

Result<void> Granter::check_image_driver() {
  const std::string& module = inventory_.driver.module_version;
  const auto& libraries = options_.image->libraries;
  if (libraries.empty()) {
    return make_error(Kind::unsupported,
                      "the image has no libcuda.so.1 of its own that its loader finds",
                      "--gpu-driver bind");
  }
  const scan::ImageLibrary& first = libraries[0];
  const auto& compat = options_.image->compat;
  bool newer = compat && first.real_path.starts_with(compat->directory) && use_compat();
  if (first.version != module && !newer) {
    return make_error(
        Kind::unsupported,
        fmt::format("the image's {} (by {}) is {} but the kernel module is {}", quote(first.path),
                    first.why, first.version.empty() ? "of an unknown version" : first.version,
                    module),
        "--gpu-driver bind, or an image with that driver");
  }
  reason("library", first.path, "the image's own, found by " + first.why + ": it will be loaded");
  return {};
}

void Granter::add_environment() {
  std::vector<std::string> names;
  for (const Selected& selected : selected_) names.push_back(name_of(selected));
  if (names.empty()) names.emplace_back("none");
  grant_.env.push_back("NVIDIA_VISIBLE_DEVICES=" + join(names, ","));
  grant_.env.push_back("NVIDIA_DRIVER_CAPABILITIES=" + list(capabilities_));
}

void Granter::add_selection() {
  for (std::string& one : translate_selection(request_, selected_)) {
    reason("variable", one, "the job's value, as the container counts");
    grant_.env.push_back(std::move(one));
  }
  grant_.warnings = stale_selections(request_, selected_);
}

bool Granter::shows(const ProcText& text) const {
  if (!text.gpu) {
    // The right to configure slices and the right to monitor them.
    bool config = text.path.ends_with("/mig/config"), monitor = text.path.ends_with("/mig/monitor");
    return !(config && !request_.features.mig_config) &&
           !(monitor && !request_.features.mig_monitor);
  }
  return std::ranges::any_of(selected_, [&](const Selected& one) {
    if (one.gpu->vendor != Vendor::nvidia || one.gpu->index != *text.gpu) return false;
    return !text.slice || one.slice == nullptr || one.slice->index == *text.slice;
  });
}

void Granter::add_procfs() {
  constexpr std::string_view kModify = "ModifyDeviceFiles: 1";
  for (const ProcText& text : inventory_.proc_texts) {
    if (!shows(text)) {
      reason("proc", "/proc/driver/" + text.path, "its GPU or right was not granted", false);
      continue;
    }
    bool same = !grant_.proc.empty() && grant_.proc.back().path == text.path;
    if (!same) grant_.proc.push_back({text.path, {}});
    grant_.proc.back().text += text.text;
  }
  for (ProcFile& file : grant_.proc) {
    if (file.path != "nvidia/params") continue;
    size_t at = file.text.find(kModify);
    if (at == std::string::npos) continue;
    file.text[at + kModify.size() - 1] = '0';
    grant_.frozen_params = !inventory_.synthetic;
    reason("proc", "/proc/driver/nvidia/params",
           "ModifyDeviceFiles is 0, so that NVML makes no node of another GPU");
  }
}

}  // namespace

Result<Grant> make_grant(const Request& request, const Inventory& inventory,
                         const GrantOptions& options) {
  return Granter(request, inventory, options).run();
}

}  // namespace berth::gpu
