// SPDX-License-Identifier: Apache-2.0
// The features of a node that images may need. The profile describes this machine, or was saved on
// another one or written by hand. Plain structs; the tables at the end are the JSON of `berth node
// show` and of saved profiles.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace berth::node {

/// The version of saved profiles; a later version is refused.
inline constexpr uint32_t kProfileVersion = 1;

struct Cpu {
  std::string vendor;             ///< "GenuineIntel", as in /proc/cpuinfo; Arm: "0x41"
  std::string model;              ///< for people: "Intel(R) Xeon(R) Platinum 8480C"
  std::string microarchitecture;  ///< archspec's name: "sapphirerapids"
  /// All microarchitectures, except its own, that archspec calls compatible, nearest first:
  /// "icelake", …, "x86_64_v4", "x86_64".
  std::vector<std::string> ancestors;
  uint32_t level = 0;                 ///< of x86-64, 1 … 4; 0: another architecture
  std::vector<std::string> features;  ///< as in /proc/cpuinfo, sorted
  std::string part;                   ///< Arm: "0xd4f"; Power: "POWER9"; RISC-V: "sifive,u74-mc"
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
  std::vector<std::string> mig_profiles;  ///< the profiles of its slices: "1g.10gb"
};

/// The NVIDIA driver. All members are empty if there is none.
struct NodeDriver {
  std::string module_version;   ///< "570.133.20"
  std::string library_version;  ///< of libcuda on the host
  std::string cuda_version;     ///< the version that the driver supports: "12.8"
  std::string glibc_needed;     ///< highest GLIBC_ version that its libraries need; empty: unknown
};

struct Kernel {
  std::string release;                 ///< "6.18.5"
  std::vector<std::string> abilities;  ///< sorted: "overlay", "userns", "landlock", "erofs", …
};

struct Mpi {
  std::string family;  ///< of scan::mpi_family(): "mpich", "openmpi", "mpi-abi"
  std::string soname;  ///< "libmpi.so.12"
  std::string path;
};

/// A node. Unknown members of a saved profile are ignored.
struct Profile {
  uint32_t version = kProfileVersion;
  std::string name;          ///< of a saved profile: its file name without extension; else the host
                             ///< name
  std::string architecture;  ///< as the image-spec writes it: "amd64"
  std::string os = "linux";
  Cpu cpu;
  Kernel kernel;
  std::string libc;  ///< "glibc 2.36", "musl"
  NodeDriver driver;
  std::vector<NodeGpu> gpus;
  std::string rocm;  ///< version of AMD's libraries on the host: "6.2.0"
  /// "efa", "infiniband", "iwarp", "opa", "roce", "slingshot", sorted
  std::vector<std::string> fabric;
  std::vector<Mpi> mpi;
  bool synthetic = false;  ///< its GPUs were read from a tree made for tests
};

void fields(auto& v, Cpu& c) {
  v.always("vendor", c.vendor);
  v.always("model", c.model);
  v.always("microarchitecture", c.microarchitecture);
  v.always("ancestors", c.ancestors);
  v.always("level", c.level);
  v.always("features", c.features);
  v.always("part", c.part);
}

void fields(auto& v, NodeGpu& g) {
  v.always("vendor", g.vendor);  // a handwritten profile may omit it: the architecture implies it
  v.always("model", g.model);
  v.always("uuid", g.uuid);
  v.always("compute_capability", g.compute_capability);
  v.always("architecture", g.architecture);
  v.always("memory_bytes", g.memory_bytes);
  v.always("brand", g.brand);
  v.always("mig", g.mig);
  v.always("mig_profiles", g.mig_profiles);
}

void fields(auto& v, NodeDriver& d) {
  v.always("module_version", d.module_version);
  v.always("library_version", d.library_version);
  v.always("cuda_version", d.cuda_version);
  v.always("glibc_needed", d.glibc_needed);
}

void fields(auto& v, Kernel& k) {
  v.always("release", k.release);
  v.always("abilities", k.abilities);
}

void fields(auto& v, Mpi& m) {
  v.always("family", m.family);
  v.always("soname", m.soname);
  v.always("path", m.path);
}

void fields(auto& v, Profile& p) {
  v.optional("version", p.version);
  v.always("name", p.name);
  v.required("architecture", p.architecture);
  v.always("os", p.os);
  v.always("cpu", p.cpu);
  v.always("kernel", p.kernel);
  v.always("libc", p.libc);
  v.always("driver", p.driver);
  v.always("gpus", p.gpus);
  v.always("rocm", p.rocm);
  v.always("fabric", p.fabric);
  v.always("mpi", p.mpi);
  v.always("synthetic", p.synthetic);
}

}  // namespace berth::node
