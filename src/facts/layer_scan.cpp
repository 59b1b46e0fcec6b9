// SPDX-License-Identifier: Apache-2.0
#include "facts/layer_scan.hpp"

#include <algorithm>

#include "json/fields.hpp"

namespace berth::facts {
namespace {

// JSON escapes may turn one byte into six, but normal names need none.
constexpr size_t kMaxText = kMaxLayerFacts / 2;

/// The approximate size of `facts` in the file.
size_t text_size(const FileFacts& facts) {
  constexpr size_t kNames = 200, kEntry = 40;
  size_t size = kNames + facts.path.size() + facts.interpreter.size() + facts.soname.size() +
                facts.rpath.size() + facts.runpath.size();
  for (const std::string& name : facts.needed) size += name.size() + 3;
  for (const auto& [family, version] : facts.needs) size += family.size() + version.size() + 6;
  for (const auto& [family, version] : facts.offers) size += family.size() + version.size() + 6;
  return size + (facts.gpu_code.size() + facts.linker_code.size()) * kEntry;
}

template <class Paths>
void erase_below(Paths& paths, const std::string& path) {
  auto key_of = [](const auto& item) -> const std::string& {
    if constexpr (requires { item.first; }) {
      return item.first;
    } else {
      return item;
    }
  };
  paths.erase(path);
  std::string prefix = path + "/";
  auto first = paths.lower_bound(prefix), last = first;
  while (last != paths.end() && key_of(*last).starts_with(prefix)) ++last;
  paths.erase(first, last);
}

}  // namespace

void LayerScan::put(std::string path, const FileFacts& facts) {
  size_t size = text_size(facts);
  if (left_.files == 0 || bytes_ + size > kMaxText) {
    ++left_out_;
    return;
  }
  --left_.files;
  bytes_ += size;
  FileFacts& kept = files_[path];
  kept = facts;
  kept.path = std::move(path);
}

void LayerScan::add(const std::string& path, const scan::ReadAt& read_at) {
  if (left_.files == 0 || left_.reads == 0 || left_.bytes == 0) {
    ++left_out_;
    return;
  }
  auto counted = [&](uint64_t offset, size_t length) -> Result<std::string> {
    if (left_.reads == 0 || left_.bytes == 0) return make_error(Kind::corrupt, "too much to read");
    auto bytes = read_at(offset, length);
    --left_.reads;
    if (bytes.ok()) left_.bytes -= std::min<uint64_t>(left_.bytes, bytes->size());
    return bytes;
  };
  auto facts = read_file_facts(counted, path, look_);
  if (!facts.ok()) {
    if (unread_.size() < kMaxUnread) unread_.insert(path);
  } else if (*facts) {
    put(path, **facts);
  }
}

void LayerScan::link(const std::string& path, const std::string& target) {
  remove(path);
  if (auto found = files_.find(target); found != files_.end()) put(path, FileFacts(found->second));
  if (unread_.contains(target) && unread_.size() < kMaxUnread) unread_.insert(path);
}

void LayerScan::remove(const std::string& path) {
  erase_below(files_, path);
  erase_below(unread_, path);
}

LayerFacts LayerScan::take() {
  LayerFacts facts;
  facts.files.reserve(files_.size());
  for (auto& [path, file] : files_) facts.files.push_back(std::move(file));
  facts.unread.assign(unread_.begin(), unread_.end());
  facts.files_left_out = left_out_;
  files_.clear();
  return facts;
}

std::string write_layer_facts(const LayerFacts& facts) {
  return json::write(facts) + "\n";
}

Result<std::optional<LayerFacts>> read_layer_facts(std::string_view text) {
  constexpr json::Limits kLimits{.max_bytes = kMaxLayerFacts, .max_values = 16'000'000};
  auto facts = TRY(json::read<LayerFacts>(text, kLayerFactsFile, kLimits));
  if (facts.version != kVersion) return std::optional<LayerFacts>();
  return std::optional<LayerFacts>(std::move(facts));
}

}  // namespace berth::facts
