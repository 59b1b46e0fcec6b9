// SPDX-License-Identifier: Apache-2.0
#include "engine/decide/decide.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>

#include <algorithm>

#include "base/text.hpp"
#include "engine/container/rootfs_setup.hpp"
#include "engine/context/paths.hpp"
#include "engine/decide/check_flags.hpp"
#include "engine/decide/image_mounts.hpp"
#include "engine/decide/mpi.hpp"
#include "engine/decide/spec.hpp"
#include "engine/gpu/loader.hpp"
#include "engine/image/layer_view.hpp"
#include "engine/image/rootfs.hpp"
#include "engine/image/rootfs_driver.hpp"
#include "engine/network/leases.hpp"
#include "engine/network/network.hpp"
#include "engine/request/environment.hpp"
#include "engine/request/keep_id.hpp"
#include "engine/request/ulimits.hpp"
#include "engine/site/rules.hpp"
#include "engine/state/directory.hpp"
#include "gpu/place/publish.hpp"
#include "oci/config.hpp"
#include "oci/edit.hpp"
#include "oci/user.hpp"
#include "sys/file/file.hpp"
#include "sys/machine/host.hpp"
#include "sys/machine/host_facts.hpp"
#include "sys/user/credentials.hpp"
#include "sys/user/namespace.hpp"
#include "sys/user/user_namespace.hpp"

