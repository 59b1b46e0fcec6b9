// SPDX-License-Identifier: Apache-2.0
// What of this node's GPUs the kubelet may give to pods, and what it has given. The truth is the
// ledger and the kubelet's own list: this object remembers only what it holds in the ledger, and a
// new one finds all of it again. docs/decisions/0192
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/log.hpp"
#include "base/result.hpp"
#include "gpu/inventory/inventory.hpp"
#include "gpu/ledger/ledger.hpp"
#include "kube/plugin/resource.hpp"

namespace berth::kube {

/// One device of a resource, as the kubelet is told about it.
struct Device {
  std::string id;
  std::optional<int> numa_node;
  std::string trouble;  ///< why no pod can get it now; empty: it is healthy

  bool operator==(const Device&) const = default;
};

/// Devices that a container of a pod has, by the kubelet's list.
struct PodDevices {
  std::string pod;  ///< "default/train"
  std::string resource;
  std::vector<std::string> ids;
};

/// What a container gets with its devices.
struct Given {
  std::vector<std::string> cdi_names;  ///< "berth.dev/gpu=GPU-8f2b…"
  std::vector<gpu::Selected> units;    ///< valid as long as `inventory`
  std::shared_ptr<const gpu::Inventory> inventory;
};

/// Safe for several threads.
class Cards {
 public:
  Cards(gpu::Ledger ledger, Log& log) : ledger_(std::move(ledger)), log_(log) {}

  /// The GPUs and names from now on. What was given before stays given.
  void set(gpu::Inventory inventory, std::vector<Resource> resources);

  /// Reads the ledger. Returns whether devices() of any resource has changed.  Errors: busy, io.
  Result<bool> look();

  std::vector<Device> devices(const std::string& resource) const;
  std::vector<std::string> resources() const;

  /// Takes the lease of these devices. If the kubelet gives a device of this name again, the pod
  /// that had it has ended. Waits for at most `patience` for the end of containers that have the
  /// GPU still. Errors: not_found (no such device any more), busy (names the holder), io.
  Result<Given> allocate(const std::string& resource, const std::vector<std::string>& ids,
                         std::chrono::milliseconds patience);

  /// `count` of `available`, with all of `required`: near each other, and those of the least used
  /// GPUs.
  std::vector<std::string> prefer(const std::string& resource,
                                  const std::vector<std::string>& available,
                                  const std::vector<std::string>& required, size_t count) const;

  /// Compares with the kubelet's list: names the pods, takes the leases of what an earlier process
  /// has given, and ends those of pods that are gone. What was given less than `grace` ago may not
  /// be in the list yet.
  void compare(const std::vector<PodDevices>& pods, std::chrono::seconds grace);

  /// Whether anything is given.
  bool has_given() const;
  /// Whether something is given of which the pod is not known yet.
  bool has_unnamed() const;

 private:
  struct Allocation {
    std::string resource;
    std::vector<std::string> ids;
    std::string pod;  ///< empty: not in the kubelet's list yet
    std::chrono::steady_clock::time_point since;
    gpu::HeldLease lease;
  };
  struct Entry {
    gpu::Selected unit;
    Device device;
  };
  using Entries = std::vector<Entry>;

  const Resource* find_resource(const std::string& name) const;
  const Entry* find_entry(const std::string& resource, const std::string& id) const;
  std::string trouble_of(const std::string& resource, const std::string& key,
                         const gpu::Holders& holders) const;
  Result<gpu::HeldLease> take(const Resource& resource, const std::vector<std::string>& keys,
                              const std::string& pod, bool by_force);
  void restore(const PodDevices& given);

  mutable std::mutex mutex_;
  gpu::Ledger ledger_;
  Log& log_;
  std::shared_ptr<const gpu::Inventory> inventory_ = std::make_shared<gpu::Inventory>();
  std::vector<Resource> resources_;
  std::map<std::string, Entries> entries_;  ///< by resource
  std::vector<Allocation> given_;
  uint64_t count_ = 0;  ///< of leases that were taken
};

}  // namespace berth::kube
