// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "base/result.hpp"
#include "edf/definition.hpp"
#include "edf/expand.hpp"

namespace berth::edf {

struct File {
  std::string path;  ///< the same for the same file, else a loop is only seen where it is too deep
  std::string text;
};

/// Finds and reads a file by its name or path.
using Load = std::function<Result<File>(const std::string& name)>;

inline constexpr size_t kMostLevels = 10;  ///< of bases below the first file
inline constexpr size_t kMostFiles = 100;

/// What `file` says on top of its bases, one after the other: a later value takes the place of an
/// earlier one, [env] and [annotations] by their names, mounts and devices are added. All texts are
/// expanded by `look_up` but those of [env], for which the image's variables count as well; that
/// they can be read is checked. `bases` is empty.
/// Errors: those of parse(), and of expand() and `load` behind "pytorch.toml:3: "; usage (a loop in
/// base_environment, named file by file, or more than the constants above).
Result<Definition> resolve(const File& file, const Load& load, const LookUp& look_up);

}  // namespace berth::edf
