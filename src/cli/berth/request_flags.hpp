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
  std::string cgroups;                         ///< podman's; no meaning here
  std::vector<std::string> hooks_directories;  ///< the same
  bool no_trust = true;                        ///< --disable-content-trust
};

/// The flags, in the order of the alphabet.
void add_request_flags(FlagTable& table, RequestOptions& options);
/// The name that --replace takes from another container, or "".
std::string replaced_container(const RequestOptions& options);
void sort_flags(FlagTable& table);

inline constexpr std::string_view kNoAddresses = "networks give addresses by themselves";
/// Flags of docker and others that Berth does not have, and what does the same here.
inline constexpr Elsewhere kRequestElsewhere[] = {
    {"B", "-v SOURCE:DESTINATION"},
    {"W", "leave it out", "a container can be written to anyway"},
    {"b", "-v SOURCE:DESTINATION"},
    {"bind", "-v SOURCE:DESTINATION"},
    {"bindhome", "--userns keep-id -v \"$HOME:$HOME\""},
    {"cd", "-w DIR"},
    {"cleanenv", "leave it out", "nothing of the caller's environment enters already"},
    {"containall", "leave it out", "nothing of the host is seen already"},
    {"container-env", "-e NAME", "it is an option of srun"},
    {"container-image", "berth run [FLAGS] IMAGE",
     "IMAGE is an argument, and this an option of srun"},
    {"container-mount-home", "-v \"$HOME:$HOME\"", "it is an option of srun"},
    {"container-mounts", "-v SOURCE:DESTINATION", "it is an option of srun"},
    {"container-name", "--name NAME", "it is an option of srun"},
    {"container-remap-root", "-u 0", "it is an option of srun"},
    {"container-workdir", "-w DIR", "it is an option of srun"},
    {"container-writable", "leave it out", "a container can be written to already"},
    {"cpu-count", "--cpus", "it is for Windows"},
    {"cpu-percent", "--cpus", "it is for Windows"},
    {"cuda-mpi", "--mpi host"},
    {"edf", "--environment FILE"},
    {"fakeroot", "leave it out", "root inside is already nobody's root outside, for a user"},
    {"gpu", "--gpus all"},
    {"home", "-v DIR:/root"},
    {"hostauth", "--userns keep-id -v \"$HOME:$HOME\""},
    {"hostenv", "-e NAME for each variable"},
    {"image", "berth run [FLAGS] IMAGE", "IMAGE is an argument"},
    {"io-maxbandwidth", "--device-read-bps and --device-write-bps", "it is for Windows"},
    {"io-maxiops", "--device-read-iops and --device-write-iops", "it is for Windows"},
    {"ip6", "", "networks have IPv4 alone"},
    {"isolation", "", "Linux has one isolation, only Windows has a choice"},
    {"kernel-memory", "--memory, which counts the kernel's memory too",
     "Linux has had no such limit since 5.16"},
    {"link", "berth network create app, and --network app for both",
     "containers of a network find each other by name"},
    {"link-local-ip", "", kNoAddresses},
    {"module", "--gpus all or --mpi auto"},
    {"nccl", "--mpi host"},
    {"no-container-mount-home", "leave it out", "HOME is not mounted already"},
    {"no-home", "leave it out", "the home of the host is not seen already"},
    {"nv", "--gpus all"},
    {"nvccli", "--gpus all"},
    {"pod", "--network container:NAME --ipc container:NAME", "there are no pods"},
    {"pwd", "-w DIR"},
    {"rocm", "--gpus all,driver=amd"},
    {"storage-opt", "--tmpfs TARGET:size=BYTES", "the store has no quotas"},
    {"tz", "-e TZ=ZONE"},
    {"use-api-socket", "", "there is no daemon and so no socket"},
    {"volume-driver", "", "volumes lie in the store, there are no plugins"},
    {"writable-tmpfs", "leave it out", "a container can be written to already"},
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
