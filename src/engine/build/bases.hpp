// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "bake/containerfile.hpp"
#include "engine/build/steps.hpp"
#include "engine/context/context.hpp"
#include "engine/image/transfer.hpp"

namespace berth::engine {

/// An image name resolved at a registry, for one platform.
struct ResolvedImage {
  std::string reference;  ///< "docker.io/library/debian@sha256:…", with the digest of a manifest
  Digest digest;          ///< of that manifest; empty with BaseFrom::store if not pulled yet
};
/// `platform`: "linux/arm64"; empty: the platform of this machine.
/// Errors: those of transfer(); not_found (no such platform).
Result<ResolvedImage> resolve_image(const Context& context, const std::string& name,
                                    const std::string& platform,
                                    const image::RegistryAccess& access);

/// Where to look first for a base image.
enum class BaseFrom {
  registry,  ///< only at the registry: a build gives the same result on every machine
  store,     ///< in the store, then at the registry, as docker does
};

/// The images that Containerfiles name, each fetched once. Berth pulls them, since the store needs
/// them anyway once a built image is loaded.
class BaseImages {
 public:
  BaseImages(const Context& context, const image::RegistryAccess& access, BaseFrom from)
      : context_(context), access_(access), from_(from) {}

  /// Resolves a name; the store knows the image as `reference` once it is fetched.
  Result<ResolvedImage> resolve(const std::string& name, const std::string& platform);
  /// Saves the images as layouts below the builder's working directory, under all names that a
  /// builder may look up.
  Result<std::vector<Base>> fetch(const BuildPlace& place,
                                  const std::vector<bake::BaseImage>& images,
                                  const std::string& platform, const Progress& progress);

 private:
  Result<std::string> layout_of(const BuildPlace& place, const std::string& name,
                                const std::string& platform, const Progress& progress);

  const Context& context_;
  const image::RegistryAccess& access_;
  BaseFrom from_;
  std::map<std::string, ResolvedImage> resolved_;  // by platform and name
  std::map<std::string, std::string> layouts_;     // by reference
};

}  // namespace berth::engine
