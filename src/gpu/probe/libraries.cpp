// SPDX-License-Identifier: Apache-2.0
#include "gpu/probe/libraries.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/text.hpp"
#include "facts/versions.hpp"
#include "gpu/probe/driver_capabilities.hpp"
#include "scan/driver_files.hpp"
#include "scan/elf.hpp"
#include "scan/loader.hpp"
#include "sys/file/file.hpp"

namespace berth::gpu {
namespace {

#if defined(__x86_64__)
constexpr uint16_t kMachine = scan::kMachineX86_64, kMachine32 = scan::kMachine386;
constexpr std::string_view kTriplet = "x86_64-linux-gnu", kTriplet32 = "i386-linux-gnu";
constexpr std::string_view kHere = "x86_64";
#elif defined(__aarch64__)
constexpr uint16_t kMachine = scan::kMachineAarch64, kMachine32 = scan::kMachineArm;
constexpr std::string_view kTriplet = "aarch64-linux-gnu", kTriplet32 = "arm-linux-gnueabihf";
constexpr std::string_view kHere = "aarch64";
#else
#error "no NVIDIA driver exists for this architecture"
#endif

constexpr size_t kMaxCacheBytes = size_t{16} << 20;
constexpr size_t kMaxUnusable = 100;  // a driver has about as many files
constexpr size_t kMaxConfBytes = size_t{1} << 20;

std::vector<uint64_t> version_numbers(std::string_view version) {
  std::vector<uint64_t> out;
  for (std::string_view part : split(version, '.')) out.push_back(parse_u64(part).value_or(0));
  return out;
}

// The driver has libnvidia-tls for two ABIs. The file with this note is for kernels since 2.3.99,
// which support the thread register that libc uses.
bool has_tls_note(const scan::ElfFile& elf) {
  const std::string wanted("\0\0\0\0\2\0\0\0\3\0\0\0\143\0\0\0", 16);
  return std::ranges::any_of(elf.notes, [&](const scan::ElfNote& note) {
    return note.owner == "GNU" && note.type == 1 && note.content == wanted;
  });
}

// libGL of Mesa or GLVND belongs to the image.
bool is_nvidias_gl(const scan::ElfFile& elf) {
  return std::ranges::any_of(elf.needed, [](const std::string& name) {
    return name.starts_with("libnvidia-glcore.so") || name.starts_with("libnvidia-eglcore.so");
  });
}

std::string machine_name(uint16_t machine) {
  switch (machine) {
    case scan::kMachine386:
      return "i386";
    case scan::kMachineArm:
      return "arm";
    case scan::kMachineX86_64:
      return "x86_64";
    case scan::kMachineAarch64:
      return "aarch64";
    default:
      return fmt::format("ELF machine {}", machine);
  }
}

// A SONAME becomes the name of a link in the container's library directory, and part of a line in
// a file.
bool is_plain(const std::string& soname) {
  bool printable = std::ranges::none_of(soname, [](char c) {
    return c == '/' || static_cast<unsigned char>(c) < ' ' || c == '\177';
  });
  return printable && soname != "." && soname != "..";
}

/// The directory of the 64-bit libraries that belong to the 32-bit ones in `directory`, where
/// distributions have them; one of several guesses.
std::vector<std::string> native_sisters_of(const std::string& directory) {
  std::vector<std::string> out;
  const std::pair<std::string_view, std::string_view> kPairs[] = {
      {kTriplet32, kTriplet},
      {"lib32", "lib64"},
      {"lib32", "lib"},
      {"lib", "lib64"},
      {"opengl-driver-32", "opengl-driver"}};
  for (const auto& [twin, native] : kPairs) {
    std::string part = fmt::format("/{}/", twin), path = directory + "/";
    size_t at = path.find(part);
    if (at == std::string::npos) continue;
    path.replace(at, part.size(), fmt::format("/{}/", native));
    path.pop_back();
    out.push_back(std::move(path));
  }
  return out;
}

// A file with the name of a driver library; it is not opened yet.
struct Candidate {
  const LibraryName* library = nullptr;
  std::string directory;  ///< below the root
  std::string name;
  std::string version;  ///< of the driver; empty if the file has a version of its own
};

class Search {
 public:
  Search(const DriverRoot& root, Inventory& inventory) : root_(root), inventory_(inventory) {}

