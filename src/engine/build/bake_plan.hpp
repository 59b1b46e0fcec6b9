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

/// All that is known of a cell before it is made.
struct CellPlan {
  std::string local;    ///< what the store calls it: "repo:1.0.cell-v3"
  std::string adopted;  ///< the image that is adopted: "repo@sha256:…"; empty: it is made
  std::string context, file, ignore_file;  ///< absolute; empty where it is adopted
  std::vector<bake::BaseImage> bases;      ///< of the Containerfile
  Digest inputs;                           ///< of all that it is made of
  /// The repository has it, made of the same inputs and declared in the same way.
  std::optional<oci::Descriptor> present;
  std::optional<image::PublishedImage> findings;  ///< what was found in it, here or elsewhere
};

/// Fills all but `present`, of cells whose `errors` are empty; an error of one cell goes there.
/// Errors: those that no cell is to blame for.
Result<void> plan_cells(const Context& context, const std::string& directory,
                        const bake::BakeFile& file, const BakeRequest& request, BaseImages& bases,
                        std::vector<CellPlan>& plans, std::map<size_t, Error>& errors);

/// The annotations that its entry gets.
std::map<std::string, std::string> entry_annotations(const bake::Cell& cell, const Digest& inputs);

/// Whether `entry` is what the plan would make, and is declared so.
bool is_same(const oci::Descriptor& entry, const bake::Cell& cell, const Digest& inputs);

/// What the store remembers of a cell: that image `manifest` was made of `inputs`.
struct CellRecord {
  Digest inputs;
  Digest manifest;
};
template <class V>
void fields(V& v, CellRecord& r) {
  v.required("inputs", r.inputs);
  v.required("manifest", r.manifest);
}

/// Where the records and logs of an image's cells lie.
std::string bake_directory(const Context& context, const std::string& image);
Result<std::optional<CellRecord>> read_record(const std::string& directory,
                                              const std::string& cell);
Result<void> write_record(const std::string& directory, const std::string& cell,
                          const CellRecord& record);

}  // namespace berth::engine
