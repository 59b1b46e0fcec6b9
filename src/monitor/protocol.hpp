// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

/// The protocol between berth and berth-monitor: packets of at most kMaxData bytes after one that
/// names their kind, over the socket kAttachSocket in the container's monitor directory. Numbers
/// are in host byte order. Pure.
namespace berth::monitor {

inline constexpr const char* kAttachSocket = "attach";
inline constexpr const char* kStoppedFile = "stopped";  ///< exists: the user has ended it
inline constexpr const char* kRestartFile = "restart";  ///< the restart policy, in --restart's form
inline constexpr const char* kHealthCheckFile = "healthcheck";  ///< the check to run, as JSON
inline constexpr const char* kHealthFile = "health";            ///< its result, as JSON
inline constexpr const char* kAdoptedFile = "adopted";          ///< exists: a monitor was killed

/// In the bundle, if the container has GPUs: "ledger" and "file" name their lease.
inline constexpr const char* kGpuLeaseNote = "gpu-lease.json";

inline constexpr size_t kMaxData = size_t{64} << 10;

enum class FromClient : char {
  hello = 'h',      ///< Hello; the first packet
  input = 'i',      ///< bytes for the container's standard input
  input_end = 'e',  ///< the end of the input
  resize = 'w',     ///< two uint16: rows, columns
  signal = 'k',     ///< one byte: a signal for the container's first process
};

enum class FromMonitor : char {
  output = 'o',   ///< bytes
  errors = 'e',   ///< bytes
  skipped = 's',  ///< uint64: bytes that this client lost by being slow
  full = 'f',     ///< uint32: the number of clients, which is the limit; it hangs up
  exit = 'x',     ///< int32: the exit status as in a shell, -1 if unknown
};

/// Flags of the one byte of a hello.
enum Hello : char {
  kWantsInput = 1,  ///< it may send input
  kMustSeeAll = 2,  ///< the container waits for it so that it loses no byte
  kEndsInput = 4,   ///< its end is the end of the input
};

}  // namespace berth::monitor