  Result<std::vector<std::string>> run(const std::vector<std::string>& configured) {
    for (const std::string& directory : configured) add_directory(directory);
    TRY(collect_directories());
    for (const std::string& directory : directories_) {
      for (const char* below : {"", "/vdpau", "/tls"}) collect_candidates(directory + below);
    }
    choose_version();
    keep_one_tls();
    take_libraries();
    name_unusable();
    complete_capabilities();
    return std::move(taken_from_);
  }

  Result<std::vector<std::string>> directories() {
    TRY(collect_directories());
    return std::move(directories_);
  }

 private:
  Result<void> collect_directories();
  Result<void> add_branches(const std::string& directory);
  Result<void> read_loader_cache();
  Result<void> read_loader_conf(const std::string& path, int depth);
  Result<void> read_included(std::string_view pattern, int depth);
  void collect_candidates(const std::string& directory);
  void choose_version();
  void keep_one_tls();
  void take_libraries();
  void name_unusable();
  std::optional<UnusableFile> judge(const Candidate& candidate) const;
  void complete_capabilities();
  bool take_library(const Candidate& candidate);
  std::optional<DriverFile> open_library(const Candidate& candidate);
  std::optional<ElfObject> open_candidate(const Candidate& candidate) {
    return open_elf(root_, path_of(candidate), candidate.library->capabilities,
                    inventory_.unusable);
  }
  static std::string path_of(const Candidate& candidate) {
    return candidate.directory + "/" + candidate.name;
  }
  /// Whether a file of this library is taken.
  bool has(const LibraryName& library, bool elf32) const {
    const std::string start = fmt::format("{}.so.", library.base);
    return std::ranges::any_of(inventory_.files, [&](const DriverFile& file) {
      return file.elf32 == elf32 && file.name.starts_with(start);
    });
  }
  bool is_taken(const std::string& directory) const {
    return std::ranges::find(taken_from_, directory) != taken_from_.end();
  }
  /// Whether `directory` has the 32-bit libraries that belong to the driver's directories.
  bool is_for_twins(const std::string& directory) const {
    auto sisters = native_sisters_of(directory);
    return std::ranges::any_of(sisters, [&](const std::string& one) { return is_taken(one); });
  }
  /// A version, and whether there are files of it for is_for_twins().
  using Place = std::pair<std::string, bool>;
  std::set<Place> places_of(std::string_view base) const {
    std::set<Place> out;
    for (const Candidate& candidate : candidates_) {
      if (candidate.library->base != base) continue;
      out.insert({candidate.version, is_for_twins(candidate.directory)});
    }
    return out;
  }
  /// Whether the file is of another driver that is installed beside this one: either may have files
  /// that the other does not need.
  bool is_of_another(const Candidate& candidate) const {
    auto is_whole = [&](const std::string& version) {
      const Place place{version, is_for_twins(candidate.directory)};
      return with_cuda_.contains(place) && with_nvml_.contains(place);
    };
    const std::string& driver = inventory_.driver.library_version;
    return candidate.version != driver && is_whole(candidate.version) && is_whole(driver);
  }
  /// Whether the driver has files in `directory`, or in the one of 64-bit libraries that belongs to
  /// it. Others may have those of another driver.
  bool is_of_driver(const std::string& directory) const {
    return taken_from_.empty() || is_taken(directory) || is_for_twins(directory);
  }
  bool is_of_version(const Candidate& candidate) const {
    return !candidate.version.empty() && candidate.version == inventory_.driver.library_version;
  }
  /// Whether the driver has a libGLX_nvidia, which GLVND's libGL loads.
  bool has_part_of_glvnd() const {
    return std::ranges::any_of(candidates_, [&](const Candidate& candidate) {
      return candidate.library->base == "libGLX_nvidia" && is_of_version(candidate);
    });
  }
  void add_directory(std::string path) {
    if (path.starts_with('/')) directories_.push_back(std::move(path));
  }
  void problem(std::string text) { inventory_.problems.push_back(std::move(text)); }

