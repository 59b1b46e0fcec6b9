// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace berth::json {

/// The path of a value in its document, as a chain of parents up to the root. The string is built
/// only for an error: a document with hundreds of values has hundreds of paths, but hardly ever an
/// error. A Path refers to its parent, its name and the name of the document, all of which must
/// outlive it.
class Path {
 public:
  explicit Path(std::string_view document) : name_(document) {}

  Path member(std::string_view name) const { return {Kind::member, this, name, 0}; }
  Path entry(std::string_view key) const { return {Kind::entry, this, key, 0}; }  ///< of a map
  Path element(size_t index) const { return {Kind::element, this, {}, index}; }

  /// "config.json: mounts[3].destination", "config.json: annotations['key']"; the root is
  /// "config.json". Control characters are escaped, long names are cut.
  std::string text() const;

 private:
  enum class Kind { root, member, entry, element };
  Path(Kind kind, const Path* parent, std::string_view name, size_t index)
      : kind_(kind), parent_(parent), name_(name), index_(index) {}

  Kind kind_ = Kind::root;
  const Path* parent_ = nullptr;
  std::string_view name_;
  size_t index_ = 0;
};

}  // namespace berth::json
