// SPDX-License-Identifier: Apache-2.0
// Converts the rules of Node Feature Discovery's image compatibility artifact to the axes of
// docs/variants.md. Foreign text; demands without an axis are reported, never dropped. Pure.
// Source: NFD docs/usage/image-compatibility.md and customization-guide.md; for the labels,
// NVIDIA's GPU feature discovery.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bake/axes.hpp"
#include "base/result.hpp"

namespace berth::bake {

/// A demand of the rules that has no axis.
struct NfdLeft {
  std::string place;  ///< "compatibilities[0].rules[1].matchFeatures[0]"
  std::string text;   ///< "kernel.loadedmodule: vfio_pci Exists has no word here"
};

/// One set of rules, all of which have to match.
struct NfdRules {
  AxisValues words;           ///< as axes: {"cpu", "x86-64-v3"}
  std::vector<NfdLeft> left;  ///< in the document's order
  size_t index = 0;           ///< index of the set in `compatibilities`
  size_t sets = 0;            ///< the number of sets there
  std::string tag, description;
  int64_t weight = 0;
};

/// The set with the highest weight; of equal weights the first. If `tag` is given, only the sets
/// with this tag count. `document` names the file in errors: "nfd.yaml:
/// compatibilities[0].rules[1].matchFeatures[0]: …". Errors: corrupt (invalid YAML, over
/// nfd::kMostBytes), usage (another version; an unknown member, feature, operator or tag,
/// suggesting the nearest one; invalid values for an operator; a demand that no node can meet).
Result<NfdRules> read_nfd(std::string_view text, std::string_view document,
                          const std::optional<std::string>& tag);

/// A line for each fact worth knowing: which of several sets was used, and demands without an axis.
std::vector<std::string> remarks_of(const NfdRules& rules, std::string_view document);

void fields(auto& v, NfdLeft& l) {
  v.required("place", l.place);
  v.required("text", l.text);
}

void fields(auto& v, NfdRules& r) {
  v.always("words", r.words);
  v.always("left", r.left);
  v.always("index", r.index);
  v.always("sets", r.sets);
  v.always("tag", r.tag);
  v.always("description", r.description);
  v.always("weight", r.weight);
}

}  // namespace berth::bake
