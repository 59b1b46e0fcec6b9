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

/// Chooses for one container among what others leave; its choose() is what Ledger::take() wants.
class Chooser {
 public:
  /// `beside`: keys that it gets by other ways than the request, CDI names and nodes by hand. The
  /// inventory outlives this.
  Chooser(Request request, const Inventory& inventory, std::vector<std::string> beside)
      : request_(std::move(request)), inventory_(inventory), beside_(std::move(beside)) {}

  /// What it could be given at all. Errors: those of gpu::wanted_of().
  Result<Wanted> wanted() const { return wanted_of(request_, inventory_); }
  /// Of GPUs that are alike it takes those at these NUMA nodes.
  void prefer(std::vector<int> nodes) { near_ = std::move(nodes); }
  /// It has `lease`, and of what it could be given it keeps that.
  void keep(const HeldLease& lease) {
    own_ = lease.lease().keys;
    own_lease_ = lease.file();
  }
  /// Whether it makes a difference who else computes, and a driver could tell (Intel's does not):
  /// there is a choice, or it shares with nobody.
  bool minds_others(const Wanted& all) const;
  /// What these hold counts as taken too.
  void count(Outside outside) { outside_ = std::move(outside); }
  /// From now on it wants what `other` has, and belongs to its group.
  void share(const Lease& other);
  /// Errors: those of gpu::select().
  Result<void> choose(const Holders& holders, Lease& lease);
  /// Whether there is anything that a lease would be about.
  bool wants_any() const;

  const Request& request() const { return request_; }
  /// What was chosen last, into the inventory.
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
  std::string group_;  ///< of share(); empty: the lease's own
  std::vector<Selected> selected_;
};

/// A node that a container gets by hand: any name may lead to any device, so its number counts
/// where it is known.
struct GivenNode {
  std::string path;                                     ///< on the host; empty: not known
  std::optional<std::pair<int64_t, int64_t>> number{};  ///< major, minor of a character device
};

/// Those whose nodes are among `given`: GPUs, and of one that is cut those of its parts that have
/// all of theirs there.
std::vector<std::string> keys_of_nodes(const std::vector<GivenNode>& given,
                                       const Inventory& inventory);

/// Whether the major number is one that the kernel keeps for GPUs: NVIDIA's, and DRM's.
/// Linux Documentation/admin-guide/devices.txt
bool is_gpu_major(int64_t major);

/// key_of() each.
std::vector<std::string> keys_of(const std::vector<Selected>& selected);

}  // namespace berth::gpu
