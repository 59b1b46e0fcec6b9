// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace berth::json {

/// The place of a value in its document, as a chain to the root that is only spelled out for an
/// error: a document of hundreds of values has hundreds of places, and hardly ever an error. A path
/// refers to its parent, to its names and to the document's: they have to outlive it.
class Path {
 public:
  explicit Path(std::string_view document) : name_(document) {}

  Path member(std::string_view name) const { return {Kind::member, this, name, 0}; }
  Path entry(std::string_view key) const { return {Kind::entry, this, key, 0}; }  ///< of a map
  Path element(size_t index) const { return {Kind::element, this, {}, index}; }

  /// "config.json: mounts[3].destination", "config.json: annotations['key']"; the root's is
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
