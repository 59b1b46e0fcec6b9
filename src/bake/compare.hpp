// SPDX-License-Identifier: Apache-2.0
// What is declared of an image against what was found in its files. Pure.
#pragma once

#include <string>
#include <vector>

#include "facts/facts.hpp"
#include "match/declared.hpp"

namespace berth::bake {

struct Finding {
  /// lie: a node that takes the image by what is declared would fail, or use what it was not
  /// promised. remark: worth a look.
  enum class Kind { lie, remark };
  Kind kind = Kind::remark;
  std::string about;  ///< "cpu", "gpu", "cuda", "driver", "glibc", "mpi", "platform"
  std::string text;   ///< "declares x86-64-v2; /usr/bin/app needs x86-64-v3 (found: note)"
};

/// Lies first. An axis that is not declared asks for nothing: an image without `cpu` that needs
/// more than the baseline lies. `architecture` is that of its config.
std::vector<Finding> compare(const match::Declared& declared, const std::string& architecture,
                             const facts::ImageFacts& found);

}  // namespace berth::bake
