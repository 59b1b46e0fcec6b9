// SPDX-License-Identifier: Apache-2.0
#include "facts/image_facts.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "base/result.hpp"
#include "base/text.hpp"
#include "facts/facts.hpp"
#include "facts/file_facts.hpp"
#include "scan/driver_files.hpp"
#include "scan/loader.hpp"
#include "scan/mpi.hpp"

namespace berth::facts {
namespace {

constexpr size_t kMaxCache = size_t{16} << 20;
constexpr size_t kMaxDirectories = 64;
constexpr size_t kMaxLoaded = 1000;
constexpr size_t kMaxSearches = 20'000;

/// The files of an image that a container sees, by path without a leading '/'.
class VisibleFiles {
 public:
  /// `files` has to outlive this object.
  explicit VisibleFiles(const std::vector<FileFacts>& files);
  /// The facts of a file by its absolute path without links; null if there are none.
  const FileFacts* find(const std::string& absolute_path) const;

 private:
  std::map<std::string_view, const FileFacts*> by_path_;
};

/// Finds libraries in an image as its loader does: everything that is loaded before the program
/// runs, but not libraries that the program opens later by name.
/// Source: ld.so(8); docs/decisions/0118-reading-gpu-code.md
class Loader {
 public:
  /// `library_path`: LD_LIBRARY_PATH.  Errors: io (of the tree only).
  static Result<Loader> make(const scan::Tree& tree, const VisibleFiles& files,
                             std::string library_path);

  /// The program and the libraries that it needs, without duplicates, the program first; missing
  /// libraries are left out. Errors: io.
  Result<std::vector<const FileFacts*>> load(const FileFacts& program) const;

  /// The library of this name for a program without RPATH and RUNPATH; null: there is none.
  Result<const FileFacts*> find_library(const std::string& name, const std::string& machine) const;

 private:
  struct Search {
    std::string name;
    std::string machine;
    std::vector<std::string> first;  ///< directory lists before LD_LIBRARY_PATH
    std::string after;               ///< directory list after LD_LIBRARY_PATH
  };
  Loader(const scan::Tree& tree, const VisibleFiles& files) : tree_(tree), files_(files) {}
  Result<const FileFacts*> find(const Search& search) const;
  Result<const FileFacts*> find_in(std::string_view directories, const Search& search) const;
  Result<const FileFacts*> find_at(const std::string& path, const std::string& machine) const;

