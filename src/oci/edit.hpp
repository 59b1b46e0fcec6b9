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

/// The annotation that names where the host keeps the node of a device: the key is this prefix
/// followed by the path in the container, the value the path on the host. Read by plan::make() when
/// nodes have to be bound instead of made.
inline constexpr std::string_view kDeviceSourceAnnotation = "dev.berth.device-source:";

/// A symbolic link that the container's first process makes in its root after the mounts: the key
/// is this prefix followed by the link's path, the value what it says.
inline constexpr std::string_view kLinkAnnotation = "dev.berth.link:";

/// What the loader of the container is to find beyond its own cache: the form of
/// to_annotation(LoaderLine…).
inline constexpr std::string_view kLoaderCacheAnnotation = "dev.berth.loader-cache";

/// That the container's first process is to look for NVIDIA's compat package in its own root, and
/// to put its libraries first in the loader's cache where they fit: to_annotation(CompatRequest).
inline constexpr std::string_view kCompatAnnotation = "dev.berth.cuda-compat";

/// With "000", "001", … the layers, highest first, that the root of a container is a copy of; for
/// Berth's engine, which compares the two. berth-runtime reads nothing of it.
inline constexpr std::string_view kCopiedLayerAnnotation = "dev.berth.copied-layer:";

/// "yes", believed in a user namespace alone: the container's first process makes the mounts with
/// the ids of whoever started it, which have to be mapped, and not as root of the container's own
/// user namespace, who is a stranger to the files of an ordinary user.
inline constexpr std::string_view kKeepIdsAnnotation = "dev.berth.keep-ids";

/// "1": the container's processes keep the supplementary groups of their caller, and
/// additionalGids is not looked at. crun's name.
inline constexpr std::string_view kKeepGroupsAnnotation = "run.oci.keep_original_groups";

/// "1": a system call in linux.seccomp that nobody knows is an error, and not passed over. crun's
/// name.
inline constexpr std::string_view kKnownCallsAnnotation = "run.oci.seccomp_fail_unknown_syscall";

/// The processors ("0-15,32-47") and the memory nodes ("0") that all processes of a container are
/// to start with, also those of exec. A wish: what is not allowed is passed over, what is full is
/// taken elsewhere.
inline constexpr std::string_view kProcessorsAnnotation = "dev.berth.processors";
inline constexpr std::string_view kMemoryNodesAnnotation = "dev.berth.memory-nodes";

/// "yes": linux.cgroupsPath begins at the cgroups that the caller is in, in each hierarchy at its
/// own, and not at their roots: a batch job keeps what runs in it. A lesser place, never another.
inline constexpr std::string_view kCallersCgroupAnnotation = "dev.berth.callers-cgroup";

/// "yes": systemd makes the cgroup where the caller may not make what a limit needs, and where
/// linux.cgroupsPath begins with one of its slices.
inline constexpr std::string_view kScopeAnnotation = "dev.berth.systemd-scope";

/// "yes": a limit that does not hold is an error, also where its caller is an ordinary user.
inline constexpr std::string_view kStrictLimitsAnnotation = "dev.berth.strict-limits";

/// Whether an image may have written any of `annotations`: podman and CRI-O copy those of a
/// manifest, and keep "io.container.manager" there; converters make them of an image's labels, and
/// keep "org.opencontainers.image.os" and its like there. Whatever their values: an image can set
/// these, and not remove them. Source: image-spec conversion.md "Annotation Fields".
bool may_be_images(const std::map<std::string, std::string>& annotations);

/// A device that a container is to have (CDI "deviceNodes").
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
  /// Where uid or gid is absent the process's own is taken, unless that is 0: what the CDI library
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
  int32_t flags = 0;   ///< of scan::LoaderEntry
  bool operator==(const LoaderLine&) const = default;
};

/// An interface of the host that the container is to have (CDI "netDevices").
struct NetDeviceEdit {
  std::string host_name{};
  std::string name{};  ///< in the container
  bool operator==(const NetDeviceEdit&) const = default;
};

/// What of the machine decides whether the image's own newer driver libraries (its compat package)
/// are to be used: see scan::judge_compat().
struct CompatRequest {
  std::string host_driver_version{};  ///< "570.133.20"; empty: not said
  std::string host_cuda_version{};    ///< "12.8"; empty: not said
  std::string container_root{};       ///< where the image keeps them: "/usr/local/cuda/compat"
  std::vector<std::string> brands{};  ///< of the GPUs: "geforce"; a CDI file does not say
  bool operator==(const CompatRequest&) const = default;
};

/// What somebody else wants changed in a container's configuration (CDI "containerEdits").
struct ContainerEdits {
  std::vector<std::string> env{};  ///< "NAME=value"; replaces a variable of the same name
  std::vector<DeviceNode> device_nodes{};
  std::vector<Mount> mounts{};  ///< what lies deeper comes later; else in this order
  std::vector<uint32_t> additional_gids{};
  Hooks hooks{};  ///< appended
  std::vector<NetDeviceEdit> net_devices{};
  std::optional<IntelRdt> intel_rdt{};
  std::vector<Link> links{};
  std::vector<LoaderLine> loader_entries{};

  std::optional<CompatRequest> compat{};
  // What apply() leaves to gpu::finish_edits(): it takes files of ours.
  /// /proc/driver/nvidia/params is to say ModifyDeviceFiles: 0.
  bool freeze_device_nodes = false;
  /// An application profile is to name the GPUs that EGL and Vulkan may see.
  bool application_profile = false;
};

/// Appends to the hooks of a stage, "createRuntime". Another word is none, and nothing is done.
void append_hook(std::string_view stage, Hook hook, Hooks& hooks);

/// Applies `edits` to `spec`. A device node becomes an entry of linux.devices plus a rule of the
/// device cgroup, replacing an entry of the same path; where the host's path is another one, the
/// annotation says so. A mount replaces one at the same destination, but for the root. Links,
/// loader entries and the request for compat libraries become annotations; of two loader entries
/// with one SONAME and flags the later stays. Source: CDI SPEC.md "OCI Edits".
void apply(const ContainerEdits& edits, Spec& spec);

/// Appends `added` to `edits`: a later one wins where both say the same.
void append(ContainerEdits& edits, ContainerEdits added);

/// Sets `assignment` ("NAME=value") in `env`, in the place of an earlier value of that name.
void set_env(std::vector<std::string>& env, std::string assignment);

/// "soname<TAB>path<TAB>flags" per line, the flags in decimal. An entry with a control character
/// in it is left out.
std::string to_annotation(const std::vector<LoaderLine>& entries);

/// The inverse; lines that are not of that form, or whose path is not absolute, are left out: an
/// annotation is foreign text.
std::vector<LoaderLine> loader_entries_of(std::string_view annotation);

/// "root<TAB>driver<TAB>CUDA<TAB>brand,brand".
std::string to_annotation(const CompatRequest& request);

/// The inverse; nothing for other text, which anybody may have written.
std::optional<CompatRequest> compat_request_of(std::string_view annotation);

}  // namespace berth::oci
