// SPDX-License-Identifier: Apache-2.0
#include "mpi/libraries.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "scan/loader.hpp"

namespace berth::mpi {
namespace {

constexpr size_t kMaxCache = size_t{16} << 20;
constexpr size_t kMaxDirectories = 64;
constexpr size_t kMaxFiles = 2000;
constexpr size_t kMaxKnownNames = 2'000'000;  // names of symbols: about 400 MB

/// Reads a file through one buffer, because every read walks the tree.
class Pieces {
 public:
  Pieces(const scan::Tree& tree, const scan::Tree::File& file) : tree_(tree), file_(file) {}

  Result<std::string> read(uint64_t offset, size_t length) {
    if (length > kSize) return tree_.read(file_, offset, length);
    bool inside = offset >= offset_ && offset - offset_ <= bytes_.size() &&
                  (bytes_.size() - (offset - offset_) >= length || at_end_);
    if (!inside) {
      bytes_ = TRY(tree_.read(file_, offset, kSize));
      offset_ = offset;
      at_end_ = bytes_.size() < kSize;
    }
    return bytes_.substr(static_cast<size_t>(offset - offset_), length);
  }

 private:
  static constexpr size_t kSize = size_t{64} << 10;
  const scan::Tree& tree_;
  const scan::Tree::File& file_;
  std::string bytes_;
  uint64_t offset_ = 0;
  bool at_end_ = false;
};

bool is_plain(std::string_view name) {
  constexpr size_t kMaxName = 255;
  bool plain = std::ranges::none_of(
      name, [](char c) { return c == '/' || static_cast<unsigned char>(c) < ' ' || c == '\177'; });
  return plain && !name.empty() && name != "." && name != ".." && name.size() <= kMaxName;
}

}  // namespace

std::string name_of(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

Result<std::optional<Library>> read_library(const scan::Tree& tree, const scan::Tree::File& file,
                                            uint16_t machine) {
  Pieces pieces(tree, file);
  scan::ReadAt read_at = [&](uint64_t offset, size_t length) {
    return pieces.read(offset, length);
  };
  std::optional<Library> none;
  auto elf = scan::read_elf(read_at);
  if (!elf.ok() || elf->machine != machine) return none;
  auto symbols = read_symbols(*elf, read_at);
  if (!symbols.ok()) return none;
  Library library;
  library.path = file.path;
  // The SONAME becomes a file name in the container.
  library.soname = is_plain(elf->soname) ? elf->soname : name_of(file.path);
  library.needed = std::move(elf->needed);
  std::string origin = scan::parent_of(file.path);
  std::vector<std::string> search;
  for (std::string* one : {&elf->rpath, &elf->runpath}) {
    if (!one->empty()) search.push_back(scan::expand_origin(std::move(*one), origin));
  }
  library.search = join(search, ":");
  library.symbols = std::move(*symbols);
  return std::optional<Library>(std::move(library));
}

Result<Libraries> Libraries::open(const scan::Tree& tree, Places places, ReadLibrary read) {
  Libraries out(tree, std::move(places), std::move(read));
  auto file = TRY(tree.find_file("/etc/ld.so.cache"));
  if (!file || file->size > kMaxCache) return out;
  std::string bytes = TRY(tree.read(*file, 0, static_cast<size_t>(file->size)));
  auto cache = scan::read_loader_cache(bytes);
  if (!cache.ok()) return out;
  for (scan::LoaderEntry& entry : cache->entries) {
    if (entry.hwcap != 0 || !entry.path.starts_with('/')) continue;  // a hwcaps variant
    auto& paths = out.cache_[entry.soname];
    if (paths.size() < kMaxDirectories) paths.push_back(std::move(entry.path));
  }
  return out;
}

Result<const Library*> Libraries::at(const std::string& path) {
  const Library* none = nullptr;
  auto file = TRY(tree_.find_file(path));
  if (!file) return none;
  auto known = known_.find(file->path);
  if (known == known_.end()) {
    if (known_.size() >= kMaxFiles || names_ >= kMaxKnownNames) return none;
    auto library = TRY(read_(tree_, *file, places_.machine));
    if (library) names_ += library->symbols.defined.size() + library->symbols.undefined.size();
    known = known_.emplace(file->path, std::move(library)).first;
  }
  return known->second ? &*known->second : none;
}

// The order is that of ld.so(8) for a program without RPATH and RUNPATH.
Result<std::vector<const Library*>> Libraries::find_all(const std::string& name) {
  std::vector<const Library*> found;
  if (name.empty() || name.find('/') != std::string::npos) return found;
  std::vector<std::string> paths;
  auto add_directories = [&](std::string_view directories) {
    size_t count = 0;
    for (std::string_view directory : split(directories, ':')) {
      if (!directory.starts_with('/') || ++count > kMaxDirectories) continue;
      paths.push_back(std::string(directory) + "/" + name);
    }
  };
  add_directories(places_.library_path);
  auto cached = cache_.find(name);
  if (cached != cache_.end()) {
    paths.insert(paths.end(), cached->second.begin(), cached->second.end());
  }
  add_directories(scan::kDefaultDirectories);
  for (const std::string& path : paths) {
    const Library* one = TRY(at(path));
    bool known = one == nullptr || std::ranges::find(found, one) != found.end();
    if (!known) found.push_back(one);
  }
  return found;
}

Result<const Library*> Libraries::find(const std::string& name) {
  auto all = TRY(find_all(name));
  return all.empty() ? static_cast<const Library*>(nullptr) : all.front();
}

std::vector<std::string> Libraries::names_in_cache(std::string_view prefix) const {
  std::vector<std::string> names;
  for (const auto& [name, paths] : cache_) {
    if (name.starts_with(prefix)) names.push_back(name);
  }
  return names;
}

Result<bool> Libraries::has_musl() const {
  for (const char* loader : {"/lib/ld-musl-x86_64.so.1", "/lib/ld-musl-aarch64.so.1"}) {
    if (TRY(tree_.find_file(loader))) return true;
  }
  return false;
}

}  // namespace berth::mpi
