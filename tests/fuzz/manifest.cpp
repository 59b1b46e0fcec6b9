// SPDX-License-Identifier: Apache-2.0
// Manifests, indexes and configs: no crash, and what was accepted keeps its promises.
#include <cstdint>

#include "oci/image_spec.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace berth;
  if (size == 0) return 0;
  std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  constexpr std::string_view kTypes[] = {"", oci::media_type::kIndex, oci::media_type::kManifest,
                                         oci::media_type::kDockerIndex,
                                         oci::media_type::kDockerManifest};
  auto document = oci::parse_manifest(text, kTypes[data[0] % std::size(kTypes)]);
  auto config = oci::parse_config(text);
  if (!document.ok()) return 0;
  if (const auto* index = std::get_if<oci::Index>(&*document)) {
    (void)oci::select_platform(*index, oci::host_platform()).ok();
    return 0;
  }
  const auto& manifest = std::get<oci::Manifest>(*document);
  BERTH_ASSERT(manifest.layers.size() <= oci::kMaxLayers);
  if (config.ok()) (void)oci::check_image(manifest, *config).ok();
  return 0;
}