  const DriverRoot& root_;
  Inventory& inventory_;
  std::vector<std::string> directories_;
  std::set<std::string> seen_;  ///< directories, resolved
  std::vector<Candidate> candidates_;
  std::vector<std::string> taken_from_;
  std::set<Place> with_cuda_, with_nvml_;
  std::map<std::string, std::vector<std::string>> needed_;  ///< SONAMEs, by the path of the library
};

Result<void> Search::collect_directories() {
  TRY(read_loader_cache());
  TRY(read_loader_conf("/etc/ld.so.conf", 0));
  for (std::string_view triplet : {kTriplet, kTriplet32}) {
    add_directory(fmt::format("/usr/lib/{}", triplet));             // Debian, Ubuntu
    TRY(add_branches(fmt::format("/usr/lib/{}/nvidia", triplet)));  // Debian's own packages
    add_directory(fmt::format("/lib/{}", triplet));
  }
  for (std::string_view directory :
       {"/usr/lib64",  // Fedora, RHEL, SUSE, Gentoo
        "/usr/lib",    // Arch; 32-bit elsewhere
        "/usr/lib32", "/usr/lib64/nvidia", "/usr/lib/nvidia", "/lib64", "/lib",
        "/run/opengl-driver/lib",  // NixOS, Guix
        "/run/opengl-driver-32/lib", "/usr/local/nvidia/lib64",
        "/usr/local/nvidia/lib",              // inside another GPU container
        "/home/kubernetes/bin/nvidia/lib64",  // Container-Optimized OS
        "/x86_64-bottlerocket-linux-gnu/sys-root/usr/lib",
        "/aarch64-bottlerocket-linux-gnu/sys-root/usr/lib",
        "/usr/local/glibc/usr/lib",  // Talos
        "/opt/nvidia/lib64", "/lib/nvidia", "/"}) {
    add_directory(std::string(directory));
  }
  return {};
}

// Debian's packages of several branches are there at once: "current", "tesla-450", "legacy-390xx".
Result<void> Search::add_branches(const std::string& directory) {
  add_directory(directory + "/current");
  auto found = root_.find(directory);
  if (!found) return {};
  for (const std::string& name : TRY(root_.list(*found))) add_directory(directory + "/" + name);
  return {};
}

// Adds the directories in which the root's loader finds libcuda or NVML. If the file is a link
// (Debian's alternatives), also the directory of its target.
Result<void> Search::read_loader_cache() {
  std::string bytes = TRY(root_.read_file("/etc/ld.so.cache", kMaxCacheBytes));
  if (bytes.empty()) return {};
  auto cache = scan::read_loader_cache(bytes);
  if (!cache.ok()) {
    problem(to_line(cache.error()) + ", ignoring it");
    return {};
  }
  const std::string root = root_.path() == "/" ? "" : root_.path();
  for (const scan::LoaderEntry& entry : cache->entries) {
    if (!entry.soname.starts_with("libcuda.so") && !entry.soname.starts_with("libnvidia-ml.so"))
      continue;
    add_directory(entry.path.substr(0, entry.path.rfind('/')));
    auto found = root_.find(entry.path);
    if (!found || !found->host_path.starts_with(root + "/")) continue;
    std::string inside = found->host_path.substr(root.size());
    add_directory(inside.substr(0, inside.rfind('/')));
  }
  return {};
}

// ldconfig(8): one directory per line, or "include PATTERN" with wildcards in the last component.
Result<void> Search::read_loader_conf(const std::string& path, int depth) {
  std::string text = TRY(root_.read_file(path, kMaxConfBytes));
  for (std::string_view line : split(text, '\n')) {
    line = trim(line.substr(0, line.find('#')));
    if (line.starts_with('/')) add_directory(std::string(line));
    auto words = split_blank(line);
    if (words.size() == 2 && words[0] == "include" && depth == 0) {
      TRY(read_included(words[1], depth + 1));
    }
  }
  return {};
}

Result<void> Search::read_included(std::string_view pattern, int depth) {
  size_t slash = pattern.rfind('/');
  std::string directory(pattern.substr(0, slash == std::string_view::npos ? 0 : slash));
  if (!directory.starts_with('/')) directory = "/etc/" + directory;
  auto found = root_.find(directory);
  if (!found) return {};
  for (const std::string& name : TRY(root_.list(*found))) {
    if (name.ends_with(".conf")) TRY(read_loader_conf(directory + "/" + name, depth));
  }
  return {};
}

void Search::collect_candidates(const std::string& directory) {
  auto found = root_.find(directory);
  if (!found || !seen_.insert(found->host_path).second) return;
  auto names = root_.list(*found);
  if (!names.ok()) return problem(to_line(names.error()) + ", ignoring it");
  for (std::string& name : *names) {
    size_t dot = name.find(".so.");
    if (dot == std::string::npos) continue;
    const LibraryName* library = find_library_name(std::string_view(name).substr(0, dot));
    if (library == nullptr) continue;
    std::string version;
    if (library->version != LibraryName::Version::own) version = driver_version_of(name);
    bool is_link = version.empty() && library->version == LibraryName::Version::driver;
    if (is_link) continue;  // named by the SONAME
    candidates_.push_back({library, directory, std::move(name), std::move(version)});
  }
}

// The version of the loaded module if its libcuda (or NVML) exists, else the newest on disk.
void Search::choose_version() {
  std::string newest;
  for (const Candidate& candidate : candidates_) {
    if (candidate.library->base != "libcuda" && candidate.library->base != "libnvidia-ml") continue;
    auto file = open_library(candidate);
    if (!file || file->elf32) continue;
    if (candidate.version == inventory_.driver.module_version) {
      inventory_.driver.library_version = candidate.version;
      return;
    }
    if (newest.empty() || version_numbers(candidate.version) > version_numbers(newest)) {
      newest = candidate.version;
    }
  }
  inventory_.driver.library_version = newest;
}

// If there are two files, the one without the note is for another thread library.
void Search::keep_one_tls() {
  auto class_with_note = [this](const Candidate& candidate) -> std::optional<scan::ElfClass> {
    if (candidate.library->base != "libnvidia-tls" || !is_of_version(candidate)) return {};
    auto object = open_candidate(candidate);
    if (!object || !has_tls_note(object->elf)) return {};
    return object->elf.elf_class;
  };
  std::set<scan::ElfClass> marked;
  for (const Candidate& candidate : candidates_) {
    if (auto elf_class = class_with_note(candidate)) marked.insert(*elf_class);
  }
  std::erase_if(candidates_, [&](const Candidate& candidate) {
    if (candidate.library->base != "libnvidia-tls" || !is_of_version(candidate)) return false;
    auto object = open_candidate(candidate);
    return object && marked.contains(object->elf.elf_class) && !has_tls_note(object->elf);
  });
}

// For each library and ELF class the first directory wins, as in the loader.
void Search::take_libraries() {
  std::set<std::string> directories;  // directories that have files of the version
  for (const Candidate& candidate : candidates_) {
    if (!is_of_version(candidate) || !take_library(candidate)) continue;
    if (directories.insert(candidate.directory).second) taken_from_.push_back(candidate.directory);
  }
  for (const Candidate& candidate : candidates_) {
    bool beside = directories.contains(candidate.directory);
    if (candidate.version.empty() && beside) take_library(candidate);
  }
}

// Names the files that the driver has no others for: half of an upgrade, a damaged file, or one of
// another architecture.
void Search::name_unusable() {
  with_cuda_ = places_of("libcuda");
  with_nvml_ = places_of("libnvidia-ml");
  for (const Candidate& candidate : candidates_) {
    if (!is_of_driver(candidate.directory)) continue;
    if (has(*candidate.library, false) && has(*candidate.library, true)) continue;
    if (!candidate.version.empty() && is_of_another(candidate)) continue;
    if (auto file = judge(candidate)) add_unusable(std::move(*file), inventory_.unusable);
  }
}

/// Nothing if the driver has another file in its place, or needs none.
std::optional<UnusableFile> Search::judge(const Candidate& candidate) const {
  const std::string path = path_of(candidate);
  std::vector<UnusableFile> damaged;
  auto object = open_elf(root_, path, candidate.library->capabilities, damaged);
  bool twin = object && object->fit == Fit::twin;
  if (has(*candidate.library, twin)) return std::nullopt;
  if (!damaged.empty()) return std::move(damaged[0]);
  UnusableFile file;
  const std::string root = root_.path() == "/" ? "" : root_.path();
  file.path = object ? object->host_path : root + path;
  file.capabilities = words_of(twin ? "compat32" : candidate.library->capabilities);
  const std::string& driver = inventory_.driver.library_version;
  if (!object) {
    file.why = why_no_file(root_, path);
  } else if (object->fit == Fit::foreign) {
    file.why =
        fmt::format("for {}, and this machine is {}", machine_name(object->elf.machine), kHere);
  } else if (!candidate.version.empty() && !driver.empty() && candidate.version != driver) {
    file.why = of_other_driver(candidate.version, driver);
  } else if (!is_plain(object->elf.soname)) {
    file.why = "its SONAME is no file name";
  }
  return file.why.empty() ? std::nullopt : std::optional(std::move(file));
}

// A library comes with every capability of the libraries that need it.
void Search::complete_capabilities() {
  bool changed = true;
  while (changed) {
    changed = false;
    for (const DriverFile& file : inventory_.files) {
      for (const std::string& name : needed_[file.host_path]) {
        for (DriverFile& needed : inventory_.files) {
          if (needed.soname != name || needed.elf32 != file.elf32) continue;
          for (const std::string& capability : file.capabilities) {
            auto& has = needed.capabilities;
            if (std::ranges::find(has, capability) != has.end()) continue;
            has.push_back(capability);
            changed = true;
          }
        }
      }
    }
  }
}

bool Search::take_library(const Candidate& candidate) {
  auto file = open_library(candidate);
  if (!file) return false;
  for (const DriverFile& known : inventory_.files) {
    if (known.soname == file->soname && known.loader_flags == file->loader_flags) return false;
  }
  inventory_.files.push_back(std::move(*file));
  return true;
}

std::optional<DriverFile> Search::open_library(const Candidate& candidate) {
  auto object = open_candidate(candidate);
  if (!object || object->fit == Fit::foreign) return std::nullopt;
  // "libnvidia-api.so.1" may be the file itself or a link named by the SONAME; a link is skipped.
  bool is_link = object->host_path.substr(object->host_path.rfind('/') + 1) != candidate.name;
  if (is_link && candidate.version.empty()) return std::nullopt;
  bool contested = candidate.library->contested && has_part_of_glvnd();
  if (contested && !is_nvidias_gl(object->elf)) return std::nullopt;
  const scan::ElfFile& elf = object->elf;
  needed_[object->host_path] = elf.needed;
  DriverFile file;
  file.kind = FileKind::library;
  file.host_path = object->host_path;
  file.name = candidate.name;
  file.soname = elf.soname.empty() ? candidate.name : elf.soname;
  file.loader_flags = scan::loader_flags(elf.elf_class, elf.machine).value_or(0);
  file.elf32 = object->fit == Fit::twin;
  file.capabilities = words_of(candidate.library->capabilities);
  return is_plain(file.soname) ? std::optional(file) : std::nullopt;
}

bool counts(const DriverFile& file) {
  return file.kind == FileKind::library && !file.elf32 &&
         std::ranges::any_of(file.capabilities, [](const std::string& one) {
           return one == "compute" || one == "utility";
         });
}

/// Empty for an unreadable file, which was reported when it was found.
std::string needed_by(const std::string& path) {
  auto file = sys::open_at(sys::cwd(), path, O_RDONLY | O_NONBLOCK);
  if (!file.ok()) return {};
  auto read_at = [&](uint64_t offset, size_t length) {
    return sys::read_at(*file, offset, length, path);
  };
  auto elf = scan::read_elf(read_at);
  if (!elf.ok()) return {};
  auto versions = facts::read_symbol_versions(*elf, read_at);
  if (!versions.ok()) return {};
  auto glibc = versions->needs.find("GLIBC");
  return glibc == versions->needs.end() ? std::string() : glibc->second;
}

}  // namespace

std::optional<ElfObject> open_elf(const DriverRoot& root, const std::string& path,
                                  std::string_view capabilities,
                                  std::vector<UnusableFile>& unusable) {
  auto found = root.open_file(path);
  if (!found) return std::nullopt;
  auto elf = scan::read_elf([&](uint64_t offset, size_t length) {
    return sys::read_at(found->fd, offset, length, found->host_path);
  });
  if (!elf.ok()) {
    add_unusable({found->host_path, to_line(elf.error()), words_of(capabilities)}, unusable);
    return std::nullopt;
  }
  Fit fit = Fit::foreign;
  if (elf->elf_class == scan::ElfClass::elf64 && elf->machine == kMachine) fit = Fit::native;
  if (elf->elf_class == scan::ElfClass::elf32 && elf->machine == kMachine32) fit = Fit::twin;
  return ElfObject{.host_path = found->host_path, .fit = fit, .elf = std::move(*elf)};
}

void add_unusable(UnusableFile file, std::vector<UnusableFile>& unusable) {
  auto is_same = [&](const UnusableFile& other) { return other.path == file.path; };
  if (unusable.size() >= kMaxUnusable || std::ranges::any_of(unusable, is_same)) return;
  unusable.push_back(std::move(file));
}

std::string of_other_driver(std::string_view found, std::string_view driver) {
  return fmt::format("of driver {}, and its other files are of {}", found, driver);
}

std::string why_no_file(const DriverRoot& root, const std::string& path) {
  auto found = root.find(path);
  if (found && S_ISREG(found->info.st_mode)) {
    return root.open_file(path) ? "" : "this user may not read it";
  }
  if (found) return "no regular file";
  std::string target = root.link(path);
  return target.empty() ? "" : fmt::format("a link to {} that leads nowhere", quote(target));
}

Result<std::vector<std::string>> read_libraries(const DriverRoot& root,
                                                const std::vector<std::string>& configured,
                                                Inventory& inventory) {
  return Search(root, inventory).run(configured);
}

Result<std::vector<std::string>> searched_directories(const DriverRoot& root) {
  Inventory unused;
  auto all = TRY(Search(root, unused).directories());
  std::vector<std::string> once;
  for (std::string& directory : all) {
    if (std::ranges::find(once, directory) == once.end()) {
      once.push_back(std::move(directory));
    }
  }
  return once;
}

std::string glibc_needed(const Inventory& inventory) {
  std::string highest;
  for (const DriverFile& file : inventory.files) {
    if (!counts(file)) continue;
    std::string version = needed_by(file.host_path);
    if (version.empty()) continue;
    if (highest.empty() || scan::compare_versions(version, highest) > 0) highest = version;
  }
  return highest;
}

}  // namespace berth::gpu
