// SPDX-License-Identifier: Apache-2.0
// How a container of an image ended on a node: the third tier of facts about an image, after
// declared and found ones. Anybody may have published a record, so it is untrusted input.
// docs/variants.md "Records of runs" specifies the format.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/names.hpp"
#include "base/result.hpp"

namespace berth::match {

/// The source of the container's user-land driver.
enum class UserLand {
  host,   ///< driver modes bind, volume and copy
  image,  ///< driver modes image and none
};
constexpr EnumNames<UserLand, 2> names_of(std::type_identity<UserLand>) {
  return {{{UserLand::host, "host"}, {UserLand::image, "image"}}};
}

/// A kind of GPU that the container had. Empty members are unknown.
struct RunGpu {
  std::string vendor;  ///< "nvidia", "amd", "intel"
  std::string model;
  std::string compute_capability;  ///< NVIDIA: "9.0"
  std::string architecture;        ///< AMD: "gfx90a"
  auto operator<=>(const RunGpu&) const = default;
};

struct RunCpu {
  std::string microarchitecture;  ///< archspec's name
  uint32_t level = 0;             ///< of x86-64; 0: another architecture
  auto operator<=>(const RunCpu&) const = default;
};

struct RunDriver {
  std::string kind;     ///< "nvidia": the kernel module; "rocm": AMD's libraries
  std::string version;  ///< "570.133.20"
  auto operator<=>(const RunDriver&) const = default;
};

/// Contains no name of a machine, a person, a path or a variable.
struct RunRecord {
  std::string time;         ///< when the container ended, "2026-11-20T12:00:00Z"
  uint32_t exit = 0;        ///< status; 0: it works
  bool own_command = true;  ///< the image's own command ran; another command proves nothing
  UserLand user_land = UserLand::host;
  std::vector<RunGpu> gpus;  ///< sorted
  std::string architecture;  ///< the node's: "amd64"
  RunCpu cpu;
  std::string kernel;               ///< the numeric part of its release: "6.18.5"; empty: unknown
  std::optional<RunDriver> driver;  ///< nothing: the node had no driver
  bool synthetic = false;           ///< its GPUs were read from a tree made for tests
  std::string berth;                ///< version of Berth that wrote the record
};

/// The maximal number of records of an image; the oldest are dropped first.
inline constexpr size_t kMaxRuns = 64;

/// Errors: corrupt (a date, version or name that is not in the form that Berth writes).
Result<void> check(const RunRecord& record);

/// Adds a record. Of two records with the same node and outcome, only the newer one is kept. The
/// result is sorted by time and has at most kMaxRuns records.
void add_run(std::vector<RunRecord>& runs, RunRecord record);

/// The leading dotted numbers of a kernel's release: "6.18.5-1-amd64" → "6.18.5".
std::string_view plain_release(std::string_view release);

void fields(auto& v, RunGpu& g) {
  v.required("vendor", g.vendor);
  v.optional("model", g.model);
  v.optional("compute_capability", g.compute_capability);
  v.optional("architecture", g.architecture);
}

void fields(auto& v, RunCpu& c) {
  v.required("microarchitecture", c.microarchitecture);
  v.optional("level", c.level);
}

void fields(auto& v, RunDriver& d) {
  v.required("kind", d.kind);
  v.optional("version", d.version);
}

void fields(auto& v, RunRecord& r) {
  v.required("time", r.time);
  v.required("exit", r.exit);
  v.required("own_command", r.own_command);
  v.required("user_land", r.user_land);
  v.optional("gpus", r.gpus);
  v.required("architecture", r.architecture);
  v.required("cpu", r.cpu);
  v.optional("kernel", r.kernel);
  v.optional("driver", r.driver);
  v.optional("synthetic", r.synthetic);
  v.optional("berth", r.berth);
}

}  // namespace berth::match
