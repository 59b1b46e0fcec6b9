// SPDX-License-Identifier: Apache-2.0
#include "kube/plugin/cards.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <thread>

#include "base/text.hpp"
#include "gpu/grant/pick.hpp"
#include "gpu/grant/reach.hpp"
#include "sys/process/program.hpp"

namespace berth::kube {
namespace {

constexpr std::chrono::milliseconds kPause{50};

bool shares_any(const std::vector<std::string>& ids, const std::vector<std::string>& others) {
  return std::ranges::any_of(
      ids, [&](const std::string& id) { return std::ranges::find(others, id) != others.end(); });
}

bool overlaps_any(const std::string& key, const std::vector<std::string>& keys) {
  return std::ranges::any_of(keys, [&](const std::string& one) { return gpu::overlaps(key, one); });
}

std::string holder_name(const std::string& pod, const std::string& resource) {
  return (pod.empty() ? "a pod" : "pod " + pod) + " (" + resource + ")";
}

/// The device of our CDI kind, as berth-runtime finds it in its inventory.
std::string cdi_name(const gpu::Selected& unit) {
  return std::string(gpu::kOwnCdiKind) + gpu::name_of(unit);
}

}  // namespace

void Cards::set(gpu::Inventory inventory, std::vector<Resource> resources) {
  std::lock_guard lock(mutex_);
  inventory_ = std::make_shared<const gpu::Inventory>(std::move(inventory));
  resources_ = std::move(resources);
  std::map<std::string, Entries> entries;
  for (const Resource& resource : resources_) {
    Entries& of = entries[resource.name];
    for (const gpu::Selected& unit : units_of(resource, *inventory_)) {
      for (uint32_t share = 0; share < resource.shares; ++share) {
        of.push_back({unit, {device_id(unit, resource, share), unit.gpu->numa_node, ""}});
      }
    }
  }
  entries_ = std::move(entries);
}

const Resource* Cards::find_resource(const std::string& name) const {
  auto found = std::ranges::find(resources_, name, &Resource::name);
  return found == resources_.end() ? nullptr : &*found;
}

const Cards::Entry* Cards::find_entry(const std::string& resource, const std::string& id) const {
  auto of = entries_.find(resource);
  if (of == entries_.end()) return nullptr;
  auto found =
      std::ranges::find_if(of->second, [&](const Entry& entry) { return entry.device.id == id; });
  return found == of->second.end() ? nullptr : &*found;
}

// A GPU that a pod has under this name stays healthy under it; the containers of that pod have
// leases of their own.
std::string Cards::trouble_of(const std::string& resource, const std::string& key,
                              const gpu::Holders& holders) const {
  std::string trouble;
  for (const Allocation& one : given_) {
    if (!overlaps_any(key, one.lease.lease().keys)) continue;
    if (one.resource == resource) return {};
    trouble = "held by " + holder_name(one.pod, one.resource);
  }
  if (!trouble.empty()) return trouble;
  for (const gpu::KnownLease& known : holders.leases) {
    const gpu::Lease& lease = known.lease;
    if (!overlaps_any(key, lease.keys)) continue;
    return "held by " + gpu::holder_text(known);
  }
  return {};
}

Result<bool> Cards::look() {
  gpu::Holders holders = TRY(ledger_.look());
  std::lock_guard lock(mutex_);
  bool changed = false;
  for (auto& [resource, entries] : entries_) {
    for (Entry& entry : entries) {
      std::string trouble = trouble_of(resource, gpu::key_of(entry.unit), holders);
      if (trouble == entry.device.trouble) continue;
      entry.device.trouble = std::move(trouble);
      changed = true;
    }
  }
  return changed;
}

std::vector<Device> Cards::devices(const std::string& resource) const {
  std::lock_guard lock(mutex_);
  std::vector<Device> devices;
  auto of = entries_.find(resource);
  if (of == entries_.end()) return devices;
  for (const Entry& entry : of->second) devices.push_back(entry.device);
  return devices;
}

std::vector<std::string> Cards::resources() const {
  std::lock_guard lock(mutex_);
  std::vector<std::string> names;
  for (const Resource& resource : resources_) names.push_back(resource.name);
  return names;
}

bool Cards::has_given() const {
  std::lock_guard lock(mutex_);
  return !given_.empty();
}

bool Cards::has_unnamed() const {
  std::lock_guard lock(mutex_);
  return std::ranges::any_of(given_, [](const Allocation& one) { return one.pod.empty(); });
}

// `by_force`: the kubelet has given these devices already, whatever others did meanwhile.
Result<gpu::HeldLease> Cards::take(const Resource& resource, const std::vector<std::string>& keys,
                                   const std::string& pod, bool by_force) {
  gpu::Lease lease;
  lease.container = "kubelet";
  lease.name = holder_name(pod, resource.name);
  lease.engine = gpu::kKubeletEngine;
  // Shares of one name share the GPU with each other, and with nothing else.
  lease.group = resource.shares > 1
                    ? std::string(gpu::kKubeletShares) + resource.name
                    : fmt::format("{}{}-{}", gpu::kKubeletGroup, sys::own_pid(), ++count_);
  return ledger_.take(
      std::move(lease), [&](const gpu::Holders& holders, gpu::Lease& wanted) -> Result<void> {
        wanted.keys = keys;
        wanted.exclusive = true;
        gpu::Occupancy occupancy = gpu::occupancy_of(holders, {wanted.group, keys});
        for (const std::string& key : keys) {
          const gpu::Holding* obstacle = gpu::find_obstacle(occupancy, key, true);
          if (obstacle == nullptr) continue;
          std::string what = fmt::format("GPU {} is held by {}", key, obstacle->holder);
          if (!by_force)
            return make_error(Kind::busy, std::move(what), "berth gpu list on this node");
          log_.warn(what + ", and the kubelet has given it to " + wanted.name);
        }
        return {};
      });
}

Result<Given> Cards::allocate(const std::string& resource, const std::vector<std::string>& ids,
                              std::chrono::milliseconds patience) {
  auto end = std::chrono::steady_clock::now() + patience;
  while (true) {
    {
      std::lock_guard lock(mutex_);
      const Resource* wanted = find_resource(resource);
      Given given;
      given.inventory = inventory_;
      std::set<std::string> keys;
      for (const std::string& id : ids) {
        const Entry* entry = wanted == nullptr ? nullptr : find_entry(resource, id);
        if (entry == nullptr) {
          return make_error(Kind::not_found, fmt::format("{}: this node has no device {} any more",
                                                         resource, quote(id)));
        }
        if (!keys.insert(gpu::key_of(entry->unit)).second) continue;
        given.units.push_back(entry->unit);
        given.cdi_names.push_back(cdi_name(entry->unit));
      }
      std::erase_if(given_, [&](const Allocation& old) {
        return old.resource == resource && shares_any(old.ids, ids);
      });
      auto lease = take(*wanted, {keys.begin(), keys.end()}, "", false);
      if (lease.ok()) {
        given_.push_back({resource, ids, "", std::chrono::steady_clock::now(), std::move(*lease)});
        return given;
      }
      bool waits = lease.error().kind == Kind::busy && std::chrono::steady_clock::now() < end;
      if (!waits) return std::move(lease).error().with_context(resource);
    }
    std::this_thread::sleep_for(kPause);
  }
}

std::vector<std::string> Cards::prefer(const std::string& resource,
                                       const std::vector<std::string>& available,
                                       const std::vector<std::string>& required,
                                       size_t count) const {
  std::lock_guard lock(mutex_);
  auto entries = entries_.find(resource);
  if (entries == entries_.end()) return required;
  const std::set<std::string> offered(available.begin(), available.end());
  const std::set<std::string> needed(required.begin(), required.end());
  // By unit: how many of its devices are chosen, and which can still be.
  struct Choices {
    size_t chosen = 0;
    std::vector<std::string> free;
  };
  std::map<std::string, Choices> by_key;
  gpu::Occupancy occupancy;
  std::vector<gpu::Selected> candidates;
  for (const Entry& entry : entries->second) {
    const std::string key = gpu::key_of(entry.unit);
    bool is_needed = needed.contains(entry.device.id);
    bool is_free = offered.contains(entry.device.id);
    if (is_needed) occupancy.own.push_back(key);
    // A share that another pod has makes the GPU a used one.
    if (!is_needed && !is_free) occupancy.held.push_back({key, "", "pods"});
    // The kubelet learns within a second what is taken under another name, and allocates for the
    // next container of a pod at once.
    bool taken = std::ranges::any_of(given_, [&](const Allocation& one) {
      return one.resource != resource && overlaps_any(key, one.lease.lease().keys);
    });
    if (taken) occupancy.held.push_back({key, "", "pods"});
    if (!is_needed && !is_free) continue;
    Choices& choices = by_key[key];
    if (choices.chosen == 0 && choices.free.empty()) candidates.push_back(entry.unit);
    if (is_needed) ++choices.chosen;
    if (is_free && !is_needed) choices.free.push_back(entry.device.id);
  }
  std::vector<std::string> chosen = required;
  const size_t units = std::min(count, candidates.size());
  std::vector<gpu::Selected> order = gpu::pick_least_used(candidates, units, occupancy);
  // One of each unit in turn.
  for (size_t turn = 1; chosen.size() < count && turn <= entries->second.size(); ++turn) {
    for (const gpu::Selected& unit : order) {
      Choices& choices = by_key[gpu::key_of(unit)];
      if (chosen.size() >= count || choices.chosen >= turn || choices.free.empty()) continue;
      chosen.push_back(choices.free.front());
      choices.free.erase(choices.free.begin());
      ++choices.chosen;
    }
  }
  return chosen;
}

void Cards::restore(const PodDevices& given) {
  const Resource* resource = find_resource(given.resource);
  if (resource == nullptr) return;
  std::set<std::string> keys;
  for (const std::string& id : given.ids) {
    const Entry* entry = find_entry(given.resource, id);
    if (entry != nullptr) keys.insert(gpu::key_of(entry->unit));
  }
  if (keys.empty()) return;
  auto lease = take(*resource, {keys.begin(), keys.end()}, given.pod, true);
  if (!lease.ok()) {
    log_.warn("cannot record what " + holder_name(given.pod, given.resource) +
              " has: " + to_line(lease.error()) + "; trying again");
    return;
  }
  given_.push_back(
      {given.resource, given.ids, given.pod, std::chrono::steady_clock::now(), std::move(*lease)});
}

void Cards::compare(const std::vector<PodDevices>& pods, std::chrono::seconds grace) {
  std::lock_guard lock(mutex_);
  auto now = std::chrono::steady_clock::now();
  std::erase_if(given_, [&](Allocation& one) {
    auto pod = std::ranges::find_if(pods, [&](const PodDevices& listed) {
      return listed.resource == one.resource && shares_any(listed.ids, one.ids);
    });
    if (pod == pods.end()) return !one.pod.empty() || now - one.since > grace;
    if (one.pod == pod->pod) return false;
    one.pod = pod->pod;
    ignore(ledger_.set_name(one.lease, holder_name(one.pod, one.resource)));  // only for people
    return false;
  });
  for (const PodDevices& listed : pods) {
    bool known = std::ranges::any_of(given_, [&](const Allocation& one) {
      return one.resource == listed.resource && shares_any(listed.ids, one.ids);
    });
    if (!known) restore(listed);
  }
}

}  // namespace berth::kube
