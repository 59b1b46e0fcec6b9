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

/// Chooses GPUs for one container around the holdings of others; choose() is made for
/// Ledger::take().
class Chooser {
 public:
  /// `beside`: keys that it gets by other means than the request: CDI names and nodes by path. The
  /// inventory has to outlive this.
  Chooser(Request request, const Inventory& inventory, std::vector<std::string> beside)
      : request_(std::move(request)), inventory_(inventory), beside_(std::move(beside)) {}

  /// The GPUs that it may get at all. Errors: those of gpu::wanted_of().
  Result<Wanted> wanted() const { return wanted_of(request_, inventory_); }
  /// Among equal GPUs it prefers those at these NUMA nodes.
  void prefer(std::vector<int> nodes) { near_ = std::move(nodes); }
  /// It keeps the GPUs of `lease`, as far as it may get them.
  void keep(const HeldLease& lease) {
    own_ = lease.lease().keys;
    own_lease_ = lease.file();
  }
  /// Whether other computing processes matter, and a driver could name them (Intel's cannot): there
  /// is a choice, or the container does not share.
  bool minds_others(const Wanted& all) const;
  /// Counts the GPUs of these processes as held too.
  void count(Outside outside) { outside_ = std::move(outside); }
  /// From now on it requests the GPUs of `other`, and belongs to its group.
  void share(const Lease& other);
  /// Errors: those of gpu::select().
  Result<void> choose(const Holders& holders, Lease& lease);
  /// Whether there is anything to lease.
  bool wants_any() const;

  const Request& request() const { return request_; }
  /// The last choice, pointing into the inventory.
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
  std::string group_;  ///< set by share(); empty: the lease's own
  std::vector<Selected> selected_;
};

/// A node that a container gets by path: any path may lead to any device, so the number counts if
/// it is known.
struct GivenNode {
  std::string path;                                     ///< on the host; empty: not known
  std::optional<std::pair<int64_t, int64_t>> number{};  ///< major, minor of a character device
};

/// The GPUs with nodes among `given`; of a GPU that is cut, the parts with all of their nodes
/// there.
std::vector<std::string> keys_of_nodes(const std::vector<GivenNode>& given,
                                       const Inventory& inventory);

/// Whether the major number is reserved for GPUs: NVIDIA's, and DRM's. Linux
/// Documentation/admin-guide/devices.txt
bool is_gpu_major(int64_t major);

/// key_of() for each.
std::vector<std::string> keys_of(const std::vector<Selected>& selected);

}  // namespace berth::gpu
