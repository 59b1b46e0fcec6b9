// SPDX-License-Identifier: Apache-2.0
// Packets over SOCK_SEQPACKET sockets: each is received whole or not at all, without blocking.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "sys/fd/fd.hpp"

namespace berth::sys {

/// The maximum of bytes in a packet.
inline constexpr size_t kMaxPacket = size_t{65} << 10;
/// The maximum of descriptors in a packet.
inline constexpr size_t kMaxPassed = 3;

/// Sends the bytes of both parts as one packet, with descriptors, of which the receiver gets
/// copies. False when the receiver's queue is full; nothing was sent then.
/// Errors: io with EPIPE (the other end is closed).  sendmsg(2), unix(7) SCM_RIGHTS
Result<bool> offer_packet(const Fd& socket, std::string_view head, std::string_view body = {},
                          std::span<const int> passed = {});

struct Packet {
  size_t size = 0;
  std::vector<Fd> passed;
};

enum class Take { off, peek };  ///< peek: the packet stays in the queue, with its descriptors
/// Receives the next packet into `buffer`, truncated if longer. Size 0 and no descriptors: the
/// other end is closed. Nothing when no packet is pending.
/// Errors: io.  recvmsg(2) MSG_PEEK
Result<std::optional<Packet>> take_packet(const Fd& socket, std::span<char> buffer,
                                          Take take = Take::off);

}  // namespace berth::sys
