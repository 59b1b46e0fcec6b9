// SPDX-License-Identifier: Apache-2.0
#include "scan/driver_files.hpp"

#include <algorithm>
#include <set>

#include "base/text.hpp"
#include "json/value.hpp"
#include "scan/loader.hpp"

namespace berth::scan {
namespace {

constexpr const char* kLibrary = "libcuda.so.1";
constexpr std::string_view kNoteSection = ".note.cuda.fwd_compatibility";
constexpr size_t kMaxCache = size_t{16} << 20;
constexpr size_t kMaxDirectories = 64;
constexpr size_t kMaxNames = 4096;
constexpr size_t kMaxNote = 16384;

bool is_version(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789.") == std::string_view::npos &&
         text.find('.') != std::string_view::npos;
}

/// "libcuda.so.570.133.20" → "570.133.20".
std::string version_in(std::string_view name) {
  size_t dot = name.find(".so.");
  if (dot == std::string_view::npos) return {};
  std::string_view version = name.substr(dot + 4);
  return is_version(version) ? std::string(version) : std::string();
}

std::string base_of(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

Result<ElfFile> read_elf_at(const Tree& tree, const Tree::File& file) {
  return read_elf([&](uint64_t offset, size_t length) { return tree.read(file, offset, length); });
}

class Finder {
 public:
  Finder(const Tree& tree, const LoaderSettings& settings) : tree_(tree), settings_(settings) {}

  // The order is that of ld.so(8).
  Result<DriverFiles> run() {
    ElfFile program = TRY(read_program());
    if (program.runpath.empty()) TRY(search(program.rpath, "RPATH of " + settings_.program, true));
    TRY(search(settings_.library_path, "LD_LIBRARY_PATH", true));
    TRY(search(program.runpath, "RUNPATH of " + settings_.program, true));
    TRY(search_cache());
    TRY(find_musl());
    TRY(search(kDefaultDirectories, "a default directory", false));
    auto compat = TRY(find_compat(tree_, kCompatDirectory, settings_.machine));
    found_.compat = std::move(compat.package);
    found_.no_compat_why = std::move(compat.why_not);
    return std::move(found_);
  }

 private:
  Result<ElfFile> read_program();
  Result<void> search(std::string_view directories, const std::string& why, bool before_cache);
  Result<void> search_cache();
  Result<void> find_musl();
  Result<void> try_path(const std::string& path, const std::string& why, bool before_cache);
  Result<std::string> version_of_neighbours(const std::string& directory);

  const Tree& tree_;
  const LoaderSettings& settings_;
  bool ours_came_ = false;  ///< our directory was reached: the loader does not reach later ones
  DriverFiles found_;
};

Result<ElfFile> Finder::read_program() {
  ElfFile none;
  none.machine = 0;
  if (settings_.program.empty()) return none;
  auto file = TRY(tree_.find_file(settings_.program));
  if (!file) return none;
  auto read = read_elf_at(tree_, *file);
  if (!read.ok()) return none;  // a script
  std::string origin = parent_of(file->path);
  read->rpath = expand_origin(std::move(read->rpath), origin);
  read->runpath = expand_origin(std::move(read->runpath), origin);
  return std::move(*read);
}

/// The version of a libcuda that is named only by its SONAME: that in the names of the other
/// driver files of its directory, if they agree.
Result<std::string> Finder::version_of_neighbours(const std::string& directory) {
  std::set<std::string> versions;
  for (const std::string& name : TRY(tree_.list(directory))) {
    bool tells =
        name.starts_with("libcuda.so.") || name.starts_with("libnvidia-ptxjitcompiler.so.");
    if (tells && !version_in(name).empty()) versions.emplace(version_in(name));
  }
  return versions.size() == 1 ? *versions.begin() : std::string();
}

// Like the loader, skips a library of another machine.
Result<void> Finder::try_path(const std::string& path, const std::string& why, bool before_cache) {
  auto file = TRY(tree_.find_file(path));
  if (!file) return {};
  auto known = [&](const ImageLibrary& other) { return other.real_path == file->path; };
  if (std::ranges::any_of(found_.libraries, known)) return {};
  auto elf = read_elf_at(tree_, *file);
  if (!elf.ok() || elf->machine != settings_.machine) return {};
  ImageLibrary library{path, file->path, version_in(base_of(file->path)), why, before_cache};
  if (library.version.empty()) {
    library.version = TRY(version_of_neighbours(parent_of(file->path)));
  }
  found_.libraries.push_back(std::move(library));
  return {};
}

Result<void> Finder::search(std::string_view directories, const std::string& why,
                            bool before_cache) {
  size_t count = 0;
  for (std::string_view directory : split(directories, ':')) {
    if (!directory.starts_with('/') || ++count > kMaxDirectories) continue;
    std::string path(directory);
    while (path.size() > 1 && path.ends_with('/')) path.pop_back();
    if (path == settings_.ours) ours_came_ = true;
    before_cache = before_cache && !ours_came_;
    TRY(try_path(path + "/" + kLibrary, why, before_cache));
  }
  return {};
}

Result<void> Finder::search_cache() {
  auto file = TRY(tree_.find_file("/etc/ld.so.cache"));
  if (!file || file->size > kMaxCache) return {};
  auto cache = read_loader_cache(TRY(tree_.read(*file, 0, static_cast<size_t>(file->size))));
  if (!cache.ok()) return {};
  size_t count = 0;
  for (const LoaderEntry& entry : cache->entries) {
    if (entry.soname != kLibrary || ++count > kMaxDirectories) continue;
    TRY(try_path(entry.path, "its loader cache", false));
  }
  return {};
}

Result<void> Finder::find_musl() {
  std::string arch = settings_.machine == kMachineX86_64 ? "x86_64" : "aarch64";
  found_.musl = TRY(tree_.find_file("/lib/ld-musl-" + arch + ".so.1")).has_value();
  if (!found_.musl) return {};
  auto file = TRY(tree_.find_file("/etc/ld-musl-" + arch + ".path"));
  if (!file || file->size > kMaxNames) return {};
  std::string text = TRY(tree_.read(*file, 0, static_cast<size_t>(file->size)));
  std::ranges::replace(text, '\n', ':');
  return search(text, "musl's list of directories", false);
}

// The note lists the kernel modules that the package was made for. It is JSON and not trusted.
void read_note(const ElfFile& elf, CompatPackage& compat) {
  for (const ElfNote& note : elf.notes) {
    if (note.section != kNoteSection) continue;
    std::string_view text = note.content;
    text = text.substr(0, text.find('\0'));
    auto value = json::parse(text, "compat note", {kMaxNote, 8, 1000});
    if (!value.ok() || value->object() == nullptr) continue;
    compat.has_note = true;
    const json::Value* cuda = value->find("CUDA Version");
    if (cuda != nullptr && cuda->string() != nullptr && is_version(*cuda->string())) {
      compat.cuda_version = *cuda->string();
    }
    const json::Value* branches = value->find("Driver");
    if (branches == nullptr || branches->array() == nullptr) continue;
    for (const json::Value& branch : *branches->array()) {
      const auto* number = branch.get_if<int64_t>();
      if (number == nullptr || *number < 0 || *number > UINT32_MAX) continue;
      if (compat.drivers.size() == kMaxDirectories) break;
      compat.drivers.push_back(static_cast<uint32_t>(*number));
    }
  }
}

/// Whether a loader looks up such a name: "libcuda.so.1".
bool is_soname(std::string_view name) {
  size_t dot = name.find(".so.");
  return dot != std::string_view::npos && name.starts_with("lib") &&
         name.find_first_not_of("0123456789", dot + 4) == std::string_view::npos;
}

uint32_t branch_of(std::string_view version) {
  auto number = parse_i64(version.substr(0, version.find('.')));
  return number && *number > 0 && *number < INT32_MAX ? static_cast<uint32_t>(*number) : 0;
}

}  // namespace

Result<DriverFiles> find_driver_files(const Tree& tree, const LoaderSettings& settings) {
  return Finder(tree, settings).run();
}

Result<CompatLook> find_compat(const Tree& tree, const std::string& directory, uint16_t machine) {
  std::vector<std::string> names = TRY(tree.list(directory));
  if (names.empty() || names.size() > kMaxNames) return CompatLook{};
  std::vector<Tree::File> files;
  CompatPackage compat;
  compat.directory = directory;
  for (const std::string& name : names) {
    if (name.starts_with("libcuda.so.") && !version_in(name).empty()) {
      // Only files with this name, not links to them.
      auto file = TRY(tree.find_file(directory + "/" + name));
      if (file && base_of(file->path) == name) files.push_back(std::move(*file));
    } else if (is_soname(name) && compat.libraries.size() < kMaxDirectories) {
      compat.libraries.push_back(name);
    }
  }
  if (files.size() != 1) {
    return CompatLook{
        {},
        directory + (files.empty() ? " has no libcuda.so.*" : " has more than one libcuda.so.*")};
  }
  auto elf = read_elf_at(tree, files[0]);
  if (!elf.ok() || elf->machine != machine) {
    return CompatLook{{}, directory + " has no library for this machine"};
  }
  compat.version = version_in(base_of(files[0].path));
  std::ranges::sort(compat.libraries);
  read_note(*elf, compat);
  return CompatLook{std::move(compat), {}};
}

void put_first(const CompatPackage& compat, uint16_t machine, std::vector<LoaderEntry>& entries) {
  auto flags = loader_flags(ElfClass::elf64, machine);
  if (!flags) return;
  std::vector<LoaderEntry> first;
  auto put = [&](const std::string& name, const std::string& file) {
    std::erase_if(entries, [&](const LoaderEntry& entry) {
      return entry.soname == name && entry.flags == *flags;
    });
    first.push_back({name, compat.directory + "/" + file, *flags, 0, 0});
  };
  for (const std::string& name : compat.libraries) {
    put(name, name);
    // A program that loads the library without a number in the name gets the same one.
    std::string plain = without_number(name);
    auto is_plain = [&](const LoaderEntry& entry) { return entry.soname == plain; };
    if (std::ranges::any_of(entries, is_plain)) put(plain, name);
  }
  entries.insert(entries.begin(), first.begin(), first.end());
}

// Does not allocate, because an index of a thousand entries causes a thousand comparisons.
int compare_versions(std::string_view left, std::string_view right) {
  auto next_number = [](std::string_view& text) {
    constexpr size_t kMostDigits = 18;
    std::string_view word = text.substr(0, text.find('.'));
    text.remove_prefix(std::min(text.size(), word.size() + 1));
    int64_t number = 0;
    for (char c : word) {
      if (c < '0' || c > '9' || word.size() > kMostDigits) return int64_t{0};
      number = number * 10 + (c - '0');
    }
    return number;
  };
  while (!left.empty() || !right.empty()) {
    int64_t a = next_number(left);
    int64_t b = next_number(right);
    if (a != b) return a < b ? -1 : 1;
  }
  return 0;
}

CompatVerdict judge_compat(const CompatPackage& compat, const std::string& module_version,
                           const std::string& cuda, const std::vector<std::string>& brands) {
  std::string name = compat.directory + " (" + compat.version + ")";
  for (const std::string& brand : brands) {
    // The driver would fail with error 804.
    if (brand.find("geforce") != std::string::npos || brand.find("titan") != std::string::npos) {
      return {false, name + ": GPUs of brand " + brand + " have no forward compatibility"};
    }
  }
  uint32_t branch = branch_of(module_version);
  std::string module = "kernel module " + module_version;
  if (compat.has_note) {
    if (branch != 0 && !compat.version.empty()) {
      if (std::ranges::find(compat.drivers, branch) == compat.drivers.end()) {
        return {false, name + ": not made for branch " + std::to_string(branch)};
      }
      if (compare_versions(compat.version, module_version) <= 0) {
        return {false, name + ": not newer than the " + module};
      }
      return {true,
              name + ": made for branch " + std::to_string(branch) + ", newer than the " + module};
    }
    if (!cuda.empty() && compare_versions(compat.cuda_version, cuda) > 0) {
      return {true, name + ": CUDA " + compat.cuda_version + ", the driver has " + cuda};
    }
    return {false, name + ": not newer than the driver's CUDA"};
  }
  if (branch != 0 && branch < branch_of(compat.version)) {
    return {true, name + ": of a newer branch than the " + module};
  }
  return {false, name + ": of no newer branch than the " + module};
}

}  // namespace berth::scan