namespace berth::engine {
namespace {

constexpr size_t kMaxAccountFile = size_t{4} << 20;
constexpr size_t kMaxHostFile = size_t{64} << 10;

Result<void> check_hostname(std::string_view name) {
  bool good = !name.empty() && name.size() <= 63 && name.front() != '-' && name.back() != '-';
  for (char c : name) {
    good = good && ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                    c == '-' || c == '.');
  }
  if (good) return {};
  return make_error(Kind::usage,
                    "hostname " + quote(name) + ": expected at most 63 letters, digits, '-', '.'");
}

Result<Confinement> choose_confinement(const Context& context, const RunRequest& request) {
  ConfinementFacts facts;
  const Security& security = request.security;
  if (security.privileged || !security.cap_add.empty()) {
    sys::CapabilitySets held = TRY(sys::capabilities());
    facts.held = held.permitted;
  }
  if (security.seccomp) facts.kernel = TRY(sys::kernel_release());
  facts.selinux = !security.labels.empty() && sys::has_selinux();
  if (security.privileged && context.identity != Identity::root) {
    context.log.warn(
        "--privileged gives a rootless container what its user has: no rights over the host, and "
        "only the devices that this user may open");
  }
  if (!request.device_cgroup_rules.empty() && context.identity != Identity::root) {
    context.log.warn("--device-cgroup-rule needs root, ignoring");
  }
  return confine(security, facts);
}

Result<std::string> choose_hostname(const Context& context, const RunRequest& request,
                                    const std::string& id) {
  if (request.hostname) {
    TRY(check_hostname(*request.hostname));
    return *request.hostname;
  }
  if (request.network == Network::container) {
    std::string path =
        container_path(context.paths, request.network_container) + "/" + std::string(kHostnameFile);
    auto name = TRY(sys::read_file_if_exists(sys::cwd(), path, kMaxHostFile));
    if (name && check_hostname(trim(*name)).ok()) return std::string(trim(*name));
  }
  // With the host's network a container is reached by the host's name.
  bool shared = request.network == Network::host || request.uts.kind == NamespaceMode::Kind::host;
  if (shared) return sys::host_name();
  return id.substr(0, 12);
}

bool is_mounted(const RunRequest& request, std::string_view path) {
  auto covers = [&](const auto& mount) { return is_at_or_below(path, mount.destination); };
  auto is_kernels = [&](const char* place) { return is_at_or_below(path, place); };
  return std::ranges::any_of(request.volumes, covers) ||
         std::ranges::any_of(request.tmpfs, covers) ||
         std::ranges::any_of(request.image_mounts, covers) || is_kernels("/proc") ||
         is_kernels("/sys") || is_kernels("/dev");
}

Result<Accounts> read_accounts(const LayerView& view) {
  Accounts accounts;
  accounts.passwd = TRY(view.read_file("/etc/passwd", kMaxAccountFile)).value_or("");
  accounts.group = TRY(view.read_file("/etc/group", kMaxAccountFile)).value_or("");
  return accounts;
}

/// The caller's home directory in a container that keeps the caller's id.
std::string home_of_caller(const Context& context, const RunRequest& request,
                           const image::Image& image) {
  std::string home(context.environment.get("HOME").value_or(""));
  bool plain = escape_controls(home) == home && home.find(':') == std::string::npos;
  if (plain && home.starts_with('/') && is_mounted(request, home)) return home;
  std::string directory = request.workdir.value_or(image.config.config.working_dir);
  return directory.starts_with('/') ? directory : "/";
}

Result<oci::ContainerUser> choose_user(const Context& context, const RunRequest& request,
                                       const image::Image& image,
                                       const std::optional<KeptIds>& kept,
                                       const Accounts& accounts) {
  std::string usual = image.config.config.user;
  if (kept) usual = std::to_string(kept->uid) + ":" + std::to_string(kept->gid);
  const std::string wish = request.user.value_or(usual);
  const std::string& group = accounts.group;
  oci::ContainerUser user = TRY(oci::resolve_user(wish, accounts.passwd, group));
  if (context.identity != Identity::single) TRY(leave_out_groups(context, user));
  bool added = !request.group_add.empty() && !keeps_groups(request);
  if (added) TRY(oci::add_groups(request.group_add, group, user));
  if (context.identity == Identity::single && added) {
    return make_error(
        Kind::denied,
        "group " + quote(request.group_add.front()) + ": this user has only one group id",
        "ask for subordinate ids in /etc/subuid and /etc/subgid");
  }
  bool one = user.uid == (kept ? kept->uid : 0) && user.gid == (kept ? kept->gid : 0);
  if (context.identity != Identity::single) {
    if (added) TRY(require_groups(user.additional_gids));
    if (kept || TRY(has_ids(user))) return user;
    if (request.user) return no_such_ids(wish);
  }
  if (one) return user;
  if (request.user) {
    return make_error(Kind::denied, "user " + quote(wish) + ": this user has only one user id",
                      "ask for subordinate ids in /etc/subuid and /etc/subgid");
  }
  context.log.warn(
      "the image's user " + quote(wish) +
      " cannot be mapped to the ids that this user has, using this user as root instead");
  user.uid = user.gid = 0;
  user.additional_gids.clear();
  return user;
}

/// The last group of the range that starts at 0 in our user namespace.
Result<uint32_t> last_group() {
  std::vector<sys::IdRange> ranges = TRY(sys::mapped_gids());
  std::ranges::sort(ranges, {}, &sys::IdRange::inside);
  uint32_t end = 0;
  for (const sys::IdRange& range : ranges) {
    if (range.inside == end) end += std::min(range.count, uint32_t{INT32_MAX} - end);
  }
  return end == 0 ? 0 : end - 1;
}

// berth-runtime creates a missing directory, as docker does. In a batch step, a directory that the
// user names must exist, as with pyxis: otherwise all tasks would start in an empty directory.
Result<std::string> choose_directory(const RunRequest& request, const image::Image& image,
                                     const LayerView& view) {
  const std::string& image_directory = image.config.config.working_dir;
  std::string directory = request.workdir.value_or(image_directory);
  if (directory.empty()) return std::string("/");
  if (!directory.starts_with('/')) {
    if (request.workdir) {
      return make_error(Kind::usage,
                        "working directory " + quote(directory) + " is not an absolute path");
    }
    directory.insert(0, "/");
  }
  if (is_mounted(request, directory)) return directory;
  switch (TRY(view.look_up(directory))) {
    case LayerView::Type::directory:
      return directory;
    case LayerView::Type::other:
      return make_error(Kind::not_found, "working directory " + quote(directory) +
                                             " is not a directory in the image");
    case LayerView::Type::absent:
      break;
  }
  bool is_step = request.labels.contains(kStepLabel);
  if (!is_step || !request.workdir || directory == image_directory) return directory;
  return make_error(Kind::not_found,
                    "working directory " + quote(directory) + " does not exist in the image",
                    "-v to mount it, or another --workdir");
}

// Checked before anything is created: the kernel would only report "Not a directory" halfway
// through.
Result<void> check_volume(const Volume& volume, const LayerView& view) {
  auto source = TRY(sys::open_if_exists(sys::cwd(), volume.source, O_PATH));
  if (!source && volume.must_exist) {
    return make_error(Kind::not_found,
                      "invalid mount config for type \"bind\": bind source path does not exist: " +
                          escape_controls(volume.source));
  }
  bool directory = !source || S_ISDIR(TRY(sys::stat_fd(*source, volume.source)).st_mode);
  LayerView::Type there = TRY(view.look_up(volume.destination));
  if (there == LayerView::Type::absent) return {};
  if (directory == (there == LayerView::Type::directory)) return {};
  const char* fault = directory
                          ? "the source is a directory, the destination in the image is not"
                          : "the source is not a directory, the destination in the image is one";
  const std::string& shown = volume.name.empty() ? volume.source : volume.name;
  return make_error(Kind::usage,
                    "volume " + quote(shown + ":" + volume.destination) + ": " + fault);
}

Result<void> check_volumes(const RunRequest& request, const LayerView& view) {
  for (const Volume& volume : request.volumes) {
    // Below another mount the image's files are hidden.
    std::string parent = volume.destination.substr(0, volume.destination.rfind('/'));
    if (!parent.empty() && is_mounted(request, parent)) continue;
    TRY(check_volume(volume, view));
  }
  return {};
}

/// The /dev/shm of the process with the ipc namespace `space`, "/proc/PID/ns/ipc"; empty if it has
/// none.
Result<std::string> shared_memory_beside(const std::string& space) {
  std::string path = space.substr(0, space.find("/ns/")) + "/root/dev/shm";
  auto found = TRY(sys::open_if_exists(sys::cwd(), path, O_PATH | O_DIRECTORY));
  bool shared = found && TRY(sys::file_system_type(*found, path)) == TMPFS_MAGIC;
  return shared ? path : "";
}

Result<void> set_root(const RunRequest& request, const std::string& directory, Decision& decision) {
  use_rootfs_driver(request, directory, decision.spec);
  if (!request.rootfs_driver) return {};
  bool copied = *request.rootfs_driver == RootfsDriver::copy;
  if (copied && !decision.driver.files.empty()) {
    return make_error(Kind::unsupported,
                      "'--gpu-driver copy' has no layer of its own to write to: the root is a copy "
                      "of the image",
                      "--gpu-driver bind");
  }
  decision.provenance.root =
      gpu::Reason{kRootItem, to_json_text(*request.rootfs_driver), true, request.rootfs_reason, ""};
  return {};
}

Result<void> make_marks(const sys::Fd& directory) {
  TRY(sys::write_file(directory, ".dockerenv", "", 0644));
  TRY(sys::make_directory(directory, "run", 0755));
  return sys::write_file(directory, "run/.containerenv", "engine=\"berth\"\n", 0644);
}

/// Adds, below the image, the files by which programs detect a container: /.dockerenv (docker's)
/// and /run/.containerenv (podman's, which names the engine). Only for an overlay root; diff and
/// commit do not show them.  Errors: io.
Result<void> add_container_marks(const Context& context, oci::Spec& spec) {
  const std::string name = "container-marks";
  TRY(sys::make_directories(sys::cwd(), context.paths.state, 0700));
  sys::Fd parent = TRY(sys::open_at(sys::cwd(), context.paths.state, O_RDONLY | O_DIRECTORY));
  TRY_CTX(gpu::publish_directory(parent, name, make_marks),
          "cannot prepare the files that every container has");
  add_lowest_layer(context.paths.state + "/" + name, spec);
  return {};
}

}  // namespace

