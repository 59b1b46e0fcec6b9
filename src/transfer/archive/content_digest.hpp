// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace berth::transfer {

/// The files of a build context to leave out, by .dockerignore: one pattern per line, '#' for
/// comments, '!' for exceptions; '*', '?', '[a-z]' within a name, '**' for any number of
/// directories; a pattern for a directory covers everything below it; the last match wins.
/// Source: docker build reference, ".dockerignore file"; moby/patternmatcher.
class IgnorePatterns {
 public:
  /// Errors: usage (an unfinished '[', over 10,000 patterns).
  static Result<IgnorePatterns> parse(std::string_view text);

  /// `path` is relative to the context, without a leading '/'.
  bool ignores(std::string_view path) const;
  /// Whether files below an ignored directory may be exceptions.
  bool has_exceptions() const { return has_exceptions_; }

 private:
  struct Pattern {
    std::vector<std::string> parts;  ///< between slashes
    bool exception = false;
  };
  std::vector<Pattern> patterns_;
  bool has_exceptions_ = false;
};

}  // namespace berth::transfer
