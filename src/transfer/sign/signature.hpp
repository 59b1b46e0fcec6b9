// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/digest.hpp"
#include "base/result.hpp"
#include "image/reference.hpp"
#include "transfer/registry/registry.hpp"

/// Signatures over bytes with keys in PEM: ECDSA on P-256 with SHA-256, as cosign and podman use,
/// or Ed25519. Source: RFC 5480, RFC 8410, openssl EVP_DigestSign(3).
namespace berth::transfer {

/// `private_pem` is an unencrypted PKCS#8 or SEC 1 key. Returns the signature in binary form (for
/// ECDSA the DER of RFC 3279).
/// Errors: usage (not a key in these formats, or not of these types).
Result<std::string> sign(const std::string& private_pem, std::string_view bytes);

/// Whether `signature` over `bytes` was made with the private key of `public_pem`.
/// Errors: usage (not a public key of these types). A malformed signature counts as wrong.
Result<bool> verify(const std::string& public_pem, std::string_view bytes,
                    std::string_view signature);

/// The public key of a private one, PEM.  Errors: usage (not such a key).
Result<std::string> public_key_of(const std::string& private_pem);

/// The first 16 hex digits of the SHA-256 of the public key (SubjectPublicKeyInfo), of a public or
/// a private PEM: a name that people can compare.
Result<std::string> key_name(const std::string& pem);

// Image signatures that cosign writes and podman and cosign check: a "simple signing" document for
// each, in an image with the tag sha256-HEX.sig in the same repository. Source: sigstore/cosign
// specs/SIGNATURE_SPEC.md, containers/image containers-signature.5.

/// Adds a signature of the manifest or index `digest`, which the registry has under `reference`, to
/// the existing ones. Does nothing if the key has signed it before.
/// Errors: usage (the key), those of Registry.
Result<void> sign_image(Registry& registry, const image::Reference& reference, const Digest& digest,
                        const std::string& private_pem);

/// Whether one of `public_keys` (PEM) has signed `digest` under `reference` as sign_image() does.
/// Verifies the signature: the registry is not trusted. Errors: usage (a key), those of Registry.
Result<bool> is_signed(Registry& registry, const image::Reference& reference, const Digest& digest,
                       const std::vector<std::string>& public_keys);

}  // namespace berth::transfer
