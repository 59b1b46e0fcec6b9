// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "oci/runtime_spec.hpp"

namespace berth::oci {

/// The annotation with the host path of a device node: its key is this prefix followed by the path
/// in the container, its value is the path on the host. plan::make() reads it when device nodes
/// have to be bind-mounted instead of created.
inline constexpr std::string_view kDeviceSourceAnnotation = "dev.berth.device-source:";

/// A symbolic link that the container's first process makes in its root after the mounts: the key
/// is this prefix followed by the path of the link, the value is the target of the link.
inline constexpr std::string_view kLinkAnnotation = "dev.berth.link:";

/// Additional entries for the container's loader cache, in the form of to_annotation(LoaderLine…).
inline constexpr std::string_view kLoaderCacheAnnotation = "dev.berth.loader-cache";

/// Makes the container's first process look for NVIDIA's compat package in its root, and put the
/// libraries of the package first in the loader's cache if they fit. The value is
/// to_annotation(CompatRequest).
inline constexpr std::string_view kCompatAnnotation = "dev.berth.cuda-compat";

/// Followed by "000", "001", …: the layers, highest first, from which the root of a container was
/// copied. Berth's engine compares root and layers; berth-runtime ignores the annotation.
inline constexpr std::string_view kCopiedLayerAnnotation = "dev.berth.copied-layer:";

/// "yes": the container's first process makes the mounts with the ids of its caller, which have to
/// be mapped, and not as root of the container's user namespace, which has no rights to the files
/// of an ordinary user. Only effective in a user namespace.
inline constexpr std::string_view kKeepIdsAnnotation = "dev.berth.keep-ids";

/// "1": the container's processes keep the supplementary groups of their caller, and additionalGids
/// is ignored. crun's name.
inline constexpr std::string_view kKeepGroupsAnnotation = "run.oci.keep_original_groups";

/// "1": an unknown system call in linux.seccomp is an error instead of being skipped. crun's name.
inline constexpr std::string_view kKnownCallsAnnotation = "run.oci.seccomp_fail_unknown_syscall";

/// The processors ("0-15,32-47") and the memory nodes ("0") for all processes of a container,
/// including those of exec. A preference: processors and nodes that are not allowed are skipped,
/// and when the memory of a node is full, other nodes are used.
inline constexpr std::string_view kProcessorsAnnotation = "dev.berth.processors";
inline constexpr std::string_view kMemoryNodesAnnotation = "dev.berth.memory-nodes";

/// "yes": linux.cgroupsPath is relative to the caller's cgroup in each hierarchy, not to the root,
/// so that processes stay in their batch job. The path is always below the caller's cgroups, so the
/// annotation can only confine.
inline constexpr std::string_view kCallersCgroupAnnotation = "dev.berth.callers-cgroup";

/// "yes": systemd makes the cgroup if the caller cannot make the one that a limit needs, or if
/// linux.cgroupsPath begins with a systemd slice.
inline constexpr std::string_view kScopeAnnotation = "dev.berth.systemd-scope";

/// "yes": a limit that cannot be set is an error for ordinary users too.
inline constexpr std::string_view kStrictLimitsAnnotation = "dev.berth.strict-limits";

/// Whether any of `annotations` may come from an image. podman and CRI-O copy the annotations of a
/// manifest, and set "io.container.manager"; converters derive annotations from the labels of an
/// image, and set "org.opencontainers.image.os" and similar ones. Only the presence of these keys
/// counts: an image can set them, but not remove them. Source: image-spec conversion.md "Annotation
/// Fields".
bool may_be_images(const std::map<std::string, std::string>& annotations);

/// A device for a container (CDI "deviceNodes").
struct DeviceNode {
  std::string path{};       ///< in the container
  std::string host_path{};  ///< on the host; empty: the same as `path`
  std::string type = "c";   ///< "c", "u", "b", "p"
  int64_t major = 0;
  int64_t minor = 0;
  std::string permissions = "rw";  ///< of "rwm", for the device cgroup; "none": no rule
  std::optional<uint32_t> file_mode{};
  std::optional<uint32_t> uid{};
  std::optional<uint32_t> gid{};
  /// A uid or gid that is absent becomes that of the process, unless that is 0, as the CDI library
  /// does for every node.
  bool owned_by_process = false;
};

/// A symbolic link in the container.
struct Link {
  std::string path{};  ///< absolute, in the container
  std::string target{};
  bool operator==(const Link&) const = default;
};

/// An entry for the container's loader cache.
struct LoaderLine {
  std::string soname{};
  std::string path{};  ///< absolute, in the container
  int32_t flags = 0;   ///< as in scan::LoaderEntry
  bool operator==(const LoaderLine&) const = default;
};

/// An interface of the host for the container (CDI "netDevices").
struct NetDeviceEdit {
  std::string host_name{};
  std::string name{};  ///< in the container
  bool operator==(const NetDeviceEdit&) const = default;
};

/// The facts about the machine that decide whether the newer driver libraries in the image (its
/// compat package) are used: see scan::judge_compat().
struct CompatRequest {
  std::string host_driver_version{};  ///< "570.133.20"; empty: unknown
  std::string host_cuda_version{};    ///< "12.8"; empty: unknown
  std::string container_root{};  ///< the directory of these libraries: "/usr/local/cuda/compat"
  std::vector<std::string> brands{};  ///< brands of the GPUs: "geforce"; not in CDI files
  bool operator==(const CompatRequest&) const = default;
};

/// Changes to a container's configuration (CDI "containerEdits").
struct ContainerEdits {
  std::vector<std::string> env{};  ///< "NAME=value"; replaces a variable of the same name
  std::vector<DeviceNode> device_nodes{};
  std::vector<Mount> mounts{};  ///< deeper targets are mounted later; else in this order
  std::vector<uint32_t> additional_gids{};
  Hooks hooks{};  ///< appended
  std::vector<NetDeviceEdit> net_devices{};
  std::optional<IntelRdt> intel_rdt{};
  std::vector<Link> links{};
  std::vector<LoaderLine> loader_entries{};

