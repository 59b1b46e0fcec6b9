// SPDX-License-Identifier: Apache-2.0
// Files of the ledger, which every user of a machine can write: what reads is written as it was,
// and never stands in the way of its own group.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "gpu/ledger/ledger.hpp"

namespace {

namespace gpu = berth::gpu;

void check(bool promise) {
  if (!promise) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  gpu::Holders holders;
  if (auto lease = gpu::parse_lease(text); lease.ok()) {
    auto written = gpu::record_text(*lease);
    if (written.ok()) {
      check(written->size() == gpu::kRecordSize);
      auto again = gpu::parse_lease(*written);
      check(again.ok() && *again == *lease);
    }
    holders.leases.push_back({*lease, 1000, "lease-0"});
  }
  if (auto ticket = gpu::parse_ticket(text); ticket.ok()) {
    holders.queue.push_back({*ticket, 1000, "wait-1", 1});
  }
  for (const auto& known : holders.leases) {
    gpu::Occupancy own = gpu::occupancy_of(holders, {known.lease.group, known.lease.keys, 0});
    for (const std::string& key : known.lease.keys) {
      check(gpu::find_obstacle(own, key, true) == nullptr);
    }
  }
  for (const auto& waiting : holders.queue) {
    gpu::Occupancy others = gpu::occupancy_of(holders, {"other", waiting.ticket.keys});
    check(others.held.size() <= waiting.ticket.keys.size());
  }
  return 0;
}
