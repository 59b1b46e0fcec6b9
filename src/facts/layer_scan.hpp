// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "facts/facts.hpp"
#include "facts/file_facts.hpp"
#include "scan/elf.hpp"

namespace berth::facts {

/// The file with a layer's facts, next to the tree of the layer in the store.
inline constexpr const char* kLayerFactsFile = "facts.json";
/// The maximal size of that file; a LayerScan never writes more.
inline constexpr size_t kMaxLayerFacts = size_t{64} << 20;

/// The limits of scanning one layer; at the limits a scan takes a few seconds. Normal layers take
/// 25 reads and 100 kB per file.
struct ScanLimits {
  size_t files = kMaxFiles;
  uint64_t reads = 8'000'000;
  uint64_t bytes = uint64_t{8} << 30;
};

/// Collects the facts of a layer while its files are made. Never fails: unreadable files are listed
/// in `unread`, and files beyond the limits are counted. Paths are as in FileFacts.
class LayerScan {
 public:
  explicit LayerScan(CodeLook look = {}, const ScanLimits& limits = {})
      : look_(std::move(look)), left_(limits) {}

  /// A file that may_have_facts() was made at `path`.
  void add(const std::string& path, const scan::ReadAt& read_at);
  /// `path` is another name of the file `target`.
  void link(const std::string& path, const std::string& target);
  /// Everything at and below `path` was removed.
  void remove(const std::string& path);

  LayerFacts take();

 private:
  void put(std::string path, const FileFacts& facts);

  CodeLook look_;
  ScanLimits left_;
  std::map<std::string, FileFacts> files_;
  std::set<std::string> unread_;
  uint64_t left_out_ = 0;
  size_t bytes_ = 0;  ///< size of the kept facts as JSON
};

std::string write_layer_facts(const LayerFacts& facts);
/// Nothing for facts of another version: the caller computes them again. Errors: corrupt.
Result<std::optional<LayerFacts>> read_layer_facts(std::string_view text);

}  // namespace berth::facts
