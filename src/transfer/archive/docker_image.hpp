// SPDX-License-Identifier: Apache-2.0
// The names of members of an archive, shared by save and load.
#pragma once

#include <string>
#include <vector>

#include "base/digest.hpp"
#include "json/fields.hpp"

namespace berth::transfer {

/// One element of a docker-archive's manifest.json.
struct DockerImage {
  std::string config;  ///< these three name members of the archive
  std::vector<std::string> repo_tags;
  std::vector<std::string> layers;
};
void fields(auto& v, DockerImage& i) {
  v.required("Config", i.config);
  v.always("RepoTags", i.repo_tags);
  v.always("Layers", i.layers);
}

/// The path of a blob in an OCI layout. image-spec image-layout.md
inline std::string blob_name(const Digest& digest) {
  return "blobs/sha256/" + digest.hex();
}

}  // namespace berth::transfer
