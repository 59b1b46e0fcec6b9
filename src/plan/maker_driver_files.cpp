// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"
#include "oci/edit.hpp"
#include "plan/maker.hpp"

namespace berth::plan {
namespace {

// A path in the kernel's file systems does not belong to the container.
bool may_be_linked(const std::string& path) {
  return path != "/" && !is_below(path, "/proc") && !is_below(path, "/sys");
}

}  // namespace

void Maker::links() {
  for (auto at = spec_.annotations.lower_bound(std::string(oci::kLinkAnnotation));
       at != spec_.annotations.end() && at->first.starts_with(oci::kLinkAnnotation); ++at) {
    std::string_view path = std::string_view(at->first).substr(oci::kLinkAnnotation.size());
    std::string link = tidy(path);
    if (!path.starts_with('/') || path.ends_with('/') || !may_be_linked(link) ||
        at->second.empty()) {
      plan_.warnings.push_back("annotations: " + quote(at->first) +
                               ": no link of a root, ignoring");
      continue;
    }
    add(ReplaceLink{std::move(link), at->second});
  }
}

void Maker::loader_files() {
  auto lines = spec_.annotations.find(std::string(oci::kLoaderCacheAnnotation));
  if (lines != spec_.annotations.end()) loader_entries_ = oci::loader_entries_of(lines->second);
  auto compat = spec_.annotations.find(std::string(oci::kCompatAnnotation));
  if (compat != spec_.annotations.end()) compat_ = oci::compat_request_of(compat->second);
  if (fills_loader_files()) add(PlaceLoaderFiles{!spec_.root.readonly});
}

void Maker::fill_loader_files() {
  if (fills_loader_files()) add(FillLoaderFiles{std::move(loader_entries_), std::move(compat_)});
}

}  // namespace berth::plan
