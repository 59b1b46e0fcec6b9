// SPDX-License-Identifier: Apache-2.0
// A bake file: the variants of an image, and how each is made. Handwritten TOML; docs/bake.md.
// Pure.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "bake/axes.hpp"
#include "base/result.hpp"

namespace berth::bake {

/// The maximal number of cells in an index.
inline constexpr size_t kMaxCells = 1024;

enum class Builder { buildah, docker };

/// One image of the index.
struct Cell {
  std::string name;  ///< "cu128-v3"; valid in a tag
  AxisValues axes;   ///< all of them, sorted by name
  // How the image is made. The first of these that is set counts: an existing image, a command, a
  // Containerfile.
  std::string adopt;                 ///< "repo:cu126"; empty: none
  std::vector<std::string> command;  ///< makes an OCI layout at {out}, which the engine fills in
  std::string context = ".";         ///< relative to the bake file; `file` is relative to `context`
  std::string file;                  ///< empty: Containerfile, or else Dockerfile
  std::string target;                ///< stage; empty: the last
  std::string platform;              ///< "linux/arm64"; empty: the platform of this machine
  std::map<std::string, std::string> args;         ///< build arguments; environment of a command
  std::map<std::string, std::string> labels;       ///< of the image
  std::map<std::string, std::string> annotations;  ///< of the index entry: what it declares
};

struct BakeFile {
  std::string image;        ///< the tag that the index gets
  std::string image_place;  ///< where the file sets `image`, for errors: "bake.toml:1: image"
  Builder builder = Builder::buildah;
  std::map<std::string, std::string> annotations;  ///< of the index
  std::vector<Cell> cells;                         ///< in the order of the index: generic first
  std::vector<std::string> remarks;  ///< one line for each demand of an `nfd` file that has no axis
};

/// Reads a file that a bake file names; `path` is relative to the bake file.
using ReadNamed = std::function<Result<std::string>(const std::string& path)>;

/// `document` names the file in errors: "bake.toml:4: axes.cpuu: …".
/// Errors: corrupt (invalid TOML), usage (an unknown key or axis, suggesting the nearest name; an
/// invalid value; two cells with one name; no cells, or more than kMaxCells; a fault in an `nfd`
/// file, or an `nfd` file that demands more than a cell declares), those of `read`.
Result<BakeFile> read_bake_file(std::string_view text, std::string_view document,
                                const ReadNamed& read = {});

/// The cell of that name.  Errors: not_found, suggesting the nearest one.
Result<Cell> cell_named(const BakeFile& file, std::string_view name);

/// The reference of a single published cell, for --merge: "repo:1.0" → "repo:1.0.cell-cu128".
std::string cell_reference(const std::string& image, const std::string& cell);

/// The annotation of an index entry for the digest of its inputs.
inline constexpr const char* kInputsAnnotation = "dev.berth.bake.inputs";
/// The annotation of an index entry for the name of its cell.
inline constexpr const char* kNameAnnotation = "dev.berth.variant.name";

}  // namespace berth::bake
