// SPDX-License-Identifier: Apache-2.0
// What a site decides for all containers of a machine. People write <config-dir>/policy.toml and
// policy.d/*.toml; `berth policy apply` compiles them to policy.json beside them, which is all that
// Berth's programs read: the tables at the end are its form, and the names of the keys in the TOML.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/names.hpp"
#include "base/result.hpp"
#include "policy/rules.hpp"

namespace berth::policy {

/// Whether the NVIDIA_* variables of a container grant devices.
enum class GpuEnvironment {
  ignore,      ///< never: --gpus, --device, the site and the scheduler grant
  privileged,  ///< those of a container with CAP_SYS_ADMIN in its bounding set
  grant,       ///< those of every container, the image's own among them
};
constexpr EnumNames<GpuEnvironment, 3> names_of(std::type_identity<GpuEnvironment>) {
  return {{{GpuEnvironment::ignore, "ignore"},
           {GpuEnvironment::privileged, "privileged"},
           {GpuEnvironment::grant, "grant"}}};
}

/// What the GPUs mean that a batch system gave to the caller's job.
enum class Scheduler {
  ignore,  ///< nothing
  limit,   ///< the most that its containers get
  grant,   ///< that, and what they get when nobody asks for anything
};
constexpr EnumNames<Scheduler, 3> names_of(std::type_identity<Scheduler>) {
  return {
      {{Scheduler::ignore, "ignore"}, {Scheduler::limit, "limit"}, {Scheduler::grant, "grant"}}};
}

/// Where the driver's files appear in a container; --gpu-driver names another.
enum class DriverMode { bind, volume, copy, image, none };
constexpr EnumNames<DriverMode, 5> names_of(std::type_identity<DriverMode>) {
  return {{{DriverMode::bind, "bind"},
           {DriverMode::volume, "volume"},
           {DriverMode::copy, "copy"},
           {DriverMode::image, "image"},
           {DriverMode::none, "none"}}};
}

struct Gpu {
  GpuEnvironment environment = GpuEnvironment::ignore;
  /// Whether /dev/null mounted at /var/run/nvidia-container-devices/<id> asks for that device, as
  /// for NVIDIA_VISIBLE_DEVICES; cdi/<vendor>/<class>/<name> and imex/<channel> below it too.
  bool devices_by_volume = false;
  /// Given to every container: texts of --gpus ("all", "device=0,1") and CDI names.
  std::vector<std::string> always;
  /// Given to none: GPUs by index, id or PCI address, and CDI names.
  std::vector<std::string> never;
  /// All that a container may get of the driver's files; empty: every capability.
  std::vector<std::string> capabilities;
  /// For a container that names none; empty: compute,utility.
  std::vector<std::string> default_capabilities;
  bool requirements = true;           ///< NVIDIA_REQUIRE_* of images are checked
  bool forward_compatibility = true;  ///< the image's compat libraries are used where they fit
  bool imex_channels = true;          ///< NVIDIA_IMEX_CHANNELS counts
  bool bind = true;                   ///< containers keep to processors beside their GPUs
  bool exclusive = false;             ///< every container has its GPUs for itself
  bool outside_processes = true;      ///< those that compute without a lease count as holders
  bool manage = false;                ///< Berth may change the compute mode of GPUs
  bool additional_gids = true;        ///< a node's group is given where its mode asks for it
  Scheduler scheduler = Scheduler::grant;
  DriverMode driver_mode = DriverMode::bind;
  std::string driver_root;                       ///< empty: "/"
  std::string ledger;                            ///< of the GPU ledger; empty: /run/berth-ledger
  std::vector<std::string> library_directories;  ///< searched before the distributions' own
  std::vector<std::string> files;                ///< of the host, given with every GPU
  std::vector<std::string> cdi_directories;      ///< empty: /etc/cdi, /var/run/cdi
  std::vector<std::string> annotation_prefixes = {"cdi.k8s.io/"};
  std::string default_kind = "nvidia.com/gpu";  ///< of a CDI name without vendor and class
  /// Variables that are read before NVIDIA_VISIBLE_DEVICES, for Docker Swarm's resources.
  std::vector<std::string> swarm_resource;

