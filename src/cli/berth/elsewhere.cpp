// SPDX-License-Identifier: Apache-2.0
#include "cli/berth/elsewhere.hpp"

#include <iterator>

#include "base/text.hpp"

namespace berth::cli {
namespace {

/// A verb of another engine that Berth lacks, and its equivalent.
struct VerbElsewhere {
  std::string_view name, why, here;
};
constexpr std::string_view kNoIndex = "an index is created together with its images";
constexpr std::string_view kMakesIndex = "berth bake, or buildah manifest";
constexpr VerbElsewhere kVerbsElsewhere[] = {
    {"apparmor", "Berth has no AppArmor profile of its own", "--security-opt apparmor=NAME"},
    {"artifact", "only images are stored", "oras pull NAME"},
    {"auto-update", "containers are not updated automatically",
     "berth pull IMAGE, and berth run --replace --name NAME IMAGE"},
    {"batch", "an image is a file that berth runs",
     "berth save --format sqsh -o FILE IMAGE, and berth run ./FILE"},
    {"build-cache", "buildah keeps the build cache", "berth builder prune"},
    {"buildx bake", "Berth has its own bake file", "berth bake"},
    {"buildx create", "there is only one builder", "berth build"},
    {"buildx du", "there is only one builder", "berth system df"},
    {"buildx history", "builds are not recorded", "berth history IMAGE"},
    {"buildx imagetools", "an index is shown by another verb",
     "berth manifest inspect IMAGE, or berth match IMAGE"},
    {"buildx inspect", "there is only one builder", "berth build"},
    {"buildx install", "there is only one builder", "berth build"},
    {"buildx ls", "there is only one builder", "berth build"},
    {"buildx rm", "there is only one builder", "berth build"},
    {"buildx stop", "there is only one builder", "leave it out"},
    {"buildx uninstall", "there is only one builder", "berth build"},
    {"buildx use", "there is only one builder", "berth build"},
    {"buildx version", "there is only one builder", "berth version"},
    {"bundle", "an image is a file that berth runs",
     "berth save --format sqsh -o FILE IMAGE, and berth run ./FILE"},
    {"cache", "layers are kept by the images that have them", "berth image prune -a"},
    {"capability", "capabilities are given to a container", "--cap-add CAPABILITY"},
    {"checkpoint", "containers of berth are not checkpointed",
     "berth-runtime checkpoint, for a bundle of your own"},
    {"clone", "containers are not cloned", "berth commit CONTAINER IMAGE && berth create IMAGE"},
    {"compose", "Compose files are not supported",
     "docker compose or podman-compose with berth-runtime as their runtime"},
    {"config", "there is no swarm", "-v FILE:/path:ro"},
    {"container checkpoint", "containers of berth are not checkpointed",
     "berth-runtime checkpoint, for a bundle of your own"},
    {"container cleanup", "what a container leaves is removed when it ends",
     "berth container prune"},
    {"container clone", "containers are not cloned",
     "berth commit CONTAINER IMAGE && berth create IMAGE"},
    {"container init", "a container is set up when it starts", "berth start CONTAINER"},
    {"container mount", "other verbs reach a container's files",
     "berth cp, berth export, or berth image mount IMAGE DIR"},
    {"container restore", "containers of berth are not checkpointed",
     "berth-runtime checkpoint, for a bundle of your own"},
    {"container runlabel", "commands in labels are not run",
     "berth inspect IMAGE, and the command as it stands"},
    {"container umount", "other verbs reach a container's files",
     "berth cp, berth export, or berth image mount IMAGE DIR"},
    {"container unmount", "other verbs reach a container's files",
     "berth cp, berth export, or berth image mount IMAGE DIR"},
    {"context", "there is no daemon to choose", "ssh HOST berth ..."},
    {"daemon", "there is no daemon", "the same command without it"},
    {"debug", "other verbs look into a container",
     "berth exec -it CONTAINER sh, or berth run -it --pid container:CONTAINER IMAGE"},
    {"delete", "images and containers have separate verbs",
     "berth rmi IMAGE, or berth rm CONTAINER"},
    {"desktop", "there is no virtual machine", "Berth on the machine itself"},
    {"farm", "there is no daemon to choose", "ssh HOST berth ..."},
    {"generate", "systemd units and pods are not generated", "--restart, which needs no unit"},
    {"gestalt", "another verb shows what the machine can do", "berth doctor"},
    {"healthcheck", "health checks run automatically",
     "berth inspect -f '{{.State.Health.Status}}' CONTAINER"},
    {"image diff", "two images are not compared", "berth history IMAGE, or berth diff CONTAINER"},
    {"image scp", "images are copied to another machine through a pipe",
     "berth save IMAGE | ssh HOST berth load"},
    {"image sign", "signatures are made by cosign, and by berth bake",
     "cosign sign REGISTRY/IMAGE, or berth bake --sign-key FILE BAKE-FILE"},
    {"image tree", "layers are shown by another verb", "berth history IMAGE"},
    {"image trust", "no keys are kept for images", "match.keys of policy.toml"},
    {"image untag", "a name is removed like an image", "berth rmi NAME"},
    {"infohpc", "there is one configuration", "berth info"},
    {"init", "nothing is set up in advance",
     "berth create IMAGE, or a Containerfile of your own for berth build"},
    {"install", "Berth has nothing to install for a user", "berth doctor"},
    {"instance", "an instance is a container in the background",
     "berth run -d --name NAME IMAGE, berth ps, berth stop NAME"},
    {"key", "no keys are kept for images",
     "cosign generate-key-pair, and berth bake --sign-key FILE BAKE-FILE"},
    {"keyserver", "no keys are kept for images", "cosign public-key --key FILE"},
    {"kube", "pods are not supported", "berth-runtime under Kubernetes"},
    {"list", "containers and images have separate verbs", "berth ps -a, or berth images"},
    {"lookup", "an image is looked up by other verbs",
     "berth image exists IMAGE, or berth inspect IMAGE"},
    {"machine", "there is no virtual machine", "Berth on the machine itself"},
    {"manifest add", kNoIndex, kMakesIndex},
    {"manifest annotate", kNoIndex, kMakesIndex},
    {"manifest create", kNoIndex, kMakesIndex},
    {"manifest exists", "an image is looked up by another verb", "berth image exists IMAGE"},
    {"manifest push", kNoIndex, kMakesIndex},
    {"manifest remove", kNoIndex, kMakesIndex},
    {"manifest rm", kNoIndex, kMakesIndex},
    {"migrate", "every node reads the store, so nothing has to be migrated",
     "berth save --format sqsh -o FILE IMAGE, or --additional-store"},
    {"mkrepo", "the store is created automatically", "--root DIR"},
    {"model", "models are served by a container", "berth run --gpus all IMAGE"},
    {"modify", "an image is changed by a build", "berth build, or berth commit CONTAINER IMAGE"},
    {"mount", "other verbs reach a container's files",
     "berth cp, berth export, or berth image mount IMAGE DIR"},
    {"name", "a container has one name", "berth rename CONTAINER NAME"},
    {"namespace", "there are no namespaces of containers", "--root DIR"},
    {"network reload", "firewall rules are made with each container", "berth restart CONTAINER"},
    {"network update", "networks cannot be changed",
     "berth network rm NAME, and berth network create"},
    {"node demote", "there is no swarm", "berth node show, for this machine"},
    {"node inspect", "there is no swarm", "berth node show, for this machine"},
    {"node ls", "there is no swarm", "berth node show, for this machine"},
    {"node promote", "there is no swarm", "berth node show, for this machine"},
    {"node ps", "there is no swarm", "berth node show, for this machine"},
    {"node rm", "there is no swarm", "berth node show, for this machine"},
    {"node update", "there is no swarm", "berth node show, for this machine"},
    {"oci", "bundles are run by another program", "berth-runtime run --bundle DIR NAME"},
    {"overlay", "a container keeps what is written in it",
     "berth run --name NAME IMAGE without --rm, and berth start NAME"},
    {"play", "pods are not supported", "berth-runtime under Kubernetes"},
    {"plugin", "there are no plugins", "berth doctor shows what is built in"},
    {"pod", "there are no pods", "--network container:NAME --ipc container:NAME"},
    {"protect", "containers are removed only by name", "leave it out"},
    {"quadlet", "systemd units are not read", "--restart, which needs no unit"},
    {"registry", "a registry has no list of its own", "berth login REGISTRY"},
    {"remote", "there are no remotes", "berth login REGISTRY"},
    {"remove", "containers and images have separate verbs",
     "berth rm CONTAINER, or berth rmi IMAGE"},
    {"reset", "nothing is removed without a name", "berth system prune -af --volumes"},
    {"restore", "containers of berth are not checkpointed",
     "berth-runtime checkpoint, for a bundle of your own"},
    {"rmname", "a container has one name", "berth rename CONTAINER NAME"},
    {"rmsqi", "an image is the same for every node", "berth rmi IMAGE"},
    {"sbom", "the packages of images are not listed",
     "berth save -o FILE IMAGE, and a scanner for it"},
    {"scout",
     "images are not scanned for vulnerabilities; berth scan finds their hardware requirements",
     "berth save -o FILE IMAGE, and a scanner for it"},
    {"secret", "there is no swarm", "-v FILE:/run/secrets/NAME:ro"},
    {"service", "there is no swarm", "berth run -d --restart always"},
    {"setup", "containers are not set up in advance", "berth run IMAGE"},
    {"shared-run", "containers are shared with berth exec or Slurm's plugin",
     "berth run IMAGE, or srun --container-image IMAGE"},
    {"shell", "a shell is a command like any other", "berth run --rm -it IMAGE sh"},
    {"showconf", "there is one configuration", "berth info"},
    {"sif", "an image is a file that berth runs", "berth run ./FILE.sif"},
    {"sign", "signatures are made by cosign, and by berth bake",
     "cosign sign REGISTRY/IMAGE, or berth bake --sign-key FILE BAKE-FILE"},
    {"stack", "there is no swarm", "berth run -d --restart always"},
    {"swarm", "there is no swarm", "Slurm, or Kubernetes with berth-runtime"},
    {"system connection", "there is no daemon to choose", "ssh HOST berth ..."},
    {"system dial-stdio", "there is no daemon", "ssh HOST berth ..."},
    {"system migrate", "there is nothing to migrate", "berth doctor"},
    {"system renumber", "there are no locks to renumber", "berth system check"},
    {"system reset", "nothing is removed without a name", "berth system prune -af --volumes"},
    {"system service", "there is no daemon", "the same command without it"},
    {"test", "images contain no tests", "berth run --rm IMAGE COMMAND"},
    {"trust", "no keys are kept for images", "match.keys of policy.toml"},
    {"umount", "images are mounted, not containers", "berth image unmount DIR"},
    {"undelete", "removed images cannot be restored", "berth pull IMAGE"},
    {"unmount", "images are mounted, not containers", "berth image unmount DIR"},
    {"unprotect", "containers are removed only by name", "leave it out"},
    {"untag", "a name is removed like an image", "berth rmi NAME"},
    {"verify", "signatures of images are not checked yet",
     "cosign verify REGISTRY/IMAGE, and berth pull REGISTRY/IMAGE@sha256:DIGEST"},
    {"volume export", "a volume is written by a container",
     "berth run --rm -v NAME:/v IMAGE tar -C /v -cf - . >FILE"},
    {"volume import", "a volume is filled by a container",
     "berth run --rm -i -v NAME:/v IMAGE tar -C /v -xf - <FILE"},
    {"volume mount", "a volume is a directory of the host",
     "berth volume inspect -f '{{.Mountpoint}}' NAME"},
    {"volume reload", "there are no plugins", "leave it out"},
    {"volume unmount", "a volume is a directory of the host",
     "berth volume inspect -f '{{.Mountpoint}}' NAME"},
    {"volume update", "there is no swarm", "leave it out"},
};

struct FlagElsewhere {
  std::string_view verb;
  Elsewhere flag;
};
/// Flags of single verbs, in addition to the table in the file of the verb.
constexpr FlagElsewhere kOfVerbs[] = {
    {"commit", {"config", "--change INSTRUCTION"}},
    {"commit", {"f", "leave it out", "an image is in both formats at once"}},
    {"commit", {"format", "leave it out", "an image is in both formats at once"}},
    {"commit", {"iidfile", ">FILE, which gets the id"}},
    {"commit", {"include-volumes", "berth cp CONTAINER:DIR -", "volumes are not part of an image"}},
    {"commit", {"s", "berth export CONTAINER | berth import - IMAGE"}},
    {"commit", {"squash", "berth export CONTAINER | berth import - IMAGE"}},
    {"cp", {"overwrite", "berth exec CONTAINER rm -r PATH first"}},
    {"events", {"f", "--filter NAME=VALUE"}},
    {"events", {"no-trunc", "leave it out", "ids are never truncated"}},
    {"events", {"stream", "--until 0s"}},
    {"export", {"f", "rm FILE first"}},
    {"export", {"force", "rm FILE first"}},
    {"image prune", {"build-cache", "berth builder prune"}},
    {"image prune", {"external", "leave it out", "unfinished images are removed already"}},
    {"images", {"history", "berth history IMAGE"}},
    {"images", {"tree", "berth match IMAGE, which shows each entry"}},
    {"inspect", {"H", "berth inspect IMAGE", "everything is shown at once"}},
    {"inspect", {"a", "berth inspect IMAGE", "everything is shown at once"}},
    {"inspect", {"all", "berth inspect IMAGE", "everything is shown at once"}},
    {"inspect", {"app", "berth inspect IMAGE", "everything is shown at once"}},
    {"inspect", {"d", "berth inspect IMAGE", "everything is shown at once"}},
    {"inspect", {"deffile", "berth inspect IMAGE", "everything is shown at once"}},
    {"inspect", {"e", "berth inspect IMAGE", "everything is shown at once"}},
    {"inspect", {"environment", "berth inspect IMAGE", "everything is shown at once"}},
    {"inspect", {"helpfile", "berth inspect IMAGE", "everything is shown at once"}},
    {"inspect", {"j", "berth inspect IMAGE", "everything is shown at once"}},
    {"inspect", {"json", "berth inspect IMAGE", "everything is shown at once"}},
    {"inspect", {"labels", "berth inspect IMAGE", "everything is shown at once"}},
    {"inspect", {"list-apps", "berth inspect IMAGE", "everything is shown at once"}},
    {"inspect", {"r", "berth inspect IMAGE", "everything is shown at once"}},
    {"inspect", {"runscript", "berth inspect IMAGE", "everything is shown at once"}},
    {"inspect", {"startscript", "berth inspect IMAGE", "everything is shown at once"}},
    {"inspect", {"t", "berth inspect IMAGE", "everything is shown at once"}},
    {"inspect", {"test", "berth inspect IMAGE", "everything is shown at once"}},
    {"inspect", {"p", "berth cp, or berth export", "other verbs reach a container's files"}},
    {"login", {"get-login", "jq .auths ~/.docker/config.json"}},
    {"logout", {"a", "berth logout REGISTRY for each"}},
    {"logout", {"all", "berth logout REGISTRY for each"}},
    {"logs", {"color", "leave it out", "the output has no colours"}},
    {"logs", {"names", "leave it out", "the log of one container is shown"}},
    {"network connect",
     {"gw-priority", "berth run --network NAME, the first of which has the default route"}},
    {"network create",
     {"disable-dns", "leave it out", "containers of a network find each other by name"}},
    {"network create", {"dns", "--dns ADDRESS of berth run"}},
    {"network create",
     {"interface-name", "leave it out", "a network is an IPv4 bridge with a name from Berth"}},
    {"network create",
     {"ipv4", "leave it out", "a network is an IPv4 bridge with a name from Berth"}},
    {"network create", {"route", "berth run --cap-add NET_ADMIN, and ip route inside"}},
    {"network rm", {"t", "berth stop -t SECONDS first"}},
    {"network rm", {"time", "berth stop -t SECONDS first"}},
    {"ps", {"external", "leave it out", "all containers are shown already"}},
    {"ps", {"ns", "berth inspect --format '{{.State.Pid}}' CONTAINER, and lsns"}},
    {"ps", {"p", "leave it out", "there are no pods"}},
    {"ps", {"pod", "leave it out", "there are no pods"}},
    {"ps", {"sync", "leave it out", "all containers are shown already"}},
    {"ps", {"watch", "watch berth ps"}},
    {"pull", {"F", "leave it out", "an image is kept in the store"}},
    {"pull", {"U", "leave it out", "an image is kept in the store"}},
    {"pull", {"allow-unsigned", "leave it out", "an image is kept in the store"}},
    {"pull", {"dir", "berth save --format sqsh -o DIR/FILE IMAGE"}},
    {"pull", {"disable-cache", "leave it out", "an image is kept in the store"}},
    {"pull", {"force", "leave it out", "an image is kept in the store"}},
    {"pull", {"httpproxy", "https_proxy=URL berth pull IMAGE"}},
    {"pull", {"index", "berth pull REGISTRY/IMAGE"}},
    {"pull", {"library", "berth pull REGISTRY/IMAGE"}},
    {"pull", {"no-cleanup", "leave it out", "an image is kept in the store"}},
    {"pull", {"policy", "berth image exists IMAGE || berth pull IMAGE"}},
    {"pull", {"registry", "berth pull REGISTRY/IMAGE"}},
    {"push", {"D", "leave it out", "an image is described by its labels"}},
    {"push", {"U", "leave it out", "signatures are neither read nor made by a push"}},
    {"push", {"add-compression", "leave it out", "layers are sent as they were pulled or built"}},
    {"push", {"allow-unsigned", "leave it out", "signatures are neither read nor made by a push"}},
    {"push", {"compress", "leave it out", "layers are sent as they were pulled or built"}},
    {"push",
     {"compression-format", "leave it out", "layers are sent as they were pulled or built"}},
    {"push", {"compression-level", "leave it out", "layers are sent as they were pulled or built"}},
    {"push", {"description", "leave it out", "an image is described by its labels"}},
    {"push", {"digestfile", "berth inspect --format '{{index .RepoDigests 0}}' IMAGE >FILE"}},
    {"push", {"encrypt-layer", "skopeo copy --encryption-key KEY", "layers are not encrypted"}},
    {"push", {"encryption-key", "skopeo copy --encryption-key KEY", "layers are not encrypted"}},
    {"push", {"force-compression", "leave it out", "layers are sent as they were pulled or built"}},
    {"push", {"format", "leave it out", "layers are sent as they were pulled or built"}},
    {"push", {"library", "berth push REGISTRY/IMAGE"}},
    {"push", {"platform", "leave it out", "only one variant is stored and pushed"}},
    {"push",
     {"remove-signatures", "leave it out", "signatures are neither read nor made by a push"}},
    {"push", {"sign-by", "cosign sign REGISTRY/IMAGE", "a push makes no signature"}},
    {"push", {"sign-by-sigstore", "cosign sign REGISTRY/IMAGE", "a push makes no signature"}},
    {"push",
     {"sign-by-sigstore-private-key", "cosign sign REGISTRY/IMAGE", "a push makes no signature"}},
    {"push", {"sign-passphrase-file", "cosign sign REGISTRY/IMAGE", "a push makes no signature"}},
    {"restart", {"running", "$(berth ps -q) in its place"}},
    {"rm", {"depend", "leave it out", "containers do not depend on each other"}},
    {"rm", {"t", "berth stop -t SECONDS first"}},
    {"rm", {"time", "berth stop -t SECONDS first"}},
    {"rmi", {"a", "berth rmi $(berth images -q)"}},
    {"rmi", {"all", "berth rmi $(berth images -q)"}},
    {"save", {"compress", "a pipe into gzip"}},
    {"save", {"m", "leave it out", "several images go into one archive already"}},
    {"save", {"multi-image-archive", "leave it out", "several images go into one archive already"}},
    {"save", {"platform", "leave it out", "only one variant is stored and saved"}},
    {"save", {"q", "leave it out", "there is no output to hide"}},
    {"save", {"quiet", "leave it out", "there is no output to hide"}},
    {"save", {"uncompressed", "leave it out", "an archive is not compressed"}},
    {"start",
     {"c", "berth run --entrypoint COMMAND IMAGE", "a container has to be created again for this"}},
    {"start",
     {"conf", "berth run --entrypoint COMMAND IMAGE",
      "a container has to be created again for this"}},
    {"start",
     {"e", "berth run -e NAME=VALUE IMAGE", "a container has to be created again for this"}},
    {"start",
     {"env", "berth run -e NAME=VALUE IMAGE", "a container has to be created again for this"}},
    {"start",
     {"m", "berth run -v SOURCE:DESTINATION IMAGE",
      "a container has to be created again for this"}},
    {"start", {"r", "berth run -u 0 IMAGE", "a container has to be created again for this"}},
    {"start",
     {"rc", "berth run --entrypoint COMMAND IMAGE",
      "a container has to be created again for this"}},
    {"start", {"sig-proxy", "berth start, and berth attach --sig-proxy=false CONTAINER"}},
    {"start", {"w", "berth run IMAGE", "a container has to be created again for this"}},
    {"stats", {"i", "leave it out", "the interval is one second"}},
    {"stats", {"interval", "leave it out", "the interval is one second"}},
    {"stats", {"no-reset", "leave it out", "the interval is one second"}},
    {"stop", {"f", "$(berth ps -q --filter ...) in its place"}},
    {"system df", {"format", "berth system df -v"}},
    {"system prune", {"build", "berth builder prune"}},
    {"system prune", {"external", "leave it out", "unfinished images are removed already"}},
    {"update",
     {"blkio-weight-device", "berth run --replace --name NAME, with it",
      "a container has to be created again for this"}},
    {"update",
     {"device-read-bps", "berth run --replace --name NAME, with it",
      "a container has to be created again for this"}},
    {"update",
     {"device-read-iops", "berth run --replace --name NAME, with it",
      "a container has to be created again for this"}},
    {"update",
     {"device-write-bps", "berth run --replace --name NAME, with it",
      "a container has to be created again for this"}},
    {"update",
     {"device-write-iops", "berth run --replace --name NAME, with it",
      "a container has to be created again for this"}},
    {"update",
     {"env", "berth run --replace --name NAME, with it",
      "a container has to be created again for this"}},
    {"update",
     {"health-cmd", "berth run --replace --name NAME, with it",
      "a container has to be created again for this"}},
    {"update",
     {"memory-swappiness", "berth run --replace --name NAME, with it",
      "a container has to be created again for this"}},
    {"update",
     {"ulimit", "berth run --replace --name NAME, with it",
      "a container has to be created again for this"}},
    {"update",
     {"unsetenv", "berth run --replace --name NAME, with it",
      "a container has to be created again for this"}},
    {"volume create", {"availability", "leave it out", "there is no swarm"}},
    {"volume create", {"gid", "berth run -u 0 -v NAME:/v IMAGE chown UID:GID /v"}},
    {"volume create", {"group", "leave it out", "there is no swarm"}},
    {"volume create", {"l", "--label NAME=VALUE"}},
    {"volume create", {"limit-bytes", "leave it out", "there is no swarm"}},
    {"volume create", {"required-bytes", "leave it out", "there is no swarm"}},
    {"volume create", {"scope", "leave it out", "there is no swarm"}},
    {"volume create", {"sharing", "leave it out", "there is no swarm"}},
    {"volume create", {"topology-preferred", "leave it out", "there is no swarm"}},
    {"volume create", {"topology-required", "leave it out", "there is no swarm"}},
    {"volume create", {"type", "leave it out", "there is no swarm"}},
    {"volume create", {"uid", "berth run -u 0 -v NAME:/v IMAGE chown UID:GID /v"}},
    {"volume prune", {"a", "leave it out", "named volumes are removed, too"}},
    {"volume prune", {"all", "leave it out", "named volumes are removed, too"}},
    {"volume rm", {"a", "berth volume rm $(berth volume ls -q)"}},
    {"volume rm", {"all", "berth volume rm $(berth volume ls -q)"}},
    {"volume rm", {"t", "berth stop -t SECONDS first"}},
    {"volume rm", {"time", "berth stop -t SECONDS first"}},
    {"wait",
     {"condition", "berth events --filter container=NAME", "wait waits for the end of containers"}},
    {"wait", {"exit-first-match", "leave it out", "wait waits for the end of containers"}},
    {"wait", {"interval", "leave it out", "wait waits for the end of containers"}},
    {"wait", {"return-on-first", "leave it out", "wait waits for the end of containers"}},
};
/// Flags that other engines have for many verbs.
constexpr Elsewhere kAnyVerb[] = {
    {"D", "berth --debug, before the verb"},
    {"arch", "--platform OS/ARCH"},
    {"authfile", "REGISTRY_AUTH_FILE=FILE berth ...", "a variable names the file with the logins"},
    {"cert-dir", "--tls-ca FILE, or ~/.config/containers/certs.d"},
    {"cidfile", "$(cat FILE) in its place"},
    {"compat-auth-file", "DOCKER_CONFIG=DIR berth ...",
     "a variable names the file with the logins"},
    {"creds", "berth login REGISTRY first"},
    {"debug", "berth --debug, before the verb"},
    {"decryption-key", "skopeo copy --decryption-key KEY docker://IMAGE dir:DIR",
     "encrypted layers are not read"},
    {"docker-login", "berth login REGISTRY first"},
    {"filter", "a pipe into grep", "this verb has no filter"},
    {"format", "berth inspect --format '{{json .}}' NAME"},
    {"i", "|| true after it", "a missing object is an error"},
    {"ignore", "|| true after it", "a missing object is an error"},
    {"l", "$(berth ps -lq) in its place"},
    {"latest", "$(berth ps -lq) in its place"},
    {"n", "tail -n +2 after a pipe"},
    {"no-https", "--insecure-registry HOST"},
    {"noheading", "tail -n +2 after a pipe"},
    {"os", "--platform OS/ARCH"},
    {"q", ">/dev/null after it"},
    {"quiet", ">/dev/null after it"},
    {"retry", "leave it out", "transfers are retried automatically"},
    {"retry-delay", "leave it out", "transfers are retried automatically"},
    {"secret", "-v FILE:/run/secrets/NAME:ro of berth run", "there is no secret store"},
    {"sort", "a pipe into sort"},
    {"tls-verify", "--insecure-registry HOST, or registries.toml"},
    {"v", "berth --debug, before the verb"},
    {"variant", "--platform OS/ARCH/VARIANT"},
    {"verbose", "berth --debug, before the verb"},
};
/// Flags that other engines have for verbs about containers.
constexpr Elsewhere kOfContainers[] = {
    {"a", "$(berth ps -aq) in its place"},
    {"all", "$(berth ps -aq) in its place"},
    {"filter", "$(berth ps -aq --filter ...) in its place"},
};

constexpr std::string_view kRegistry = "docker://";

/// The image of "docker://IMAGE". enroot's "docker://REGISTRY#IMAGE" becomes REGISTRY#IMAGE, which
/// Berth reads too.
std::string without_scheme(std::string_view text) {
  size_t slashes = text.find("://");
  return escape_controls(slashes == text.npos ? text : text.substr(slashes + 3));
}

std::string file_of_image(const std::string& image, const std::string& file) {
  return "berth pull " + image + " && berth save --format sqsh --output " + file + " " + image;
}

/// The transports of containers/image and apptainer, which precede the name of an image.
struct Place {
  std::string_view prefix, is, here, behind;  ///< the equivalent is `here` NAME `behind`
};
constexpr std::string_view kSifFile = "a SIF file in a registry";
constexpr std::string_view kFetchSif = "apptainer pull FILE.sif ";
constexpr std::string_view kRunSif = " && berth run ./FILE.sif";
constexpr Place kPlaces[] = {
    {"docker-archive:", "an archive", "berth load -i ", ", and its image's name"},
    {"oci-archive:", "an archive", "berth load -i ", ", and its image's name"},
    {"docker-daemon:", "an image of another engine", "docker save ", " | berth load"},
    {"dockerd:", "an image of another engine", "docker save ", " | berth load"},
    {"containers-storage:", "an image of another engine", "podman save ", " | berth load"},
    {"podman:", "an image of another engine", "podman save ", " | berth load"},
    {"oras:", kSifFile, kFetchSif, kRunSif},
    {"library:", kSifFile, kFetchSif, kRunSif},
    {"shub:", kSifFile, kFetchSif, kRunSif},
};

}  // namespace

std::vector<Elsewhere> flags_elsewhere(const Verb& verb) {
  std::vector<Elsewhere> flags(verb.elsewhere.begin(), verb.elsewhere.end());
  for (const FlagElsewhere& one : kOfVerbs) {
    if (one.verb == verb.text.name) flags.push_back(one.flag);
  }
  Complete named = verb.text.complete;
  if (named == Complete::container || named == Complete::running) {
    flags.insert(flags.end(), std::begin(kOfContainers), std::end(kOfContainers));
  }
  flags.insert(flags.end(), std::begin(kAnyVerb), std::end(kAnyVerb));
  return flags;
}

std::optional<Error> verb_elsewhere(std::string_view name) {
  for (const VerbElsewhere& one : kVerbsElsewhere) {
    if (one.name != name) continue;
    return make_error(Kind::usage, "berth has no verb " + quote(name) + ": " + std::string(one.why),
                      std::string(one.here));
  }
  return std::nullopt;
}

std::optional<Error> image_elsewhere(const std::string& name) {
  for (const Place& place : kPlaces) {
    if (!name.starts_with(place.prefix)) continue;
    std::string rest = name.substr(place.prefix.size());
    bool slashes = rest.starts_with("//");
    bool archive = place.prefix.ends_with("-archive:");
    // "podman:5" is a tag.
    if (!slashes && !archive && !place.prefix.starts_with("docker-") &&
        place.prefix != "containers-storage:") {
      continue;
    }
    if (slashes && !archive) rest.erase(0, 2);
    // The forms that only apptainer has are recognised by the whole name.
    if (place.is == kSifFile) rest = name;
    return make_error(Kind::usage, quote(name) + " is " + std::string(place.is),
                      std::string(place.here) + escape_controls(rest) + std::string(place.behind));
  }
  return std::nullopt;
}

std::optional<Error> run_elsewhere(const std::vector<std::string>& arguments) {
  return arguments.empty() ? std::nullopt : image_elsewhere(arguments[0]);
}

bool is_image_file_name(std::string_view name) {
  for (std::string_view ending : {".sif", ".sqsh", ".sqfs", ".squashfs"}) {
    if (name.ends_with(ending)) return true;
  }
  return false;
}

std::optional<Error> pull_elsewhere(const std::vector<std::string>& arguments) {
  constexpr std::string_view kShifter = "docker:";
  if (!arguments.empty()) {
    if (auto other = image_elsewhere(arguments.back())) return other;
  }
  if (arguments.size() == 2 && is_image_file_name(arguments[0])) {
    return make_error(Kind::usage, "pull takes only an image, and save writes it to a file",
                      file_of_image(without_scheme(arguments[1]), "FILE.sqsh"));
  }
  if (arguments.size() != 1 || !arguments[0].starts_with(kShifter)) return std::nullopt;
  std::string image = arguments[0].substr(kShifter.size());
  // "docker:12" is a tag of the image docker.
  if (arguments[0].starts_with(kRegistry) || image.find_first_of("/:") == image.npos) {
    return std::nullopt;
  }
  return make_error(Kind::usage,
                    "pull " + quote(arguments[0]) + ": an image name has no 'docker:' in front",
                    "berth pull " + escape_controls(image));
}

std::optional<Error> build_elsewhere(const std::vector<std::string>& arguments) {
  if (arguments.size() != 2) return std::nullopt;
  const std::string& source = arguments[1];
  if (source.ends_with(".def")) {
    return make_error(Kind::usage,
                      "build " + quote(source) + ": Apptainer's definitions are not read",
                      "a Containerfile, and berth build -t NAME DIR");
  }
  if (auto other = image_elsewhere(source)) return other;
  if (source.find("://") == source.npos) return std::nullopt;
  return make_error(Kind::usage,
                    "build reads a Containerfile, but " + quote(source) + " is an image",
                    file_of_image(without_scheme(source), "FILE.sqsh"));
}

std::optional<Error> import_elsewhere(const std::vector<std::string>& arguments) {
  if (arguments.empty() || arguments[0].find("://") == std::string::npos) return std::nullopt;
  const std::string& source = arguments[0];
  std::string image = without_scheme(source);
  for (std::string_view engine : {"docker", "podman"}) {
    bool daemon = source.starts_with("dockerd://") && engine == "docker";
    if (!daemon && (engine == "docker" || !source.starts_with("podman://"))) continue;
    return make_error(Kind::usage,
                      "import " + quote(source) + ": that image belongs to another engine",
                      std::string(engine) + " save " + image +
                          " | berth load; berth save --format sqsh --output FILE.sqsh " + image +
                          " makes a file of it");
  }
  if (source.starts_with(kRegistry)) {
    return make_error(Kind::usage, "import " + quote(source) + ": it is an image of a registry",
                      "berth pull " + image);
  }
  if (!source.starts_with("http://") && !source.starts_with("https://")) return std::nullopt;
  return make_error(Kind::usage, "import " + quote(source) + ": import does not download",
                    "curl -L " + escape_controls(source) + " | berth import - NAME");
}

std::optional<Error> load_elsewhere(const std::vector<std::string>& arguments) {
  if (arguments.size() != 1) return std::nullopt;
  if (auto other = image_elsewhere(arguments[0])) return other;
  return make_error(Kind::usage, "load reads standard input, or the file given by -i",
                    "berth load -i " + escape_controls(arguments[0]));
}

std::optional<Error> push_elsewhere(const std::vector<std::string>& arguments) {
  if (arguments.size() != 2) return std::nullopt;
  std::string target = without_scheme(arguments[1]);
  if (is_image_file_name(arguments[0])) {
    return make_error(Kind::usage, "push sends an image, but " + quote(arguments[0]) + " is a file",
                      "berth import " + escape_controls(arguments[0]) + " " + target +
                          " && berth push " + target);
  }
  return make_error(
      Kind::usage, "push takes one name, the same here and in the registry",
      "berth tag " + escape_controls(arguments[0]) + " " + target + " && berth push " + target);
}

}  // namespace berth::cli
