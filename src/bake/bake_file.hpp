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

/// The limit of an index.
inline constexpr size_t kMaxCells = 1024;

enum class Builder { buildah, docker };

/// One image of the index.
struct Cell {
  std::string name;  ///< "cu128-v3"; valid in a tag
  AxisValues axes;   ///< all of them, sorted by name
  // One of three ways, in this order: an existing image, a command, a Containerfile.
  std::string adopt;                 ///< "repo:cu126"; empty: none
  std::vector<std::string> command;  ///< makes an OCI layout at {out}, which is not replaced yet
  std::string context = ".";         ///< relative to the bake file; `file` is relative to this
  std::string file;                  ///< empty: Containerfile, else Dockerfile
  std::string target;                ///< stage; empty: the last
  std::string platform;              ///< "linux/arm64"; empty: this machine's
  std::map<std::string, std::string> args;         ///< build arguments; of a command: environment
  std::map<std::string, std::string> labels;       ///< of the image
  std::map<std::string, std::string> annotations;  ///< of the entry: its declarations
};

struct BakeFile {
  std::string image;        ///< the tag that the index gets
  std::string image_place;  ///< its place in the file, for errors: "bake.toml:1: image"
  Builder builder = Builder::buildah;
  std::map<std::string, std::string> annotations;  ///< of the index
  std::vector<Cell> cells;                         ///< the generic one first, in the index's order
  std::vector<std::string> remarks;  ///< demands of `nfd` files without an axis: a line each
};

/// Reads a file named in a bake file, relative to it.
using ReadNamed = std::function<Result<std::string>(const std::string& path)>;

/// `document` names the file in errors: "bake.toml:4: axes.cpuu: …".
/// Errors: corrupt (invalid TOML), usage (an unknown key or axis, with the nearest name; an invalid
/// value; two cells with one name; none, or over kMaxCells; a fault in a file of `nfd`, or that it
/// demands more than a cell declares), those of `read`.
Result<BakeFile> read_bake_file(std::string_view text, std::string_view document,
                                const ReadNamed& read = {});

/// The cell of that name.  Errors: not_found, with the nearest.
Result<Cell> cell_named(const BakeFile& file, std::string_view name);

/// The reference of a single published cell, for --merge: "repo:1.0" → "repo:1.0.cell-cu128".
std::string cell_reference(const std::string& image, const std::string& cell);

/// Annotation of an entry: the digest of its inputs.
inline constexpr const char* kInputsAnnotation = "dev.berth.bake.inputs";
/// Annotation of an entry: its cell.
inline constexpr const char* kNameAnnotation = "dev.berth.variant.name";

}  // namespace berth::bake
