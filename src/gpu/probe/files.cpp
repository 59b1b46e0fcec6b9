// SPDX-License-Identifier: Apache-2.0
#include "gpu/probe/files.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <set>

#include "base/text.hpp"
#include "scan/elf.hpp"
#include "scan/loader_cache.hpp"
#include "sys/file.hpp"
#include "sys/io_at.hpp"

namespace berth::gpu {
namespace {

#if defined(__x86_64__)
constexpr uint16_t kMachine = scan::kMachineX86_64, kMachine32 = scan::kMachine386;
constexpr std::string_view kTriplet = "x86_64-linux-gnu", kTriplet32 = "i386-linux-gnu";
#elif defined(__aarch64__)
constexpr uint16_t kMachine = scan::kMachineAarch64, kMachine32 = scan::kMachineArm;
constexpr std::string_view kTriplet = "aarch64-linux-gnu", kTriplet32 = "arm-linux-gnueabihf";
#else
#error "no NVIDIA driver exists for this architecture"
#endif

struct Library {
  std::string_view base;
  std::string_view capabilities;  ///< comma separated
  bool own_version = false;       ///< its file name does not carry the driver's version
};

// Which program needs which library: libnvidia-container src/nvc_info.c, widened by what newer
// drivers ship. A list, not "all that carries the version": fewer mounts, and a container without
// "graphics" has no business with libnvidia-eglcore.
constexpr std::array kLibraries = {
    Library{"libnvidia-ml", "utility"},
    Library{"libnvidia-cfg", "utility"},
    Library{"libnvidia-nscq", "utility"},
    Library{"libnvidia-sandboxutils", "utility"},
    Library{"libcuda", "compute,video"},
    Library{"libcudadebugger", "compute,video"},
    Library{"libnvidia-opencl", "compute"},
    Library{"libnvidia-gpucomp", "compute,video,graphics,display"},
    Library{"libnvidia-ptxjitcompiler", "compute,video"},
    Library{"libnvidia-fatbinaryloader", "compute,video"},
    Library{"libnvidia-allocator", "compute,video,graphics,display"},
    Library{"libnvidia-compiler", "compute"},
    Library{"libnvidia-pkcs11", "compute"},
    Library{"libnvidia-pkcs11-openssl3", "compute"},
    Library{"libnvidia-nvvm", "compute,video"},
    Library{"libnvidia-nvvm70", "compute,video"},
    Library{"libnvidia-tileiras", "compute"},
    Library{"libvdpau_nvidia", "video"},
    Library{"libnvidia-encode", "video"},
    Library{"libnvidia-opticalflow", "video"},
    Library{"libnvcuvid", "video"},
    Library{"libnvidia-eglcore", "graphics,display"},
    Library{"libnvidia-glcore", "graphics,display"},
    Library{"libnvidia-tls", "graphics,display"},
    Library{"libnvidia-glsi", "graphics,display"},
    Library{"libnvidia-fbc", "graphics,display"},
    Library{"libnvidia-rtcore", "graphics,display"},
    Library{"libnvoptix", "graphics,display"},
    Library{"libGLX_nvidia", "graphics,display"},
    Library{"libEGL_nvidia", "graphics,display"},
    Library{"libGLESv2_nvidia", "graphics,display"},
    Library{"libGLESv1_CM_nvidia", "graphics,display"},
    Library{"libnvidia-glvkspirv", "graphics,display"},
    Library{"libnvidia-cbl", "graphics,display"},
    Library{"libnvidia-present", "graphics,display"},
    Library{"libnvidia-vulkan-producer", "graphics,display"},
    Library{"libnvidia-egl-gbm", "graphics,display", true},
    Library{"libnvidia-egl-wayland", "graphics,display", true},
    Library{"libnvidia-egl-wayland2", "graphics,display", true},
    Library{"libnvidia-egl-xcb", "graphics,display", true},
    Library{"libnvidia-egl-xlib", "graphics,display", true},
    Library{"libnvidia-ngx", "ngx"},
};

struct Program {
  std::string_view name;
  std::string_view capability;
};
// Not nvidia-modprobe (setuid) nor nvidia-settings: no container needs them.
constexpr std::array kPrograms = {
    Program{"nvidia-smi", "utility"},
    Program{"nvidia-debugdump", "utility"},
    Program{"nvidia-persistenced", "utility"},
    Program{"nv-fabricmanager", "utility"},
    Program{"nvidia-cuda-mps-control", "compute"},
    Program{"nvidia-cuda-mps-server", "compute"},
};
constexpr std::array<std::string_view, 8> kProgramDirectories = {"/usr/bin",
                                                                 "/usr/sbin",
                                                                 "/usr/local/bin",
                                                                 "/usr/local/nvidia/bin",
                                                                 "/run/current-system/sw/bin",
                                                                 "/opt/bin",
                                                                 "/home/kubernetes/bin/nvidia/bin",
                                                                 "/bin"};

constexpr std::array kSockets = {Program{"/run/nvidia-persistenced/socket", "utility"},
                                 Program{"/run/nvidia-fabricmanager/socket", "utility"}};

struct Config {
  std::string_view name;    ///< below one of kConfigDirectories
  std::string_view target;  ///< directory in the container
  std::string_view capabilities;
};
constexpr std::array kConfigs = {
    Config{"OpenCL/vendors/nvidia.icd", "/etc", "compute"},
    Config{"vulkan/icd.d/nvidia_icd.json", "/etc", "graphics,display"},
    Config{"vulkan/icd.d/nvidia_icd.x86_64.json", "/etc", "graphics,display"},
    Config{"vulkan/icd.d/nvidia_icd.aarch64.json", "/etc", "graphics,display"},
    Config{"vulkan/implicit_layer.d/nvidia_layers.json", "/etc", "graphics,display"},
    Config{"glvnd/egl_vendor.d/10_nvidia.json", "/usr/share", "graphics,display"},
    Config{"egl/egl_external_platform.d/15_nvidia_gbm.json", "/usr/share", "graphics,display"},
    Config{"egl/egl_external_platform.d/10_nvidia_wayland.json", "/usr/share", "graphics,display"},
    Config{"egl/egl_external_platform.d/09_nvidia_wayland2.json", "/usr/share", "graphics,display"},
    Config{"egl/egl_external_platform.d/20_nvidia_xcb.json", "/usr/share", "graphics,display"},
    Config{"egl/egl_external_platform.d/20_nvidia_xlib.json", "/usr/share", "graphics,display"},
    Config{"nvidia/nvoptix.bin", "/usr/share", "graphics,display"},
};
constexpr std::array<std::string_view, 4> kConfigDirectories = {
    "/etc", "/usr/local/share", "/usr/share", "/usr/local/nvidia/share"};

constexpr size_t kMaxCacheBytes = size_t{16} << 20;
constexpr size_t kMaxConfBytes = size_t{1} << 20;

std::vector<std::string> words_of(std::string_view comma_list) {
  std::vector<std::string> out;
  for (std::string_view word : split(comma_list, ',')) out.emplace_back(word);
  return out;
}

const Library* find_library(std::string_view base) {
  for (const Library& library : kLibraries) {
    if (library.base == base) return &library;
  }
  return nullptr;
}

std::vector<uint64_t> version_numbers(std::string_view version) {
  std::vector<uint64_t> out;
  for (std::string_view part : split(version, '.')) out.push_back(parse_u64(part).value_or(0));
  return out;
}

// A file with a name of the driver, not opened yet.
struct Candidate {
  const Library* library = nullptr;
  std::string directory;  ///< resolved inside the root
  std::string name;
  std::string version;  ///< empty for a library with a version of its own
};

class Search {
 public:
  Search(const DriverRoot& root, Inventory& inventory) : root_(root), inventory_(inventory) {}

