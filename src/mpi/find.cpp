// SPDX-License-Identifier: Apache-2.0
#include "mpi/find.hpp"

#include <algorithm>
#include <deque>

#include "base/text.hpp"
#include "scan/loader.hpp"

namespace berth::mpi {
namespace {

constexpr size_t kMaxFound = 32;
constexpr size_t kMaxBelow = 32;
constexpr size_t kMaxLinked = 256;  // the most libraries of a program

/// The names of core libraries that are looked up. libmpi.so.0, .2 and .3 and libmpich.so.10 are
/// left out: their ABIs are obsolete.
constexpr std::array kCores = {
    "libmpi.so.40",       "libmpi.so.20",        "libmpi.so.12",      "libmpich.so.12",
    "libmpi.so.1",        "libmpi_abi.so.0",     "libmpi_cray.so.12", "libmpi_gnu.so.12",
    "libmpi_intel.so.12", "libmpi_nvidia.so.12", "libmpi_abi.so.1",   "libmpi.so.0",
    "libmpi.so.2",        "libmpi.so.3",         "libmpi.so.4",       "libmpich.so.10",
    "libmpi_mt.so.4",     "libmpi_ibm.so.3",     "libmpi_ibm.so.40"};

/// Usual directories that no loader searches by default: those of RHEL's modules, of builds from
/// source, and of vendors' images.
constexpr std::array kUsual = {"/usr/lib64/openmpi/lib",
                               "/usr/lib64/mpich/lib",
                               "/usr/lib64/mvapich2/lib",
                               "/usr/local/mpi/lib",
                               "/usr/local/openmpi/lib",
                               "/usr/local/mpich/lib",
                               "/usr/local/ompi/lib",
                               "/opt/mpi/lib",
                               "/opt/openmpi/lib",
                               "/opt/ompi/lib",
                               "/opt/mpich/lib",
                               "/opt/mvapich2/lib",
                               "/opt/hpcx/ompi/lib",
                               "/opt/amazon/openmpi/lib",
                               "/opt/amazon/openmpi/lib64",
                               "/opt/cray/pe/lib64"};
/// In each directory below the first path, the second path is searched: each version has its own
/// directory.
constexpr std::array<std::pair<const char*, const char*>, 5> kVersioned = {
    {{"/opt/intel/oneapi/mpi", "/lib/release"},
     {"/opt/intel/oneapi/mpi", "/lib"},
     {"/opt/cray/pe/mpich/default/ofi/gnu", "/lib-abi-mpich"},
     {"/opt/cray/pe/mpich/default/ofi/gnu", "/lib"},
     {"/opt/openmpi", "/lib"}}};

Result<std::vector<std::string>> usual_directories(const scan::Tree& tree) {
  std::vector<std::string> out(kUsual.begin(), kUsual.end());
  for (const auto& [parent, below] : kVersioned) {
    std::vector<std::string> names = TRY(tree.list(parent));
    std::ranges::sort(names, std::greater<>());  // the newest version first
    if (names.size() > kMaxBelow) names.resize(kMaxBelow);
    for (const std::string& name : names) {
      out.push_back(std::string(parent) + "/" + name + below);
    }
  }
  return out;
}

void add(const Library* library, std::vector<Installation>& found) {
  if (library == nullptr || found.size() >= kMaxFound) return;
  bool known =
      std::ranges::any_of(found, [&](const Installation& one) { return one.core == library; });
  if (!known) found.push_back({classify(*library), library, scan::parent_of(library->path)});
}

bool is_core_name(std::string_view name) {
  // "libmpi.so.7", but not libmpi_cxx.so.40, which only accompanies a core library.
  return name.starts_with("libmpi.so.") || name.starts_with("libmpich.so.");
}

bool begins_with_one_of(std::string_view soname, const auto& prefixes) {
  return std::ranges::any_of(prefixes,
                             [&](std::string_view prefix) { return soname.starts_with(prefix); });
}

/// Whether a directory has an entry that begins with one of `prefixes`.
Result<bool> holds(const scan::Tree& tree, const std::string& directory,
                   const std::vector<std::string_view>& prefixes) {
  for (const std::string& name : TRY(tree.list(directory))) {
    if (begins_with_one_of(name, prefixes)) return true;
  }
  return false;
}

/// A library and a directory that it uses. The directory may be below the directory of the library
/// or anywhere else.
struct Beside {
  std::string_view soname;
  std::string_view directory;
  std::vector<std::string_view> entries;  ///< one of them has to exist; empty: no condition
};

const std::vector<Beside>& all_beside() {
  static const std::vector<Beside> kAll = {
      {"libopen-pal.so", "/openmpi/lib/openmpi3", {"mca_"}},               // Debian, Open MPI 4
      {"libopen-pal.so", "/openmpi/lib/openmpi40", {"mca_", "libompi_"}},  // Debian, Open MPI 5
      {"libopen-pal.so", "/openmpi/lib/openmpi", {"mca_"}},
      {"libopen-pal.so", "/openmpi", {"mca_"}},
      {"libopen-pal.so", "//etc/openmpi", {"openmpi-mca-params.conf"}},
      {"libopen-pal.so", "//etc/openmpi-x86_64", {"openmpi-mca-params.conf"}},
      {"libopen-pal.so", "/../etc", {"openmpi-mca-params.conf"}},
      {"libopen-pal.so", "/../share/openmpi", {"help-"}},
      {"libopen-pal.so", "//usr/share/openmpi", {"help-"}},
      {"libpmix.so", "/pmix", {"mca_", "pmix_mca_"}},
      {"libfabric.so", "/libfabric", {"lib"}},
      {"libucs.so", "/ucx", {"libuc"}},
      {"libibverbs.so", "/libibverbs", {"lib"}},
      {"libibverbs.so", "//etc/libibverbs.d", {}},
  };
  return kAll;
}

/// "/opt/x/lib/../etc" → "/opt/x/etc". Empty: there is no such directory, or it does not belong to
/// this library: files of a distribution in /etc and /usr/share belong to the distribution's
/// libraries.
std::string place_of(const Beside& beside, const Library& library) {
  std::string_view directory = beside.directory;
  if (directory.starts_with("//")) {
    bool of_distribution = library.path.starts_with("/usr/lib") || library.path.starts_with("/lib");
    return of_distribution ? std::string(directory.substr(1)) : "";
  }
  std::string base = scan::parent_of(library.path);
  if (directory.starts_with("/../")) {
    base = scan::parent_of(base);
    directory.remove_prefix(3);
    // The library needs an installation prefix of its own: /usr/etc and /usr/share are shared.
    if (base == "/" || base == "/usr" || base == "/usr/lib" || base == "/usr/local") return {};
  }
  return (base == "/" ? "" : base) + std::string(directory);
}

}  // namespace

constexpr size_t kMaxNames = 64;
constexpr size_t kMaxNamedDirectories = 64;

Result<std::vector<Installation>> find_mpi(Libraries& libraries, const std::string& first) {
  std::vector<Installation> found;
  std::vector<std::string> names(kCores.begin(), kCores.end());
  for (const char* prefix : {"libmpi", "libmpich"}) {
    for (std::string& name : libraries.names_in_cache(prefix)) {
      if (is_core_name(name) && names.size() < kMaxNames) names.push_back(std::move(name));
    }
  }
  // A loaded environment module selects its MPI by LD_LIBRARY_PATH, whatever the library's name is.
  const std::string named = first + ":" + libraries.library_path();
  size_t count = 0;
  for (std::string_view directory : split(named, ':')) {
    if (!directory.starts_with('/') || ++count > kMaxNamedDirectories) continue;
    for (const std::string& name : names) {
      const Library* library = TRY(libraries.at(std::string(directory) + "/" + name));
      add(library, found);
    }
  }
  for (const std::string& name : names) {
    for (const Library* library : TRY(libraries.find_all(name))) add(library, found);
  }
  for (const std::string& directory : TRY(usual_directories(libraries.tree()))) {
    for (const char* name : kCores) {
      const Library* library = TRY(libraries.at(directory + "/" + name));
      add(library, found);
    }
  }
  return found;
}

Result<std::vector<Installation>> find_mpi_of(Libraries& libraries, const Library& program) {
  std::vector<Installation> found;
  std::set<const Library*> seen = {&program};
  std::deque<const Library*> queue = {&program};
  auto resolve = [&](const Library& needer, const std::string& name) -> Result<const Library*> {
    for (std::string_view directory : split(needer.search, ':')) {
      if (!directory.starts_with('/')) continue;
      const Library* one = TRY(libraries.at(std::string(directory) + "/" + name));
      if (one != nullptr) return one;
    }
    return libraries.find(name);
  };
  for (; !queue.empty() && seen.size() <= kMaxLinked; queue.pop_front()) {
    for (const std::string& name : queue.front()->needed) {
      const Library* one = is_of_libc(name) ? nullptr : TRY(resolve(*queue.front(), name));
      if (one == nullptr || !seen.insert(one).second) continue;
      bool is_core = is_core_name(name) || std::ranges::find(kCores, name) != kCores.end();
      // A library with which an MPI is linked is not a second MPI.
      if (is_core) {
        add(one, found);
      } else {
        queue.push_back(one);
      }
    }
  }
  return found;
}

bool calls_mpi(const Library& program) {
  // Fortran and C++ programs may need only libraries on top of the core: libmpi_mpifh, libmpifort.
  return std::ranges::any_of(program.needed,
                             [](const std::string& name) { return name.starts_with("libmpi"); });
}

std::vector<std::vector<std::string>> companions(const Abi& abi) {
  if (abi.numbers.empty()) return {};
  std::string end = ".so." + std::to_string(abi.numbers[0]);
  if (abi.family == Family::mpich) {
    return {{"libmpifort" + end, "libmpichfort" + end, "libmpichf90" + end},
            {"libmpicxx" + end, "libmpichcxx" + end}};
  }
  if (abi.family != Family::openmpi) return {};
  std::vector<std::vector<std::string>> out;
  for (const char* stem : {"libmpi_mpifh", "libmpi_usempif08", "libmpi_usempi_ignore_tkr",
                           "libmpi_usempi", "libmpi_cxx", "liboshmem", "libompitrace"}) {
    out.push_back({stem + end});
  }
  return out;
}

bool is_of_one_piece(std::string_view soname) {
  static constexpr std::array<std::string_view, 31> kPrefixes = {
      "libmpi.so",      "libmpi_",        "libmpich",       "libmpicxx.so",  "libmpifort.so",
      "libopen_mpi.so", "libopen-pal.so", "libopen-rte.so", "liboshmem.so",  "libompi",
      "libmca_common_", "libprrte.so",    "libpmix.so",     "libpmi.so",     "libpmi2.so",
      "libpals.so",     "libslurm",       "libfabric.so",   "libucp.so",     "libucs.so",
      "libuct.so",      "libucm.so",      "libucc.so",      "libibverbs.so", "librdmacm.so",
      "libmlx",         "libefa.so",      "libpsm",         "libcxi.so",     "libxpmem.so",
      "libgdrapi.so"};
  return begins_with_one_of(soname, kPrefixes);
}

bool is_of_driver(std::string_view soname) {
  static constexpr std::array<std::string_view, 4> kPrefixes = {"libcuda.so", "libnvidia-",
                                                                "libnvcuvid.so", "libze_intel"};
  return begins_with_one_of(soname, kPrefixes);
}

bool is_of_libc(std::string_view soname) {
  static constexpr std::array<std::string_view, 15> kPrefixes = {
      "ld-linux",   "ld64.so",   "libc.so.",         "libm.so.",      "libmvec.so.",
      "libdl.so.",  "librt.so.", "libpthread.so.",   "libresolv.so.", "libutil.so.",
      "libanl.so.", "libnss_",   "libthread_db.so.", "linux-vdso.so", "libnsl.so.1"};
  return begins_with_one_of(soname, kPrefixes);
}

Result<std::vector<std::string>> directories_of(const scan::Tree& tree, const Library& library) {
  std::vector<std::string> out;
  for (const Beside& beside : all_beside()) {
    if (!std::string_view(library.soname).starts_with(beside.soname)) continue;
    std::string place = place_of(beside, library);
    if (place.empty() || std::ranges::find(out, place) != out.end()) continue;
    bool there = beside.entries.empty() ? !TRY(tree.list(place)).empty()
                                        : TRY(holds(tree, place, beside.entries));
    if (there) out.push_back(std::move(place));
  }
  return out;
}

}  // namespace berth::mpi
