// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "json/fields.hpp"

/// The protocol between berth-runtime and berth-scope: one Request as JSON on standard input, one
/// Answer on standard output. docs/decisions/0082
namespace berth::scope {

/// An entry of DeviceAllow.
struct Device {
  std::string node;    ///< "/dev/char/1:3", "char-136", "block-*"
  std::string access;  ///< of "rwm"
};

/// A property of a unit in D-Bus's types: exactly one of the values is set.
/// Source: org.freedesktop.systemd1(5), systemd.resource-control(5).
struct Property {
  std::string name;                              ///< "MemoryMax"
  std::optional<uint64_t> number{};              ///< 't'; UINT64_MAX is "infinity"
  std::optional<bool> flag{};                    ///< 'b'
  std::optional<std::string> text{};             ///< 's'
  std::optional<std::vector<uint8_t>> bits{};    ///< 'ay', the lowest eight bits first
  std::optional<std::vector<Device>> devices{};  ///< 'a(ss)'
};

struct Request {
  std::string verb{};               ///< "start", "attach", "update" or "stop"
  bool user = false;                ///< the caller's own manager instead of the machine's
  std::string runtime_directory{};  ///< for `user`: the directory in which the user's manager
                                    ///< listens; empty: the default of libsystemd
  std::string unit{};               ///< "berth-c1.scope"
  int pid = 0;                      ///< start, attach: the process to move into the unit
  std::vector<Property> properties{};
};

struct Answer {
  std::string control_group{};        ///< start: "/system.slice/berth-c1.scope"
  std::optional<std::string> kind{};  ///< kind_name() of the failure; absent: success
  std::string what{};                 ///< of the failure
};

void fields(auto& v, Device& device) {
  v.required("node", device.node);
  v.required("access", device.access);
}
void fields(auto& v, Property& property) {
  v.required("name", property.name);
  v.optional("number", property.number);
  v.optional("flag", property.flag);
  v.optional("text", property.text);
  v.optional("bits", property.bits);
  v.optional("devices", property.devices);
}
void fields(auto& v, Request& request) {
  v.required("verb", request.verb);
  v.required("user", request.user);
  v.optional("runtimeDirectory", request.runtime_directory);
  v.required("unit", request.unit);
  v.optional("pid", request.pid);
  v.optional("properties", request.properties);
}
void fields(auto& v, Answer& answer) {
  v.optional("controlGroup", answer.control_group);
  v.optional("kind", answer.kind);
  v.optional("what", answer.what);
}

}  // namespace berth::scope
