// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/digest.hpp"
#include "base/result.hpp"
#include "image/reference.hpp"
#include "transfer/registry/registry.hpp"

/// Image signatures that cosign writes and podman and cosign check: a "simple signing" document for
/// each, in an image under the tag sha256-HEX.sig beside the signed one. Source: sigstore/cosign
/// specs/SIGNATURE_SPEC.md, containers/image containers-signature.5.
namespace berth::transfer {

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
