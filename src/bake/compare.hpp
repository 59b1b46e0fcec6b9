// SPDX-License-Identifier: Apache-2.0
// Compares the declarations of an image with its files. Pure.
#pragma once

#include <string>
#include <vector>

#include "facts/facts.hpp"
#include "match/declared.hpp"

namespace berth::bake {

struct Finding {
  /// lie: a node that chooses the image by its declarations would fail, or run something else than
  /// promised. remark: worth checking.
  enum class Kind { lie, remark };
  Kind kind = Kind::remark;
  std::string about;  ///< "cpu", "gpu", "cuda", "driver", "glibc", "mpi", "platform"
  std::string text;   ///< "declares x86-64-v2; /usr/bin/app needs x86-64-v3 (found: note)"
};

/// Lies first. An undeclared axis demands nothing: an image without `cpu` that needs more than the
/// baseline lies. `architecture` is that of its config.
std::vector<Finding> compare(const match::Declared& declared, const std::string& architecture,
                             const facts::ImageFacts& found);

}  // namespace berth::bake
