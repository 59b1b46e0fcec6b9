// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

/// What berth and berth-monitor say to each other: packets of at most kMaxData bytes after one that
/// names their kind, over the socket kAttachSocket in the container's monitor directory. Numbers
/// are in the order of this machine. Pure.
namespace berth::monitor {

inline constexpr const char* kAttachSocket = "attach";
inline constexpr const char* kStoppedFile = "stopped";  ///< is there: a person has ended it
inline constexpr const char* kRestartFile = "restart";  ///< the restart policy, as --restart has it
inline constexpr const char* kHealthCheckFile = "healthcheck";  ///< what is to be run, as JSON
inline constexpr const char* kHealthFile = "health";            ///< what came of it, as JSON
inline constexpr const char* kAdoptedFile = "adopted";          ///< is there: a monitor was killed

/// In the bundle, where the container has GPUs: "ledger" and "file" name the lease of these.
inline constexpr const char* kGpuLeaseNote = "gpu-lease.json";

inline constexpr size_t kMaxData = size_t{64} << 10;

enum class FromClient : char {
  hello = 'h',      ///< Hello; the first packet
  input = 'i',      ///< bytes for the container's standard input
  input_end = 'e',  ///< there is no more of it
  resize = 'w',     ///< two uint16: rows, columns
  signal = 'k',     ///< one byte: a signal for the container's first process
};

enum class FromMonitor : char {
  output = 'o',   ///< bytes
  errors = 'e',   ///< bytes
  skipped = 's',  ///< uint64: bytes that this client was too slow for
  full = 'f',     ///< uint32: so many clients there are already; it hangs up
  exit = 'x',     ///< int32: the exit status as a shell has it, -1 where nobody knows
};

/// Flags of the one byte of a hello.
enum Hello : char {
  kWantsInput = 1,  ///< it may send input
  kMustSeeAll = 2,  ///< the container waits for it rather than that it misses a byte
  kEndsInput = 4,   ///< when it goes, there is no more input
};

}  // namespace berth::monitor