Result<Decision> decide(const Context& context, const Resolved& resolved, const std::string& id,
                        Leasing leasing) {
  const RunRequest& request = resolved.request();
  const image::Image& image = resolved.image();
  const oci::ContainerDefaults& defaults = image.config.config;
  std::vector<std::string> layers = image.layer_directories();
  std::ranges::reverse(layers);
  bool host_root = false;
  if (request.image_file) layers = {request.image};
  if (request.rootfs) {
    host_root = TRY(is_host_root(*request.rootfs));
    layers = {*request.rootfs};
    if (request.gpu_driver == policy::DriverMode::copy) {
      return make_error(Kind::usage, "'--gpu-driver copy' would write into the root file system",
                        "--gpu-driver bind");
    }
  }
  LayerView view = TRY(LayerView::open(layers));

  Decision decision;
  decision.id = id;
  decision.hostname = TRY(choose_hostname(context, request, decision.id));
  // The host's /etc/hosts lists the host's name.
  if (host_root && !request.hostname) decision.hostname = TRY(sys::host_name());
  decision.command =
      TRY(make_command(defaults.entrypoint, defaults.cmd, request.entrypoint, request.command));
  std::optional<KeptIds> kept;
  Accounts accounts = TRY(read_accounts(view));
  if (request.userns.kind == NamespaceMode::Kind::keep_id) {
    kept = TRY(keep_ids(context, request));
    std::string home = home_of_caller(context, request, image);
    accounts = {with_account(accounts.passwd, *kept, home), with_group(accounts.group, *kept)};
    if (!accounts.passwd.empty() && !accounts.group.empty()) decision.accounts = accounts;
  }
  oci::ContainerUser user = TRY(choose_user(context, request, image, kept, accounts));
  std::string cwd = TRY(choose_directory(request, image, view));
  TRY(check_volumes(request, view));
  Environment inherited(request.inherited);
  const std::vector<std::string> entries = environment_of(request);
  EnvironmentInputs environment{defaults.env,      entries,   inherited,
                                decision.hostname, user.home, request.terminal};
  std::vector<std::string> variables = TRY(make_environment(environment));
  Confinement confinement = TRY(choose_confinement(context, request));
  gpu::Choice gpus = TRY(choose_gpus(context, request, defaults, confinement.capabilities));

  SpecInputs inputs{request,
                    context.identity,
                    decision.id,
                    container_path(context.paths, decision.id),
                    layers,
                    decision.hostname,
                    std::move(user),
                    decision.command,
                    std::move(variables),
                    std::move(cwd),
                    std::move(confinement)};
  inputs.kept = std::move(kept);
  if (context.identity != Identity::root) inputs.last_group = TRY(last_group());
  inputs.own_accounts = decision.accounts.has_value();
  inputs.in_job = is_in_job(context.environment);
  inputs.store = context.paths.root;
  inputs.host_root = host_root;
  inputs.init_program = context.paths.libexec + "/berth-init";
  inputs.block_io = TRY(block_limits(request.limits));
  inputs.ulimits = TRY(permitted_ulimits(context, request.ulimits));
  inputs.oom_score_adj = TRY(permitted_oom_score(context, request.oom_score_adj));
  if (request.ipc.kind == NamespaceMode::Kind::host) {
    inputs.host_has_mqueue = TRY(sys::stat_entry(sys::cwd(), "/dev/mqueue")).has_value();
  }
  inputs.joined = TRY(find_namespaces(context, request));
  if (auto ipc = inputs.joined.find("ipc"); ipc != inputs.joined.end()) {
    inputs.joined_shm = TRY(shared_memory_beside(ipc->second));
  }
  if (request.network == Network::container) {
    inputs.network_directory = container_path(context.paths, request.network_container);
  }
  inputs.image_mounts = TRY(make_image_mounts(context, request, view));
  inputs.layers.push_back(TRY(mountpoint_layer(context.paths.root)));
  decision.spec = make_spec(inputs);
  decision.layers = std::move(layers);
  TRY(add_network(context, request, defaults, decision.id, decision.spec));
  add_site_hooks(request, decision.spec);
  decision.provenance.rules = request.site.verdicts;
  TRY(add_host_nodes(context, request, gpus, decision.spec, decision.provenance));
  decision.lease = TRY(add_gpus(context, std::move(gpus), {decision.id, request, image, view},
                                leasing, decision.spec, decision.driver, decision.provenance));
  TRY(add_mpi(context, {decision.id, request, image, view}, decision.spec, decision.provenance));
  TRY(check_nodes({decision.id, request, image, view}, decision.spec));
  TRY(add_loader_places(context, decision.spec));
  TRY(add_container_marks(context, decision.spec));
  TRY(set_root(request, container_path(context.paths, id), decision));
  if (host_root) TRY(check_places(decision.spec, view));
  if (request.rootfs && request.read_only) {
    for (std::string& place : TRY(mounts_below(*request.rootfs, decision.spec))) {
      decision.spec.linux_.readonly_paths.push_back(std::move(place));
    }
  }
  return decision;
}

Result<std::string> mountpoint_layer(const std::string& root) {
  std::string path = root + "/placeholder";
  // This file is created last; without it, complete what a killed process left.
  if (TRY(sys::stat_entry(sys::cwd(), path + "/etc/resolv.conf"))) return path;
  for (const char* directory : {"", "/proc", "/sys", "/dev", "/etc"}) {
    TRY(sys::make_directory(sys::cwd(), path + directory, 0755));
  }
  for (const char* file : {"/etc/hosts", "/etc/hostname", "/etc/resolv.conf"}) {
    TRY(sys::write_file(sys::cwd(), path + file, "", 0644));
  }
  return path;
}

}  // namespace berth::engine
