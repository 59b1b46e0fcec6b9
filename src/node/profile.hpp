// SPDX-License-Identifier: Apache-2.0
// What a node has that an image may need: of this machine, or saved from another. Plain structs;
// the tables at the end are the JSON of `berth node show` and of saved profiles.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace berth::node {

/// Of saved profiles: one of a later version is refused.
inline constexpr uint32_t kProfileVersion = 1;

struct Cpu {
  std::string vendor;             ///< "GenuineIntel", as /proc/cpuinfo has it; Arm: "0x41"
  std::string model;              ///< for people: "Intel(R) Xeon(R) Platinum 8480C"
  std::string microarchitecture;  ///< archspec's name: "sapphirerapids"
  /// All that archspec says it is compatible with, nearest first: "icelake", …, "x86_64_v4",
  /// "x86_64". Without itself.
  std::vector<std::string> ancestors;
  uint32_t level = 0;                 ///< of x86-64, 1 … 4; 0: another architecture
  std::vector<std::string> features;  ///< as /proc/cpuinfo has them, sorted
  std::string part;                   ///< Arm: "0xd4f"
};

struct NodeGpu {
  std::string vendor;  ///< "nvidia", "amd", "intel"
  std::string model;
  std::string uuid;
  std::string compute_capability;  ///< NVIDIA: "9.0"
  std::string architecture;        ///< AMD: "gfx90a"
  std::optional<uint64_t> memory_bytes;
  std::string brand;  ///< as NVIDIA_REQUIRE_* spells it: "tesla"
  bool mig = false;
  std::vector<std::string> mig_profiles;  ///< of its slices: "1g.10gb"
};

/// The NVIDIA driver; all empty without one.
struct NodeDriver {
  std::string module_version;   ///< "570.133.20"
  std::string library_version;  ///< of libcuda on the host
  std::string cuda_version;     ///< that the driver offers: "12.8"
  std::string glibc_needed;  ///< highest GLIBC_ version that its libraries ask for; empty: unknown
};

struct Kernel {
  std::string release;  ///< "6.18.5"
  std::vector<std::string>
      abilities;  ///< words, sorted: "overlay", "userns", "landlock", "erofs", …
};

struct Mpi {
  std::string family;  ///< "mpich", "openmpi"
  std::string soname;  ///< "libmpi.so.12"
  std::string path;
};

/// What a node is. Unknown members of a saved one are ignored.
struct Profile {
  uint32_t version = kProfileVersion;
  std::string name;          ///< of a saved one: its file without the ending; else the host's
  std::string architecture;  ///< as the image-spec writes it: "amd64"
  std::string os = "linux";
  Cpu cpu;
  Kernel kernel;
  std::string libc;  ///< "glibc 2.36", "musl"
  NodeDriver driver;
  std::vector<NodeGpu> gpus;
  std::string rocm;                 ///< version of the kernel's interface: "6.2"
  std::vector<std::string> fabric;  ///< "infiniband", "slingshot", "efa", sorted
  std::vector<Mpi> mpi;
  bool synthetic = false;  ///< its GPUs were read from a tree made for tests
};

template <class V>
void fields(V& v, Cpu& c) {
  v.optional("vendor", c.vendor);
  v.optional("model", c.model);
  v.optional("microarchitecture", c.microarchitecture);
  v.optional("ancestors", c.ancestors);
  v.optional("level", c.level);
  v.optional("features", c.features);
  v.optional("part", c.part);
}

template <class V>
void fields(V& v, NodeGpu& g) {
  v.required("vendor", g.vendor);
  v.optional("model", g.model);
  v.optional("uuid", g.uuid);
  v.optional("compute_capability", g.compute_capability);
  v.optional("architecture", g.architecture);
  v.optional("memory_bytes", g.memory_bytes);
  v.optional("brand", g.brand);
  v.optional("mig", g.mig);
  v.optional("mig_profiles", g.mig_profiles);
}

template <class V>
void fields(V& v, NodeDriver& d) {
  v.optional("module_version", d.module_version);
  v.optional("library_version", d.library_version);
  v.optional("cuda_version", d.cuda_version);
  v.optional("glibc_needed", d.glibc_needed);
}

template <class V>
void fields(V& v, Kernel& k) {
  v.optional("release", k.release);
  v.optional("abilities", k.abilities);
}

template <class V>
void fields(V& v, Mpi& m) {
  v.required("family", m.family);
  v.required("soname", m.soname);
  v.optional("path", m.path);
}

template <class V>
void fields(V& v, Profile& p) {
  v.required("version", p.version);
  v.optional("name", p.name);
  v.required("architecture", p.architecture);
  v.optional("os", p.os);
  v.optional("cpu", p.cpu);
  v.optional("kernel", p.kernel);
  v.optional("libc", p.libc);
  v.optional("driver", p.driver);
  v.optional("gpus", p.gpus);
  v.optional("rocm", p.rocm);
  v.optional("fabric", p.fabric);
  v.optional("mpi", p.mpi);
  v.optional("synthetic", p.synthetic);
}

}  // namespace berth::node
