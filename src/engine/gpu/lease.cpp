// SPDX-License-Identifier: Apache-2.0
#include "engine/gpu/lease.hpp"

#include <signal.h>

#include <algorithm>
#include <functional>
#include <optional>

#include "base/text.hpp"
#include "engine/container/list.hpp"
#include "engine/gpu/host_devices.hpp"
#include "engine/gpu/list.hpp"
#include "engine/gpu/outside.hpp"
#include "engine/gpu/placement.hpp"
#include "engine/state/directory.hpp"
#include "gpu/ledger/chooser.hpp"
#include "json/fields.hpp"
#include "sys/file/file.hpp"
#include "sys/process/signals.hpp"
#include "sys/user/identity.hpp"

namespace berth::engine {
namespace {

using Keys = std::vector<std::string>;
using Want = gpu::Request::Want;

/// The lease of the container that --gpus from: names.
/// Errors: not_found (no such container, no GPUs), denied (it belongs to another user).
class Shared {
 public:
  Shared(const Context& context, const std::string& name) : name_(name) {
    auto found = get_container(context, name);
    if (found.ok()) id_ = found->id;
  }
  Result<gpu::Lease> find(const gpu::Holders& holders) const;

 private:
  bool is_named(const gpu::Lease& lease) const;

  std::string name_;
  std::string id_;  ///< if it is in this store; else empty
};

bool Shared::is_named(const gpu::Lease& lease) const {
  if (!id_.empty()) return lease.container == id_;
  bool by_id = name_.size() >= 8 && lease.container.starts_with(name_);
  return by_id || (!lease.name.empty() && lease.name == name_);
}

// Root may share all leases; the kernel reports the owner of a lease.
bool may_share(uid_t user) {
  bool root = sys::effective_uid() == 0 && sys::in_initial_user_namespace();
  return root || user == sys::effective_uid();
}

Result<gpu::Lease> Shared::find(const gpu::Holders& holders) const {
  const std::string asked = "--gpus from:" + escape_controls(name_);
  const gpu::KnownLease* found = nullptr;
  bool others = false;
  for (const gpu::KnownLease& one : holders.leases) {
    if (!is_named(one.lease) || one.lease.keys.empty()) continue;
    bool own = one.user == sys::effective_uid();
    others = others || !may_share(one.user);
    // Any user can write any name into a lease, so prefer leases of our own user.
    if (own || (may_share(one.user) && found == nullptr)) found = &one;
    if (own) break;
  }
  if (found != nullptr) return found->lease;
  if (others)
    return make_error(Kind::denied, asked + ": it belongs to another user", "berth gpu list");
  return make_error(Kind::not_found,
                    asked + (id_.empty() ? ": no such container" : ": it has no GPUs now"),
                    "berth gpu list");
}

/// Warns that the start waits.
void warn_waiting(const Context& context, const Error& error) {
  context.log.warn("waiting: " + error.what);
}

Result<gpu::HeldLease> take_in_turn(const Context& context, const RunRequest& request,
                                    const gpu::Ledger& ledger, gpu::Lease lease,
                                    const gpu::Choose& choose, const gpu::Wanted& wish,
                                    const Keys& beside, const std::function<void()>& look) {
  gpu::Ticket ticket{lease.container, lease.name, lease.group, keys_of(wish.candidates), wish.count,
                     lease.exclusive, 0};
  ticket.keys.insert(ticket.keys.end(), beside.begin(), beside.end());
  ticket.count += beside.size();
  gpu::Ledger::Patience patience;
  if (*request.wait_gpus > 0) patience.limit = std::chrono::nanoseconds(*request.wait_gpus);
  patience.waiting = [&](const Error& error) { warn_waiting(context, error); };
  patience.look = look;
  sys::SignalMask before;  // restores the previous mask
  sys::Fd signals = TRY(sys::receive_signals({SIGINT, SIGTERM, SIGHUP}));
  patience.give_up = signals.get();
  return ledger.take_in_turn(std::move(lease), std::move(ticket), choose, patience);
}

/// Widens the lease of the container of `request`: it has the old and the new GPUs then.
Result<gpu::HeldLease> widen(const Context& context, const RunRequest& request,
                             const gpu::Ledger& ledger, gpu::Lease lease, gpu::Chooser& chooser,
                             const gpu::Choose& choose) {
  auto note = TRY(read_lease_note(context, request, lease.container));
  if (!note || note->ledger != ledger.path()) return ledger.take(std::move(lease), choose);
  gpu::HeldLease held = TRY(ledger.hold_again(note->file, note->lease));
  chooser.keep(held);
  TRY(ledger.widen(held, [&](const gpu::Holders& holders, gpu::Lease& changed) {
    changed.group = changed.container;  // unless it shares another container's GPUs again
    return choose(holders, changed);
  }));
  return held;
}

/// The NUMA nodes of the requested processors. Empty, meaning no preference, if they cannot be
/// read.
std::vector<int> near_processors(const RunRequest& request, const gpu::Inventory& inventory) {
  std::vector<int> near;
  auto wanted = parse_numbers(request.limits.cpuset_cpus);
  if (!wanted) return near;
  auto nodes = numa_nodes_of(inventory);
  if (!nodes.ok()) return near;
  for (const auto& [node, cpus] : *nodes) {
    bool any = std::ranges::any_of(cpus, [&](unsigned one) { return wanted->contains(one); });
    if (any) near.push_back(node);
  }
  return near;
}

/// The group of all containers that MPS may serve on the same GPUs, if no other containers may use
/// these GPUs.
std::string group_of(const MpsPlan& mps, const Context& context) {
  return "mps-" + name_of(gpu::MpsShare{mps.user, {}, mps.limits}, context.paths.state, "");
}

Error other_user(const std::string& from) {
  return make_error(Kind::unsupported,
                    "--gpus from:" + escape_controls(from) +
                        ": it uses MPS, which serves only one user, and this is another one",
                    "the same --user, and the same --state");
}

Error busy_with_limits() {
  return make_error(
      Kind::unsupported,
      "change its GPUs while it runs: its GPU limits are for the GPUs that it has now",
      "berth stop, berth update --gpus, berth start");
}

}  // namespace

Result<std::optional<gpu::LeaseNote>> read_lease_note(const Context& context,
                                                      const RunRequest& request,
                                                      const std::string& id) {
  const std::string path = bundle_path(context.paths, request, id) + "/" + gpu::kLeaseNote;
  auto text = TRY(sys::read_file_if_exists(sys::cwd(), path, 4 * gpu::kRecordSize));
  if (!text) return std::optional<gpu::LeaseNote>();
  return std::optional<gpu::LeaseNote>(TRY(json::read<gpu::LeaseNote>(*text, path)));
}

Keys keys_beside(const RunRequest& request, const gpu::Choice& choice,
                 const gpu::Inventory& inventory) {
  Keys keys = gpu::keys_of(choice.cdi_names, inventory);
  std::vector<gpu::GivenNode> given;
  auto nodes = nodes_by_hand(request);  // add_host_nodes() reports their errors
  if (!nodes.ok()) return keys;
  for (const oci::DeviceNode& node : *nodes) {
    if (node.type == "c") given.push_back({node.host_path, std::pair(node.major, node.minor)});
  }
  for (std::string& key : gpu::keys_of_nodes(given, inventory)) {
    if (std::ranges::find(keys, key) == keys.end()) keys.push_back(std::move(key));
  }
  return keys;
}

Result<LeasedGpus> lease_gpus(const Context& context, const RunRequest& request,
                              const std::string& id, gpu::Request wish, const policy::Gpu& site,
                              const gpu::Inventory& inventory, const Keys& beside,
                              const MpsPlan& mps, Leasing leasing) {
  LeasedGpus out;
  wish.exclusive = wish.exclusive || request.gpus_exclusive || site.exclusive;
  bool of_limits = !wish.exclusive && mps.wanted() && mps.takes;
  wish.exclusive = wish.exclusive || of_limits;
  std::optional<Shared> shared;
  const std::string wish_from = wish.from;
  if (wish.want == Want::container) shared.emplace(context, wish.from);
  gpu::Chooser chooser(std::move(wish), inventory, beside);
  chooser.prefer(near_processors(request, inventory));
  if (leasing == Leasing::nothing) {
    // The GPUs of the other container are not known yet.
    out.request = chooser.request();
    if (shared) out.request.want = Want::driver_files;
    if (shared) return out;
    gpu::Wanted all = TRY(chooser.wanted());
    all.candidates.resize(all.count);
    out.selected = std::move(all.candidates);
    return out;
  }
  std::optional<gpu::Ledger> ledger;
  auto choose = [&](const gpu::Holders& holders, gpu::Lease& lease) -> Result<void> {
    std::optional<gpu::MpsUse> joined;
    if (shared) {
      gpu::Lease theirs = TRY(shared->find(holders));
      chooser.share(theirs);
      if (!mps.wanted()) joined = theirs.mps;
    }
    TRY(chooser.choose(holders, lease));
    gpu::MpsLimits limits = limits_by_mps(mps, chooser.selected());
    if (joined) limits = {joined->cores_percent, joined->memory_bytes};
    lease.mps.reset();
    if (limits == gpu::MpsLimits()) return {};
    if (leasing == Leasing::change) return busy_with_limits();
    if (joined) TRY(check_mps(request, limits, inventory));
    out.share = TRY(share_of(mps, limits, chooser.selected()));
    out.share_name = name_of(*out.share, context.paths.state, ledger->path());
    if (joined && joined->share != out.share_name) return other_user(wish_from);
    lease.mps = {out.share_name, limits.cores_percent, limits.memory_bytes};
    return check_share(mps, chooser.selected(), holders, lease);
  };
  gpu::Wanted all;
  if (!shared) all = TRY(chooser.wanted());
  OutsideWatch outside(context, inventory);
  bool minds_others =
      site.outside_processes && (shared ? chooser.request().exclusive : chooser.minds_others(all));
  auto look = [&] {
    if (minds_others) chooser.count(outside.look());
  };
  gpu::Lease lease;
  lease.container = lease.group = id;
  if (of_limits) lease.group = group_of(mps, context);
  lease.name = request.name.value_or("");
  lease.engine = "berth";
  lease.exclusive = chooser.request().exclusive;
  if (shared || chooser.wants_any()) {
    ledger = TRY(open_gpu_ledger(context, site));
    bool waits = leasing == Leasing::take && request.wait_gpus && !shared;
    if (!waits) look();
    if (leasing == Leasing::look) {
      gpu::Holders holders = TRY(ledger->look());
      TRY(choose(holders, lease));
    } else if (leasing == Leasing::change) {
      out.lease = TRY(widen(context, request, *ledger, std::move(lease), chooser, choose));
    } else if (waits) {
      out.lease =
          TRY(take_in_turn(context, request, *ledger, std::move(lease), choose, all, beside, look));
    } else {
      out.lease = TRY(ledger->take(std::move(lease), choose));
    }
  }
  out.selected = chooser.selected();
  out.request = chooser.request();
  return out;
}

}  // namespace berth::engine
