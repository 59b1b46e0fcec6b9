// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"
#include "cli/berth/common.hpp"
#include "cli/berth/elsewhere.hpp"
#include "cli/berth/flag_values.hpp"
#include "engine/build/image.hpp"
#include "engine/context/paths.hpp"
#include "engine/request/text.hpp"

namespace berth::cli {
namespace {

struct BuildOptions {
  engine::BuildRequest request;
  std::vector<std::string> args, secrets, ssh;
  std::string file;
  std::optional<std::string> id_file;
  std::optional<uint64_t> shm_bytes;
  std::vector<std::string> cache_from, cache_to;
  std::string format, progress, network;
  bool force_rm = false, rm = true, layers = true, load = true;
  bool compress = false, no_trust = true;
  bool provenance = false, attests_software = false;
};

ReadValue read_hosts(std::vector<std::string>& target) {
  return [&target](std::string_view text) -> Result<void> {
    target.push_back(TRY(engine::parse_add_host(text)));
    return {};
  };
}

ReadValue read_ulimits(std::vector<std::string>& target) {
  return [&target](std::string_view text) -> Result<void> {
    TRY(engine::parse_ulimit(text));
    target.emplace_back(text);
    return {};
  };
}

ReadValue read_arguments(std::vector<std::string>& target) {
  return [&target](std::string_view text) -> Result<void> {
    if (text.substr(0, text.find('=')).empty()) {
      return make_error(Kind::usage, "expected NAME=VALUE, or NAME for a variable of the caller");
    }
    target.emplace_back(text);
    return {};
  };
}

/// "false", "mode=max"; without a value it is "true".
ReadValue read_attestation(bool& target) {
  return [&target](std::string_view text) -> Result<void> {
    target = text != "false" && text != "0";
    return {};
  };
}

FlagTable build_flags(BuildOptions& o) {
  FlagTable table{
      {"tag", 't', "NAME", "Name of the image (repeatable)", &o.request.tags, {}, Complete::image},
      file_flag("file", 'f', "Path of the Containerfile (DIR/Containerfile or Dockerfile)",
                &o.file),
      {"build-arg", 0, "K=V", "Set a build argument; K alone copies the variable's value",
       read_arguments(o.args)},
      {"label", 0, "K=V", "Set a label on the image", read_label(o.request.labels)},
      {"target", 0, "STAGE", "Build up to this stage", &o.request.target},
      {"platform", 0, "OS/ARCH", "Platform to build for instead of this machine's",
       &o.request.platform},
      {"pull", 0, "", "Ask the registry even for base images that the store has", &o.request.pull},
      {"no-cache", 0, "", "Do not use the build cache", &o.request.no_cache},
      {"quiet", 'q', "", "Print only the image's id", &o.request.quiet},
      file_flag("iidfile", 0, "Write the image's id to FILE", &o.id_file),
      {"secret", 0, "id=NAME,src=FILE",
       "Secret for RUN --mount=type=secret: a file, or env=VARIABLE", &o.secrets},
      {"ssh", 0, "ID[=SOCKET|KEY]", "SSH agent or keys for RUN --mount=type=ssh", &o.ssh},
      choice_flag("network", "MODE", "Network for RUN: host or none", &o.network,
                  {"host", "default", "none"}),
      {"add-host", 0, "NAME:ADDRESS", "Add a line to /etc/hosts during RUN",
       read_hosts(o.request.extras.hosts)},
      {"ulimit", 0, "TYPE=SOFT[:HARD]", "Set a ulimit for RUN, such as nofile=1024:2048",
       read_ulimits(o.request.extras.ulimits)},
      {"squash", 0, "", "Squash all new layers into one", &o.request.extras.squash},
      choice_flag("progress", "HOW", "auto, plain and tty have no effect; quiet is --quiet",
                  &o.progress, {"auto", "plain", "tty", "quiet", "rawjson"}),
      {"rm", 0, "", "No effect: no intermediate containers are left", &o.rm},
      {"force-rm", 0, "", "No effect: no intermediate containers are left", &o.force_rm},
      {"layers", 0, "", "No effect: steps are cached unless --no-cache is given", &o.layers},
      {"load", 0, "", "No effect: the image is always put into the store", &o.load},
      {"compress", 0, "", "No effect: the build context is not sent anywhere", &o.compress},
      {"isolation", 0, "NAME", "Only default: buildah's isolation is set by BUILDAH_ISOLATION",
       read_isolation(
           "; buildah's isolation is set by a variable: BUILDAH_ISOLATION=chroot berth build")},
      {"disable-content-trust", 0, "", "No effect: signatures are not read", &o.no_trust},
      {"provenance", 0, "", "Only =false: attestations are not supported",
       read_attestation(o.provenance)},
      {"sbom", 0, "", "Only =false: attestations are not supported",
       read_attestation(o.attests_software)},
      {"cache-from", 0, "IMAGE", "No effect: the build cache is in the store", &o.cache_from},
      {"cache-to", 0, "PLACE", "No effect: the build cache is in the store", &o.cache_to},
      {"shm-size", 0, "SIZE", "No effect: RUN has this machine's /dev/shm",
       read_bytes(o.shm_bytes)},
      choice_flag("format", "FORMAT", "json: print JSON; oci or docker: media types of the image",
                  &o.format, {"table", "json", "oci", "docker"}),
  };
  add_registry_flags(table, o.request.access);
  return table;
}

/// Each text is "K=V". A bare name gets its value from the environment of the caller, or is
/// dropped.
std::map<std::string, std::string> pairs_of(const std::vector<std::string>& texts,
                                            const engine::Environment& environment) {
  std::map<std::string, std::string> pairs;
  for (const std::string& text : texts) {
    size_t equal = text.find('=');
    std::string name = text.substr(0, equal);
    if (equal != std::string::npos) {
      pairs[name] = text.substr(equal + 1);
    } else if (auto value = environment.get(name)) {
      pairs[name] = *value;
    }
  }
  return pairs;
}

/// Docker also builds from URLs of archives and git repositories; here the context is a directory.
bool is_url(std::string_view text) {
  return text.find("://") != text.npos || text.starts_with("git@") ||
         text.starts_with("github.com/");
}

Error no_url(std::string_view text) {
  std::string place(text.substr(0, text.find('#')));
  bool git = place.ends_with(".git") || text.find("git@") == 0 || text.starts_with("github.com/");
  std::string fetched = git ? "git clone " + place + " DIR && berth build DIR"
                            : "curl -L " + place + " | tar -C DIR -xz && berth build DIR";
  return make_error(Kind::usage,
                    "cannot build " + quote(text) + ": the build context has to be a directory",
                    std::move(fetched));
}

/// Whether `text` is an archive: it contains a zero byte, as tar, zstd and xz files do, or begins
/// with the magic bytes of gzip or bzip2.
bool is_archive(std::string_view text) {
  return text.find('\0') != text.npos || text.starts_with("\x1f\x8b") || text.starts_with("BZh");
}

Result<std::string> read_containerfile(Session& session) {
  if (session.terminal.input_is_terminal()) {
    return make_error(Kind::usage, "no Containerfile on stdin", "berth build DIR");
  }
  std::string text = TRY(session.terminal.read_input());
  if (!is_archive(text)) return text;
  return make_error(Kind::usage,
                    "cannot build '-': standard input is an archive, not a Containerfile",
                    "mkdir DIR && tar -C DIR -xf ARCHIVE && berth build DIR");
}

Result<void> set_sources(Session& session, const BuildOptions& o, const std::string& context,
                         engine::BuildRequest& request) {
  const std::string& here = session.working_directory;
  if (is_url(context)) return no_url(context);
  if (context != "-") request.context = TRY(engine::absolute_path(context, here));
  if (context == "-" || o.file == "-") {
    request.text = TRY(read_containerfile(session));
  } else if (!o.file.empty()) {
    request.file = TRY(engine::absolute_path(o.file, here));
  }
  return {};
}

Result<void> set_extras(Session& session, const BuildOptions& o, engine::BuildExtras& extras) {
  const engine::Environment& environment = session.context.environment;
  const std::string& here = session.working_directory;
  for (const std::string& text : o.secrets) {
    extras.secrets.push_back(TRY(engine::secret_text(text, here, environment)));
  }
  for (const std::string& text : o.ssh) {
    extras.ssh.push_back(TRY(engine::ssh_text(text, here, environment)));
  }
  extras.offline = o.network == "none";
  extras.docker_types = o.format == "docker";
  if (o.provenance || o.attests_software) {
    return make_error(Kind::unsupported, "--provenance and --sbom: attestations are not supported",
                      "--provenance=false --sbom=false");
  }
  Log& log = session.context.log;
  if (!o.cache_from.empty()) log.warn("--cache-from: the build cache is in the store, ignoring");
  if (!o.cache_to.empty()) log.warn("--cache-to: the build cache is in the store, ignoring");
  if (o.shm_bytes) log.warn("--shm-size: RUN has this machine's /dev/shm, ignoring");
  return {};
}

Result<int> run_build(Session& session, const BuildOptions& o, Arguments arguments) {
  engine::BuildRequest request = o.request;
  const std::string& here = session.working_directory;
  TRY(set_sources(session, o, arguments[0], request));
  TRY(set_extras(session, o, request.extras));
  request.args = pairs_of(o.args, session.context.environment);
  if (o.id_file) request.id_file = TRY(engine::absolute_path(*o.id_file, here));
  bool json = o.format == "json";
  request.quiet = request.quiet || json || o.progress == "quiet";
  TransferDisplay display(session, Stream::err, Direction::pull, request.quiet);
  image::TransferResult built =
      TRY(engine::build_image(session.context, request, display.progress()));
  display.finish();
  if (json) {
    print_json(session, json::Object{{"id", built.image_id},
                                     {"digest", built.digest},
                                     {"tags", json_strings(request.tags)}});
    return 0;
  }
  if (request.quiet) {
    print(session, built.image_id + "\n");
    return 0;
  }
  print(session, "Successfully built " + built.image_id.substr(7, 12) + "\n");
  for (const std::string& tag : request.tags) print(session, "Successfully tagged " + tag + "\n");
  return 0;
}

constexpr std::string_view kNoDefinitions = "Apptainer's definitions are not read";
constexpr std::string_view kCallersLimits = "a build has the limits of its caller";
constexpr std::string_view kScope = "ulimit, or systemd-run --user --scope -p MemoryMax=4G";
constexpr std::string_view kCpuScope = "systemd-run --user --scope -p CPUQuota=200%";
constexpr std::string_view kOfBuildah = "RUN and the image's history are buildah's";
constexpr std::string_view kByBuildah =
    "buildah build FLAG -t NAME DIR, buildah push NAME oci-archive:FILE, and berth load -i FILE";
constexpr Elsewhere kBuildElsewhere[] = {
    {"B", kByBuildah, kOfBuildah},
    {"F", "leave it out", "RUN is root in its own user namespace already"},
    {"T", "a Containerfile, and berth build -t NAME DIR", kNoDefinitions},
    {"all-platforms", kByBuildah, kOfBuildah},
    {"allow", "leave it out", "there is only one builder"},
    {"annotation", kByBuildah, kOfBuildah},
    {"arch", "--platform OS/ARCH"},
    {"attest", "leave it out", "images are built without attestations"},
    {"authfile", "REGISTRY_AUTH_FILE=FILE berth build"},
    {"b", kByBuildah, kOfBuildah},
    {"bind", kByBuildah, kOfBuildah},
    {"build-context", kByBuildah, kOfBuildah},
    {"builder", "leave it out", "there is only one builder"},
    {"c", kCpuScope, kCallersLimits},
    {"cache-large", "leave it out", "there is only one builder"},
    {"cache-ttl", kByBuildah, kOfBuildah},
    {"call", "leave it out", "a Containerfile is not checked without a build"},
    {"cap-add", kByBuildah, kOfBuildah},
    {"cap-drop", kByBuildah, kOfBuildah},
    {"cert-dir", kByBuildah, kOfBuildah},
    {"cgroup-parent", "systemd-run --user --scope --slice=NAME", kCallersLimits},
    {"cgroupns", kByBuildah, kOfBuildah},
    {"check", "leave it out", "a Containerfile is not checked without a build"},
    {"cpp-flag", kByBuildah, kOfBuildah},
    {"cpu-period", kCpuScope, kCallersLimits},
    {"cpu-quota", kCpuScope, kCallersLimits},
    {"cpu-shares", kCpuScope, kCallersLimits},
    {"cpuset-cpus", "taskset -c LIST berth build", kCallersLimits},
    {"cpuset-mems", "numactl --membind=LIST berth build", kCallersLimits},
    {"creds", "berth login REGISTRY"},
    {"decryption-key", kByBuildah, kOfBuildah},
    {"device", kByBuildah, kOfBuildah},
    {"disable-cache", "a Containerfile, and berth build -t NAME DIR", kNoDefinitions},
    {"disable-compression", kByBuildah, kOfBuildah},
    {"dns", kByBuildah, kOfBuildah},
    {"dns-option", kByBuildah, kOfBuildah},
    {"dns-search", kByBuildah, kOfBuildah},
    {"docker-login", "berth login REGISTRY"},
    {"dry-run", "leave it out", "a Containerfile is not checked without a build"},
    {"e", "berth build, with the store on an encrypted file system", "images are not encrypted"},
    {"encrypt", "berth build, with the store on an encrypted file system",
     "images are not encrypted"},
    {"env", kByBuildah, kOfBuildah},
    {"fakeroot", "a Containerfile, and berth build -t NAME DIR", kNoDefinitions},
    {"fix-perms", "a Containerfile, and berth build -t NAME DIR", kNoDefinitions},
    {"force", "leave it out", "RUN is root in its own user namespace already"},
    {"force-cmd", "leave it out", "RUN is root in its own user namespace already"},
    {"from", kByBuildah, kOfBuildah},
    {"group-add", kByBuildah, kOfBuildah},
    {"hooks-dir", kByBuildah, kOfBuildah},
    {"http-proxy", "--build-arg http_proxy=URL"},
    {"identity-label", kByBuildah, kOfBuildah},
    {"ignorefile", kByBuildah, kOfBuildah},
    {"ipc", kByBuildah, kOfBuildah},
    {"jobs", kByBuildah, kOfBuildah},
    {"json", "a Containerfile, and berth build -t NAME DIR", kNoDefinitions},
    {"layer-label", kByBuildah, kOfBuildah},
    {"library", "a Containerfile, and berth build -t NAME DIR", kNoDefinitions},
    {"logfile", kByBuildah, kOfBuildah},
    {"logsplit", kByBuildah, kOfBuildah},
    {"m", kScope, kCallersLimits},
    {"manifest", kByBuildah, kOfBuildah},
    {"memory", kScope, kCallersLimits},
    {"memory-swap", kScope, kCallersLimits},
    {"metadata-file", "--iidfile FILE"},
    {"mksquashfs-args", "a Containerfile, and berth build -t NAME DIR", kNoDefinitions},
    {"mount", kByBuildah, kOfBuildah},
    {"n", "leave it out", "a Containerfile is not checked without a build"},
    {"no-cache-filter", "--no-cache"},
    {"no-cleanup", "a Containerfile, and berth build -t NAME DIR", kNoDefinitions},
    {"no-hostname", kByBuildah, kOfBuildah},
    {"no-hosts", kByBuildah, kOfBuildah},
    {"no-https", "registries.toml, with insecure = true"},
    {"no-setgroups", "a Containerfile, and berth build -t NAME DIR", kNoDefinitions},
    {"notest", "a Containerfile, and berth build -t NAME DIR", kNoDefinitions},
    {"nv", "leave it out", "RUN has no GPU; a container gets one by --gpus"},
    {"o", "berth build -t NAME DIR, then berth save -o FILE NAME, or berth export",
     "the result is an image, not a directory"},
    {"omit-history", kByBuildah, kOfBuildah},
    {"os", "--platform OS/ARCH"},
    {"os-feature", kByBuildah, kOfBuildah},
    {"os-version", kByBuildah, kOfBuildah},
    {"output", "berth build -t NAME DIR, then berth save -o FILE NAME, or berth export",
     "the result is an image, not a directory"},
    {"parse-only", "leave it out", "a Containerfile is not checked without a build"},
    {"passphrase", "berth build, with the store on an encrypted file system",
     "images are not encrypted"},
    {"pem-path", "berth build, with the store on an encrypted file system",
     "images are not encrypted"},
    {"pid", kByBuildah, kOfBuildah},
    {"policy", "leave it out", "there is only one builder"},
    {"push", "berth build -t NAME DIR, then berth push NAME"},
    {"r", "a Containerfile, and berth build -t NAME DIR", kNoDefinitions},
    {"rebuild", "--no-cache"},
    {"remote", "a Containerfile, and berth build -t NAME DIR", kNoDefinitions},
    {"retry", "leave it out", "transfers are retried automatically"},
    {"retry-delay", "leave it out", "transfers are retried automatically"},
    {"rewrite-timestamp", kByBuildah, kOfBuildah},
    {"rocm", "leave it out", "RUN has no GPU; a container gets one by --gpus"},
    {"runtime-flag", kByBuildah, kOfBuildah},
    {"s", "mkdir DIR && berth export $(berth create IMAGE) | tar -C DIR -xf -",
     "the result is an image, not a directory"},
    {"sandbox", "mkdir DIR && berth export $(berth create IMAGE) | tar -C DIR -xf -",
     "the result is an image, not a directory"},
    {"section", "a Containerfile, and berth build -t NAME DIR", kNoDefinitions},
    {"security-opt", "leave it out", "RUN has the profile of its caller"},
    {"sign-by", kByBuildah, kOfBuildah},
    {"skip-unused-stages", kByBuildah, kOfBuildah},
    {"source-date-epoch", kByBuildah, kOfBuildah},
    {"squash-all", kByBuildah, kOfBuildah},
    {"stdin", kByBuildah, kOfBuildah},
    {"storage", "berth --root DIR build"},
    {"timestamp", kByBuildah, kOfBuildah},
    {"tls-verify", "registries.toml, with insecure = true"},
    {"u", "a Containerfile, and berth build -t NAME DIR", kNoDefinitions},
    {"unsetenv", kByBuildah, kOfBuildah},
    {"update", "a Containerfile, and berth build -t NAME DIR", kNoDefinitions},
    {"userns", kByBuildah, kOfBuildah},
    {"userns-gid-map", kByBuildah, kOfBuildah},
    {"userns-gid-map-group", kByBuildah, kOfBuildah},
    {"userns-uid-map", kByBuildah, kOfBuildah},
    {"userns-uid-map-user", kByBuildah, kOfBuildah},
    {"uts", kByBuildah, kOfBuildah},
    {"v", kByBuildah, kOfBuildah},
    {"variant", "--platform OS/ARCH"},
    {"volume", kByBuildah, kOfBuildah},
    {"writable-tmpfs", "a Containerfile, and berth build -t NAME DIR", kNoDefinitions},
};

}  // namespace

const Verb build_verb{
    .text = {.name = "build",
             .arguments = "DIR",
             .summary = "Build an image from a Containerfile, with buildah",
             .example = "berth build -t app:1.0 .",
             .complete = Complete::directory},
    .arity = {1, 1},
    .needs = engine::Needs::user_namespace,
    .elsewhere = kBuildElsewhere,
    .arguments_elsewhere = build_elsewhere,
    .command = [] { return make_command(build_flags, run_build); },
};

}  // namespace berth::cli
