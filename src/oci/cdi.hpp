// SPDX-License-Identifier: Apache-2.0
// The file of the Container Device Interface as plain structs, names as in the specification with
// underscores. Source: SPEC.md of cncf-tags/container-device-interface, version 1.1.0.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "json/value.hpp"

namespace berth::oci::cdi {

/// Every version that files may declare, lowest first; 1.1.0 is the last.
std::span<const std::string_view> versions();

struct DeviceNode {
  std::string path{};       ///< in the container
  std::string host_path{};  ///< empty: the same as `path`
  std::string type{};       ///< "b", "c", "u", "p"; empty: the type of the host's node
  std::optional<int64_t> major{};
  std::optional<int64_t> minor{};
  std::optional<uint32_t> file_mode{};
  std::string permissions{};  ///< of "rwm", or "none"; empty: all three
  std::optional<uint32_t> uid{};
  std::optional<uint32_t> gid{};
};

struct Mount {
  std::string host_path{};
  std::string container_path{};
  std::vector<std::string> options{};
  std::string type{};  ///< since 0.4.0
};

struct Hook {
  std::string hook_name{};  ///< "createContainer", as the runtime-spec spells it
  std::string path{};
  std::vector<std::string> args{};
  std::vector<std::string> env{};
  std::optional<int64_t> timeout{};  ///< seconds
};

struct NetDevice {
  std::string host_interface_name{};
  std::string name{};
};

struct IntelRdt {
  std::string clos_id{};
  std::string l3_cache_schema{};
  std::string mem_bw_schema{};
  std::vector<std::string> schemata{};  ///< since 1.1.0
  bool enable_monitoring = false;       ///< since 1.1.0
  bool enable_cmt = false;              ///< before 1.1.0
  bool enable_mbm = false;              ///< before 1.1.0
};

struct Edits {
  std::vector<std::string> env{};
  std::vector<DeviceNode> device_nodes{};
  std::vector<NetDevice> net_devices{};
  std::vector<Hook> hooks{};
  std::vector<Mount> mounts{};
  std::optional<IntelRdt> intel_rdt{};
  std::vector<uint32_t> additional_gids{};
  bool empty() const;
};

struct Device {
  std::string name{};
  std::map<std::string, std::string> annotations{};
  Edits edits{};
};

struct Spec {
  std::string version{};
  std::string kind{};  ///< "nvidia.com/gpu"
  std::map<std::string, std::string> annotations{};
  std::vector<Device> devices{};
  Edits edits{};  ///< for all devices together: applied once
};

/// "vendor/class=name".
struct QualifiedName {
  std::string kind{};
  std::string device{};
};

/// Parses "vendor/class=name". Errors: usage (not of this form, a character that is not allowed in
/// a part).
Result<QualifiedName> parse_name(std::string_view text);

/// Whether `text` looks like a qualified name and not like a path: it contains '=' and does not
/// begin with '/'.
bool looks_qualified(std::string_view text);

/// Converts a parsed document (JSON or YAML); `file` names it in errors. Unknown members are
/// errors, as for every other reader of CDI.
/// Errors: corrupt, naming the place ("gpu.json: devices[1].containerEdits.mounts[0].hostPath: …").
Result<Spec> from_document(const json::Value& document, std::string_view file);

/// Parses JSON. A duplicate member is an error, as in other engines, which read JSON with a YAML
/// parser (container-device-interface pkg/cdi/spec.go ParseSpec). Errors: corrupt.
Result<Spec> read_json(std::string_view text, std::string_view file);

/// Checks all rules of the specification; from_document() has done so already.
/// Errors: corrupt, naming the place.
Result<void> validate(const Spec& spec, std::string_view file);

/// The lowest version that the content needs.
std::string_view needed_version(const Spec& spec);

/// Returns < 0, 0 or > 0. Both versions are elements of versions().
int compare_versions(std::string_view left, std::string_view right);

/// The members are in the order of the specification, and empty ones are left out, so that equal
/// content gives equal bytes.
json::Value to_document(const Spec& spec);

}  // namespace berth::oci::cdi
