// SPDX-License-Identifier: Apache-2.0
#include "mpi/wire.hpp"

#include <algorithm>
#include <string_view>

#include "base/text.hpp"

namespace berth::mpi {
namespace {

bool needs(const Library& library, std::string_view stem) {
  return std::any_of(library.needed.begin(), library.needed.end(),
                     [&](const std::string& name) { return name.starts_with(stem); });
}

uint64_t number(const Abi& abi, size_t index) {
  return index < abi.numbers.size() ? abi.numbers[index] : 0;
}

/// By the version that it says, or by the numbers of its library: 4.1 has 40.30, 5.0 has 40.40.
bool is_open_mpi_5_or_later(const Abi& abi) {
  auto version = parse_u64(std::string_view(abi.version).substr(0, abi.version.find('.')));
  if (version) return *version >= 5;
  return number(abi, 0) > 40 || (number(abi, 0) == 40 && number(abi, 1) >= 40);
}

/// "PMIx", "PMI or PMIx".
std::string to_text(const Wires& wires) {
  if (wires.pmi && wires.pmix) return "PMI or PMIx";
  return wires.pmix ? "PMIx" : wires.pmi ? "PMI" : "neither PMI nor PMIx";
}

}  // namespace

Used used(const Installation& mpi) {
  Used out{.abi = mpi.abi, .takes = {.pmi = true, .pmix = true}};
  switch (mpi.abi.family) {
    case Family::openmpi:
      out.takes.pmi = !is_open_mpi_5_or_later(mpi.abi);
      break;
    case Family::mpich: {
      const std::string& soname = mpi.abi.soname;
      bool by_vendor = soname != "libmpi.so.12" && soname != "libmpich.so.12";
      out.by_itself = by_vendor || needs(*mpi.core, "libpmi.so") ||
                      needs(*mpi.core, "libpmi2.so") || needs(*mpi.core, "libpals.so");
      out.takes.pmix = needs(*mpi.core, "libpmix.so");
      break;
    }
    case Family::standard:
      break;
    case Family::unknown:
      out.by_itself = true;
      break;
  }
  return out;
}

Objection objection(const Launch& launch, const Used& mpi) {
  if (launch.ranks < 2 || mpi.by_itself) return {};
  bool meet = (launch.offers.pmi && mpi.takes.pmi) || (launch.offers.pmix && mpi.takes.pmix);
  if (meet) return {};
  Objection out;
  out.why = std::to_string(launch.ranks) +
            " ranks would be as many worlds of one rank: " + describe(mpi.abi) + " takes " +
            to_text(mpi.takes) + ", and this " + (launch.slurm ? "step" : "launcher") + " has " +
            to_text(launch.offers);
  out.hint = launch.slurm ? std::string("srun --mpi=") + (mpi.takes.pmix ? "pmix" : "pmi2")
                          : "the mpirun of " + std::string(name_of(mpi.abi.family));
  return out;
}

}  // namespace berth::mpi
