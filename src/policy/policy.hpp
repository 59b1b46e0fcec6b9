// SPDX-License-Identifier: Apache-2.0
// The decisions of a site for all containers of a machine. Administrators write
// <config-dir>/policy.toml and policy.d/*.toml; `berth policy apply` compiles them into policy.json
// in the same directory, the only file that Berth's programs read. The tables at the end define its
// form, and the keys in the TOML.
#pragma once

#include <cstdint>
#include <limits>
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
  ignore,      ///< never: only --gpus, --device, the site and the scheduler do
  privileged,  ///< if the container has CAP_SYS_ADMIN in its bounding set
  grant,       ///< always, even if the image sets them
};
constexpr EnumNames<GpuEnvironment, 3> names_of(std::type_identity<GpuEnvironment>) {
  return {{{GpuEnvironment::ignore, "ignore"},
           {GpuEnvironment::privileged, "privileged"},
           {GpuEnvironment::grant, "grant"}}};
}

/// The effect of GPUs that a batch system granted to the caller's job.
enum class Scheduler {
  ignore,  ///< nothing
  limit,   ///< containers of the job get no other GPUs
  grant,   ///< as limit; if they request nothing, they get these GPUs
};
constexpr EnumNames<Scheduler, 3> names_of(std::type_identity<Scheduler>) {
  return {
      {{Scheduler::ignore, "ignore"}, {Scheduler::limit, "limit"}, {Scheduler::grant, "grant"}}};
}

/// How the driver's files appear in a container; --gpu-driver overrides it.
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
  /// Whether a mount of /dev/null at /var/run/nvidia-container-devices/<id> requests the device
  /// <id>, as NVIDIA_VISIBLE_DEVICES does; also at cdi/<vendor>/<class>/<name> and imex/<channel>
  /// below that directory.
  bool devices_by_volume = false;
  /// Granted to every container: values of --gpus ("all", "device=0,1") and CDI names.
  std::vector<std::string> always;
  /// Granted to no container: GPUs by index, id or PCI address, and CDI names.
  std::vector<std::string> never;
  /// The driver capabilities that a container can get at most; empty: all of them.
  std::vector<std::string> capabilities;
  /// For a container that names no capabilities; empty: compute,utility.
  std::vector<std::string> default_capabilities;
  bool requirements = true;           ///< NVIDIA_REQUIRE_* of images are checked
  bool forward_compatibility = true;  ///< the image's compat libraries are used where they fit
  bool imex_channels = true;          ///< NVIDIA_IMEX_CHANNELS counts
  bool bind = true;                   ///< containers use processors near their GPUs
  bool exclusive = false;             ///< no two containers share a GPU
  bool outside_processes = true;      ///< a process without a lease holds the GPU it computes on
  bool manage = false;                ///< Berth may change the compute mode of GPUs
  bool additional_gids = true;        ///< add a device's group if its mode requires it
  Scheduler scheduler = Scheduler::grant;
  DriverMode driver_mode = DriverMode::bind;
  std::string driver_root;                       ///< empty: "/"
  std::string ledger;                            ///< the GPU ledger; empty: /run/berth-ledger
  std::vector<std::string> library_directories;  ///< searched before the distributions' own
  std::vector<std::string> files;                ///< host files granted with every GPU
  std::vector<std::string> cdi_directories;      ///< empty: /etc/cdi, /var/run/cdi
  std::vector<std::string> annotation_prefixes = {"cdi.k8s.io/"};
  std::string default_kind = "nvidia.com/gpu";  ///< for a CDI name without vendor and class
  /// Variables that take precedence over NVIDIA_VISIBLE_DEVICES, for the resources of Docker Swarm.
  std::vector<std::string> swarm_resource;

  bool operator==(const Gpu&) const = default;
};

/// Which facts published next to images are trusted.
enum class PublishedFacts { any, only_signed, none };
constexpr EnumNames<PublishedFacts, 3> names_of(std::type_identity<PublishedFacts>) {
  return {{{PublishedFacts::any, "any"},
           {PublishedFacts::only_signed, "signed"},
           {PublishedFacts::none, "none"}}};
}

struct Match {
  PublishedFacts facts = PublishedFacts::any;
  /// Files of trusted public keys.
  std::vector<std::string> keys;

  bool operator==(const Match&) const = default;
};

/// Variables that contain paths of the machine: in a container's root other files or none are at
/// these paths.
const std::vector<std::string>& variables_of_a_machine();

struct Slurm {
  /// Variables of a job that are not passed to its tasks in a container, unless the user lists them
  /// in --container-env or the image has them. "default" is variables_of_a_machine().
  std::vector<std::string> node_variables = {"default"};

  bool operator==(const Slurm&) const = default;
};

struct Network {
  /// The network of containers that do not request one: "bridge", "host" or "none"; empty: "host"
  /// within a batch job, else "bridge".
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

/// policy.json: a policy and where it came from.
struct Compiled {
  uint32_t format = 0;
  std::string source;  ///< policy.toml, or if that is missing the directory of the rules
  std::map<std::string, uint32_t> lines;  ///< of the keys that it sets: {"gpu.environment": 3}
  Policy policy;
  std::vector<PlacedRule> rules = {};  ///< in order of evaluation
};

inline constexpr uint32_t kFormat = 1;
inline constexpr const char* kCompiledName = "policy.json";

/// Checks what types cannot express: names of capabilities, absolute paths, forms of names. Errors:
/// usage; they name the key, e.g. "gpu.always".
Result<void> check(const Policy& policy);

/// Parses policy.json; `document` names it in errors. Errors: corrupt (invalid JSON, an unknown
/// member, a value that check() refuses), unsupported (written by another version of Berth).
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
  // Written only if there are rules, so that an older Berth refuses the file instead of skipping
  // rules that refuse something.
  v.optional("rules", c.rules);
  v.strict();
}

/// The policy in force: that of policy.json in `config_dir`, or if it is missing the defaults (with
/// an empty `source`). The file has to belong to root or the effective user, and to be writable by
/// no other user. This is checked on the open file. Errors: denied (that check), and those of
/// parse_compiled().
Result<Compiled> read_compiled(const std::string& config_dir);

/// The lower of two limits, for rules that set a maximum. A value of 0 or below means no limit.
template <class T>
T lower_limit(T a, T b) {
  auto of = [](T value) {
    return value > 0 ? static_cast<uint64_t>(value) : std::numeric_limits<uint64_t>::max();
  };
  return of(b) < of(a) ? b : a;
}

}  // namespace berth::policy
