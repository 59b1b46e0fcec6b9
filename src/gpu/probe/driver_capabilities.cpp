// SPDX-License-Identifier: Apache-2.0
#include "gpu/probe/driver_capabilities.hpp"

#include <algorithm>
#include <array>

#include "base/text.hpp"

namespace berth::gpu {
namespace {

using Version = LibraryName::Version;

// Which capability needs which library: libnvidia-container src/nvc_info.c, extended by the files
// of newer drivers. A list instead of "all files with the driver's version" saves mounts: a
// container without "graphics" does not need libnvidia-eglcore.
constexpr std::array kLibraries = {
    LibraryName{"libnvidia-ml", "utility"},
    LibraryName{"libnvidia-cfg", "utility"},
    LibraryName{"libnvidia-nscq", "utility"},
    LibraryName{"libnvidia-sandboxutils", "utility"},
    LibraryName{"libcuda", "compute,video"},
    LibraryName{"libcudadebugger", "compute,video"},
    LibraryName{"libnvcuextend", "compute,video", Version::own},
    LibraryName{"libnvidia-opencl", "compute"},
    LibraryName{"libnvidia-gpucomp", "compute,video,graphics,display"},
    LibraryName{"libnvidia-ptxjitcompiler", "compute,video"},
    LibraryName{"libnvidia-fatbinaryloader", "compute,video"},
    LibraryName{"libnvidia-allocator", "compute,video,graphics,display"},
    LibraryName{"libnvidia-compiler", "compute"},
    LibraryName{"libnvidia-pkcs11", "compute"},
    LibraryName{"libnvidia-pkcs11-openssl3", "compute"},
    LibraryName{"libnvidia-nvvm", "compute,video", Version::either},
    LibraryName{"libnvidia-nvvm70", "compute,video", Version::own},
    LibraryName{"libnvidia-tileiras", "compute"},
    LibraryName{"libvdpau_nvidia", "video"},
    LibraryName{"libnvidia-encode", "video"},
    LibraryName{"libnvidia-opticalflow", "video"},
    LibraryName{"libnvcuvid", "video"},
    LibraryName{"libnvidia-eglcore", "graphics,display"},
    LibraryName{"libnvidia-glcore", "graphics,display"},
    LibraryName{"libnvidia-tls", "graphics,display"},
    LibraryName{"libnvidia-glsi", "graphics,display"},
    LibraryName{"libnvidia-fbc", "graphics,display"},
    LibraryName{"libnvidia-ifr", "graphics,display"},
    LibraryName{"libnvidia-rtcore", "graphics,display"},
    LibraryName{"libnvoptix", "graphics,display"},
    LibraryName{"libGLX_nvidia", "graphics,display"},
    LibraryName{"libEGL_nvidia", "graphics,display"},
    LibraryName{"libGLESv2_nvidia", "graphics,display"},
    LibraryName{"libGLESv1_CM_nvidia", "graphics,display"},
    LibraryName{"libnvidia-glvkspirv", "graphics,display"},
    LibraryName{"libnvidia-cbl", "graphics,display"},
    LibraryName{"libnvidia-present", "graphics,display"},
    LibraryName{"libnvidia-api", "graphics,display", Version::own},
    LibraryName{"libnvidia-vksc-core", "graphics,display"},
    LibraryName{"libnvidia-vulkan-producer", "graphics,display"},
    LibraryName{"libnvidia-wayland-client", "graphics,display"},
    LibraryName{"libnvidia-egl-gbm", "graphics,display", Version::own},
    LibraryName{"libnvidia-egl-wayland", "graphics,display", Version::own},
    LibraryName{"libnvidia-egl-wayland2", "graphics,display", Version::own},
    LibraryName{"libnvidia-egl-xcb", "graphics,display", Version::own},
    LibraryName{"libnvidia-egl-xlib", "graphics,display", Version::own},
    LibraryName{"libGL", "graphics,display", Version::driver, true},
    LibraryName{"libEGL", "graphics,display", Version::driver, true},
    LibraryName{"libGLESv1_CM", "graphics,display", Version::driver, true},
    LibraryName{"libGLESv2", "graphics,display", Version::driver, true},
    LibraryName{"libnvidia-ngx", "ngx"},
};

}  // namespace

std::vector<std::string> words_of(std::string_view comma_list) {
  std::vector<std::string> out;
  for (std::string_view word : split(comma_list, ',')) {
    if (!word.empty()) out.emplace_back(word);
  }
  return out;
}

const LibraryName* find_library_name(std::string_view base) {
  for (const LibraryName& library : kLibraries) {
    if (library.base == base) return &library;
  }
  return nullptr;
}

std::vector<std::string> library_capabilities(std::string_view base) {
  const LibraryName* library = find_library_name(base);
  return library == nullptr ? std::vector<std::string>() : words_of(library->capabilities);
}

std::string_view driver_version_of(std::string_view file_name) {
  size_t dot = file_name.find(".so.");
  if (dot == std::string_view::npos) return {};
  std::string_view version = file_name.substr(dot + 4);
  // "570.133.20", "390.157", but not the "1" of a SONAME or the "4.0.0" of libnvidia-nvvm.
  bool numbers = version.find_first_not_of("0123456789.") == std::string_view::npos;
  auto parts = split(version, '.');
  bool whole = std::ranges::none_of(parts, [](auto part) { return part.empty(); });
  bool is_drivers = parts.size() >= 2 && parts[0].size() >= 3;
  return numbers && whole && is_drivers ? version : std::string_view();
}

// nvidia-modprobe (setuid) and nvidia-settings are left out: no container needs them.
const std::vector<NamedFile>& program_names() {
  static const std::vector<NamedFile> kPrograms = {
      {"nvidia-smi", "/usr/bin", "utility"},
      {"nvidia-debugdump", "/usr/bin", "utility"},
      {"nvidia-persistenced", "/usr/bin", "utility"},
      {"nv-fabricmanager", "/usr/bin", "utility"},
      {"nvidia-imex", "/usr/bin", "utility"},
      {"nvidia-imex-ctl", "/usr/bin", "utility"},
      {"nvidia-cuda-mps-control", "/usr/bin", "compute"},
      {"nvidia-cuda-mps-server", "/usr/bin", "compute"},
      {"nvidia-xconfig", "/usr/bin", "graphics,display"},
  };
  return kPrograms;
}

const std::vector<NamedFile>& socket_names() {
  static const std::vector<NamedFile> kSockets = {
      {"/run/nvidia-persistenced/socket", "/run/nvidia-persistenced/socket", "utility"},
      {"/run/nvidia-fabricmanager/socket", "/run/nvidia-fabricmanager/socket", "utility"},
  };
  return kSockets;
}

const std::vector<NamedFile>& service_directories() {
  static const std::vector<NamedFile> kDirectories = {
      {"/tmp/nvidia-mps", "/tmp/nvidia-mps", "compute"},  // CUDA's default
  };
  return kDirectories;
}

const std::vector<NamedFile>& config_names() {
  static const std::vector<NamedFile> kConfigs = {
      {"OpenCL/vendors/nvidia.icd", "/etc", "compute"},
      {"vulkan/icd.d/nvidia_icd.json", "/etc", "graphics,display"},
      {"vulkan/icd.d/nvidia_icd.x86_64.json", "/etc", "graphics,display"},
      {"vulkan/icd.d/nvidia_icd.aarch64.json", "/etc", "graphics,display"},
      {"vulkan/icd.d/nvidia_layers.json", "/etc", "graphics,display"},
      {"vulkan/implicit_layer.d/nvidia_layers.json", "/etc", "graphics,display"},
      {"glvnd/egl_vendor.d/10_nvidia.json", "/usr/share", "graphics,display"},
      {"egl/egl_external_platform.d/15_nvidia_gbm.json", "/usr/share", "graphics,display"},
      {"egl/egl_external_platform.d/10_nvidia_wayland.json", "/usr/share", "graphics,display"},
      {"egl/egl_external_platform.d/09_nvidia_wayland2.json", "/usr/share", "graphics,display"},
      {"egl/egl_external_platform.d/20_nvidia_xcb.json", "/usr/share", "graphics,display"},
      {"egl/egl_external_platform.d/20_nvidia_xlib.json", "/usr/share", "graphics,display"},
      {"nvidia/nvoptix.bin", "/usr/share", "graphics,display"},
      {"nvidia/nvidia-application-profiles-VERSION-rc", "/usr/share",
       "compute,video,graphics,display"},
      {"nvidia/nvidia-application-profiles-rc", "/usr/share", "compute,video,graphics,display"},
      {"X11/xorg.conf.d/10-nvidia.conf", "/usr/share", "graphics,display"},
      {"X11/xorg.conf.d/nvidia-drm-outputclass.conf", "/usr/share", "graphics,display"},
  };
  return kConfigs;
}

}  // namespace berth::gpu
