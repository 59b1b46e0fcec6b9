// SPDX-License-Identifier: Apache-2.0
#include "gpu/grant/reach.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/text.hpp"
#include "gpu/grant/select.hpp"

namespace berth::gpu {
namespace {

using Strings = std::vector<std::string>;

bool has(const Strings& many, const std::string& one) {
  return std::ranges::find(many, one) != many.end();
}

/// The keys of a vendor's GPUs that the request can reach.
Result<Strings> reachable_keys(Vendor vendor, const Request& request, const Inventory& job) {
  Request all = request;
  all.want = Request::Want::all;
  all.vendor = vendor;
  all.source = "--device";
  all.traits.clear();
  Strings keys;
  for (const Selected& one : TRY(select(all, job))) keys.push_back(key_of(one));
  return keys;
}

/// "nvidia.com/gpu=4" for each key, in their order.
void add_names(const std::string& kind, const Strings& keys, const Inventory& machine,
               Strings& out) {
  for (const std::string& key : keys) {
    for (const Gpu& gpu : machine.gpus) {
      Selected whole{&gpu};
      if (key_of(whole) == key) out.push_back(kind + "=" + index_of(whole));
      for (const MigDevice& slice : gpu.mig) {
        Selected part{&gpu, &slice};
        if (key_of(part) == key) out.push_back(kind + "=" + index_of(part));
      }
      for (const Partition& partition : gpu.partitions) {
        Selected part{&gpu, nullptr, &partition};
        if (key_of(part) == key) out.push_back(kind + "=" + index_of(part));
      }
    }
  }
}

Error refused(const std::string& name, const Request& request) {
  if (request.limits.empty()) {
    return make_error(Kind::denied,
                      fmt::format("--device {}: the policy of this machine does not allow it",
                                  escape_controls(name)),
                      "berth policy show");
  }
  const Limit& limit = request.limits.back();
  return make_error(Kind::denied,
                    fmt::format("--device {}: not one of the GPUs of {}={}", escape_controls(name),
                                limit.variable, escape_controls(limit.value)),
                    "--gpus all for those");
}

Result<void> take(const std::string& name, const Request& request, const Inventory& machine,
                  const Inventory& job, Strings& out) {
  size_t equals = name.find('=');
  std::string kind = name.substr(0, equals);
  auto vendor = vendor_of_cdi_name(kind + "=");
  bool known = vendor && std::ranges::any_of(machine.gpus,
                                             [&](const Gpu& gpu) { return gpu.vendor == *vendor; });
  if (!known) {
    out.push_back(name);
    return {};
  }
  std::string id = equals == std::string::npos ? "" : name.substr(equals + 1);
  Strings keys = TRY(reachable_keys(*vendor, request, job));
  if (id == "all") {
    add_names(kind, keys, machine, out);
    return {};
  }
  auto one = find_gpu(id_of_cdi_device(id), *vendor, machine);
  if (!one.ok() || !has(keys, key_of(*one))) return refused(name, request);
  out.push_back(name);
  return {};
}

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

void take_plain_gpus(std::vector<std::string>& names, const std::vector<std::string>& defined,
                     const std::string& source, Request& request) {
  constexpr std::string_view kKind = "nvidia.com/gpu=";
  using Want = Request::Want;
  auto is_plain = [&](const std::string& name) {
    return name.starts_with(kOwnCdiKind) ||
           (name.starts_with(kKind) && !std::ranges::binary_search(defined, name));
  };
  for (const std::string& name : names) {
    if (!is_plain(name)) continue;
    std::string id = id_of_cdi_device(name.substr(name.find('=') + 1));
    if (id == "all") request.want = Want::all;
    if (request.want != Want::all) {
      request.want = Want::devices;
      request.devices.push_back(std::move(id));
    }
    if (name.starts_with(kKind)) request.vendor = Vendor::nvidia;
    if (request.source.empty()) request.source = source;
  }
  if (request.want == Want::all) request.devices.clear();
  std::erase_if(names, is_plain);
}

Result<std::vector<std::string>> reachable_names(const std::vector<std::string>& names,
                                                 const std::vector<std::string>& withheld,
                                                 const Request& request, const Inventory& machine,
                                                 const Inventory& job) {
  Strings out;
  for (const std::string& name : names) {
    if (has(withheld, name)) return refused(name, {});
    TRY(take(name, request, machine, job, out));
  }
  return out;
}

// Names of withheld GPUs are resolved before the GPUs are renumbered: indices in the site's policy
// count all GPUs.
Result<void> narrow(Choice& choice, const Machine& machine) {
  Request& request = choice.request;
  const Strings& withheld = choice.site.never;
  request.never = keys_of(withheld, machine.all());
  if (machine.denied > 0) {
    std::erase_if(request.limits, [](const Limit& limit) { return limit.of_the_machine; });
  }
  bool narrowed = !withheld.empty() || !request.limits.empty() || machine.denied > 0;
  if (choice.cdi_names.empty() || !narrowed) return {};
  choice.cdi_names =
      TRY(reachable_names(choice.cdi_names, withheld, request, machine.all(), machine.ours));
  return {};
}

std::vector<Node> nodes_out_of_reach(const Choice& choice, const Machine& machine) {
  Choice copy = choice;
  copy.cdi_names.clear();  // otherwise narrow() would fail for an unreachable CDI name
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
    // The node of a GPU opens its slices too: it is within reach if one of them is.
    if (any) continue;
    out.push_back(gpu.node);
    append(out, gpu.drm_nodes);
  }
  return out;
}

}  // namespace berth::gpu
