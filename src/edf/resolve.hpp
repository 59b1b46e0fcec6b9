// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "edf/definition.hpp"

namespace berth::edf {

/// The value of an environment variable, valid as long as the environment.
using LookUp = std::function<std::optional<std::string_view>(std::string_view name)>;

/// Substitutes variables in `text`: "${NAME}", "${NAME:-DEFAULT}" (the default if the variable is
/// unset or empty), "$$" for a dollar sign. Values are not expanded again. The result has at most
/// 128 KiB, the limit for one variable of a program.
/// Errors: usage (an unset variable, another form of reference, a NUL, too long).
/// Source: https://docs.cscs.ch/software/container-engine/edf "Environment variable expansion"
Result<std::string> expand(std::string_view text, const LookUp& look_up);

struct File {
  std::string path;  ///< one path per file: a loop is found by comparing paths
  std::string text;
};

/// Finds and reads a file by its name or path.
using Load = std::function<Result<File>(const std::string& name)>;

inline constexpr size_t kMostLevels = 10;  ///< of bases below the first file
inline constexpr size_t kMostFiles = 100;

/// Combines `file` with its bases, in order. A later value replaces an earlier one, in [env] and
/// [annotations] the value of the same name; mounts and devices are appended. Expands all strings
/// with `look_up` except those in [env], because there the variables of the image count as well;
/// checks only the syntax of these. In the result `bases` is empty.
/// Errors: those of parse(); those of expand() and `load`, after "pytorch.toml:3: "; usage (a loop
/// in base_environment, with the files in it; more than the constants above allow).
Result<Definition> resolve(const File& file, const Load& load, const LookUp& look_up);

}  // namespace berth::edf
