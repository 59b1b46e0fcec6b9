// SPDX-License-Identifier: Apache-2.0
// The TOML document of a bake file; only for bake_file.cpp, which makes the images (cells) of it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bake/axes.hpp"
#include "base/result.hpp"
#include "policy/site/toml.hpp"

namespace berth::bake {

/// How an image is made: for all cells, or for one cell.
struct Recipe {
  std::string adopt, context, file, target, platform, nfd, nfd_tag;
  std::vector<std::string> command;
  std::map<std::string, std::string> args, labels;
  std::optional<int64_t> priority;
};

/// [[cell]]
struct CellDocument {
  std::string name;
  Recipe recipe;
  AxisValues axes;
};

/// The whole file.
struct Document {
  std::optional<std::string> image;
  std::string version, builder, name, generic;
  Recipe recipe;
  std::map<std::string, std::vector<std::string>> axes;
  std::vector<AxisValues> exclude, only;
  std::map<std::string, std::string> annotations;
  std::vector<CellDocument> cells;
};

/// The line number of each key of a document.
class Lines {
 public:
  Lines(std::vector<policy::TomlEntry> entries, std::string document)
      : entries_(std::move(entries)), document_(std::move(document)) {}

  /// "bake.toml:4: exclude[0].cppu": the line of the key, or of its nearest ancestor that has one.
  /// In an array it is the line of the element that the path or `element` names.
  std::string place(std::string_view path, std::optional<uint64_t> element = {}) const;

  /// A fault at that place; of kind usage.
  Error fault(std::string_view path, Error error, std::optional<uint64_t> element = {}) const;
  Error fault(std::string_view path, std::string what) const;

  /// Adds the line to json's error for a path, "bake.toml: axes.cpuu: unknown member; …".
  Error fault_of_json(Error error) const;

  const std::vector<policy::TomlEntry>& entries() const { return entries_; }

 private:
  std::vector<policy::TomlEntry> entries_;
  std::string document_;
};

struct ReadDocument {
  Document document;
  Lines lines;
};

/// `name` is the name of the file, for errors.
/// Errors: usage (an unknown or misplaced key; a value of another type), corrupt (invalid TOML).
Result<ReadDocument> read_document(std::string_view text, std::string_view name);

}  // namespace berth::bake