  bool operator==(const Gpu&) const = default;
};

/// Which facts that are published beside images are believed.
enum class PublishedFacts { any, only_signed, none };
constexpr EnumNames<PublishedFacts, 3> names_of(std::type_identity<PublishedFacts>) {
  return {{{PublishedFacts::any, "any"},
           {PublishedFacts::only_signed, "signed"},
           {PublishedFacts::none, "none"}}};
}

struct Match {
  PublishedFacts facts = PublishedFacts::any;
  /// Files of public keys whose signatures count.
  std::vector<std::string> keys;

  bool operator==(const Match&) const = default;
};

/// Names of variables that lead to files of the machine they were set on: another root has others
/// there, or none.
const std::vector<std::string>& variables_of_a_machine();

struct Slurm {
  /// Those of a job that do not enter its tasks in a container, unless the user asks for them by
  /// --container-env or the image has them itself. "default" is variables_of_a_machine().
  std::vector<std::string> node_variables = {"default"};

  bool operator==(const Slurm&) const = default;
};

struct Network {
  /// Of containers for which nobody asks for one: "bridge", "host" or "none"; empty: "host" within
  /// a job of a batch system, else "bridge".
  std::string default_mode;

  bool operator==(const Network&) const = default;
};

struct Policy {
  Gpu gpu;
  Match match;
  Network network;
  Slurm slurm;

  bool operator==(const Policy&) const = default;
};

/// policy.json: a policy with where it comes from.
struct Compiled {
  uint32_t format = 0;
  std::string source;                     ///< policy.toml, else the directory of the rules
  std::map<std::string, uint32_t> lines;  ///< of the keys that it sets: {"gpu.environment": 3}
  Policy policy;
  std::vector<PlacedRule> rules = {};  ///< in the order in which they are looked at
};

inline constexpr uint32_t kFormat = 1;
inline constexpr const char* kCompiledName = "policy.json";

/// What the types alone cannot say: names of capabilities, absolute paths, forms of names.
/// Gives "gpu.always" as the place of an error. Errors: usage.
Result<void> check(const Policy& policy);

/// Reads policy.json; `document` names it in errors. Errors: corrupt (no such JSON, an unknown
/// member, a value that check() refuses), unsupported (written by another Berth).
Result<Compiled> parse_compiled(std::string_view text, std::string_view document);

void fields(auto& v, Gpu& g) {
  v.always("environment", g.environment);
  v.always("devices-by-volume", g.devices_by_volume);
  v.always("always", g.always);
  v.always("never", g.never);
  v.always("capabilities", g.capabilities);
  v.always("default-capabilities", g.default_capabilities);
  v.always("requirements", g.requirements);
  v.always("forward-compatibility", g.forward_compatibility);
  v.always("imex-channels", g.imex_channels);
  v.always("bind", g.bind);
  v.always("exclusive", g.exclusive);
  v.always("outside-processes", g.outside_processes);
  v.always("manage", g.manage);
  v.always("additional-gids", g.additional_gids);
  v.always("scheduler", g.scheduler);
  v.always("driver-mode", g.driver_mode);
  v.always("driver-root", g.driver_root);
  v.always("ledger", g.ledger);
  v.always("library-directories", g.library_directories);
  v.always("files", g.files);
  v.always("cdi-directories", g.cdi_directories);
  v.always("annotation-prefixes", g.annotation_prefixes);
  v.always("default-kind", g.default_kind);
  v.always("swarm-resource", g.swarm_resource);
  v.strict();
}

void fields(auto& v, Match& m) {
  v.always("facts", m.facts);
  v.always("keys", m.keys);
  v.strict();
}

void fields(auto& v, Network& n) {
  v.always("default", n.default_mode);
  v.strict();
}

void fields(auto& v, Slurm& s) {
  v.always("node-variables", s.node_variables);
  v.strict();
}

void fields(auto& v, Policy& p) {
  v.always("gpu", p.gpu);
  v.always("match", p.match);
  v.always("network", p.network);
  v.always("slurm", p.slurm);
  v.strict();
}

void fields(auto& v, Compiled& c) {
  v.required("format", c.format);
  v.always("source", c.source);
  v.always("lines", c.lines);
  v.required("policy", c.policy);
  // An older Berth refuses the file then: it would pass over what keeps things out.
  v.optional("rules", c.rules);
  v.strict();
}

}  // namespace berth::policy
