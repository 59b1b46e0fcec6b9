// SPDX-License-Identifier: Apache-2.0
// Packets with descriptors (unix(7), SCM_RIGHTS). System calls alone: also for what was forked of a
// process with threads.
#pragma once

#include <cstddef>
#include <cstdint>

#include "slurm/hold.hpp"

namespace berth::spank {

constexpr int kMostDescriptors = slurm::kHandles;

/// Whether the packet went out; errno says why not. `count` is at most kMostDescriptors.
bool send(int socket, const void* bytes, size_t size, const int* fds, int count);

struct Received {
  int64_t bytes = -1;  ///< 0: nobody will send any more; -1: errno says why there is none
  int fds = 0;
};
/// Waits for a packet, unless `flags` say otherwise. The descriptors are closed by exec; those that
/// are more than `room` are closed at once.
Received receive(int socket, void* bytes, size_t size, int* fds, int room, int flags = 0);

}  // namespace berth::spank