  Result<void> run() {
    TRY(collect_directories());
    for (const std::string& directory : directories_) TRY(collect_candidates(directory));
    choose_version();
    take_libraries();
    take_programs();
    take_sockets();
    take_configs();
    return {};
  }

  Result<std::vector<std::string>> directories() {
    TRY(collect_directories());
    return std::move(directories_);
  }

 private:
  Result<void> collect_directories();
  Result<void> read_loader_cache();
  Result<void> read_loader_conf(const std::string& path, int depth);
  Result<void> collect_candidates(const std::string& directory);
  void choose_version();
  void take_libraries();
  bool take_library(const Candidate& candidate);
  void take_programs();
  void take_sockets();
  void take_configs();
  std::optional<DriverFile> open_library(const Candidate& candidate);
  std::optional<std::string> find_file(std::string_view directory, std::string_view name);
  void add_file(FileKind kind, std::string host_path, std::string_view name,
                std::string container_path, std::string_view capabilities) {
    DriverFile file;
    file.kind = kind;
    file.host_path = std::move(host_path);
    file.name = name;
    file.container_path = std::move(container_path);
    file.capabilities = words_of(capabilities);
    inventory_.files.push_back(std::move(file));
  }
  void add_directory(std::string path) {
    if (path.starts_with('/')) directories_.push_back(std::move(path));
  }

