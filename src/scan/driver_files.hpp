// SPDX-License-Identifier: Apache-2.0
// Finds the libcuda.so.1 files of an image, in the order in which its loader finds them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "scan/elf.hpp"
#include "scan/loader.hpp"

namespace berth::scan {

/// A root file system that is not trusted. Links are resolved inside it.
class Tree {
 public:
  struct File {
    std::string path;  ///< absolute, without links
    uint64_t size = 0;
  };
  virtual ~Tree() = default;
  /// The regular file at `path`; nothing for other types.  Errors: io.
  virtual Result<std::optional<File>> find_file(const std::string& path) const = 0;
  /// The names in the directory `path`; none if it is not a directory.  Errors: io.
  virtual Result<std::vector<std::string>> list(const std::string& path) const = 0;
  /// Up to `length` bytes of a file from find_file().  Errors: io.
  virtual Result<std::string> read(const File& file, uint64_t offset, size_t length) const = 0;
};

/// A libcuda.so.1 of the image.
struct ImageLibrary {
  std::string path;       ///< the loader's path: "/opt/lib/libcuda.so.1"
  std::string real_path;  ///< without links
  std::string version;    ///< "570.133.20"; empty: neither the file name nor the directory shows
                          ///< the version
  std::string why;        ///< "LD_LIBRARY_PATH", "RPATH of /app", "its loader cache", …
  /// The loader finds it before it uses its cache, so entries in the cache cannot precede it.
  bool before_cache = false;
  bool operator==(const ImageLibrary&) const = default;
};

/// NVIDIA's package of newer user-land libraries for an older kernel module.
struct CompatPackage {
  std::string directory;  ///< "/usr/local/cuda/compat"
  std::string version;    ///< the version of its libcuda: "575.57.08"
  bool has_note = false;  ///< libcuda has the section .note.cuda.fwd_compatibility
  std::string cuda_version;
  std::vector<uint32_t> drivers;       ///< branches of compatible kernel modules
  std::vector<std::string> libraries;  ///< names in the directory that are SONAMEs: "libcuda.so.1"
  bool operator==(const CompatPackage&) const = default;
};

struct DriverFiles {
  std::vector<ImageLibrary> libraries;  ///< in the loader's order, without duplicates
  std::optional<CompatPackage> compat;
  std::string no_compat_why;  ///< why an existing compat directory is not used
  bool musl = false;          ///< the image has musl's loader
  bool operator==(const DriverFiles&) const = default;
};

/// The input of the loader that is not in the image.
struct LoaderSettings {
  std::string library_path;                      ///< LD_LIBRARY_PATH
  std::string program;                           ///< absolute path of the command; empty: unknown
  std::string ours = "/usr/local/nvidia/lib64";  ///< the host's driver libraries in the container
#if defined(__x86_64__)
  uint16_t machine = kMachineX86_64;
#else
  uint16_t machine = kMachineAarch64;
#endif
};

void fields(auto& v, ImageLibrary& l) {
  v.required("path", l.path);
  v.required("real_path", l.real_path);
  v.always("version", l.version);
  v.required("why", l.why);
  v.required("before_cache", l.before_cache);
}

void fields(auto& v, CompatPackage& c) {
  v.required("directory", c.directory);
  v.required("version", c.version);
  v.required("has_note", c.has_note);
  v.always("cuda_version", c.cuda_version);
  v.always("drivers", c.drivers);
  v.always("libraries", c.libraries);
}

void fields(auto& v, DriverFiles& f) {
  v.required("libraries", f.libraries);
  v.optional("compat", f.compat);
  v.always("no_compat_why", f.no_compat_why);
  v.required("musl", f.musl);
}

/// Examines `tree`. All numbers of files, names and bytes are bounded; unreadable files count as
/// missing. Errors: io (of the tree only).
Result<DriverFiles> find_driver_files(const Tree& tree, const LoaderSettings& settings);

/// NVIDIA's package in one directory of a tree.
struct CompatLook {
  std::optional<CompatPackage> package;
  std::string why_not;  ///< why the directory, which exists, is not such a package
};

inline constexpr const char* kCompatDirectory = "/usr/local/cuda/compat";

/// Looks for the package in `directory`, for libraries of `machine`. Errors: io (of the tree only).
Result<CompatLook> find_compat(const Tree& tree, const std::string& directory, uint16_t machine);

/// Makes the loader find the package's libraries instead of others with the same SONAMEs.
void put_first(const CompatPackage& compat, uint16_t machine, std::vector<LoaderEntry>& entries);

struct CompatVerdict {
  bool use = false;
  std::string why;
};
/// Whether to use the libraries of `compat` with this kernel module, and why or why not. `cuda` is
/// the CUDA version of the host's driver, `brands` the brands of the GPUs from NVML. Both are empty
/// if unknown.
/// Source: NVIDIA's documentation of CUDA forward compatibility; the decision of nvidia-cdi-hook.
CompatVerdict judge_compat(const CompatPackage& compat, const std::string& module_version,
                           const std::string& cuda, const std::vector<std::string>& brands);

/// The order of dotted numbers: <0, 0, >0.
int compare_versions(std::string_view left, std::string_view right);

}  // namespace berth::scan
