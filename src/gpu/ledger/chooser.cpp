// SPDX-License-Identifier: Apache-2.0
#include "gpu/ledger/chooser.hpp"

#include <algorithm>

#include "base/assert.hpp"

namespace berth::gpu {

std::vector<std::string> keys_of(const std::vector<Selected>& selected) {
  std::vector<std::string> keys;
  for (const Selected& one : selected) keys.push_back(key_of(one));
  return keys;
}

bool is_gpu_major(int64_t major) {
  return major == 195 || major == 226;
}

std::vector<std::string> keys_of_nodes(const std::vector<GivenNode>& given,
                                       const Inventory& inventory) {
  auto has = [&](const Node& node) {
    return std::ranges::any_of(given, [&](const GivenNode& one) {
      if (one.number) return *one.number == std::pair<int64_t, int64_t>(node.major, node.minor);
      return one.path == node.path || (!one.path.empty() && one.path == node.host_path);
    });
  };
  auto has_all = [&](const std::vector<Node>& nodes) {
    return !nodes.empty() && std::ranges::all_of(nodes, has);
  };
  std::vector<std::string> keys;
  for (const Gpu& gpu : inventory.gpus) {
    size_t before = keys.size();
    for (const MigDevice& slice : gpu.mig) {
      if (has(gpu.node) && has_all(slice.nodes)) keys.push_back(key_of({&gpu, &slice}));
    }
    for (const Partition& part : gpu.partitions) {
      if (has_all(part.nodes)) keys.push_back(key_of({&gpu, nullptr, &part}));
    }
    if (has(gpu.node) && keys.size() == before) keys.push_back(gpu.pci_address);
  }
  return keys;
}

bool Chooser::wants_any() const {
  bool wishes =
      request_.want != Request::Want::none && request_.want != Request::Want::driver_files;
  return wishes || !beside_.empty();
}

bool Chooser::minds_others(const Wanted& all) const {
  auto tells = [](const Selected& one) { return one.gpu->vendor != Vendor::intel; };
  bool told = !beside_.empty() || std::ranges::any_of(all.candidates, tells);
  return told && (request_.exclusive || all.count < all.candidates.size());
}

void Chooser::share(const Lease& other) {
  BERTH_ASSERT(!other.keys.empty());
  for (const Gpu& gpu : inventory_.gpus) {
    if (overlaps(gpu.pci_address, other.keys.front())) request_.vendor = gpu.vendor;
  }
  request_.want = Request::Want::keys;
  request_.keys = other.keys;
  request_.exclusive = request_.exclusive || other.exclusive;
  group_ = other.group;
}

Result<void> Chooser::check_beside(const Occupancy& occupancy) const {
  for (const std::string& key : beside_) {
    const Holding* obstacle = find_obstacle(occupancy, key, request_.exclusive);
    if (obstacle == nullptr) continue;
    std::string name = key;
    for (const Gpu& gpu : inventory_.gpus) {
      if (gpu.pci_address == key) name = index_of({&gpu});
    }
    return make_error(Kind::busy,
                      "a device that is asked for: GPU " + name + " is held by " + obstacle->holder,
                      "berth gpu list");
  }
  return {};
}

namespace {

/// Whether berth-node holds one of `keys` for one pod alone.
bool is_given_whole(const Holders& holders, const std::vector<std::string>& keys) {
  return std::ranges::any_of(holders.leases, [&](const KnownLease& one) {
    const std::string& group = one.lease.group;
    if (!group.starts_with(kKubeletGroup) || group.starts_with(kKubeletShares)) return false;
    return std::ranges::any_of(one.lease.keys, [&](const std::string& key) {
      return std::ranges::any_of(keys,
                                 [&](const std::string& ours) { return overlaps(key, ours); });
    });
  });
}

}  // namespace

Result<void> Chooser::choose(const Holders& holders, Lease& lease) {
  if (!group_.empty()) lease.group = group_;
  Wanted all = TRY(wanted());
  std::vector<std::string> keys = keys_of(all.candidates);
  keys.insert(keys.end(), beside_.begin(), beside_.end());
  Asking asking{lease.group, std::move(keys)};
  asking.own_lease = own_lease_;
  asking.outside = outside_.holdings(holders.leases);
  if (by_kubelet_) asking.given_by = kKubeletGroup;
  Occupancy occupancy = occupancy_of(holders, std::move(asking));
  occupancy.near = near_;
  occupancy.own = own_;
  selected_ = TRY(select(request_, inventory_, occupancy));
  TRY(check_beside(occupancy));
  lease.keys = keys_of(selected_);
  for (const std::string& key : beside_) {
    bool has = std::ranges::find(lease.keys, key) != lease.keys.end();
    if (!has) lease.keys.push_back(key);
  }
  lease.exclusive = request_.exclusive || (by_kubelet_ && is_given_whole(holders, lease.keys));
  return {};
}

}  // namespace berth::gpu
