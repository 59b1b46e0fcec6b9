// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "base/result.hpp"
#include "edf/definition.hpp"
#include "edf/expand.hpp"

namespace berth::edf {

struct File {
  std::string path;  ///< equal for the same file, otherwise a loop is only noticed by its depth
  std::string text;
};

/// Finds and reads a file by its name or path.
using Load = std::function<Result<File>(const std::string& name)>;

inline constexpr size_t kMostLevels = 10;  ///< of bases below the first file
inline constexpr size_t kMostFiles = 100;

/// Combines `file` with its bases, in order: a later value replaces an earlier one, [env] and
/// [annotations] by name; mounts and devices are appended. All texts are expanded by `look_up`
/// except those of [env], for which the image's variables count as well; only their syntax is
/// checked. `bases` is empty.
/// Errors: those of parse(), and of expand() and `load` behind "pytorch.toml:3: "; usage (a loop in
/// base_environment, named file by file, or more than the constants above).
Result<Definition> resolve(const File& file, const Load& load, const LookUp& look_up);

}  // namespace berth::edf
