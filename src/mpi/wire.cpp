// SPDX-License-Identifier: Apache-2.0
#include "mpi/wire.hpp"

#include <algorithm>

namespace berth::mpi {
namespace {

bool needs(const Library& library, std::string_view stem) {
  return std::ranges::any_of(library.needed,
                             [&](const std::string& name) { return name.starts_with(stem); });
}

/// Whether an Open MPI is older than version 5.
bool is_before_5(const Installation& mpi) {
  return needs(*mpi.core, "libopen-rte.so");
}

/// Whether a plugin of this Open MPI supports PMI. Since version 5 there is neither such a plugin
/// nor libopen-rte. If there are no plugin files, the plugins are linked in and unknown.
Result<bool> has_plugin_for_pmi(Libraries& libraries, const Installation& mpi) {
  if (!is_before_5(mpi)) return false;
  const Library* base = nullptr;
  for (const std::string& name : mpi.core->needed) {
    if (!name.starts_with("libopen-pal.so")) continue;
    base = TRY(libraries.at(mpi.directory + "/" + name));
    if (base == nullptr) base = TRY(libraries.find(name));
  }
  if (base == nullptr) return true;
  bool has_plugins = false;
  for (const std::string& directory : TRY(directories_of(libraries.tree(), *base))) {
    for (const std::string& name : TRY(libraries.tree().list(directory))) {
      if (!name.starts_with("mca_pmix_")) continue;
      has_plugins = true;
      // The plugins for PMI 1 and 2 of Slurm, and for Cray's PMI. The plugin for Flux does nothing
      // under another launcher.
      for (std::string_view kind : {"s1", "s2", "cray"}) {
        if (name == "mca_pmix_" + std::string(kind) + ".so") return true;
      }
    }
  }
  return !has_plugins;
}

/// "PMIx", "PMI or PMIx".
std::string to_text(const Wires& wires) {
  if (wires.pmi && wires.pmix) return "PMI or PMIx";
  return wires.pmix ? "PMIx" : wires.pmi ? "PMI" : "neither PMI nor PMIx";
}

}  // namespace

Result<Used> use_of(Libraries& libraries, const Installation& mpi) {
  Used out{.abi = mpi.abi, .takes = {.pmi = true, .pmix = true}};
  switch (mpi.abi.family) {
    case Family::openmpi:
      out.takes.pmi = TRY(has_plugin_for_pmi(libraries, mpi));
      out.needs_order = is_before_5(mpi);
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
  Objection out;
  if (meet) {
    if (!launch.unordered || !mpi.needs_order) return out;
    out.why = std::to_string(launch.ranks) + " ranks would crash or hang: " + describe(mpi.abi) +
              " needs the ranks of a node numbered in order, and this launcher has not done so";
    out.hint = "mpirun --map-by slot:OVERSUBSCRIBE, or no more ranks than the node has processors";
    return out;
  }
  out.alone = true;
  out.why = std::to_string(launch.ranks) +
            " ranks would not find each other: " + describe(mpi.abi) + " takes " +
            to_text(mpi.takes) + ", and this " + (launch.slurm ? "step" : "launcher") + " has " +
            to_text(launch.offers);
  out.hint = launch.slurm ? std::string("srun --mpi=") + (mpi.takes.pmix ? "pmix" : "pmi2")
                          : "the mpirun of " + std::string(name_of(mpi.abi.family));
  return out;
}

}  // namespace berth::mpi
