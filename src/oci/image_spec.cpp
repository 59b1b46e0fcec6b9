// SPDX-License-Identifier: Apache-2.0
#include "oci/image_spec.hpp"

#include <algorithm>
#include <array>

#include "base/text.hpp"
#include "json/fields.hpp"

namespace berth::oci {
namespace {

constexpr std::string_view kForeignTar = "application/vnd.oci.image.layer.nondistributable.v1.tar";
constexpr std::string_view kDockerForeignGzip =
    "application/vnd.docker.image.rootfs.foreign.diff.tar.gzip";
constexpr std::string_view kDockerLayerZstd = "application/vnd.docker.image.rootfs.diff.tar.zstd";

/// The type without parameters ("; charset=utf-8"), which are not compared.
std::string_view bare_type(std::string_view media_type) {
  return trim(media_type.substr(0, media_type.find(';')));
}

std::string architecture_name(std::string_view name) {
  if (name == "x86_64" || name == "x86-64") return "amd64";
  if (name == "aarch64") return "arm64";
  return std::string(name);
}

bool same_variant(const Platform& entry, const Platform& wish) {
  if (wish.variant.empty()) return true;
  auto variant = [](const Platform& p) {
    return p.variant.empty() && p.architecture == "arm64" ? std::string("v8") : p.variant;
  };
  return variant(entry) == variant(wish);
}

/// The members of a body decide what it is. The media types must not contradict that.
Result<void> check_types(const json::Value& body, std::string_view claimed,
                         std::string_view document) {
  auto refuse = [&](Kind kind, std::string reason) {
    return make_error(kind, std::string(document) + ": " + std::move(reason));
  };
  if (body.object() == nullptr) return refuse(Kind::corrupt, "expected an object");
  const json::Value* version = body.find("schemaVersion");
  bool schema_1 = claimed == media_type::kDockerSchema1 ||
                  claimed == media_type::kDockerSchema1Signed ||
                  (version != nullptr && *version == json::Value(1));
  if (schema_1) {
    return make_error(Kind::unsupported,
                      std::string(document) +
                          ": it is a Docker schema 1 manifest, a format deprecated in 2017 that "
                          "does not protect its layers",
                      "push the image again with a current docker, podman or skopeo");
  }
  bool has_layers = body.find("layers") != nullptr || body.find("config") != nullptr;
  bool has_manifests = body.find("manifests") != nullptr;
  if (has_layers && has_manifests) {
    return refuse(Kind::corrupt,
                  "it is an index and a manifest at once, so its meaning would "
                  "depend on the reader");
  }
  const json::Value* own = body.find("mediaType");
  std::string own_type(own != nullptr && own->string() != nullptr ? *own->string() : "");
  if (!own_type.empty() && !claimed.empty() && own_type != claimed) {
    return refuse(Kind::corrupt, "it was announced as " + quote(claimed) + " but calls itself " +
                                     quote(own_type.substr(0, 200)));
  }
  std::string_view type = own_type.empty() ? claimed : own_type;
  bool known = is_index_type(type) || is_manifest_type(type);
  if (!type.empty() && !known && type != "application/json") {
    return refuse(Kind::unsupported, "media type " + quote(type.substr(0, 200)) +
                                         " is neither an image index nor an image manifest");
  }
  if ((is_index_type(type) && !has_manifests) || (is_manifest_type(type) && !has_layers) ||
      (!has_manifests && !has_layers)) {
    return refuse(Kind::corrupt, has_manifests || has_layers
                                     ? "its content is not what its media type says"
                                     : "it has neither 'manifests' nor 'layers'");
  }
  return {};
}

std::string entry_text(const Descriptor& entry) {
  return entry.platform ? platform_text(*entry.platform) : std::string("(no platform)");
}

bool is_config_type(std::string_view type) {
  return type == media_type::kConfig || type == media_type::kDockerConfig;
}

}  // namespace

bool is_index_type(std::string_view type) {
  return type == media_type::kIndex || type == media_type::kDockerIndex;
}

bool is_manifest_type(std::string_view type) {
  return type == media_type::kManifest || type == media_type::kDockerManifest;
}

Result<Compression> layer_compression(std::string_view type) {
  using media_type::kDockerLayerGzip, media_type::kDockerLayerTar, media_type::kLayerGzip,
      media_type::kLayerTar, media_type::kLayerZstd;
  if (type == kLayerTar || type == kDockerLayerTar || type == kForeignTar) return Compression::none;
  if (type == kLayerGzip || type == kDockerLayerGzip || type == kDockerForeignGzip ||
      type == std::string(kForeignTar) + "+gzip") {
    return Compression::gzip;
  }
  if (type == kLayerZstd || type == kDockerLayerZstd ||
      type == std::string(kForeignTar) + "+zstd") {
    return Compression::zstd;
  }
  return make_error(Kind::unsupported,
                    "layer media type " + quote(type.substr(0, 200)) +
                        " is unknown; tar, tar+gzip and tar+zstd can be unpacked");
}

Result<Platform> parse_platform(std::string_view text) {
  auto parts = split(text, '/');
  auto valid = [](std::string_view part) {
    return !part.empty() && part.size() <= 64 &&
           part.find_first_not_of(
               "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
               "._-") == std::string_view::npos;
  };
  if (parts.size() > 3 || !std::ranges::all_of(parts, valid)) {
    return make_error(Kind::usage, "read platform " + quote(text.substr(0, 100)) +
                                       ": expected OS/ARCH or OS/ARCH/VARIANT, as linux/arm64");
  }
  Platform platform;
  // A single word is an operating system or an architecture, as in containerd.
  constexpr std::string_view kSystems[] = {"linux", "windows", "darwin", "freebsd"};
  constexpr std::string_view kArchitectures[] = {
      "386",      "amd64",  "arm",   "arm64",   "loong64", "mips",  "mips64",
      "mips64le", "mipsle", "ppc64", "ppc64le", "riscv64", "s390x", "wasm"};
  if (parts.size() == 1 && std::ranges::find(kSystems, to_lower(parts[0])) != std::end(kSystems)) {
    platform = host_platform();
    platform.os = to_lower(parts[0]);
    return platform;
  }
  platform.os = parts.size() == 1 ? "linux" : to_lower(parts[0]);
  std::string architecture = to_lower(parts.size() == 1 ? parts[0] : parts[1]);
  if (parts.size() == 3) platform.variant = to_lower(parts[2]);
  if (architecture == "armhf" || architecture == "armel") {
    if (platform.variant.empty()) platform.variant = architecture == "armhf" ? "v7" : "v6";
    architecture = "arm";
  }
  platform.architecture = architecture_name(architecture);
  if (parts.size() == 1 &&
      std::ranges::find(kArchitectures, platform.architecture) == std::end(kArchitectures)) {
    return make_error(Kind::usage,
                      "read platform " + quote(text.substr(0, 100)) +
                          ": it names neither an operating system nor an architecture",
                      "OS/ARCH or OS/ARCH/VARIANT, as linux/arm64");
  }
  return platform;
}

std::string platform_text(const Platform& platform) {
  std::string text = platform.os + "/" + platform.architecture;
  if (!platform.variant.empty()) text += "/" + platform.variant;
  return text;
}

Platform host_platform() {
  Platform platform;
  platform.os = "linux";
#if defined(__x86_64__)
  platform.architecture = "amd64";
#elif defined(__aarch64__)
  platform.architecture = "arm64";
#else
#error "name this architecture as the image-spec does (Go's GOARCH)"
#endif
  return platform;
}

Result<std::variant<Index, Manifest>> parse_manifest(std::string_view bytes,
                                                     std::string_view media_type,
                                                     std::string_view document) {
  if (bytes.size() > kMaxManifestBytes) {
    return make_error(Kind::corrupt, std::string(document) + ": " + std::to_string(bytes.size()) +
                                         " bytes, more than the 4 MiB allowed");
  }
  json::Value body = TRY(json::parse(bytes, document));
  TRY(check_types(body, bare_type(media_type), document));
  if (body.find("manifests") != nullptr) {
    Index index = TRY(json::from_value<Index>(std::move(body), document));
    if (index.manifests.size() > kMaxIndexEntries) {
      return make_error(Kind::corrupt, std::string(document) + ": " +
                                           std::to_string(index.manifests.size()) +
                                           " entries, more than the 1024 allowed");
    }
    return std::variant<Index, Manifest>(std::move(index));
  }
  Manifest manifest = TRY(json::from_value<Manifest>(std::move(body), document));
  if (manifest.layers.size() > kMaxLayers) {
    return make_error(Kind::corrupt,
                      std::string(document) + ": " + std::to_string(manifest.layers.size()) +
                          " layers, more than the " + std::to_string(kMaxLayers) + " allowed");
  }
  if (manifest.config.size > kMaxConfigBytes) {
    return make_error(Kind::corrupt,
                      std::string(document) + ": its config is larger than the 4 MiB allowed");
  }
  return std::variant<Index, Manifest>(std::move(manifest));
}

Result<ImageConfig> parse_config(std::string_view bytes, std::string_view document) {
  if (bytes.size() > kMaxConfigBytes) {
    return make_error(Kind::corrupt, std::string(document) + ": " + std::to_string(bytes.size()) +
                                         " bytes, more than the 4 MiB allowed");
  }
  return json::read<ImageConfig>(bytes, document);
}

Result<void> check_is_image(const Manifest& manifest) {
  if (is_config_type(manifest.config.media_type)) return {};
  // image-spec manifest.md "Guidelines for Artifact Usage": one of the two names the type.
  bool named = !manifest.artifact_type.empty();
  const std::string& type = named ? manifest.artifact_type : manifest.config.media_type;
  return make_error(
      Kind::unsupported,
      "it is not a container image but an artifact of type " + quote(type.substr(0, 200)),
      "the tool for such artifacts, such as helm or oras");
}

Result<void> check_image(const Manifest& manifest, const ImageConfig& config) {
  TRY(check_is_image(manifest));
  for (const auto& layer : manifest.layers) TRY(layer_compression(layer.media_type));
  if (config.rootfs.diff_ids.size() != manifest.layers.size()) {
    return make_error(Kind::corrupt,
                      "the config lists " + std::to_string(config.rootfs.diff_ids.size()) +
                          " layers, the manifest " + std::to_string(manifest.layers.size()));
  }
  return {};
}

Result<std::vector<Descriptor>> matching_entries(const Index& index, const Platform& wish) {
  std::vector<Descriptor> fitting;
  std::vector<std::string> others;
  const Descriptor* unlabelled = nullptr;
  size_t images = 0;
  bool attestations = false;
  for (const auto& entry : index.manifests) {
    bool image = is_manifest_type(entry.media_type) || is_index_type(entry.media_type);
    if (!image) continue;
    ++images;
    if (!entry.platform) {
      if (unlabelled == nullptr) unlabelled = &entry;
      continue;
    }
    const Platform& offer = *entry.platform;
    if (offer.os == wish.os && architecture_name(offer.architecture) == wish.architecture &&
        same_variant(offer, wish)) {
      fitting.push_back(entry);
    } else if (offer.os == "unknown") {
      attestations = true;
    } else if (offer.os.empty() && offer.architecture.empty()) {
      others.emplace_back("one that names no platform");
    } else {
      others.push_back(entry_text(entry));
    }
  }
  if (!fitting.empty()) return fitting;
  // For an image of one architecture some tools write a single entry without a platform; the config
  // has the platform.
  if (images == 1 && unlabelled != nullptr) return std::vector<Descriptor>{*unlabelled};
  std::ranges::sort(others);
  others.erase(std::unique(others.begin(), others.end()), others.end());
  std::string there =
      attestations ? "only unknown/unknown, as attestations have" : "none with a platform";
  if (!others.empty()) there = join(others, ", ");
  return make_error(Kind::not_found,
                    "the image has no entry for " + platform_text(wish) + "; it has " + there);
}

Result<Descriptor> select_platform(const Index& index, const Platform& wish) {
  auto fitting = TRY(matching_entries(index, wish));
  return std::move(fitting.front());
}

}  // namespace berth::oci
