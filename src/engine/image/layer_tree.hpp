// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "engine/image/layer_view.hpp"
#include "scan/driver_files.hpp"

namespace berth::engine {

/// A view of layers as a tree, for library searches.
class LayerTree : public scan::Tree {
 public:
  /// `view` must outlive this object.
  explicit LayerTree(const LayerView& view) : view_(view) {}
  Result<std::optional<File>> find_file(const std::string& path) const override {
    auto found = TRY(view_.find_file(path));
    if (!found) return std::optional<File>();
    return std::optional<File>(File{std::move(found->path), found->size});
  }
  Result<std::vector<std::string>> list(const std::string& path) const override {
    return view_.list(path);
  }
  Result<std::string> read(const File& file, uint64_t offset, size_t length) const override {
    return view_.read_at(file.path, offset, length);
  }

 private:
  const LayerView& view_;
};

}  // namespace berth::engine
