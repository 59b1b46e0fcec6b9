// SPDX-License-Identifier: Apache-2.0
// Facts about the files of an image: per file for each layer, and combined for an image. Plain
// structs; the tables at the end are their JSON.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <type_traits>
#include <vector>

#include "base/names.hpp"

namespace berth::facts {

/// Increased when the facts about the same file would differ; facts of older versions are computed
/// again.
inline constexpr uint32_t kVersion = 2;

/// GPU code inside a file, or in a file of its own.
struct GpuCode {
  /// sass: for NVIDIA GPUs of `arch`. ptx: the driver compiles it at the first start. ir: NVVM or
  /// LTO code, which a program has to link itself. gfx: for AMD GPUs.
  enum class Kind { sass, ptx, ir, gfx };
  Kind kind = Kind::sass;
  std::string arch;  ///< "90", "90a", "100f"; gfx: "gfx942:sramecc+:xnack-"
  std::string isa;   ///< ptx: version of the PTX language, "8.7"; else empty
  auto operator<=>(const GpuCode&) const = default;
};
constexpr EnumNames<GpuCode::Kind, 4> names_of(std::type_identity<GpuCode::Kind>) {
  return {{{GpuCode::Kind::sass, "sass"},
           {GpuCode::Kind::ptx, "ptx"},
           {GpuCode::Kind::ir, "ir"},
           {GpuCode::Kind::gfx, "gfx"}}};
}

/// The evidence for an x86-64 level (x86-64 psABI): 1 baseline, 2 … 4; 0: unknown.
struct IsaNeed {
  uint32_t level = 0;
  /// "note": the loader refuses a processor of a lower level. "go": GOAMD64, which the program
  /// checks at start. "instructions": found in code that always runs.
  std::string source;
  auto operator<=>(const IsaNeed&) const = default;
};

/// An ELF file, or one with GPU code: PTX, a fat binary, a bundle of code objects, an archive of
/// object files.
struct FileFacts {
  std::string path;         ///< in the layer, without links and without a leading '/'
  std::string machine;      ///< image-spec name: "amd64", "arm64", "386"; else "elf:<n>", which is
                            ///< "elf:190" for NVIDIA's code that is no ELF file; "": a bundle
  bool program = false;     ///< the kernel can execute it
  std::string interpreter;  ///< "/lib64/ld-linux-x86-64.so.2"; empty: static, or a library
  std::string soname;
  std::vector<std::string> needed;
  std::string rpath, runpath;
  IsaNeed isa;
  /// The highest version that it requires of each family: {"GLIBC", "2.34"}, {"GLIBCXX", "3.4.30"}.
  std::map<std::string, std::string> needs;
  std::map<std::string, std::string> offers;  ///< the highest that it defines of each family
  std::vector<GpuCode> gpu_code;              ///< that it runs; sorted, without duplicates
  /// Its other GPU code: inputs of a linker, which do not show where it runs.
  std::vector<GpuCode> linker_code;
  std::string cuda;  ///< version of the compiler of `gpu_code`: "12.4", "13"; empty: unknown
  /// Some members of its fat binaries are compressed with zstd, which old drivers cannot read.
  bool zstd_code = false;
  auto operator<=>(const FileFacts&) const = default;
};

/// The facts of one layer.
struct LayerFacts {
  uint32_t version = kVersion;
  std::vector<FileFacts> files;     ///< sorted by path
  std::vector<std::string> unread;  ///< paths of invalid files, at most kMaxUnread
  uint64_t files_left_out = 0;      ///< number of files beyond kMaxFiles
};
inline constexpr size_t kMaxFiles = 100'000, kMaxUnread = 100;

/// A set of code that one or more files of an image contain.
struct GpuCodeSet {
  std::vector<GpuCode> code;  ///< sorted, without duplicates
  bool zstd = false;
  uint64_t files = 0;
  std::string example;    ///< "/opt/app/libkernels.so"
  bool main = false;      ///< one of the files is the image's own command, or is loaded by it
  std::string cuda = {};  ///< version of its compiler, "12.4", or of the runtime that the files
                          ///< need, "12"; empty: unknown
};

/// A required processor level, and the files that require it.
struct CpuNeed {
  IsaNeed isa;
  uint64_t files = 0;
  std::string example;
  bool main = false;
};

/// A file that requires a version that the image does not have.
struct Unmet {
  std::string path;
  std::string version;  ///< "GLIBC_2.38"
  bool main = false;
};

struct MpiLibrary {
  std::string path;
  std::string family;  ///< of scan::mpi_family(): "mpich", "openmpi", "mpi-abi"
  std::string soname;  ///< "libmpi.so.12"
};

/// The facts of an image as a container sees it.
struct ImageFacts {
  uint32_t version = kVersion;
  std::string architecture;  ///< of the main program; empty: unknown
  std::string program;       ///< "/usr/bin/python3.11", from entrypoint or command; empty: not
                             ///< found
  bool is_static = false;    ///< `program` needs no loader
  std::vector<CpuNeed> cpu;  ///< needs above the baseline, highest first
  std::vector<std::string> hwcaps;  ///< levels with glibc-hwcaps libraries: "x86-64-v3"
  std::string glibc;                ///< "2.36"; empty: none, or musl
  std::string libstdcxx;            ///< "3.4.30"
  bool musl = false;
  std::vector<Unmet> unmet;  ///< at most 100
  std::vector<GpuCodeSet> gpu_code;
  /// GPU code for linkers: in static libraries and object files, and left over in programs. It
  /// counts for no verdict.
  std::vector<GpuCodeSet> linker_code;
  /// Versions of libcudart, "12.8", lowest first, and of the one that the main program needs.
  std::vector<std::string> cuda_runtimes;
  std::string user_driver;  ///< version of the libcuda that the loader finds first; empty: none
  std::string compat;       ///< version of the libcuda in its compat package; empty: none
  std::string compat_cuda;  ///< "12.9"
  std::vector<uint32_t> compat_drivers;  ///< branches of kernel modules that the package works with
  std::vector<MpiLibrary> mpi;
};

void fields(auto& v, GpuCode& c) {
  v.required("kind", c.kind);
  v.required("arch", c.arch);
  v.optional("isa", c.isa);
}

void fields(auto& v, IsaNeed& n) {
  v.required("level", n.level);
  v.optional("source", n.source);
}

void fields(auto& v, FileFacts& f) {
  v.required("path", f.path);
  v.required("machine", f.machine);
  v.optional("program", f.program);
  v.optional("interpreter", f.interpreter);
  v.optional("soname", f.soname);
  v.optional("needed", f.needed);
  v.optional("rpath", f.rpath);
  v.optional("runpath", f.runpath);
  v.required("isa", f.isa);
  v.optional("needs", f.needs);
  v.optional("offers", f.offers);
  v.optional("gpu_code", f.gpu_code);
  v.optional("linker_code", f.linker_code);
  v.optional("cuda", f.cuda);
  v.optional("zstd_code", f.zstd_code);
}

void fields(auto& v, LayerFacts& l) {
  v.required("version", l.version);
  v.required("files", l.files);
  v.optional("unread", l.unread);
  v.optional("files_left_out", l.files_left_out);
}

void fields(auto& v, GpuCodeSet& s) {
  v.required("code", s.code);
  v.optional("zstd", s.zstd);
  v.required("files", s.files);
  v.required("example", s.example);
  v.optional("main", s.main);
  v.optional("cuda", s.cuda);
}

void fields(auto& v, CpuNeed& n) {
  v.required("isa", n.isa);
  v.required("files", n.files);
  v.required("example", n.example);
  v.optional("main", n.main);
}

void fields(auto& v, Unmet& u) {
  v.required("path", u.path);
  v.required("version", u.version);
  v.optional("main", u.main);
}

void fields(auto& v, MpiLibrary& m) {
  v.required("path", m.path);
  v.required("family", m.family);
  v.required("soname", m.soname);
}

void fields(auto& v, ImageFacts& i) {
  v.required("version", i.version);
  v.always("architecture", i.architecture);
  v.always("program", i.program);
  v.always("static", i.is_static);
  v.always("cpu", i.cpu);
  v.always("hwcaps", i.hwcaps);
  v.always("glibc", i.glibc);
  v.always("libstdcxx", i.libstdcxx);
  v.always("musl", i.musl);
  v.always("unmet", i.unmet);
  v.always("gpu_code", i.gpu_code);
  v.optional("linker_code", i.linker_code);
  v.always("cuda_runtimes", i.cuda_runtimes);
  v.always("user_driver", i.user_driver);
  v.always("compat", i.compat);
  v.always("compat_cuda", i.compat_cuda);
  v.always("compat_drivers", i.compat_drivers);
  v.always("mpi", i.mpi);
}

}  // namespace berth::facts
