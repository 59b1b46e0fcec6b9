// SPDX-License-Identifier: Apache-2.0
// A root file system of libraries that are described instead of made.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "mpi/libraries.hpp"
#include "scan/loader.hpp"

namespace berth::mpi {

class System : public scan::Tree {
 public:
  System() = default;
  System(const System&) = delete;  // libraries() refers to this
  System& operator=(const System&) = delete;

  /// A library at `path`, with a link by its SONAME beside it.
  Library& add(const std::string& path, const std::string& soname,
               std::vector<std::string> needed = {}) {
    Library& library = made_[path];
    library.path = path;
    library.soname = soname;
    library.needed = std::move(needed);
    files_[path] = "library";
    std::string link = path.substr(0, path.rfind('/') + 1) + soname;
    if (link != path) links_[link] = path;
    return library;
  }
  void add_file(const std::string& path, const std::string& content = "") {
    files_[path] = content;
  }
  void cache(const std::vector<std::pair<std::string, std::string>>& entries) {
    scan::LoaderCache cache;
    for (const auto& [soname, path] : entries) {
      cache.entries.push_back({soname, path, 0x303, 0, 0});
    }
    files_["/etc/ld.so.cache"] = scan::write_loader_cache(cache);
  }

  /// glibc with these versions of it, at Debian's place.
  void add_glibc(const std::vector<std::string>& versions) {
    Library& libc = add(kDebian + "libc.so.6", "libc.so.6");
    libc.symbols.offers = {versions.begin(), versions.end()};
  }
  /// Open MPI 4 with its two other libraries.
  Library& add_openmpi(const std::string& directory, const std::string& numbers = "40.30.4") {
    Library& core = add(directory + "libmpi.so." + numbers, "libmpi.so.40",
                        {"libopen-rte.so.40", "libopen-pal.so.40", "libc.so.6"});
    core.symbols.defined = {"MPI_Init", "MPI_Send", "ompi_mpi_comm_world"};
    core.symbols.mpi_version = "4.1.4";
    add(directory + "libopen-rte.so.40.30.2", "libopen-rte.so.40", {"libopen-pal.so.40"});
    add(directory + "libopen-pal.so.40.30.2", "libopen-pal.so.40", {"libhwloc.so.15"});
    return core;
  }
  Library& add_mpich(const std::string& directory, const std::string& soname = "libmpi.so.12",
                     const std::string& numbers = "12.2.2") {
    std::string stem = soname.substr(0, soname.find(".so."));
    Library& core = add(directory + stem + ".so." + numbers, soname, {"libc.so.6"});
    core.symbols.defined = {"MPI_Init", "MPI_Send"};
    core.symbols.mpi_version = "4.0.2";
    return core;
  }
  Library& add_hwloc() {
    Library& hwloc = add(kDebian + "libhwloc.so.15.6.1", "libhwloc.so.15");
    hwloc.symbols.defined = {"hwloc_topology_init"};
    return hwloc;
  }

  Libraries libraries(const std::string& library_path = "") const {
    Places places;
    places.library_path = library_path;
    auto read = [this](const scan::Tree&, const scan::Tree::File& file,
                       uint16_t) -> Result<std::optional<Library>> {
      auto found = made_.find(file.path);
      return found == made_.end() ? std::optional<Library>() : std::optional(found->second);
    };
    auto opened = Libraries::open(*this, places, read);
    return std::move(*opened);
  }

  Result<std::optional<File>> find_file(const std::string& path) const override {
    auto link = links_.find(path);
    auto file = files_.find(link == links_.end() ? path : link->second);
    if (file == files_.end()) return std::optional<File>();
    return std::optional<File>(File{file->first, file->second.size()});
  }
  Result<std::vector<std::string>> list(const std::string& path) const override {
    std::set<std::string> names;
    for (const auto& [name, content] : files_) {
      if (!name.starts_with(path + "/")) continue;
      std::string rest = name.substr(path.size() + 1);
      names.insert(rest.substr(0, rest.find('/')));
    }
    return std::vector<std::string>(names.begin(), names.end());
  }
  Result<std::string> read(const File& file, uint64_t offset, size_t length) const override {
    const std::string& bytes = files_.at(file.path);
    return offset < bytes.size() ? bytes.substr(static_cast<size_t>(offset), length)
                                 : std::string();
  }

  static inline const std::string kDebian = "/usr/lib/x86_64-linux-gnu/";

 private:
  std::map<std::string, std::string> files_;
  std::map<std::string, std::string> links_;
  std::map<std::string, Library> made_;
};

}  // namespace berth::mpi
