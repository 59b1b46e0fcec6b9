// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/berth/verb.hpp"
#include "engine/mpi_launch.hpp"
#include "engine/network.hpp"
#include "engine/request.hpp"

/// The flags that describe a container: those of `run` and `create`.
namespace berth::cli {

/// What the flags fill: members of the request where one value is enough, and what has to wait for
/// the others or for the caller's directory.
struct RequestOptions {
  engine::RunRequest request;
  engine::RunCall call;
  std::vector<std::string> environment;
  std::vector<std::string> env_files;
  std::optional<std::string> environment_file;  ///< --environment
  std::vector<std::string> label_files;
  std::vector<std::string> labels;
  std::vector<std::string> devices;
  std::vector<std::string> volumes;
  std::vector<std::string> mounts;
  std::vector<std::string> tmpfs;
  engine::NetworkFlags network;
  engine::MpiFlags mpi;
  std::string pull = "missing";
  std::string gpu_driver;
  bool immutable = false;
  bool rootfs = false;
  std::string runtime;
  bool no_trust = true;  ///< --disable-content-trust
};

/// The flags, in the order of the alphabet.
void add_request_flags(FlagTable& table, RequestOptions& options);
void sort_flags(FlagTable& table);

inline constexpr std::string_view kNoAddresses = "networks give addresses by themselves";
/// Flags of docker and others that Berth does not have, and what does the same here.
inline constexpr Elsewhere kRequestElsewhere[] = {
    {"bind", "-v SOURCE:DESTINATION"},
    {"cpu-count", "--cpus", "it is for Windows"},
    {"cpu-percent", "--cpus", "it is for Windows"},
    {"edf", "--environment FILE"},
    {"io-maxbandwidth", "--device-read-bps and --device-write-bps", "it is for Windows"},
    {"io-maxiops", "--device-read-iops and --device-write-iops", "it is for Windows"},
    {"ip", "", kNoAddresses},
    {"ip6", "", kNoAddresses},
    {"isolation", "", "there is one isolation on Linux"},
    {"kernel-memory", "--memory, which counts the kernel's memory too"},
    {"link", "--network container:NAME", "containers are not linked, they share a network"},
    {"link-local-ip", "", kNoAddresses},
    {"mac-address", "", kNoAddresses},
    {"network-alias", "--add-host NAME:ADDRESS in the other container"},
    {"nv", "--gpus all"},
    {"nvccli", "--gpus all"},
    {"rocm", "--gpus all,driver=amd"},
    {"storage-opt", "--tmpfs TARGET:size=BYTES", "the store has no quotas"},
    {"use-api-socket", "", "there is no daemon and so no socket"},
    {"volume-driver", "", "volumes are local"},
};

/// What stands before the command: an image, unless an environment file may name it.
Arity request_arity(const RequestOptions& options);

/// "The default network is 'host' here: a batch job." and a newline; "" where the policy cannot be
/// read.
std::string network_footnote(const engine::Environment& environment, const std::string& config);

/// The container whose namespaces the flags name, or "": Command::beside.
std::string container_beside(const RequestOptions& options);

/// Completes `options.request` and `options.call` by the flags that are more than text;
/// `arguments`: the image, where no environment file names it, and the command. Nothing of the
/// machine is looked at but the files that flags name, and the containers. Errors: usage,
/// not_found, and those of opening such a file.
Result<void> read_request(const Session& session, std::vector<std::string> arguments,
                          RequestOptions& options);

}  // namespace berth::cli