  std::optional<CompatRequest> compat{};
  // Replace /proc/driver/nvidia/params by a file with ModifyDeviceFiles: 0. gpu::finish_edits()
  // does this, because it needs a file that Berth writes.
  bool freeze_device_nodes = false;
  /// Add an application profile with the GPUs that EGL and Vulkan may use.
  bool application_profile = false;
};

/// Appends `hook` to the hooks of a stage, e.g. "createRuntime". Ignores an unknown stage.
void append_hook(std::string_view stage, Hook hook, Hooks& hooks);

/// Applies `edits` to `spec`. A device node becomes an entry of linux.devices plus a device cgroup
/// rule, replacing an entry of the same path; a different host path becomes an annotation. A mount
/// replaces an earlier mount at the same destination, except at the root. Links, loader entries and
/// the request for compat libraries become annotations; of two loader entries with the same SONAME
/// and flags the later one wins. Source: CDI SPEC.md "OCI Edits".
void apply(const ContainerEdits& edits, Spec& spec);

/// Appends `added` to `edits`. On a conflict `added` wins.
void append(ContainerEdits& edits, ContainerEdits added);

/// Sets `assignment` ("NAME=value") in `env`, replacing an earlier value of that name.
void set_env(std::vector<std::string>& env, std::string assignment);

/// "soname<TAB>path<TAB>flags" per line, the flags in decimal. Entries with a control character are
/// left out.
std::string to_annotation(const std::vector<LoaderLine>& entries);

/// The inverse. An annotation is foreign text, so lines of another form or with a relative path are
/// skipped.
std::vector<LoaderLine> loader_entries_of(std::string_view annotation);

/// "root<TAB>driver<TAB>CUDA<TAB>brand,brand".
std::string to_annotation(const CompatRequest& request);

/// The inverse. An annotation is foreign text: nothing if it has another form.
std::optional<CompatRequest> compat_request_of(std::string_view annotation);

}  // namespace berth::oci
