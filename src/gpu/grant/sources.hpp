// SPDX-License-Identifier: Apache-2.0
// Combines everything that can request GPUs into one request. Flags override everything; an image's
// variables grant nothing unless the policy allows it or berth was called as nvidia-docker;
// containers in a job get no GPUs outside of the job. See docs/decisions/0025 and 0026.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/names.hpp"
#include "base/result.hpp"
#include "gpu/grant/request.hpp"
#include "policy/policy.hpp"

namespace berth::gpu {

/// The name under which the user called the program.
enum class Program { berth, docker, nvidia_docker };
constexpr EnumNames<Program, 3> names_of(std::type_identity<Program>) {
  return {{{Program::berth, "berth"},
           {Program::docker, "docker"},
           {Program::nvidia_docker, "nvidia-docker"}}};
}

/// From argv[0]: "/usr/bin/nvidia-docker" is nvidia_docker.
Program program_of(std::string_view argv0);

/// Everything that can request GPUs.
struct Sources {
  std::optional<std::string> gpus;            ///< the value of --gpus
  std::vector<std::string> devices;           ///< CDI names of --device
  std::vector<std::string> annotations;       ///< CDI names of annotations
  std::vector<std::string> volumes;           ///< paths of /dev/null mounts below kVolumeDevices
  std::vector<std::string> image;             ///< "NAME=value" of the image
  std::vector<std::string> typed;             ///< from --env; a bare "NAME" takes the inherited
                                              ///< value
  std::vector<std::string> inherited;         ///< "NAME=value" for the bare names of `typed`
  std::map<std::string, std::string> labels;  ///< of the image
  std::vector<std::string> caller;            ///< the environment in which berth was called
  Program program = Program::berth;
  bool privileged = false;     ///< CAP_SYS_ADMIN in the bounding set
  bool nodes_by_hand = false;  ///< GPU nodes given by path: not granted here, but limited
};

/// The outcome of one source, for `berth explain`.
struct Verdict {
  std::string source;  ///< "--gpus", "NVIDIA_VISIBLE_DEVICES of the image"
  std::string text;    ///< "device=0,2"
  bool used = false;
  std::string why;

  bool operator==(const Verdict&) const = default;
};

struct Choice {
  Request request;
  std::vector<std::string> cdi_names;  ///< to be resolved in addition to `request`
  std::vector<Verdict> verdicts;
  std::vector<std::string> warnings;
  /// Variables that the user passed on by name (`--env NAME`) with the value of a job: the value
  /// means nothing in the container.
  std::vector<std::string> withdrawn;
  /// Only the scheduler requests GPUs. A machine without a driver is not an error then.
  bool by_scheduler_alone = false;
  policy::Gpu site;  ///< the policy that was applied

  bool grants() const { return request.want != Request::Want::none || !cdi_names.empty(); }
};

/// Combines the sources. Pure, and cheap if nothing is requested: the machine is not examined.
/// Errors: usage (an invalid value of --gpus or of the policy, even if it is not used; a MIG right
/// requested by a container without privileges), denied (a capability that the policy does not
/// allow).
Result<Choice> choose(const Sources& sources, const policy::Gpu& policy);

}  // namespace berth::gpu
