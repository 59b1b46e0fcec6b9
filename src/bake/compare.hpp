// SPDX-License-Identifier: Apache-2.0
// Compares what an image declares with what its files need. Pure.
#pragma once

#include <string>
#include <vector>

#include "facts/facts.hpp"
#include "match/declared.hpp"

namespace berth::bake {

struct Finding {
  /// lie: a node that chooses the image by its declarations would fail, or run something other than
  /// what they promise. remark: worth checking.
  enum class Kind { lie, remark };
  Kind kind = Kind::remark;
  std::string about;  ///< "cpu", "gpu", "cuda", "driver", "glibc", "mpi", "platform"
  std::string text;   ///< "declares x86-64-v2; /usr/bin/app needs x86-64-v3 (found: note)"
};

/// Lies first. An axis that is not declared demands nothing: an image that does not declare `cpu`
/// but needs more than the baseline lies. `architecture` is the one in the image's config.
std::vector<Finding> compare(const match::Declared& declared, const std::string& architecture,
                             const facts::ImageFacts& found);

}  // namespace berth::bake
