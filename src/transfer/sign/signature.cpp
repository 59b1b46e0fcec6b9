// SPDX-License-Identifier: Apache-2.0
#include "transfer/sign/signature.hpp"

#include <fmt/format.h>
#include <openssl/bio.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <map>
#include <memory>
#include <variant>
#include <vector>

#include "base/text.hpp"
#include "json/fields.hpp"
#include "oci/image_spec.hpp"
#include "transfer/work/base64.hpp"
#include "transfer/work/sha256.hpp"

namespace berth::transfer {
namespace {

template <auto Free>
struct Release {
  template <class T>
  void operator()(T* object) const {
    Free(object);
  }
};
using Key = std::unique_ptr<EVP_PKEY, Release<EVP_PKEY_free>>;
using Memory = std::unique_ptr<BIO, Release<BIO_free>>;
using DigestContext = std::unique_ptr<EVP_MD_CTX, Release<EVP_MD_CTX_free>>;

constexpr size_t kMaxPem = size_t{64} << 10;

const unsigned char* raw(std::string_view bytes) {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}

/// Prevents OpenSSL from asking at a terminal for the passphrase of a key.
int no_passphrase(char*, int, int, void*) {
  return -1;
}

bool is_p256(const EVP_PKEY* key) {
  char group[64] = {};
  size_t length = 0;
  return EVP_PKEY_get_utf8_string_param(key, OSSL_PKEY_PARAM_GROUP_NAME, group, sizeof group,
                                        &length) == 1 &&
         std::string_view(group, length) == SN_X9_62_prime256v1;
}

bool is_usable(const EVP_PKEY* key) {
  int kind = EVP_PKEY_get_base_id(key);
  return kind == EVP_PKEY_ED25519 || (kind == EVP_PKEY_EC && is_p256(key));
}

using Reader = EVP_PKEY* (*)(BIO*, EVP_PKEY**, pem_password_cb*, void*);

Result<Key> read_key(const std::string& pem, Reader reader, const char* what) {
  Key key;
  if (pem.size() <= kMaxPem) {
    Memory memory(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
    key.reset(reader(memory.get(), nullptr, no_passphrase, nullptr));
  }
  if (key == nullptr || !is_usable(key.get())) {
    return make_error(
        Kind::usage,
        std::string("read the ") + what + ": not an unencrypted PEM of a P-256 or Ed25519 key",
        "openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out FILE");
  }
  return key;
}

/// Ed25519 hashes by itself.
const EVP_MD* digest_for(const EVP_PKEY* key) {
  return EVP_PKEY_get_base_id(key) == EVP_PKEY_ED25519 ? nullptr : EVP_sha256();
}

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

/// The image that carries the signatures: the existing ones, and later a new one.
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

/// The config of that image in the form that clients expect: without architecture and operating
/// system, with the payloads as layers.
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

Result<std::string> sign(const std::string& private_pem, std::string_view bytes) {
  Key key = TRY(read_key(private_pem, PEM_read_bio_PrivateKey, "signing key"));
  DigestContext context(EVP_MD_CTX_new());
  size_t size = 0;
  BERTH_ASSERT(
      EVP_DigestSignInit(context.get(), nullptr, digest_for(key.get()), nullptr, key.get()) == 1);
  BERTH_ASSERT(EVP_DigestSign(context.get(), nullptr, &size, raw(bytes), bytes.size()) == 1);
  std::string signature(size, '\0');
  BERTH_ASSERT(EVP_DigestSign(context.get(), reinterpret_cast<unsigned char*>(signature.data()),
                              &size, raw(bytes), bytes.size()) == 1);
  signature.resize(size);
  return signature;
}

Result<bool> verify(const std::string& public_pem, std::string_view bytes,
                    std::string_view signature) {
  Key key = TRY(read_key(public_pem, PEM_read_bio_PUBKEY, "public key"));
  DigestContext context(EVP_MD_CTX_new());
  BERTH_ASSERT(
      EVP_DigestVerifyInit(context.get(), nullptr, digest_for(key.get()), nullptr, key.get()) == 1);
  return EVP_DigestVerify(context.get(), raw(signature), signature.size(), raw(bytes),
                          bytes.size()) == 1;
}

Result<std::string> public_key_of(const std::string& private_pem) {
  Key key = TRY(read_key(private_pem, PEM_read_bio_PrivateKey, "signing key"));
  Memory memory(BIO_new(BIO_s_mem()));
  BERTH_ASSERT(PEM_write_bio_PUBKEY(memory.get(), key.get()) == 1);
  char* text = nullptr;
  long size = BIO_get_mem_data(memory.get(), &text);
  return std::string(text, static_cast<size_t>(size));
}

Result<std::string> key_name(const std::string& pem) {
  bool is_private = pem.find("PRIVATE KEY") != std::string::npos;
  Key key = TRY(read_key(pem, is_private ? PEM_read_bio_PrivateKey : PEM_read_bio_PUBKEY, "key"));
  unsigned char* der = nullptr;
  int size = i2d_PUBKEY(key.get(), &der);
  BERTH_ASSERT(size > 0);
  std::string bytes(reinterpret_cast<char*>(der), static_cast<size_t>(size));
  OPENSSL_free(der);
  return sha256_of(bytes).hex().substr(0, 16);
}

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
