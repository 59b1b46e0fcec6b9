// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

/// The protocol between berth and berth-monitor over the socket kAttachSocket in the container's
/// monitor directory. A packet is a byte for its kind, followed by at most kMaxData bytes. Numbers
/// are in host byte order. Pure.
namespace berth::monitor {

inline constexpr const char* kAttachSocket = "attach";
inline constexpr const char* kStoppedFile = "stopped";  ///< exists: a user has ended the container
inline constexpr const char* kRestartFile = "restart";  ///< the restart policy, in --restart's form
inline constexpr const char* kHealthCheckFile = "healthcheck";  ///< the check to run, as JSON
inline constexpr const char* kHealthFile = "health";    ///< the results of the check, as JSON
inline constexpr const char* kAdoptedFile = "adopted";  ///< exists: a monitor was killed

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
  skipped = 's',  ///< uint64: number of bytes that this client lost because it was slow
  full = 'f',     ///< uint32: the maximal number of clients; the monitor hangs up
  exit = 'x',     ///< int32: the exit status as in a shell, -1 if unknown
};

/// Flags in the byte of a hello packet.
enum Hello : char {
  kWantsInput = 1,  ///< the client may send input
  kMustSeeAll = 2,  ///< the container waits for the client, which loses no byte
  kEndsInput = 4,   ///< when the client hangs up, the input ends
};

}  // namespace berth::monitor
