// SPDX-License-Identifier: Apache-2.0
#include "gpu/grant/out_of_reach.hpp"

#include <set>

#include "gpu/grant/cdi_names.hpp"
#include "gpu/grant/select.hpp"

namespace berth::gpu {
namespace {

void append(std::vector<Node>& out, const std::vector<Node>& nodes) {
  out.insert(out.end(), nodes.begin(), nodes.end());
}

/// The reachable GPUs of a vendor; an error of select() means none.
std::set<std::string> reachable(Vendor vendor, const Request& narrowed, const Inventory& ours) {
  Request all = narrowed;
  all.want = Request::Want::all;
  all.vendor = vendor;
  all.devices.clear();
  std::set<std::string> keys;
  auto selected = select(all, ours);
  if (!selected.ok()) return keys;
  for (const Selected& one : *selected) keys.insert(key_of(one));
  return keys;
}

}  // namespace

std::vector<Node> nodes_out_of_reach(const Choice& choice, const Machine& machine) {
  Choice copy = choice;
  copy.cdi_names.clear();  // they are held to the same, with errors of their own
  if (!narrow(copy, machine).ok()) return {};
  std::vector<Node> out;
  for (const Gpu& gpu : machine.all().gpus) {
    auto keys = reachable(gpu.vendor, copy.request, machine.ours);
    bool any = keys.contains(key_of({&gpu}));
    for (const MigDevice& slice : gpu.mig) {
      bool has = keys.contains(key_of({&gpu, &slice}));
      any |= has;
      if (!has) append(out, slice.nodes);
    }
    for (const Partition& part : gpu.partitions) {
      bool has = keys.contains(key_of({&gpu, nullptr, &part}));
      any |= has;
      if (!has) append(out, part.nodes);
    }
    // The GPU's own node opens its slices too.
    if (any) continue;
    out.push_back(gpu.node);
    append(out, gpu.drm_nodes);
  }
  return out;
}

}  // namespace berth::gpu
