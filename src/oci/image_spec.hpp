// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/digest.hpp"
#include "base/result.hpp"

/// The image-spec documents as plain structs, parsed from the data of registries and archives. The
/// bytes are foreign: every parser below checks sizes first, and refuses a document instead of
/// guessing.
/// Source: opencontainers/image-spec 1.1 (image-index.md, manifest.md, config.md), Docker image
/// manifest version 2 schema 2. Docker's media types are equivalent to OCI's.
namespace berth::oci {

/// Registries and clients are expected to cope with manifests of 4 MiB (image-spec), not more.
inline constexpr size_t kMaxManifestBytes = size_t{4} << 20;
inline constexpr size_t kMaxConfigBytes = size_t{4} << 20;
/// Docker stops at 127 layers, podman at 500. If there are more layers than one overlay mount
/// takes, the lowest ones are combined into one (sys/mount/overlay.cpp).
inline constexpr size_t kMaxLayers = 500;
inline constexpr size_t kMaxIndexEntries = 1024;
inline constexpr size_t kMaxIndexDepth = 2;  // an index may name another

namespace media_type {
inline constexpr std::string_view kIndex = "application/vnd.oci.image.index.v1+json";
inline constexpr std::string_view kManifest = "application/vnd.oci.image.manifest.v1+json";
inline constexpr std::string_view kConfig = "application/vnd.oci.image.config.v1+json";
inline constexpr std::string_view kLayerTar = "application/vnd.oci.image.layer.v1.tar";
inline constexpr std::string_view kLayerGzip = "application/vnd.oci.image.layer.v1.tar+gzip";
inline constexpr std::string_view kLayerZstd = "application/vnd.oci.image.layer.v1.tar+zstd";
inline constexpr std::string_view kDockerIndex =
    "application/vnd.docker.distribution.manifest.list.v2+json";
inline constexpr std::string_view kDockerManifest =
    "application/vnd.docker.distribution.manifest.v2+json";
inline constexpr std::string_view kDockerConfig = "application/vnd.docker.container.image.v1+json";
inline constexpr std::string_view kDockerLayerTar = "application/vnd.docker.image.rootfs.diff.tar";
inline constexpr std::string_view kDockerLayerGzip =
    "application/vnd.docker.image.rootfs.diff.tar.gzip";
inline constexpr std::string_view kDockerSchema1 =
    "application/vnd.docker.distribution.manifest.v1+json";
inline constexpr std::string_view kDockerSchema1Signed =
    "application/vnd.docker.distribution.manifest.v1+prettyjws";
}  // namespace media_type

bool is_index_type(std::string_view media_type);     ///< OCI index or Docker list
bool is_manifest_type(std::string_view media_type);  ///< OCI manifest or Docker schema 2

/// The compression of a layer's tar.
enum class Compression { none, gzip, zstd };

/// The compression by the media type of a layer, including the deprecated non-distributable and
/// foreign types.
/// Errors: unsupported (the error names the type).
Result<Compression> layer_compression(std::string_view media_type);

/// Source: image-spec image-index.md "platform".
struct Platform {
  std::string architecture;
  std::string os;
  std::string os_version;
  std::vector<std::string> os_features;
  std::string variant;
  bool operator==(const Platform&) const = default;
};
void fields(auto& v, Platform& p) {
  v.required("architecture", p.architecture);
  v.required("os", p.os);
  v.optional("os.version", p.os_version);
  v.optional("os.features", p.os_features);
  v.optional("variant", p.variant);
}

/// Parses "linux/amd64", "linux/arm/v7" or "arm64" (with os linux). Docker's spellings x86_64,
/// aarch64, armhf become amd64, arm64, arm/v7.
/// Errors: usage.
Result<Platform> parse_platform(std::string_view text);
std::string platform_text(const Platform& platform);  ///< "linux/arm64/v8"
/// The platform this program was built for: linux, amd64 or arm64.
Platform host_platform();

/// Source: image-spec descriptor.md.
struct Descriptor {
  std::string media_type;
  Digest digest;
  uint64_t size = 0;  ///< a negative size in the document is an error
  std::optional<Platform> platform;
  std::map<std::string, std::string> annotations;
  std::string artifact_type;
  bool operator==(const Descriptor&) const = default;
};
void fields(auto& v, Descriptor& d) {
  v.required("mediaType", d.media_type);
  v.required("digest", d.digest);
  v.required("size", d.size);
  v.optional("platform", d.platform);
  v.optional("annotations", d.annotations);
  v.optional("artifactType", d.artifact_type);
}

struct Index {
  int schema_version = 2;
  std::string media_type;
  std::vector<Descriptor> manifests;
  std::map<std::string, std::string> annotations;
};
void fields(auto& v, Index& i) {
  v.required("schemaVersion", i.schema_version);
  v.optional("mediaType", i.media_type);
  v.required("manifests", i.manifests);
  v.optional("annotations", i.annotations);
}

struct Manifest {
  int schema_version = 2;
  std::string media_type;
  std::string artifact_type;  ///< set if the artifact is not an image
  Descriptor config;
  std::vector<Descriptor> layers;  ///< lowest first
  std::map<std::string, std::string> annotations;
};
void fields(auto& v, Manifest& m) {
  v.required("schemaVersion", m.schema_version);
  v.optional("mediaType", m.media_type);
  v.optional("artifactType", m.artifact_type);
  v.required("config", m.config);
  v.required("layers", m.layers);
  v.optional("annotations", m.annotations);
}

/// The value of each member of a set, which the config writes as an object: {"80/tcp": {}}.
struct Empty {
  bool operator==(const Empty&) const = default;
};
void fields(auto&, Empty&) {}

/// Docker's extension of the config; times in nanoseconds.
struct Healthcheck {
  std::vector<std::string> test;
  int64_t interval = 0;
  int64_t timeout = 0;
  int64_t start_period = 0;
  int64_t retries = 0;
};
void fields(auto& v, Healthcheck& h) {
  v.optional("Test", h.test);
  v.optional("Interval", h.interval);
  v.optional("Timeout", h.timeout);
  v.optional("StartPeriod", h.start_period);
  v.optional("Retries", h.retries);
}

/// The configuration with which containers of the image start. Source: image-spec config.md
/// "config".
struct ContainerDefaults {
  std::string user;
  std::map<std::string, Empty> exposed_ports;
  std::vector<std::string> env;
  std::vector<std::string> entrypoint;
  std::vector<std::string> cmd;
  std::map<std::string, Empty> volumes;
  std::string working_dir;
  std::map<std::string, std::string> labels;
  std::string stop_signal;
  std::vector<std::string> shell;
  std::vector<std::string> on_build;
  std::optional<Healthcheck> healthcheck;
};
void fields(auto& v, ContainerDefaults& c) {
  v.optional("User", c.user);
  v.optional("ExposedPorts", c.exposed_ports);
  v.optional("Env", c.env);
  v.optional("Entrypoint", c.entrypoint);
  v.optional("Cmd", c.cmd);
  v.optional("Volumes", c.volumes);
  v.optional("WorkingDir", c.working_dir);
  v.optional("Labels", c.labels);
  v.optional("StopSignal", c.stop_signal);
  v.optional("Shell", c.shell);
  v.optional("OnBuild", c.on_build);
  v.optional("Healthcheck", c.healthcheck);
}

struct RootFs {
  std::string type = "layers";
  std::vector<Digest> diff_ids;  ///< of the unpacked tars, lowest first
};
void fields(auto& v, RootFs& r) {
  v.required("type", r.type);
  v.required("diff_ids", r.diff_ids);
}

struct History {
  std::string created;  ///< RFC 3339
  std::string created_by;
  std::string author;
  std::string comment;
  bool empty_layer = false;
};
void fields(auto& v, History& h) {
  v.optional("created", h.created);
  v.optional("created_by", h.created_by);
  v.optional("author", h.author);
  v.optional("comment", h.comment);
  v.optional("empty_layer", h.empty_layer);
}

struct ImageConfig {
  std::string created;  ///< RFC 3339, or empty
  std::string author;
  std::string architecture;
  std::string os;
  std::string variant;
  ContainerDefaults config;
  RootFs rootfs;
  std::vector<History> history;
};
void fields(auto& v, ImageConfig& c) {
  v.optional("created", c.created);
  v.optional("author", c.author);
  v.required("architecture", c.architecture);
  v.required("os", c.os);
  v.optional("variant", c.variant);
  v.optional("config", c.config);
  v.required("rootfs", c.rootfs);
  v.optional("history", c.history);
}

/// Parses a manifest or index of a registry or an archive. `media_type` is the type claimed by the
/// transport (Content-Type) or the descriptor, or empty if there is none. A mediaType in the body
/// must agree with it, and a body with both `layers` and `manifests` is refused (CVE-2021-41190).
/// `document` names the bytes in errors.
/// Errors: corrupt (over 4 MiB, invalid JSON, a missing or wrong member, too many layers or
/// entries, contradicting types), unsupported (schema 1; a type that is not an image).
Result<std::variant<Index, Manifest>> parse_manifest(std::string_view bytes,
                                                     std::string_view media_type,
                                                     std::string_view document = "manifest");

/// Errors: corrupt (over 4 MiB, invalid JSON, a missing or wrong member).
Result<ImageConfig> parse_config(std::string_view bytes, std::string_view document = "config");

/// Whether the manifest describes a container image. Does not look at the config.
/// Errors: unsupported (an artifact; the error names its type). image-spec manifest.md
Result<void> check_is_image(const Manifest& manifest);

/// Checks a config and its manifest against each other: equal numbers of diff ids and layers, layer
/// types that can be unpacked.
/// Errors: corrupt, unsupported (an unknown layer type, which the error names), those of
/// check_is_image().
Result<void> check_image(const Manifest& manifest, const ImageConfig& config);

/// The entries of `index` that match, in the order of the index: same os and architecture and, if
/// `wish` names a variant, the same variant (arm64 with and without v8 are equal). Skips entries
/// that are not images (attestations: "unknown/unknown", other media types).
/// Errors: not_found; the error lists the available platforms.
Result<std::vector<Descriptor>> matching_entries(const Index& index, const Platform& wish);

/// The first of matching_entries(). image-spec: "the first matching entry SHOULD be used".
Result<Descriptor> select_platform(const Index& index, const Platform& wish);

}  // namespace berth::oci
