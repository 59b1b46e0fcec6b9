// SPDX-License-Identifier: Apache-2.0
#include "gpu/inject/lease.hpp"

#include "gpu/inventory/state_directory.hpp"
#include "json/fields.hpp"
#include "sys/file/file.hpp"

namespace berth::gpu {
namespace {

constexpr size_t kLongestNote = 4 * kRecordSize;

}  // namespace

Result<std::optional<ContainerLease>> find_lease(const std::string& bundle) {
  const std::string path = bundle + "/" + kLeaseNote;
  auto text = TRY(sys::read_file_if_exists(sys::cwd(), path, kLongestNote));
  if (!text) return std::optional<ContainerLease>();
  LeaseNote note = TRY(json::read<LeaseNote>(*text, path));
  Ledger ledger = TRY(Ledger::open(note.ledger, default_state_directory()));
  HeldLease held = TRY(ledger.hold_again(note.file, note.lease));
  if (held.note().file != note.file) {
    TRY(sys::write_file(sys::cwd(), path, json::write(held.note()), 0600));
  }
  return std::optional<ContainerLease>(ContainerLease{std::move(ledger), std::move(held), false});
}

Result<std::string> set_life(ContainerLease& lease, pid_t pid, const std::string& cgroup) {
  Here here = TRY(look_around());
  Life life = TRY(life_of(pid, cgroup, here));
  TRY(lease.ledger.set_life(lease.held, std::move(life)));
  if (lease.taken_here) return lease.held.path();
  lease.held.leave();
  return std::string();
}

}  // namespace berth::gpu
