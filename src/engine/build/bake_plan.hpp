// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "bake/containerfile.hpp"
#include "engine/build/bake_request.hpp"
#include "engine/build/bases.hpp"
#include "image/published_facts.hpp"

namespace berth::engine {

/// What is known of a cell before it is built.
struct CellPlan {
  std::string local;                       ///< its name in the store: "repo:1.0.cell-v3"
  std::string adopted;                     ///< the adopted image: "repo@sha256:…"; empty: built
  std::string context, file, ignore_file;  ///< absolute; empty if adopted
  std::vector<bake::BaseImage> bases;      ///< of the Containerfile
  Digest inputs;                           ///< over all its inputs
  /// The entry with the same inputs and declarations that the repository already has.
  std::optional<oci::Descriptor> present;
  std::optional<image::PublishedImage> findings;  ///< from the store, or published ones
};

/// Sets all members except `present` and `findings`, for all cells that have no error in `errors`.
/// Adds the errors of single cells to `errors`.
/// Errors: those that do not belong to a single cell.
Result<void> plan_cells(const Context& context, const std::string& directory,
                        const bake::BakeFile& file, const BakeRequest& request, BaseImages& bases,
                        std::vector<CellPlan>& plans, std::map<size_t, Error>& errors);

/// The annotations of the cell's entry in the index.
std::map<std::string, std::string> entry_annotations(const bake::Cell& cell, const Digest& inputs);

/// Whether `entry` has these inputs and the declarations of `cell`.
bool is_up_to_date(const oci::Descriptor& entry, const bake::Cell& cell, const Digest& inputs);

/// The store's record of a cell: image `manifest` was made from `inputs`.
struct CellRecord {
  Digest inputs;
  Digest manifest;
};
template <class V>
void fields(V& v, CellRecord& r) {
  v.required("inputs", r.inputs);
  v.required("manifest", r.manifest);
}

/// The directory with the records and logs of an image's cells.
std::string bake_directory(const Context& context, const std::string& image);
Result<std::optional<CellRecord>> read_record(const std::string& directory,
                                              const std::string& cell);
Result<void> write_record(const std::string& directory, const std::string& cell,
                          const CellRecord& record);

}  // namespace berth::engine