  const DriverRoot& root_;
  Inventory& inventory_;
  std::vector<std::string> directories_;
  std::set<std::string> seen_;  ///< resolved directories
  std::vector<Candidate> candidates_;
};

Result<void> Search::collect_directories() {
  TRY(read_loader_cache());
  TRY(read_loader_conf("/etc/ld.so.conf", 0));
  for (std::string_view triplet : {kTriplet, kTriplet32}) {
    add_directory(fmt::format("/usr/lib/{}", triplet));                 // Debian, Ubuntu
    add_directory(fmt::format("/usr/lib/{}/nvidia/current", triplet));  // Debian's own packages
    add_directory(fmt::format("/lib/{}", triplet));
  }
  for (std::string_view directory :
       {"/usr/lib64",  // Fedora, RHEL, SUSE, Gentoo
        "/usr/lib",    // Arch; 32-bit elsewhere
        "/usr/lib32", "/usr/lib64/nvidia", "/usr/lib/nvidia", "/lib64", "/lib",
        "/run/opengl-driver/lib",  // NixOS, Guix
        "/run/opengl-driver-32/lib", "/usr/local/nvidia/lib64",
        "/usr/local/nvidia/lib",              // inside another GPU container
        "/home/kubernetes/bin/nvidia/lib64",  // Container-Optimized OS
        "/x86_64-bottlerocket-linux-gnu/sys-root/usr/lib",
        "/aarch64-bottlerocket-linux-gnu/sys-root/usr/lib",
        "/usr/local/glibc/usr/lib",  // Talos
        "/opt/nvidia/lib64", "/"}) {
    add_directory(std::string(directory));
  }
  return {};
}

// Directories that the root's loader finds libcuda or NVML in.
Result<void> Search::read_loader_cache() {
  std::string bytes = TRY(root_.read_file("/etc/ld.so.cache", kMaxCacheBytes));
  if (bytes.empty()) return {};
  auto cache = scan::read_loader_cache(bytes);
  if (!cache.ok()) {
    inventory_.problems.push_back(to_line(cache.error()) + ", ignoring it");
    return {};
  }
  for (const scan::LoaderEntry& entry : cache->entries) {
    if (!entry.soname.starts_with("libcuda.so") && !entry.soname.starts_with("libnvidia-ml.so"))
      continue;
    add_directory(entry.path.substr(0, entry.path.rfind('/')));
  }
  return {};
}

// ldconfig(8): one directory a line, "include PATTERN" with the pattern in the last component.
Result<void> Search::read_loader_conf(const std::string& path, int depth) {
  std::string text = TRY(root_.read_file(path, kMaxConfBytes));
  for (std::string_view line : split(text, '\n')) {
    line = trim(line.substr(0, line.find('#')));
    if (line.starts_with('/')) add_directory(std::string(line));
    auto words = split_blank(line);
    if (words.size() != 2 || words[0] != "include" || depth > 0) continue;
    std::string_view pattern = words[1];
    size_t slash = pattern.rfind('/');
    std::string directory(pattern.substr(0, slash == std::string_view::npos ? 0 : slash));
    if (!directory.starts_with('/')) directory = "/etc/" + directory;
    auto found = root_.find(directory, O_RDONLY | O_DIRECTORY);
    if (!found) continue;
    for (const std::string& name : TRY(sys::list_directory(found->fd, "."))) {
      if (name.ends_with(".conf")) TRY(read_loader_conf(directory + "/" + name, depth + 1));
    }
  }
  return {};
}

Result<void> Search::collect_candidates(const std::string& directory) {
  for (const char* below : {"", "/vdpau"}) {
    auto found = root_.find(directory + below, O_RDONLY | O_DIRECTORY);
    if (!found || !seen_.insert(found->host_path).second) continue;
    for (std::string& name : TRY(sys::list_directory(found->fd, "."))) {
      size_t dot = name.find(".so.");
      if (dot == std::string::npos) continue;
      const Library* library = find_library(std::string_view(name).substr(0, dot));
      if (library == nullptr) continue;
      std::string version(driver_version_of(name));
      if (version.empty()) continue;  // a link by SONAME
      if (library->own_version) version.clear();
      candidates_.push_back({library, directory + below, std::move(name), std::move(version)});
    }
  }
  return {};
}

// The version of the loaded module when its libcuda (or NVML) is there, else the newest on disk.
void Search::choose_version() {
  std::string newest;
  for (const Candidate& candidate : candidates_) {
    if (candidate.library->base != "libcuda" && candidate.library->base != "libnvidia-ml") continue;
    auto file = open_library(candidate);
    if (!file || file->elf32) continue;
    if (candidate.version == inventory_.driver.module_version) {
      inventory_.driver.library_version = candidate.version;
      return;
    }
    if (newest.empty() || version_numbers(candidate.version) > version_numbers(newest)) {
      newest = candidate.version;
    }
  }
  inventory_.driver.library_version = newest;
}

// The first directory wins for each library and class, as it does for the loader.
void Search::take_libraries() {
  std::set<std::string> directories;  // that hold files of the version
  for (const Candidate& candidate : candidates_) {
    if (candidate.library->own_version || candidate.version != inventory_.driver.library_version)
      continue;
    if (take_library(candidate)) directories.insert(candidate.directory);
  }
  for (const Candidate& candidate : candidates_) {
    if (candidate.library->own_version && directories.contains(candidate.directory)) {
      take_library(candidate);
    }
  }
}

bool Search::take_library(const Candidate& candidate) {
  auto file = open_library(candidate);
  if (!file) return false;
  for (const DriverFile& known : inventory_.files) {
    if (known.soname == file->soname && known.loader_flags == file->loader_flags) return false;
  }
  inventory_.files.push_back(std::move(*file));
  return true;
}

std::optional<DriverFile> Search::open_library(const Candidate& candidate) {
  auto found = root_.find(candidate.directory + "/" + candidate.name, O_RDONLY | O_NONBLOCK);
  if (!found || !S_ISREG(found->info.st_mode)) return std::nullopt;
  auto elf = scan::read_elf([&](uint64_t offset, size_t length) {
    return sys::read_at(found->fd, offset, length, found->host_path);
  });
  if (!elf.ok()) {
    std::string text =
        fmt::format("{}: {}, ignoring it", quoted(found->host_path), to_line(elf.error()));
    auto& problems = inventory_.problems;
    if (std::find(problems.begin(), problems.end(), text) == problems.end())
      problems.push_back(text);
    return std::nullopt;
  }
  bool native = elf->elf_class == scan::ElfClass::elf64 && elf->machine == kMachine;
  bool twin = elf->elf_class == scan::ElfClass::elf32 && elf->machine == kMachine32;
  if (!native && !twin) return std::nullopt;
  DriverFile file;
  file.kind = FileKind::library;
  file.host_path = found->host_path;
  file.name = candidate.name;
  file.soname = elf->soname.empty() ? candidate.name : elf->soname;
  file.loader_flags = scan::loader_flags(elf->elf_class, elf->machine).value_or(0);
  file.elf32 = twin;
  file.capabilities = words_of(candidate.library->capabilities);
  // A SONAME becomes the name of a link in the container's library directory.
  if (file.soname.find('/') != std::string::npos) return std::nullopt;
  return file;
}

std::optional<std::string> Search::find_file(std::string_view directory, std::string_view name) {
  auto found = root_.find(fmt::format("{}/{}", directory, name), O_PATH);
  if (!found || !S_ISREG(found->info.st_mode)) return std::nullopt;
  return found->host_path;
}

void Search::take_programs() {
  for (const Program& program : kPrograms) {
    for (std::string_view directory : kProgramDirectories) {
      auto path = find_file(directory, program.name);
      if (!path) continue;
      add_file(FileKind::binary, *path, program.name, fmt::format("/usr/bin/{}", program.name),
               program.capability);
      break;
    }
  }
}

void Search::take_sockets() {
  for (const Program& socket : kSockets) {
    auto found = root_.find(std::string(socket.name), O_PATH);
    if (!found || !S_ISSOCK(found->info.st_mode)) continue;
    add_file(FileKind::socket, found->host_path, "socket", std::string(socket.name),
             socket.capability);
  }
}

void Search::take_configs() {
  for (const Config& config : kConfigs) {
    for (std::string_view directory : kConfigDirectories) {
      auto path = find_file(directory, config.name);
      if (!path) continue;
      add_file(FileKind::config, *path, config.name.substr(config.name.rfind('/') + 1),
               fmt::format("{}/{}", config.target, config.name), config.capabilities);
      break;
    }
  }
}

}  // namespace

std::vector<std::string> library_capabilities(std::string_view base) {
  const Library* library = find_library(base);
  return library == nullptr ? std::vector<std::string>() : words_of(library->capabilities);
}

std::string_view driver_version_of(std::string_view file_name) {
  size_t dot = file_name.find(".so.");
  if (dot == std::string_view::npos) return {};
  std::string_view version = file_name.substr(dot + 4);
  // "570.133.20", "535.54.03", "390.157": at least two numbers, unlike the "1" of a SONAME.
  bool numbers = version.find_first_not_of("0123456789.") == std::string_view::npos;
  auto parts = split(version, '.');
  bool whole = std::none_of(parts.begin(), parts.end(), [](auto part) { return part.empty(); });
  return numbers && whole && parts.size() >= 2 ? version : std::string_view();
}

Result<void> read_driver_files(const DriverRoot& root, Inventory& inventory) {
  return Search(root, inventory).run();
}

Result<std::vector<std::string>> searched_directories(const DriverRoot& root) {
  Inventory unused;
  auto all = TRY(Search(root, unused).directories());
  std::vector<std::string> once;
  for (std::string& directory : all) {
    if (std::find(once.begin(), once.end(), directory) == once.end()) {
      once.push_back(std::move(directory));
    }
  }
  return once;
}

}  // namespace berth::gpu
