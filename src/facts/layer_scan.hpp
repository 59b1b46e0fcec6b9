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

/// Where the facts of a layer lie: beside its tree in the store.
inline constexpr const char* kLayerFactsFile = "facts.json";
/// What a file of them may be long at most; a LayerScan never writes more.
inline constexpr size_t kMaxLayerFacts = size_t{64} << 20;

/// The most that looking through one layer may cost: some seconds. Honest layers take 25
/// reads and 100 kB for a file.
struct ScanLimits {
  size_t files = kMaxFiles;
  uint64_t reads = 8'000'000;
  uint64_t bytes = uint64_t{8} << 30;
};

/// Collects the facts of a layer while its files are made. Nothing here fails: what does not read
/// is listed as unread, what is too much is counted. Paths are as in FileFacts.
class LayerScan {
 public:
  explicit LayerScan(CodeLook look = {}, const ScanLimits& limits = {})
      : look_(std::move(look)), left_(limits) {}

  /// A file that begins like ELF is at `path` now.
  void add(const std::string& path, const scan::ReadAt& read_at);
  /// `path` is another name of the file `target`.
  void link(const std::string& path, const std::string& target);
  /// What was at `path` and below it is gone.
  void remove(const std::string& path);

  LayerFacts take();

 private:
  void put(std::string path, const FileFacts& facts);

  CodeLook look_;
  ScanLimits left_;
  std::map<std::string, FileFacts> files_;
  std::set<std::string> unread_;
  uint64_t left_out_ = 0;
  size_t bytes_ = 0;  ///< of the text of what is kept
};

std::string write_layer_facts(const LayerFacts& facts);
/// Nothing for facts of another version, which are found anew.  Errors: corrupt.
Result<std::optional<LayerFacts>> read_layer_facts(std::string_view text);

}  // namespace berth::facts
