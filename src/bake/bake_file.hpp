// SPDX-License-Identifier: Apache-2.0
// A bake file: which variants of an image there are, and how each is made. Written by people, in
// TOML; docs/bake.md. Pure.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "bake/axes.hpp"
#include "base/result.hpp"

namespace berth::bake {

/// As many as an index may have.
inline constexpr size_t kMaxCells = 1024;

enum class Builder { buildah, docker };

/// One image of the index.
struct Cell {
  std::string name;  ///< "cu128-v3"; what a tag may hold
  AxisValues axes;   ///< all of them, sorted by name
  // One of three ways, in this order: an image that is there, a command, a Containerfile.
  std::string adopt;                 ///< "repo:cu126"; empty: none
  std::vector<std::string> command;  ///< leaves an OCI layout at {out}, which is not yet replaced
  std::string context = ".";         ///< relative to the bake file, as `file` is to this
  std::string file;                  ///< empty: Containerfile, else Dockerfile
  std::string target;                ///< stage; empty: the last
  std::string platform;              ///< "linux/arm64"; empty: this machine's
  std::map<std::string, std::string> args;         ///< build arguments; of a command: environment
  std::map<std::string, std::string> labels;       ///< of the image
  std::map<std::string, std::string> annotations;  ///< of the entry: what is declared of it
};

struct BakeFile {
  std::string image;        ///< the tag that the index gets
  std::string image_place;  ///< where that is said, for errors: "bake.toml:1: image"
  Builder builder = Builder::buildah;
  std::map<std::string, std::string> annotations;  ///< of the index
  std::vector<Cell> cells;                         ///< the generic one first, in the index's order
  std::vector<std::string> remarks;  ///< what files of `nfd` ask and no word says: a line each
};

/// Reads a file that a bake file names, relative to it.
using ReadNamed = std::function<Result<std::string>(const std::string& path)>;

/// `document` names the file in errors: "bake.toml:4: axes.cpuu: …".
/// Errors: corrupt (no TOML), usage (what it says: an unknown key or axis, with the nearest name; a
/// value; two cells of one name; none, or over kMaxCells; what a file of `nfd` says, or that it
/// asks for more than a cell declares), those of `read`.
Result<BakeFile> read_bake_file(std::string_view text, std::string_view document,
                                const ReadNamed& read = {});

/// The cell of that name.  Errors: not_found, with the nearest.
Result<Cell> cell_named(const BakeFile& file, std::string_view name);

/// Where a cell alone is published, for --merge: "repo:1.0" → "repo:1.0.cell-cu128".
std::string cell_reference(const std::string& image, const std::string& cell);

/// In the annotations of an entry: the digest of what it was made of.
inline constexpr const char* kInputsAnnotation = "dev.berth.bake.inputs";
/// And which cell it is.
inline constexpr const char* kNameAnnotation = "dev.berth.variant.name";

}  // namespace berth::bake
