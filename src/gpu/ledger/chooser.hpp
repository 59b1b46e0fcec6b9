// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "gpu/grant/select.hpp"
#include "gpu/ledger/ledger.hpp"
#include "gpu/ledger/outside.hpp"

namespace berth::gpu {

/// Chooses GPUs for one container, given the holdings of others. choose() is the callback for
/// Ledger::take().
class Chooser {
 public:
  /// `beside`: keys that the container gets by CDI names and by nodes, not by the request. The
  /// inventory has to outlive this object.
  Chooser(Request request, const Inventory& inventory, std::vector<std::string> beside)
      : request_(std::move(request)), inventory_(inventory), beside_(std::move(beside)) {}

  /// The GPUs that the container may get at all. Errors: those of gpu::wanted_of().
  Result<Wanted> wanted() const { return wanted_of(request_, inventory_); }
  /// Among equal GPUs, choose() prefers those at these NUMA nodes.
  void prefer(std::vector<int> nodes) { near_ = std::move(nodes); }
  /// The container's GPUs were chosen by the kubelet, for which berth-node holds leases: they are
  /// no obstacle, and the container's lease is exclusive if they are for whole GPUs.
  void given_by_kubelet() { by_kubelet_ = true; }
  /// The container keeps the GPUs of `lease`, as far as it may get them.
  void keep(const HeldLease& lease) {
    own_ = lease.lease().keys;
    own_lease_ = lease.file();
  }
  /// Whether it is worth asking the drivers for other computing processes: the driver can list them
  /// (Intel's cannot), and either there is a choice of GPUs or the container requests GPUs
  /// exclusively.
  bool minds_others(const Wanted& all) const;
  /// The GPUs of these processes count as held too.
  void count(Outside outside) { outside_ = std::move(outside); }
  /// From now on the container requests the GPUs of `other` and belongs to the group of `other`.
  void share(const Lease& other);
  /// Errors: those of gpu::select().
  Result<void> choose(const Holders& holders, Lease& lease);
  /// Whether there is any GPU to lease.
  bool wants_any() const;

  const Request& request() const { return request_; }
  /// The result of the last choose(); it points into the inventory.
  const std::vector<Selected>& selected() const { return selected_; }

 private:
  Result<void> check_beside(const Occupancy& occupancy) const;

  Request request_;
  const Inventory& inventory_;
  std::vector<std::string> beside_;
  std::vector<int> near_;
  std::vector<std::string> own_;
  std::string own_lease_;
  Outside outside_;
  bool by_kubelet_ = false;
  std::string group_;  ///< set by share(); empty: the lease's own group
  std::vector<Selected> selected_;
};

/// A node that a container gets by path. Any path may lead to any device, so the device number
/// decides if it is known.
struct GivenNode {
  std::string path;                                     ///< on the host; empty: not known
  std::optional<std::pair<int64_t, int64_t>> number{};  ///< major, minor of a character device
};

/// The keys of the GPUs that have their node in `given`. For a GPU in MIG mode or in partitions:
/// the keys of the parts that have all of their nodes in `given`; if there are none, the GPU's key.
std::vector<std::string> keys_of_nodes(const std::vector<GivenNode>& given,
                                       const Inventory& inventory);

/// Whether the major number is reserved for GPUs (NVIDIA or DRM). Source: Linux
/// Documentation/admin-guide/devices.txt
bool is_gpu_major(int64_t major);

/// key_of() of each.
std::vector<std::string> keys_of(const std::vector<Selected>& selected);

}  // namespace berth::gpu
