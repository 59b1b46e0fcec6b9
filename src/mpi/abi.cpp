// SPDX-License-Identifier: Apache-2.0
#include "mpi/abi.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace berth::mpi {
namespace {

/// "12.2.2" → {12, 2, 2}; nothing for other strings.
std::vector<uint64_t> numbers_of(std::string_view text) {
  std::vector<uint64_t> numbers;
  if (text.empty() || text.size() > 32) return numbers;
  for (std::string_view part : split(text, '.')) {
    auto number = parse_u64(part);
    if (!number) return {};
    numbers.push_back(*number);
  }
  return numbers;
}

std::string_view stem_of(std::string_view name) {
  return name.substr(0, name.find(".so."));
}

std::vector<uint64_t> numbers_in(std::string_view name) {
  size_t at = name.find(".so.");
  return at == name.npos ? std::vector<uint64_t>() : numbers_of(name.substr(at + 4));
}

bool is_open_mpi(const Library& library) {
  // Open MPI's libmpi needs libopen-pal since 1.3 and libopen_mpi since 6. If these are linked
  // statically, libmpi itself defines ompi_mpi_comm_world.
  bool needs = std::ranges::any_of(library.needed, [](std::string_view name) {
    return name.starts_with("libopen-pal.so") || name.starts_with("libopen-rte.so") ||
           name.starts_with("libopen_mpi.so");
  });
  return needs || library.symbols.defined.contains("ompi_mpi_comm_world");
}

/// libmpi, libmpich, and Cray's libraries, one for each compiler: libmpi_gnu_123.
bool is_of_mpich(std::string_view stem) {
  return stem == "libmpi" || stem == "libmpich" || stem.starts_with("libmpi_cray") ||
         stem.starts_with("libmpi_gnu") || stem.starts_with("libmpi_intel") ||
         stem.starts_with("libmpi_nvidia") || stem.starts_with("libmpi_amd") ||
         stem.starts_with("libmpi_aocc");
}

Family family_of(const Library& library, const std::vector<uint64_t>& numbers) {
  constexpr uint64_t kMpichMajor = 12;
  std::string_view stem = stem_of(library.soname);
  bool says_mpi = library.symbols.defined.contains("MPI_Init");
  if (stem == "libmpi_abi" && says_mpi) return Family::standard;
  if (numbers.empty() || !says_mpi) return Family::unknown;
  if (stem == "libmpi" && is_open_mpi(library)) return Family::openmpi;
  if (is_of_mpich(stem) && numbers[0] == kMpichMajor && !is_open_mpi(library)) {
    return Family::mpich;
  }
  return Family::unknown;
}

/// The library of the standard ABI should be libmpi_abi.so.1; MPICH 5.0.0 and 5.0.1 called it .so.0
/// by mistake. Source: MPICH issue 7867.
bool same_major(const Abi& one, const Abi& other) {
  if (one.numbers[0] == other.numbers[0]) return true;
  return one.family == Family::standard && one.numbers[0] < 2 && other.numbers[0] < 2;
}

std::string two_of(const Abi& abi) {
  std::string text = abi.numbers.empty() ? "?" : std::to_string(abi.numbers[0]);
  return abi.numbers.size() < 2 ? text : text + "." + std::to_string(abi.numbers[1]);
}

}  // namespace

Abi classify(const Library& library) {
  Abi abi;
  abi.soname = library.soname;
  abi.numbers = numbers_in(library.soname);
  abi.family = family_of(library, abi.numbers);
  abi.version = library.symbols.mpi_version;
  // The file name of Cray's library may differ from the SONAME. If so, it does not give the
  // version.
  std::string file = name_of(library.path);
  std::vector<uint64_t> numbers = numbers_in(file);
  bool says_more = stem_of(file) == stem_of(library.soname) && !abi.numbers.empty() &&
                   numbers.size() > abi.numbers.size() && numbers[0] == abi.numbers[0];
  if (says_more) abi.numbers = std::move(numbers);
  return abi;
}

std::string_view name_of(Family family) {
  static constexpr std::string_view kNames[] = {"unknown ABI", "MPICH ABI", "Open MPI",
                                                "MPI 5 ABI"};
  return kNames[static_cast<size_t>(family)];
}

std::string describe(const Abi& abi) {
  std::string text(name_of(abi.family));
  if (!abi.version.empty()) text += " " + abi.version;
  text += ", " + abi.soname;
  if (abi.numbers.size() < 2) return text;
  std::vector<std::string> numbers;
  for (uint64_t number : abi.numbers) numbers.push_back(std::to_string(number));
  return text + " (" + join(numbers, ".") + ")";
}

Verdict compare(const Abi& image, const Abi& host, Rule rule) {
  if (image.family == Family::unknown) return {false, "its ABI is not known", ""};
  if (host.family != image.family) {
    return {false, "the host's is " + describe(host) + ", of another ABI", ""};
  }
  if (image.numbers.empty() || host.numbers.empty() || !same_major(image, host)) {
    return {false, "the host's is " + describe(host) + ": the majors differ", ""};
  }
  if (rule == Rule::major) return {true, "", ""};
  bool known = image.numbers.size() > 1 && host.numbers.size() > 1;
  if (rule == Rule::strict) {
    if (known && image.numbers[1] == host.numbers[1]) return {true, "", ""};
    return {false, "by the rule 'strict' " + two_of(host) + " is not " + two_of(image), ""};
  }
  if (known && host.numbers[1] >= image.numbers[1]) return {true, "", ""};
  return {true, "",
          known ? "the host's " + two_of(host) + " is older than the image's " + two_of(image)
                : "one of them has no second number"};
}

}  // namespace berth::mpi
