// SPDX-License-Identifier: Apache-2.0
// Layers merged as overlay merges them, for comparisons. They are untrusted: links are not
// followed.
#pragma once

#include <sys/stat.h>

#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "image/transfer_protocol.hpp"
#include "sys/fd/fd.hpp"

namespace berth::engine {

inline constexpr int kMaxLayerDepth = 400;  ///< directories

/// A directory as the layers that it is merged from, highest first.
using Merged = std::vector<sys::Fd>;

/// Overlay's extended attributes in one namespace, "trusted." or "user.". Those in the other
/// namespace are data of the container's programs.
class OverlayAttributes {
 public:
  explicit OverlayAttributes(image::OverlayXattr kind);
  Result<bool> opaque(const sys::Fd& directory) const;
  Result<bool> whiteout(const sys::Fd& file) const;

 private:
  std::string space_;
};

/// Whether the entry `name` of a layer hides lower layers: a device 0:0, or an empty file with
/// overlay's whiteout attribute.
Result<bool> is_whiteout(const OverlayAttributes& attributes, const sys::Fd& layer,
                         const std::string& name, const struct stat& status);

/// The entry that the merged layers show at a name.
struct Below {
  std::optional<struct stat> status;  ///< none: absent
  Merged directory;                   ///< only if the entry is a directory
};
Result<Below> look_below(const OverlayAttributes& attributes, const Merged& layers,
                         const std::string& name);

}  // namespace berth::engine
