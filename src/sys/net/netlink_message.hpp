// SPDX-License-Identifier: Apache-2.0
// The parts of rtnetlink(7) messages, for the sources that implement NetLinks.
#pragma once

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace berth::sys::netlink {

template <class T>
std::string bytes_of(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

// Pads the message: its parts begin at multiples of four.
inline void pad(std::string& message) {
  message.resize(NLMSG_ALIGN(message.size()));
}

inline void append(std::string& message, uint16_t type, std::string_view value) {
  rtattr head{};
  head.rta_type = type;
  head.rta_len = static_cast<uint16_t>(RTA_LENGTH(value.size()));
  message += bytes_of(head);
  message += value;
  pad(message);
}

// The length in the header is set when the message is sent.
template <class Body>
std::string begin(uint16_t type, uint16_t flags, const Body& body) {
  nlmsghdr head{};
  head.nlmsg_type = type;
  head.nlmsg_flags = static_cast<uint16_t>(NLM_F_REQUEST | flags);
  std::string message = bytes_of(head) + bytes_of(body);
  pad(message);
  return message;
}

inline ifinfomsg link_of(uint32_t index) {
  ifinfomsg info{};
  info.ifi_family = AF_UNSPEC;
  info.ifi_index = static_cast<int>(index);
  return info;
}

/// Iterates over parts of a message, each of which begins with its length; stops at an invalid
/// length.
template <class Head>
class Parts {
 public:
  explicit Parts(std::string_view bytes) : bytes_(bytes) {}
  /// The next head and the data that follows it.
  bool next(Head& head, std::string_view& rest) {
    if (bytes_.size() < sizeof head) return false;
    std::memcpy(&head, bytes_.data(), sizeof head);
    size_t length = length_of(head);
    if (length < sizeof head || length > bytes_.size()) return false;
    rest = bytes_.substr(sizeof head, length - sizeof head);
    bytes_.remove_prefix(std::min<size_t>(NLMSG_ALIGN(length), bytes_.size()));
    return true;
  }

 private:
  static size_t length_of(const nlmsghdr& head) { return head.nlmsg_len; }
  static size_t length_of(const rtattr& head) { return head.rta_len; }
  std::string_view bytes_;
};

/// The bytes of a name, including its terminating zero.
inline std::string_view word(const std::string& name) {
  return {name.c_str(), name.size() + 1};
}

/// Reserves the head of an attribute that contains others; close_nest() ends it.
inline size_t open_nest(std::string& message, uint16_t type) {
  size_t start = message.size();
  append(message, type, "");
  return start;
}
inline void close_nest(std::string& message, size_t start) {
  auto length = static_cast<uint16_t>(message.size() - start);
  std::memcpy(message.data() + start + offsetof(rtattr, rta_len), &length, sizeof length);
}

}  // namespace berth::sys::netlink
