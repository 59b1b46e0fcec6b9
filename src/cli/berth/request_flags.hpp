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
    {"C", "leave it out", "nothing of the host is seen already"},
    {"H", "-v DIR:/root"},
    {"S", "--tmpfs DIR"},
    {"V", "-v SOURCE:DESTINATION"},
    {"W", "leave it out", "a container can be written to anyway"},
    {"add-caps", "--cap-add CAPABILITY"},
    {"allow-setuid", "leave it out", "there is nothing of the sort to choose"},
    {"app", "berth run IMAGE COMMAND", "images have no apps of their own"},
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
    {"ch-ssh", "leave it out", "there is nothing of the sort to choose"},
    {"chrootdirs", "leave it out", "COMMAND makes its own root's files"},
    {"cleanenv", "leave it out", "nothing of the caller's environment enters already"},
    {"clearenv", "leave it out", "nothing of the caller's environment enters already"},
    {"compat", "leave it out", "containers are like docker's already"},
    {"conmon-pidfile", "--cidfile FILE, and berth inspect -f '{{.State.Pid}}' CONTAINER"},
    {"contain", "leave it out", "nothing of the host is seen already"},
    {"containall", "leave it out", "nothing of the host is seen already"},
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
    {"container-writable", "leave it out", "a container can be written to already"},
    {"containerauth", "leave it out", "the image's users and files are all that is seen already"},
    {"cpu-count", "--cpus", "it is for Windows"},
    {"cpu-percent", "--cpus", "it is for Windows"},
    {"creds", "berth login REGISTRY"},
    {"cuda-mpi", "--mpi host"},
    {"cvmfs", "-v /cvmfs:/cvmfs:ro"},
    {"cwd", "-w DIR"},
    {"decryption-key", "skopeo copy --decryption-key KEY docker://IMAGE dir:DIR",
     "encrypted layers are not read"},
    {"disable-cache", "leave it out", "there is nothing of the sort to choose"},
    {"docker-host", "docker save IMAGE | berth load"},
    {"docker-login", "berth login REGISTRY"},
    {"dri", "--device /dev/dri"},
    {"drop-caps", "--cap-drop CAPABILITY"},
    {"edf", "--environment FILE"},
    {"env-host", "-e NAME for each variable"},
    {"env-merge", "-e NAME=VALUE", "the image's value is not put into another one"},
    {"env-no-expand", "leave it out", "there is nothing of the sort to choose"},
    {"f", "leave it out", "root inside is already nobody's root outside, for a user"},
    {"fakeroot", "leave it out", "root inside is already nobody's root outside, for a user"},
    {"feature", "leave it out", "there is nothing of the sort to choose"},
    {"fusemount", "-v DIR:DESTINATION, of a file system that is mounted before"},
    {"g", "-u USER:GROUP"},
    {"gid", "-u USER:GROUP"},
    {"gidmap", "--userns keep-id, or keep-id:uid=N,gid=N", "a user's ids are mapped as a whole"},
    {"gpu", "--gpus all"},
    {"group-entry", "-v FILE:/etc/group:ro"},
    {"health-log-destination", "leave it out", "the last results are in berth inspect"},
    {"health-max-log-count", "leave it out", "the last results are in berth inspect"},
    {"health-max-log-size", "leave it out", "the last results are in berth inspect"},
    {"health-on-failure", "--restart, and berth inspect -f '{{.State.Health.Status}}' CONTAINER",
     "nothing happens to a container that is unhealthy"},
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
    {"http-proxy", "-e http_proxy to pass it on", "no variable of the caller enters by itself"},
    {"httpproxy", "-e http_proxy to pass it on", "no variable of the caller enters by itself"},
    {"ignore-fakeroot-command", "leave it out", "there is nothing of the sort to choose"},
    {"ignore-subuid", "leave it out", "there is nothing of the sort to choose"},
    {"ignore-userns", "leave it out", "there is nothing of the sort to choose"},
    {"image", "berth run [FLAGS] IMAGE", "IMAGE is an argument"},
    {"image-volume", "--tmpfs DIR for each volume of the image", "the image's volumes are volumes"},
    {"init-ctr", "berth run IMAGE COMMAND before the other", "there are no pods"},
    {"init-path", "--init", "the first process of --init is Berth's own"},
    {"intel-hpu", "--device /dev/accel"},
    {"io-maxbandwidth", "--device-read-bps and --device-write-bps", "it is for Windows"},
    {"io-maxiops", "--device-read-iops and --device-write-iops", "it is for Windows"},
    {"ip6", "", "networks have IPv4 alone"},
    {"j", "berth run -d --name NAME, and berth exec NAME COMMAND for the others"},
    {"join", "berth run -d --name NAME, and berth exec NAME COMMAND for the others"},
    {"join-ct", "berth run -d --name NAME, and berth exec NAME COMMAND for the others"},
    {"join-pid", "berth run -d --name NAME, and berth exec NAME COMMAND for the others"},
    {"join-tag", "berth run -d --name NAME, and berth exec NAME COMMAND for the others"},
    {"keep-privs", "--privileged"},
    {"kernel", "leave it out", "there is nothing of the sort to choose"},
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
    {"no-container-mount-home", "leave it out", "HOME is not mounted already"},
    {"no-container-remap-root", "--userns keep-id", "it is an option of srun"},
    {"no-eval", "leave it out", "nothing of the sort is done already"},
    {"no-home", "leave it out", "the home of the host is not seen already"},
    {"no-hostname", "-v FILE:/etc/hostname:ro"},
    {"no-hosts", "-v FILE:/etc/hosts:ro"},
    {"no-https", "--insecure-registry HOST"},
    {"no-init", "leave it out", "nothing of the sort is done already"},
    {"no-mount", "leave it out", "nothing of the sort is done already"},
    {"no-passwd", "leave it out", "the image's /etc/passwd is kept already"},
    {"no-pid", "--pid host"},
    {"no-privs", "--cap-drop ALL"},
    {"no-tmp-sandbox", "leave it out", "there is nothing of the sort to choose"},
    {"no-umask", "leave it out", "nothing of the sort is done already"},
    {"nobanner", "leave it out", "there is nothing of the sort to choose"},
    {"nohttps", "--insecure-registry HOST"},
    {"nometa", "leave it out", "the image's users and files are all that is seen already"},
    {"nosysdirs", "leave it out", "the image's users and files are all that is seen already"},
    {"novol", "leave it out", "the image's users and files are all that is seen already"},
    {"nv", "--gpus all"},
    {"nvccli", "--gpus all"},
    {"o", "--name NAME without --rm, and berth start NAME",
     "what a container writes is kept until it is removed"},
    {"openmpi-pmi2", "--mpi host"},
    {"openmpi-pmix", "--mpi host"},
    {"os", "--platform OS/ARCH"},
    {"overlay", "--name NAME without --rm, and berth start NAME",
     "what a container writes is kept until it is removed"},
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
    {"rdt-class", "", "caches and memory bandwidth are not divided"},
    {"read-only-tmpfs", "--read-only --tmpfs /tmp --tmpfs /run"},
    {"requires", "berth start OTHER before"},
    {"retry", "leave it out", "a transfer is tried again by itself"},
    {"retry-delay", "leave it out", "a transfer is tried again by itself"},
    {"rmi", "berth rmi IMAGE afterwards"},
    {"rocm", "--gpus all,driver=amd"},
    {"runscript-timeout", "leave it out", "there is nothing of the sort to choose"},
    {"s", "--entrypoint SHELL"},
    {"scratch", "--tmpfs DIR"},
    {"sdnotify", "leave it out", "systemd is not told"},
    {"seccomp", "--security-opt seccomp=FILE"},
    {"seccomp-policy", "--security-opt seccomp=FILE"},
    {"secret", "-v FILE:/run/secrets/NAME:ro", "there is no store of secrets"},
    {"security", "--security-opt seccomp=FILE or apparmor=NAME"},
    {"set-env", "-e NAME=VALUE"},
    {"sharens", "leave it out", "nothing of the sort is done already"},
    {"shell", "--entrypoint SHELL"},
    {"shm-size-systemd", "--tmpfs /run:size=BYTES"},
    {"storage", "berth --root DIR run"},
    {"storage-opt", "--tmpfs TARGET:size=BYTES", "the store has no quotas"},
    {"subgidname", "--userns keep-id, or keep-id:uid=N,gid=N",
     "a user's ids are mapped as a whole"},
    {"subuidname", "--userns keep-id, or keep-id:uid=N,gid=N",
     "a user's ids are mapped as a whole"},
    {"systemd", "leave it out", "an image whose command is an init starts as any other"},
    {"timeout", "timeout SECONDS berth run IMAGE"},
    {"tls-verify", "--insecure-registry HOST"},
    {"tmp-sandbox", "leave it out", "there is nothing of the sort to choose"},
    {"tz", "-e TZ=ZONE"},
    {"uid", "-u USER"},
    {"uidmap", "--userns keep-id, or keep-id:uid=N,gid=N", "a user's ids are mapped as a whole"},
    {"umask", "sh -c 'umask 0027; exec COMMAND'"},
    {"underlay", "leave it out", "nothing of the sort is done already"},
    {"unsafe", "leave it out", "there is nothing of the sort to choose"},
    {"unset-env", "env -u NAME COMMAND"},
    {"unsetenv", "env -u NAME COMMAND"},
    {"unsetenv-all", "env -i COMMAND"},
    {"unsquash", "leave it out", "nothing of the sort is done already"},
    {"use-api-socket", "", "there is no daemon and so no socket"},
    {"variant", "--platform OS/ARCH/VARIANT"},
    {"vm", "leave it out", "a container is no virtual machine"},
    {"volume-driver", "", "volumes lie in the store, there are no plugins"},
    {"warnings", "leave it out", "there is nothing of the sort to choose"},
    {"writable", "leave it out", "a container can be written to anyway"},
    {"writable-tmpfs", "leave it out", "a container can be written to already"},
    {"write", "leave it out", "a container can be written to anyway"},
    {"write-fake", "leave it out", "a container can be written to already"},
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
