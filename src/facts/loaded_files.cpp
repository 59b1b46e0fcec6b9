// SPDX-License-Identifier: Apache-2.0
#include "facts/loaded_files.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "scan/loader_paths.hpp"

namespace berth::facts {
namespace {

constexpr size_t kMaxCache = size_t{16} << 20;
constexpr size_t kMaxDirectories = 64;
constexpr size_t kMaxLoaded = 1000;
constexpr size_t kMaxSearches = 20'000;

}  // namespace

VisibleFiles::VisibleFiles(const std::vector<FileFacts>& files) {
  for (const FileFacts& file : files) by_path_[file.path] = &file;
}

const FileFacts* VisibleFiles::find(const std::string& absolute_path) const {
  auto found = by_path_.find(std::string_view(absolute_path).substr(1));
  return found == by_path_.end() ? nullptr : found->second;
}

Result<Loader> Loader::make(const scan::Tree& tree, const VisibleFiles& files,
                            std::string library_path) {
  Loader loader(tree, files);
  loader.library_path_ = std::move(library_path);
  auto file = TRY(tree.find_file("/etc/ld.so.cache"));
  if (!file || file->size > kMaxCache) return loader;
  std::string bytes = TRY(tree.read(*file, 0, static_cast<size_t>(file->size)));
  auto cache = scan::read_loader_cache(bytes);
  if (!cache.ok()) return loader;
  for (scan::LoaderEntry& entry : cache->entries) {
    if (entry.hwcap != 0) continue;  // for better processors, beside the generic one
    loader.cache_[entry.soname].push_back(std::move(entry.path));
  }
  return loader;
}

Result<const FileFacts*> Loader::find_at(const std::string& path,
                                         const std::string& machine) const {
  auto file = TRY(tree_.find_file(path));
  const FileFacts* facts = file ? files_.find(file->path) : nullptr;
  bool fits = facts != nullptr && facts->machine == machine;
  return fits ? facts : static_cast<const FileFacts*>(nullptr);
}

Result<const FileFacts*> Loader::find_in(std::string_view directories, const Search& search) const {
  const FileFacts* found = nullptr;
  size_t count = 0;
  for (std::string_view directory : split(directories, ':')) {
    if (!directory.starts_with('/') || ++count > kMaxDirectories) continue;
    found = TRY(find_at(std::string(directory) + "/" + search.name, search.machine));
    if (found != nullptr) break;
  }
  return found;
}

// The order is that of ld.so(8).
Result<const FileFacts*> Loader::find(const Search& search) const {
  if (search.name.find('/') != std::string::npos) return find_at(search.name, search.machine);
  for (const std::string& directories : search.first) {
    const FileFacts* found = TRY(find_in(directories, search));
    if (found != nullptr) return found;
  }
  for (const std::string* directories : {&library_path_, &search.after}) {
    const FileFacts* found = TRY(find_in(*directories, search));
    if (found != nullptr) return found;
  }
  if (auto cached = cache_.find(search.name); cached != cache_.end()) {
    size_t count = 0;
    for (const std::string& path : cached->second) {
      if (++count > kMaxDirectories) break;
      const FileFacts* found = TRY(find_at(path, search.machine));
      if (found != nullptr) return found;
    }
  }
  return find_in(scan::kDefaultDirectories, search);
}

Result<const FileFacts*> Loader::find_library(const std::string& name,
                                              const std::string& machine) const {
  return find({.name = name, .machine = machine, .first = {}, .after = {}});
}

Result<std::vector<const FileFacts*>> Loader::load(const FileFacts& program) const {
  std::vector<const FileFacts*> loaded{&program};
  // RPATHs for an object's dependencies: its own and those of its loaders.
  std::vector<std::vector<std::string>> rpaths(1);
  std::map<std::string, bool> asked;
  size_t searches = 0;
  for (size_t i = 0; i < loaded.size(); ++i) {
    const FileFacts& object = *loaded[i];
    std::string origin = scan::parent_of("/" + object.path);
    if (object.runpath.empty() && !object.rpath.empty()) {
      rpaths[i].insert(rpaths[i].begin(), scan::expand_origin(object.rpath, origin));
    }
    if (rpaths[i].size() > kMaxDirectories) rpaths[i].resize(kMaxDirectories);
    Search search{.name = {}, .machine = object.machine, .first = {}, .after = {}};
    if (object.runpath.empty()) search.first = rpaths[i];
    search.after = scan::expand_origin(object.runpath, origin);
    for (const std::string& name : object.needed) {
      if (asked[name] || ++searches > kMaxSearches) continue;
      search.name = name;
      const FileFacts* found = TRY(find(search));
      if (found == nullptr) continue;
      asked[name] = true;
      if (std::ranges::find(loaded, found) != loaded.end()) continue;
      if (loaded.size() >= kMaxLoaded) return loaded;
      loaded.push_back(found);
      rpaths.push_back(rpaths[i]);
    }
  }
  return loaded;
}

}  // namespace berth::facts
