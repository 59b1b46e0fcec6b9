// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "bake/containerfile.hpp"
#include "engine/build/steps.hpp"
#include "engine/context/context.hpp"
#include "engine/image/transfer.hpp"

namespace berth::engine {

/// What a name means at a registry, for one platform.
struct ResolvedImage {
  std::string reference;  ///< "docker.io/library/debian@sha256:…": of a manifest
  Digest digest;          ///< of that; empty: BaseFrom::store, and it is still to be pulled
};
/// `platform`: "linux/arm64"; empty: this machine's.
/// Errors: those of transfer(); not_found (no such platform).
Result<ResolvedImage> resolve_image(const Context& context, const std::string& name,
                                    const std::string& platform,
                                    const image::RegistryAccess& access);

/// Where an image that others are built on is looked for first.
enum class BaseFrom {
  registry,  ///< and only there: what is built is the same on every machine
  store,     ///< then at the registry, as docker does
};

/// The images that Containerfiles name, each fetched once. Berth pulls them, so that they lie in
/// the store anyway when what was built on them is loaded.
class BaseImages {
 public:
  BaseImages(const Context& context, const image::RegistryAccess& access, BaseFrom from)
      : context_(context), access_(access), from_(from) {}

  /// Finds out what it means; `reference` is what the store knows it as once it is fetched.
  Result<ResolvedImage> resolve(const std::string& name, const std::string& platform);
  /// As layouts below the builder's working directory, under every name that a builder may ask for.
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
