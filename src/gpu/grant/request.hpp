// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "gpu/grant/requirement.hpp"
#include "gpu/grant/traits.hpp"
#include "gpu/inventory/inventory.hpp"

namespace berth::gpu {

/// The GPUs that a system outside of Berth set aside for the caller: a batch system for a job, or
/// the variable NV_GPU. No other GPUs are granted.
struct Limit {
  enum class Rule {
    visible,  ///< as CUDA parses CUDA_VISIBLE_DEVICES: an invalid entry ends the list
    strict,   ///< an invalid entry is an error
  };
  std::string variable;          ///< for messages: "CUDA_VISIBLE_DEVICES"
  std::string value;             ///< as written
  std::vector<std::string> ids;  ///< "0", "GPU-…", "MIG-…"
  std::vector<Vendor> vendors;   ///< indices count the GPUs of these vendors only; empty: of all
  Rule rule = Rule::visible;
  bool of_the_rest = false;     ///< indices count the GPUs that earlier limits left
  bool of_the_machine = false;  ///< indices also count the GPUs that the job cannot open
};

/// Devices other than GPUs that NVIDIA_GDS and similar variables request.
struct Features {
  bool gds = false;          ///< GPUDirect Storage
  bool mofed = false;        ///< InfiniBand
  bool gdrcopy = false;      ///< /dev/gdrdrv
  bool nvswitch = false;     ///< /dev/nvidia-nvswitch*
  bool mig_config = false;   ///< the right to create and delete MIG slices
  bool mig_monitor = false;  ///< the right to monitor all MIG slices
  std::vector<uint32_t> imex_channels;

  bool operator==(const Features&) const = default;
};

/// NVIDIA_REQUIRE_<NAME> of an image.
struct NamedRequirement {
  std::string name;
  std::string text;
};

/// The request of a container: parsed from --gpus alone, or combined from every source by choose()
/// (sources.hpp).
struct Request {
  enum class Want {
    none,
    driver_files,  ///< the driver's files and no GPU: NVIDIA_VISIBLE_DEVICES=none
    all,
    count,
    devices,
    keys,       ///< the GPUs in `keys`, which are from key_of()
    container,  ///< the GPUs of another container: --gpus from:NAME
  };
  Want want = Want::none;
  uint32_t count = 0;                     ///< Want::count: ≥ 1
  std::vector<std::string> devices;       ///< Want::devices: "0", "1:0", "GPU-…", "MIG-…", PCI
  std::vector<Trait> traits;              ///< Want::all and count: only GPUs that have these
  std::string from;                       ///< Want::container: the name or id of the container
  std::vector<std::string> keys;          ///< Want::keys
  std::vector<std::string> capabilities;  ///< from capability_names(), or "all"; empty: the default
  std::optional<Vendor> vendor;           ///< none: the first vendor of which the machine has GPUs

  bool exclusive = false;  ///< for this container and its group alone

  // Set by choose().
  std::string source;            ///< the source of the request, for messages; empty: --gpus
  std::string capabilities_why;  ///< the source of the capabilities; empty: --gpus names them
  std::vector<NamedRequirement> requirements;
  Features features;
  /// Variables of `features` that the user set explicitly: an error if the machine has no such
  /// device.
  std::vector<std::string> demanded;
  std::vector<Limit> limits;
  std::vector<std::string> never;      ///< keys of withheld GPUs: key_of() in gpu/inventory
  std::vector<std::string> translate;  ///< a job's variables to recompute for the container
  std::vector<std::string> typed;      ///< "NAME=value" from --env or the image that select GPUs
  std::string device_order;            ///< CUDA_DEVICE_ORDER of the container; empty: unset
};

/// Every capability that a driver file can belong to, in the order of our messages.
const std::vector<std::string_view>& known_capabilities();

/// Parses --gpus as docker does (one CSV record with quotes): "all", "2", "none", "device=0,2",
/// "\"device=0,2\",capabilities=compute", "count=2", "device=GPU-8f2b", "all,driver=amd",
/// "2,model=h200,memory>=40G", "from:web". Unlike docker, a list needs no quotes: fields without
/// "=" after device= or capabilities= continue the list. Errors: usage (an unknown key, capability
/// or driver: suggests the nearest one; a key twice; count and device).
Result<Request> parse_request(std::string_view text);

}  // namespace berth::gpu
