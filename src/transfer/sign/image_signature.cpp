// SPDX-License-Identifier: Apache-2.0
#include "transfer/sign/image_signature.hpp"

#include <fmt/format.h>

#include <map>
#include <variant>
#include <vector>

#include "base/text.hpp"
#include "json/fields.hpp"
#include "oci/image_spec.hpp"
#include "transfer/sign/signature.hpp"
#include "transfer/work/base64.hpp"
#include "transfer/work/sha256.hpp"

namespace berth::transfer {
namespace {

constexpr std::string_view kPayloadType = "application/vnd.dev.cosign.simplesigning.v1+json";
constexpr std::string_view kSignature = "dev.cosignproject.cosign/signature";
constexpr std::string_view kPublicKey = "dev.berth.key";

/// The signed document. Source: containers/image containers-signature.5 "JSON data format".
std::string payload_of(const image::Reference& reference, const Digest& digest) {
  json::Object identity{{"docker-reference", reference.registry() + "/" + reference.repository()}};
  json::Object image{{"docker-manifest-digest", digest.text()}};
  json::Object critical{{"identity", std::move(identity)},
                        {"image", std::move(image)},
                        {"type", "cosign container image signature"}};
  json::Object optional{{"creator", "berth"}};
  return json::dump(json::Value(
      json::Object{{"critical", std::move(critical)}, {"optional", std::move(optional)}}));
}

/// The image that carries the signatures: the present ones, and one more.
struct Signatures {
  oci::Manifest manifest;

  bool has(const std::string& key, const Digest& payload) const {
    for (const oci::Descriptor& layer : manifest.layers) {
      auto by = layer.annotations.find(std::string(kPublicKey));
      if (layer.digest == payload && by != layer.annotations.end() && by->second == key) {
        return true;
      }
    }
    return false;
  }
};

Result<Signatures> signatures_under(Registry& registry, const std::string& tag) {
  Signatures signatures;
  signatures.manifest.media_type = oci::media_type::kManifest;
  auto document = TRY(registry.find_manifest(tag));
  if (!document) return signatures;
  auto parsed = TRY(oci::parse_manifest(document->bytes, document->media_type));
  auto* manifest = std::get_if<oci::Manifest>(&parsed);
  if (manifest == nullptr) {
    return make_error(Kind::corrupt, fmt::format("read the signatures '{}': it is an index", tag));
  }
  signatures.manifest = std::move(*manifest);
  return signatures;
}

/// An image's config in the form that clients expect: without a system, with the payloads as its
/// layers.
oci::ImageConfig config_of(const oci::Manifest& manifest) {
  oci::ImageConfig config;
  for (const oci::Descriptor& layer : manifest.layers) {
    config.rootfs.diff_ids.push_back(layer.digest);
  }
  return config;
}

std::string signature_tag(const Digest& digest) {
  return "sha256-" + digest.hex() + ".sig";
}

}  // namespace

Result<bool> is_signed(Registry& registry, const image::Reference& reference, const Digest& digest,
                       const std::vector<std::string>& public_keys) {
  std::string payload = payload_of(reference, digest);
  Digest signed_bytes = sha256_of(payload);
  Signatures signatures = TRY(signatures_under(registry, signature_tag(digest)));
  for (const oci::Descriptor& layer : signatures.manifest.layers) {
    auto text = layer.annotations.find(std::string(kSignature));
    if (layer.digest != signed_bytes || text == layer.annotations.end()) continue;
    auto signature = base64_decode(text->second);
    for (const std::string& key : public_keys) {
      if (signature && TRY(verify(key, payload, *signature))) return true;
    }
  }
  return false;
}

Result<void> sign_image(Registry& registry, const image::Reference& reference, const Digest& digest,
                        const std::string& private_pem) {
  std::string tag = signature_tag(digest);
  std::string payload = payload_of(reference, digest);
  std::string key = TRY(key_name(private_pem));
  Signatures signatures = TRY(signatures_under(registry, tag));
  if (signatures.has(key, sha256_of(payload))) return {};
  std::string signature = TRY(sign(private_pem, payload));
  oci::Descriptor layer = TRY(registry.put_bytes(kPayloadType, payload));
  layer.annotations[std::string(kSignature)] = base64_encode(signature);
  layer.annotations[std::string(kPublicKey)] = key;
  oci::Manifest& manifest = signatures.manifest;
  manifest.layers.push_back(std::move(layer));
  std::string config = json::write(config_of(manifest));
  manifest.config = TRY(registry.put_bytes(oci::media_type::kConfig, config));
  Document document{json::write(manifest), std::string(oci::media_type::kManifest), {}};
  document.digest = sha256_of(document.bytes);
  return registry.put_manifest(tag, document);
}

}  // namespace berth::transfer
