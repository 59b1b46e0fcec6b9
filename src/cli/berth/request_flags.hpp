// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/berth/elsewhere.hpp"
#include "cli/berth/verb.hpp"
#include "engine/decide/mpi_launch.hpp"
#include "engine/decide/resolve.hpp"
#include "engine/network/network.hpp"
#include "engine/request/request.hpp"

/// The flags that describe a container: those of `run` and `create`.
namespace berth::cli {

/// Where the flags store their values. Most set a member of the request. A value that depends on
/// other flags or on the working directory is kept here until it is complete.
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
  std::string cgroups;                         ///< podman's --cgroups; no effect here
  std::vector<std::string> hooks_directories;  ///< podman's; only NVIDIA's hook counts
  bool no_trust = true;                        ///< --disable-content-trust
  // Only for `run`:
  bool dry_run = false;
  bool explain = false;
  std::string format = "text";
};

/// Adds the flags in alphabetical order.
void add_request_flags(FlagTable& table, RequestOptions& options);
/// The name of the container that --replace removes, or "". For Command::replaced.
std::string replaced_container(const RequestOptions& options);
void sort_flags(FlagTable& table);
/// The flags for limits, which have the same meaning for `update`.
FlagTable limit_flags(engine::Limits& limits);

inline constexpr std::string_view kNoAddresses = "networks assign addresses themselves";
/// Flags of docker and others that Berth lacks, with their equivalents.
inline constexpr Elsewhere kRequestElsewhere[] = {
    {"B", "-v SOURCE:DESTINATION"},
    {"C", "leave it out", "the host's files are not visible anyway"},
    {"H", "-v DIR:/root"},
    {"S", "--tmpfs DIR"},
    {"V", "-v SOURCE:DESTINATION"},
    {"W", "leave it out", "a container is writable already"},
    {"add-caps", "--cap-add CAPABILITY"},
    {"allow-setuid", "leave it out", "it has no equivalent here"},
    {"app", "berth run IMAGE COMMAND", "images contain no apps"},
    {"apply-cgroups", "--memory, --cpus and --pids-limit"},
    {"arch", "--platform OS/ARCH"},
    {"authfile", "REGISTRY_AUTH_FILE=FILE berth run"},
    {"b", "-v SOURCE:DESTINATION"},
    {"bind", "-v SOURCE:DESTINATION"},
    {"bindhome", "--userns keep-id -v \"$HOME:$HOME\""},
    {"cd", "-w DIR"},
    {"cdi-dirs", "berth --cdi-spec-dir DIR run"},
    {"cert-dir", "--tls-ca FILE, or ~/.config/containers/certs.d"},
    {"cgroup-conf", "--memory, --cpus or --pids-limit", "a limit has a flag of its own"},
    {"ch-ssh", "leave it out", "it has no equivalent here"},
    {"chrootdirs", "leave it out", "COMMAND sets up its own root"},
    {"cleanenv", "leave it out", "the caller's environment is not passed on anyway"},
    {"clearenv", "leave it out", "the caller's environment is not passed on anyway"},
    {"compat", "leave it out", "containers are like docker's already"},
    {"conmon-pidfile", "--cidfile FILE, and berth inspect -f '{{.State.Pid}}' CONTAINER"},
    {"contain", "leave it out", "the host's files are not visible anyway"},
    {"containall", "leave it out", "the host's files are not visible anyway"},
    {"container-entrypoint", "leave it out", "the image's entrypoint is run already"},
    {"container-entrypoint-log", "leave it out", "it is an option of srun"},
    {"container-env", "-e NAME", "it is an option of srun"},
    {"container-image", "berth run [FLAGS] IMAGE",
     "IMAGE is an argument, and this an option of srun"},
    {"container-mount-home", "-v \"$HOME:$HOME\"", "it is an option of srun"},
    {"container-mounts", "-v SOURCE:DESTINATION", "it is an option of srun"},
    {"container-name", "--name NAME", "it is an option of srun"},
    {"container-readonly", "--read-only", "it is an option of srun"},
    {"container-remap-root", "-u 0", "it is an option of srun"},
    {"container-save", "berth commit NAME IMAGE && berth save --format sqsh -o FILE IMAGE",
     "it is an option of srun"},
    {"container-workdir", "-w DIR", "it is an option of srun"},
    {"container-writable", "leave it out", "a container is writable already"},
    {"containerauth", "leave it out", "only the image's users and files are visible anyway"},
    {"cpu-count", "--cpus", "it is for Windows"},
    {"cpu-percent", "--cpus", "it is for Windows"},
    {"creds", "berth login REGISTRY"},
    {"cuda-mpi", "--mpi host"},
    {"cvmfs", "-v /cvmfs:/cvmfs:ro"},
    {"cwd", "-w DIR"},
    {"decryption-key", "skopeo copy --decryption-key KEY docker://IMAGE dir:DIR",
     "encrypted layers are not read"},
    {"disable-cache", "leave it out", "it has no equivalent here"},
    {"docker-host", "docker save IMAGE | berth load"},
    {"docker-login", "berth login REGISTRY"},
    {"dri", "--device /dev/dri"},
    {"drop-caps", "--cap-drop CAPABILITY"},
    {"edf", "--environment FILE"},
    {"env-host", "-e NAME for each variable"},
    {"env-merge", "-e NAME=VALUE", "values are not merged with the image's"},
    {"env-no-expand", "leave it out", "it has no equivalent here"},
    {"f", "leave it out", "a user is root inside already, without being root outside"},
    {"fakeroot", "leave it out", "a user is root inside already, without being root outside"},
    {"feature", "leave it out", "it has no equivalent here"},
    {"fusemount", "-v DIR:DESTINATION, of a file system that is mounted before"},
    {"g", "-u USER:GROUP"},
    {"gid", "-u USER:GROUP"},
    {"gidmap", "--userns keep-id, or keep-id:uid=N,gid=N", "all ids of a user are mapped together"},
    {"gpu", "--gpus all"},
    {"group-entry", "-v FILE:/etc/group:ro"},
    {"health-log-destination", "leave it out", "the last results are in berth inspect"},
    {"health-max-log-count", "leave it out", "the last results are in berth inspect"},
    {"health-max-log-size", "leave it out", "the last results are in berth inspect"},
    {"health-on-failure", "--restart, and berth inspect -f '{{.State.Health.Status}}' CONTAINER",
     "there is no action on an unhealthy container"},
    {"health-start-interval", "--health-interval TIME"},
    {"health-startup-cmd", "--health-cmd, with --health-start-period TIME"},
    {"health-startup-interval", "--health-interval TIME"},
    {"health-startup-retries", "--health-cmd, with --health-start-period TIME"},
    {"health-startup-success", "--health-cmd, with --health-start-period TIME"},
    {"health-startup-timeout", "--health-cmd, with --health-start-period TIME"},
    {"home", "-v DIR:/root"},
    {"hostauth", "--userns keep-id -v \"$HOME:$HOME\""},
    {"hostenv", "-e NAME for each variable"},
    {"hosts-file", "-v FILE:/etc/hosts:ro"},
    {"hostuser", "-v /etc/passwd:/etc/passwd:ro"},
    {"http-proxy", "-e http_proxy to pass it on",
     "the caller's variables are not passed on automatically"},
    {"httpproxy", "-e http_proxy to pass it on",
     "the caller's variables are not passed on automatically"},
    {"ignore-fakeroot-command", "leave it out", "it has no equivalent here"},
    {"ignore-subuid", "leave it out", "it has no equivalent here"},
    {"ignore-userns", "leave it out", "it has no equivalent here"},
    {"image", "berth run [FLAGS] IMAGE", "IMAGE is an argument"},
    {"image-volume", "--tmpfs DIR for each volume of the image",
     "the image's volumes become volumes"},
    {"init-ctr", "berth run IMAGE COMMAND before the other", "there are no pods"},
    {"init-path", "--init", "the first process of --init is Berth's own"},
    {"intel-hpu", "--device /dev/accel"},
    {"io-maxbandwidth", "--device-read-bps and --device-write-bps", "it is for Windows"},
    {"io-maxiops", "--device-read-iops and --device-write-iops", "it is for Windows"},
    {"ip6", "", "networks have only IPv4"},
    {"j", "berth run -d --name NAME, and berth exec NAME COMMAND for the others"},
    {"join", "berth run -d --name NAME, and berth exec NAME COMMAND for the others"},
    {"join-ct", "berth run -d --name NAME, and berth exec NAME COMMAND for the others"},
    {"join-pid", "berth run -d --name NAME, and berth exec NAME COMMAND for the others"},
    {"join-tag", "berth run -d --name NAME, and berth exec NAME COMMAND for the others"},
    {"keep-privs", "--privileged"},
    {"kernel", "leave it out", "it has no equivalent here"},
    {"kernel-memory", "--memory, which counts the kernel's memory too",
     "Linux has had no such limit since 5.16"},
    {"link", "berth network create app, and --network app for both",
     "containers of a network find each other by name"},
    {"link-local-ip", "", kNoAddresses},
    {"location", "--rootfs DIR"},
    {"module", "--gpus all or --mpi auto"},
    {"n", "--network MODE"},
    {"nccl", "--mpi host"},
    {"netns-path", "--network container:NAME"},
    {"network-args", "-p PORT:PORT, or --network NAME"},
    {"no-container-entrypoint", "--entrypoint ''", "it is an option of srun"},
    {"no-container-mount-home", "leave it out", "HOME is not mounted anyway"},
    {"no-container-remap-root", "--userns keep-id", "it is an option of srun"},
    {"no-eval", "leave it out", "Berth does not do this anyway"},
    {"no-home", "leave it out", "the host's home directory is not visible anyway"},
    {"no-hostname", "-v FILE:/etc/hostname:ro"},
    {"no-hosts", "-v FILE:/etc/hosts:ro"},
    {"no-https", "--insecure-registry HOST"},
    {"no-init", "leave it out", "Berth does not do this anyway"},
    {"no-mount", "leave it out", "Berth does not do this anyway"},
    {"no-passwd", "leave it out", "the image's /etc/passwd is kept already"},
    {"no-pid", "--pid host"},
    {"no-privs", "--cap-drop ALL"},
    {"no-tmp-sandbox", "leave it out", "it has no equivalent here"},
    {"no-umask", "leave it out", "Berth does not do this anyway"},
    {"nobanner", "leave it out", "it has no equivalent here"},
    {"nohttps", "--insecure-registry HOST"},
    {"nometa", "leave it out", "only the image's users and files are visible anyway"},
    {"nosysdirs", "leave it out", "only the image's users and files are visible anyway"},
    {"novol", "leave it out", "only the image's users and files are visible anyway"},
    {"nv", "--gpus all"},
    {"nvccli", "--gpus all"},
    {"o", "--name NAME without --rm, and berth start NAME",
     "a container keeps what it writes until it is removed"},
    {"openmpi-pmi2", "--mpi host"},
    {"openmpi-pmix", "--mpi host"},
    {"os", "--platform OS/ARCH"},
    {"overlay", "--name NAME without --rm, and berth start NAME",
     "a container keeps what it writes until it is removed"},
    {"passphrase", "skopeo copy --decryption-key KEY docker://IMAGE dir:DIR",
     "encrypted layers are not read"},
    {"passwd", "-v FILE:/etc/passwd:ro"},
    {"passwd-entry", "-v FILE:/etc/passwd:ro"},
    {"pem-path", "skopeo copy --decryption-key KEY docker://IMAGE dir:DIR",
     "encrypted layers are not read"},
    {"personality", "setarch in COMMAND"},
    {"pidfile", "--cidfile FILE, and berth inspect -f '{{.State.Pid}}' CONTAINER"},
    {"pod", "--network container:NAME --ipc container:NAME", "there are no pods"},
    {"pod-id-file", "berth run IMAGE COMMAND before the other", "there are no pods"},
    {"preserve-fd", "-i for standard input, -v for a file", "descriptors of the caller are closed"},
    {"preserve-fds", "-i for standard input, -v for a file",
     "descriptors of the caller are closed"},
    {"private-tmp", "leave it out", "/tmp is the container's own already"},
    {"pwd", "-w DIR"},
    {"rdt-class", "", "caches and memory bandwidth are not partitioned"},
    {"read-only-tmpfs", "--read-only --tmpfs /tmp --tmpfs /run"},
    {"requires", "berth start OTHER first"},
    {"retry", "leave it out", "transfers are retried automatically"},
    {"retry-delay", "leave it out", "transfers are retried automatically"},
    {"rmi", "berth rmi IMAGE afterwards"},
    {"rocm", "--gpus all,driver=amd"},
    {"runscript-timeout", "leave it out", "it has no equivalent here"},
    {"s", "--entrypoint SHELL"},
    {"scratch", "--tmpfs DIR"},
    {"sdnotify", "leave it out", "systemd is not notified"},
    {"seccomp", "--security-opt seccomp=FILE"},
    {"seccomp-policy", "--security-opt seccomp=FILE"},
    {"secret", "-v FILE:/run/secrets/NAME:ro", "there is no secret store"},
    {"security", "--security-opt seccomp=FILE or apparmor=NAME"},
    {"set-env", "-e NAME=VALUE"},
    {"sharens", "leave it out", "Berth does not do this anyway"},
    {"shell", "--entrypoint SHELL"},
    {"shm-size-systemd", "--tmpfs /run:size=BYTES"},
    {"storage", "berth --root DIR run"},
    {"storage-opt", "--tmpfs TARGET:size=BYTES", "the store has no quotas"},
    {"subgidname", "--userns keep-id, or keep-id:uid=N,gid=N",
     "all ids of a user are mapped together"},
    {"subuidname", "--userns keep-id, or keep-id:uid=N,gid=N",
     "all ids of a user are mapped together"},
    {"systemd", "leave it out", "an image with systemd starts like any other"},
    {"timeout", "timeout SECONDS berth run IMAGE"},
    {"tls-verify", "--insecure-registry HOST"},
    {"tmp-sandbox", "leave it out", "it has no equivalent here"},
    {"tz", "-e TZ=ZONE"},
    {"uid", "-u USER"},
    {"uidmap", "--userns keep-id, or keep-id:uid=N,gid=N", "all ids of a user are mapped together"},
    {"umask", "sh -c 'umask 0027; exec COMMAND'"},
    {"underlay", "leave it out", "Berth does not do this anyway"},
    {"unsafe", "leave it out", "it has no equivalent here"},
    {"unset-env", "env -u NAME COMMAND"},
    {"unsetenv", "env -u NAME COMMAND"},
    {"unsetenv-all", "env -i COMMAND"},
    {"unsquash", "leave it out", "Berth does not do this anyway"},
    {"use-api-socket", "", "there is no daemon and so no socket"},
    {"variant", "--platform OS/ARCH/VARIANT"},
    {"vm", "leave it out", "a container is not a virtual machine"},
    {"volume-driver", "", "volumes are in the store, and there are no plugins"},
    {"warnings", "leave it out", "it has no equivalent here"},
    {"writable", "leave it out", "a container is writable already"},
    {"writable-tmpfs", "leave it out", "a container is writable already"},
    {"write", "leave it out", "a container is writable already"},
    {"write-fake", "leave it out", "a container is writable already"},
};

/// How many arguments the flags leave: an image, unless an environment file may name it.
Arity request_arity(const RequestOptions& options);

/// A line such as "The default network here is 'host' (a batch job)."; "" if the policy is
/// unreadable.
std::string network_footnote(const engine::Environment& environment, const std::string& config);

/// The verb `run` or `create`: sets what both have in common.
constexpr Verb verb_with_image(VerbText text, Command (*command)()) {
  return {.text = text,
          .arity = {1},
          .needs = engine::Needs::user_namespace,
          .flags_end = FlagsEnd::at_first_argument,
          .elsewhere = kRequestElsewhere,
          .arguments_elsewhere = run_elsewhere,
          .error_status = 125,
          .footnote = network_footnote,
          .command = command};
}

/// The container with the namespaces that the flags request, or "". For Command::beside.
std::string container_beside(const RequestOptions& options);

/// The request of the flags and of `arguments`: the image, unless an environment file names it, and
/// the command. Reads the files that flags name, and nothing else on the machine.
/// Errors: usage, not_found, and those of opening such a file.
Result<engine::Asked> read_request(const Session& session, RequestOptions options,
                                   std::vector<std::string> arguments);

}  // namespace berth::cli