  const scan::Tree& tree_;
  const VisibleFiles& files_;
  std::string library_path_;
  std::map<std::string, std::vector<std::string>> cache_;  ///< paths by soname
};

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
    if (entry.hwcap != 0) continue;  // a hwcaps variant; the generic library is listed too
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
  // RPATHs for the dependencies of an object: those of the object and of the objects that loaded
  // it.
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

constexpr size_t kMaxUnmet = 100, kMaxSets = 1000, kMaxLibraries = 100;
constexpr std::string_view kPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
constexpr std::string_view kHwcaps = "glibc-hwcaps/";

std::string_view name_of(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

std::string_view variable(const ImageCommand& command, std::string_view name) {
  for (std::string_view entry : command.environment) {
    if (entry.starts_with(name) && entry.substr(name.size()).starts_with('=')) {
      return entry.substr(name.size() + 1);
    }
  }
  return {};
}

class Drawing {
 public:
  Drawing(const scan::Tree& tree, const std::vector<FileFacts>& files, const ImageCommand& command)
      : tree_(tree), files_(files), command_(command), visible_(files) {}

  Result<ImageFacts> run();

 private:
  Result<std::optional<scan::Tree::File>> find_command(const std::string& name) const;
  Result<std::string> script_interpreter(const scan::Tree::File& file) const;
  Result<void> find_program();
  Result<void> load_program();
  Result<void> add_libc();
  void add_cpu();
  void add_unmet();
  void add_unmet_of(const FileFacts& file, const std::map<std::string, std::string>& offers);
  void add_gpu_code();
  void add_linker_code();
  Result<void> add_cuda();
  void add_mpi();
  Result<void> add_driver();
  Result<std::string> cuda_runtime(const FileFacts& file) const;

  bool is_main(const FileFacts& file) const { return main_.contains(&file); }
  std::string machine() const {
    return program_ != nullptr ? program_->machine : command_.architecture;
  }

  const scan::Tree& tree_;
  const std::vector<FileFacts>& files_;
  const ImageCommand& command_;
  VisibleFiles visible_;
  std::optional<Loader> loader_;
  const FileFacts* program_ = nullptr;
  std::vector<const FileFacts*> loaded_;
  std::set<const FileFacts*> main_;
  ImageFacts facts_;
};

Result<ImageFacts> Drawing::run() {
  loader_.emplace(
      TRY(Loader::make(tree_, visible_, std::string(variable(command_, "LD_LIBRARY_PATH")))));
  TRY(find_program());
  TRY(load_program());
  TRY(add_libc());
  add_cpu();
  add_unmet();
  add_gpu_code();
  add_linker_code();
  TRY(add_cuda());
  add_mpi();
  TRY(add_driver());
  return std::move(facts_);
}

// ---- the main program ---------------------------------------------------------------------------

/// Finds the file that execvp(3) would execute in a container.
Result<std::optional<scan::Tree::File>> Drawing::find_command(const std::string& name) const {
  std::optional<scan::Tree::File> file;
  if (name.find('/') != std::string::npos) {
    bool absolute = name.starts_with('/');
    file = TRY(tree_.find_file(absolute ? name : command_.working_directory + "/" + name));
    return file;
  }
  std::string_view path = variable(command_, "PATH");
  for (std::string_view directory : split(path.empty() ? kPath : path, ':')) {
    if (!directory.starts_with('/')) continue;
    file = TRY(tree_.find_file(std::string(directory) + "/" + name));
    if (file) break;
  }
  return file;
}

/// The interpreter of a script; empty if the file is not a script.
Result<std::string> Drawing::script_interpreter(const scan::Tree::File& file) const {
  constexpr size_t kMaxLine = 256;
  auto text = tree_.read(file, 0, kMaxLine);
  if (!text.ok()) return std::move(text).error();
  if (!text->starts_with("#!")) return std::string();
  std::string_view line = std::string_view(*text).substr(2);
  std::vector<std::string_view> words = split_blank(line.substr(0, line.find('\n')));
  if (words.empty()) return std::string();
  if (name_of(words[0]) != "env") return std::string(words[0]);
  // "env -S VAR=x python3 -u": the first argument that is neither an option nor an assignment.
  auto named = std::find_if(words.begin() + 1, words.end(), [](std::string_view word) {
    return !word.starts_with('-') && word.find('=') == word.npos;
  });
  return named == words.end() ? std::string(words[0]) : std::string(*named);
}

Result<void> Drawing::find_program() {
  if (command_.arguments.empty()) return {};
  std::string name = command_.arguments[0];
  constexpr int kMaxScripts = 4;  // the kernel's own limit
  for (int i = 0; i <= kMaxScripts && !name.empty(); ++i) {
    auto file = TRY(find_command(name));
    if (!file) return {};
    program_ = visible_.find(file->path);
    if (program_ != nullptr) {
      facts_.program = file->path;
      facts_.architecture = program_->machine;
      facts_.is_static = program_->interpreter.empty() && program_->needed.empty();
      return {};
    }
    name = TRY(script_interpreter(*file));
  }
  return {};
}

Result<void> Drawing::load_program() {
  if (program_ == nullptr) return {};
  loaded_ = TRY(loader_->load(*program_));
  main_.insert(loaded_.begin(), loaded_.end());
  return {};
}

// ---- processors and versions --------------------------------------------------------------------

Result<void> Drawing::add_libc() {
  auto offered = [&](const std::string& name, const std::string& family) -> Result<std::string> {
    auto loaded =
        std::ranges::find_if(loaded_, [&](const FileFacts* file) { return file->soname == name; });
    const FileFacts* library = loaded != loaded_.end() ? *loaded : nullptr;
    if (library == nullptr) library = TRY(loader_->find_library(name, machine()));
    if (library == nullptr || !library->offers.contains(family)) return std::string();
    return library->offers.at(family);
  };
  facts_.glibc = TRY(offered("libc.so.6", "GLIBC"));
  facts_.libstdcxx = TRY(offered("libstdc++.so.6", "GLIBCXX"));
  return {};
}

void Drawing::add_cpu() {
  std::set<std::string> hwcaps;
  std::map<IsaNeed, CpuNeed, std::greater<>> needs;
  for (const FileFacts& file : files_) {
    if (size_t at = file.path.find(kHwcaps); at != std::string::npos) {
      std::string level = file.path.substr(at + kHwcaps.size());
      hwcaps.insert(level.substr(0, level.find('/')));
      continue;
    }
    if (file.isa.level < 2) continue;
    CpuNeed& need = needs[file.isa];
    need.isa = file.isa;
    ++need.files;
    bool main = is_main(file);
    if (need.example.empty() || (main && !need.main)) need.example = "/" + file.path;
    need.main = need.main || main;
  }
  for (auto& [isa, need] : needs) facts_.cpu.push_back(std::move(need));
  for (const std::string& level : hwcaps) {
    if (facts_.hwcaps.size() < kMaxLibraries) facts_.hwcaps.push_back(level);
  }
}

void Drawing::add_unmet_of(const FileFacts& file,
                           const std::map<std::string, std::string>& offers) {
  for (const auto& [family, version] : file.needs) {
    auto offered = offers.find(family);
    // If no library in the image defines versions of this family, the loader's result is unknown.
    if (offered == offers.end()) continue;
    if (scan::compare_versions(version, offered->second) <= 0) continue;
    if (facts_.unmet.size() >= kMaxUnmet) return;
    facts_.unmet.push_back({"/" + file.path, family + "_" + version, is_main(file)});
  }
}

/// Files that are loaded with the main program are compared with the libraries that it really gets.
/// Other files are compared with the highest versions in the image, because their program may have
/// search paths of its own.
void Drawing::add_unmet() {
  auto raise = [](std::map<std::string, std::string>& highest, const FileFacts& file) {
    for (const auto& [family, version] : file.offers) {
      std::string& known = highest[family];
      if (known.empty() || scan::compare_versions(known, version) < 0) known = version;
    }
  };
  std::map<std::string, std::string> of_main, of_all;
  for (const FileFacts* file : loaded_) raise(of_main, *file);
  for (const FileFacts* file : loaded_) add_unmet_of(*file, of_main);
  for (const FileFacts& file : files_) {
    if (file.machine == machine()) raise(of_all, file);
  }
  for (const FileFacts& file : files_) {
    if (!is_main(file) && file.machine == machine()) add_unmet_of(file, of_all);
  }
}

// ---- GPUs ---------------------------------------------------------------------------------------

constexpr std::string_view kCudaRuntime = "libcudart.so.";

bool is_number(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789.") == text.npos;
}

/// The version in the name of the CUDA runtime that a file needs: "12", "11.0"; empty: it needs
/// none.
std::string needed_runtime(const FileFacts& file) {
  for (std::string_view name : file.needed) {
    if (!name.starts_with(kCudaRuntime)) continue;
    std::string version(name.substr(kCudaRuntime.size()));
    if (is_number(version)) return version;
  }
  return {};
}

void Drawing::add_gpu_code() {
  // The sets of the main program come first, so that none of them is left out.
  for (bool main : {true, false}) {
    std::map<std::tuple<std::vector<GpuCode>, bool, std::string>, GpuCodeSet> sets;
    for (const FileFacts& file : files_) {
      if (file.gpu_code.empty() || is_main(file) != main) continue;
      std::string cuda = file.cuda.empty() ? needed_runtime(file) : file.cuda;
      GpuCodeSet& set = sets[{file.gpu_code, file.zstd_code, std::move(cuda)}];
      if (set.files++ == 0) set.example = "/" + file.path;
    }
    for (auto& [key, set] : sets) {
      if (facts_.gpu_code.size() >= kMaxSets) return;
      std::tie(set.code, set.zstd, set.cuda) = key;
      set.main = main;
      facts_.gpu_code.push_back(std::move(set));
    }
  }
}

void Drawing::add_linker_code() {
  std::map<std::vector<GpuCode>, GpuCodeSet> sets;
  for (const FileFacts& file : files_) {
    if (file.linker_code.empty()) continue;
    GpuCodeSet& set = sets[file.linker_code];
    if (set.files++ == 0) set.example = "/" + file.path;
  }
  for (auto& [code, set] : sets) {
    if (facts_.linker_code.size() >= kMaxSets) return;
    set.code = code;
    facts_.linker_code.push_back(std::move(set));
  }
}

/// "12.8.90" → "12.8".
std::string two_parts(std::string_view version) {
  auto parts = split(version, '.');
  return parts.size() < 2 ? std::string(version)
                          : std::string(parts[0]) + "." + std::string(parts[1]);
}

/// The version of a CUDA runtime library. The file is called libcudart.so.12.8.90, or, in a Python
/// package, libcudart.so.12 with the version in the package's metadata. Empty: the file is not a
/// CUDA runtime.
Result<std::string> Drawing::cuda_runtime(const FileFacts& file) const {
  std::string_view name = name_of(file.path);
  if (!name.starts_with(kCudaRuntime)) return std::string();
  std::string version(name.substr(kCudaRuntime.size()));
  if (!is_number(version)) return std::string();
  if (version.find('.') != std::string::npos) return two_parts(version);
  std::string packages = "/" + file.path;
  constexpr int kDepth = 4;  // nvidia/cuda_runtime/lib/libcudart.so.12
  for (int i = 0; i < kDepth; ++i) packages = scan::parent_of(packages);
  for (std::string_view package : TRY(tree_.list(packages))) {
    constexpr std::string_view kEnd = ".dist-info";
    bool ours = package.starts_with("nvidia_cuda_runtime") && package.ends_with(kEnd);
    if (!ours) continue;
    std::string_view number = package.substr(package.rfind('-', package.size() - kEnd.size()) + 1);
    number.remove_suffix(std::min(kEnd.size(), number.size()));
    if (is_number(number) && number.starts_with(version + ".")) return two_parts(number);
  }
  return version;
}

Result<void> Drawing::add_cuda() {
  std::set<std::string> versions;
  for (const FileFacts& file : files_) {
    std::string version = TRY(cuda_runtime(file));
    if (!version.empty() && versions.size() < kMaxLibraries) versions.insert(std::move(version));
  }
  // The runtime may come from elsewhere: a mount, a module system.
  for (const FileFacts* file : loaded_) {
    std::string version = needed_runtime(*file);
    std::string major = version.substr(0, version.find('.'));
    bool here = std::ranges::any_of(
        versions, [&](const std::string& one) { return one.substr(0, one.find('.')) == major; });
    if (!version.empty() && !here) versions.insert(std::move(version));
  }
  facts_.cuda_runtimes.assign(versions.begin(), versions.end());
  std::ranges::sort(facts_.cuda_runtimes, [](const std::string& left, const std::string& right) {
    return scan::compare_versions(left, right) < 0;
  });
  return {};
}

void Drawing::add_mpi() {
  for (const FileFacts& file : files_) {
    std::string_view family = scan::mpi_family(file.soname);
    if (family.empty() || facts_.mpi.size() >= kMaxLibraries) continue;
    facts_.mpi.push_back({"/" + file.path, std::string(family), file.soname});
  }
}

Result<void> Drawing::add_driver() {
  scan::LoaderSettings settings;
  settings.library_path = variable(command_, "LD_LIBRARY_PATH");
  settings.program = facts_.program;
  settings.machine = machine() == "arm64" ? scan::kMachineAarch64 : scan::kMachineX86_64;
  scan::DriverFiles found = TRY(scan::find_driver_files(tree_, settings));
  facts_.musl = found.musl;
  if (!found.libraries.empty()) facts_.user_driver = found.libraries[0].version;
  if (!found.compat) return {};
  facts_.compat = found.compat->version;
  facts_.compat_cuda = found.compat->cuda_version;
  facts_.compat_drivers = found.compat->drivers;
  return {};
}

}  // namespace

Result<ImageFacts> draw_together(const scan::Tree& tree, const std::vector<FileFacts>& files,
                                 const ImageCommand& command) {
  return Drawing(tree, files, command).run();
}

}  // namespace berth::facts
