// SPDX-License-Identifier: Apache-2.0
#include "gpu/inject/inject.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <cstdlib>

#include "base/text.hpp"
#include "gpu/cdi_index/index.hpp"
#include "gpu/grant/grant.hpp"
#include "gpu/grant/reach.hpp"
#include "gpu/inject/image_files.hpp"
#include "gpu/inject/wish.hpp"
#include "gpu/inventory/access.hpp"
#include "gpu/inventory/cache.hpp"
#include "gpu/inventory/state_directory.hpp"
#include "gpu/ledger/chooser.hpp"
#include "gpu/place/finish.hpp"
#include "gpu/place/place.hpp"
#include "json/fields.hpp"
#include "oci/edit.hpp"
#include "policy/amend/amend.hpp"
#include "policy/policy.hpp"
#include "sys/file/file.hpp"
#include "sys/process/process.hpp"
#include "sys/user/identity.hpp"
#include "sys/user/trusted_file.hpp"

namespace berth::gpu {
namespace {

constexpr size_t kLongestNote = 4 * kRecordSize;
constexpr const char* kAnnotation = "an annotation";

using Strings = std::vector<std::string>;

constexpr std::chrono::seconds kPatience{30};
constexpr size_t kMaxAnswer = size_t{1} << 20;

/// Amends one container's configuration.
class Injector {
 public:
  Injector(InjectOptions options, const Injected& container, oci::Spec& spec, Log& log)
      : options_(std::move(options)), container_(container), spec_(spec), log_(log) {}

  Result<std::optional<ContainerLease>> run();

 private:
  Result<Inventory> find_inventory() const;
  Result<Machine> look_at_machine() const;
  Result<cdi::Index> find_index() const;
  Result<void> ask_berth(Strings words) const;
  Result<std::optional<cdi::Index>> look_up_names(Choice& choice) const;
  Result<void> add(Choice& choice);
  Result<void> apply_rules(const std::vector<policy::PlacedRule>& rules, Sources& sources);
  Result<void> add_cdi(oci::ContainerEdits edits);
  std::vector<Computing> ask_computing(const Asked& asked) const;
  Outside look_outside(const Inventory& inventory) const;
  Result<std::vector<Selected>> lease(const Choice& choice, const Inventory& inventory);
  Result<void> lease_nodes(const Choice& choice);
  Result<void> add_gpus(const Request& request, const Inventory& inventory,
                        const std::vector<Selected>& selected);

  InjectOptions options_;
  const Injected& container_;
  oci::Spec& spec_;
  Log& log_;
  policy::Gpu policy_;
  std::optional<ContainerLease> lease_;
};

/// The last line of a program's output.
std::string last_line(std::string_view text) {
  std::string_view whole = trim(text);
  size_t newline = whole.rfind('\n');
  return escape_controls(newline == std::string_view::npos ? whole : whole.substr(newline + 1));
}

// Making the inventory requires reading ELF files and YAML and calling NVML, which a privileged
// program must not do. berth is started only if a driver has changed, not in an ordinary start.
Result<void> Injector::ask_berth(Strings words) const {
  sys::SpawnOptions berth;
  berth.program = TRY(sys::program_directory()) + "/berth";
  berth.args = {"berth", "--config-dir", options_.config_dir, "--state", options_.state_dir};
  if (!policy_.driver_root.empty()) {
    berth.args.insert(berth.args.end(), {"--driver-root", policy_.driver_root});
  }
  for (const std::string& directory : policy_.cdi_directories) {
    berth.args.insert(berth.args.end(), {"--cdi-spec-dir", directory});
  }
  berth.args.insert(berth.args.end(), words.begin(), words.end());
  berth.env = {"PATH=/usr/sbin:/usr/bin:/sbin:/bin"};
  // The store of an ordinary user is below HOME.
  if (const char* home = std::getenv("HOME")) berth.env->push_back(std::string("HOME=") + home);
  berth.working_directory = "/";
  auto output = TRY(sys::run_command(std::move(berth), "", kPatience, kMaxAnswer));
  if (output.status.shell_code() == 0) return {};
  return make_error(Kind::io, fmt::format("run 'berth {}': exit status {}: {}", join(words, " "),
                                          output.status.shell_code(), last_line(output.err)));
}

Result<Inventory> Injector::find_inventory() const {
  DriverRoot root = TRY(DriverRoot::open(policy_.driver_root.empty() ? "/" : policy_.driver_root));
  std::string path = options_.state_dir + "/gpu";
  auto read = [&]() -> Result<std::optional<Inventory>> {
    auto directory = TRY(sys::open_trusted_directory_if_exists(path));
    if (!directory) return std::optional<Inventory>();
    return find_cached(*directory, root, {policy_.library_directories, policy_.files});
  };
  if (auto cached = TRY(read())) return std::move(*cached);
  TRY_CTX(ask_berth({"gpu", "list", "--quiet"}), "cannot look for this machine's GPUs");
  if (auto cached = TRY(read())) return std::move(*cached);
  return make_error(Kind::io, "no inventory of this machine's GPUs in " + quote(path),
                    "berth gpu list --refresh");
}

Result<cdi::Index> Injector::find_index() const {
  std::string path = options_.state_dir + "/" + cdi::kIndexName;
  auto directories =
      policy_.cdi_directories.empty() ? cdi::default_directories() : policy_.cdi_directories;
  auto read = [&]() -> Result<std::optional<cdi::Index>> {
    auto index = cdi::read_index(path);
    // The index is of another version of Berth, or truncated: a new one is made.
    if (!index.ok() && index.error().kind != Kind::denied) return std::optional<cdi::Index>();
    bool usable = index.ok() && *index && (*index)->directories == directories &&
                  TRY(cdi::is_current(**index));
    if (usable || !index.ok()) return index;
    return std::optional<cdi::Index>();
  };
  if (auto index = TRY(read())) return std::move(*index);
  TRY_CTX(ask_berth({"cdi", "refresh"}), "cannot read this machine's CDI files");
  if (auto index = TRY(read())) return std::move(*index);
  return make_error(Kind::io, "no index of CDI devices at " + quote(path), "berth cdi refresh");
}

// Names of GPUs that are not in a CDI file are moved to the request.
Result<std::optional<cdi::Index>> Injector::look_up_names(Choice& choice) const {
  if (choice.cdi_names.empty()) return std::optional<cdi::Index>();
  cdi::Index index = TRY(find_index());
  Strings defined;
  for (const auto& device : index.devices) defined.push_back(device.name);
  for (const auto& fault : index.unavailable) defined.push_back(fault.object);
  std::ranges::sort(defined);
  take_plain_gpus(choice.cdi_names, defined, kAnnotation, choice.request);
  return std::optional<cdi::Index>(std::move(index));
}

// If the caller is confined to some GPUs, its container cannot open others either.
Result<Machine> Injector::look_at_machine() const {
  Machine machine = look_for_denied(TRY(find_inventory()));
  if (machine.denied > 0) {
    log_.debug(fmt::format("{} GPUs are left out: the device cgroup of the caller denies them",
                           machine.denied));
  }
  return machine;
}

/// config-linux.md "Devices": "u" is a character device without a buffer.
bool is_character(const oci::Device& device) {
  return device.type == "c" || device.type == "u";
}

// Nodes that the configuration has already: podman resolves CDI files itself, and a device plugin
// names nodes. Containers that have every node are left out, because it is unknown which GPUs they
// use.
std::vector<GivenNode> given_nodes(const oci::Spec& spec) {
  std::vector<GivenNode> nodes;
  for (const oci::Device& device : spec.linux_.devices) {
    if (is_character(device)) nodes.push_back({{}, std::pair(device.major, device.minor)});
  }
  // podman binds nodes in a user namespace, where it cannot make them.
  for (const oci::Mount& mount : spec.mounts) {
    bool may_be = mount.source.starts_with("/dev/") || mount.destination.starts_with("/dev/");
    if (!may_be) continue;
    GivenNode node{mount.source};
    auto found = sys::open_at(sys::cwd(), mount.source, O_PATH);
    auto info = found.ok() ? sys::stat_fd(*found, mount.source) : std::move(found).error();
    if (info.ok() && S_ISCHR(info->st_mode)) {
      node.number = {major(info->st_rdev), minor(info->st_rdev)};
    }
    nodes.push_back(std::move(node));
  }
  return nodes;
}

/// Whether a GPU for computing may be among the devices and mounts of `spec`. /dev/kfd has no
/// reserved number.
bool names_gpus(const oci::Spec& spec) {
  constexpr int64_t kNvidia = 195, kFirstOfDriver = 254;  // nvidia-modeset, nvidiactl
  const auto& devices = spec.linux_.devices;
  const auto& mounts = spec.mounts;
  auto is_name = [](std::string_view path) {
    constexpr std::string_view kBegin = "/dev/nvidia";
    bool numbered = path.starts_with(kBegin) && path.size() > kBegin.size() &&
                    path[kBegin.size()] >= '0' && path[kBegin.size()] <= '9';
    return numbered || path == "/dev/kfd";
  };
  return std::ranges::any_of(devices,
                             [](const oci::Device& one) {
                               bool nvidia = one.major == kNvidia && one.minor < kFirstOfDriver;
                               return is_character(one) && (nvidia || one.path == "/dev/kfd");
                             }) ||
         std::ranges::any_of(mounts, [&](const oci::Mount& one) {
           return is_name(one.source) || is_name(one.destination);
         });
}

/// Whether the container has the device rule of --privileged.
bool has_all_devices(const oci::Spec& spec) {
  if (!spec.linux_.resources) return false;
  const auto& rules = spec.linux_.resources->devices;
  return std::ranges::any_of(rules, [](const oci::DeviceRule& rule) {
    bool all = rule.type.empty() || rule.type == "a";
    return rule.allow && all && !rule.major && !rule.minor;
  });
}

// Whether `path` exists. In doubt (we may not examine it) it does.
bool is_there(const std::string& path) {
  auto found = sys::stat_entry(sys::cwd(), path);
  return found.ok() ? found->has_value() : found.error().kind != Kind::not_found;
}

/// The node for a rule's device: "/dev/fuse", "/dev/fuse:/dev/fuse2:rw". Nothing for an optional
/// device that the machine lacks.
Result<std::optional<oci::DeviceNode>> node_of(const policy::Given& given) {
  auto parts = split(given.text, ':');
  oci::DeviceNode node;
  node.host_path = parts[0];
  node.path = parts[0];
  node.permissions = "rwm";
  for (std::string_view part : std::vector(parts.begin() + 1, parts.end())) {
    (part.starts_with('/') ? node.path : node.permissions) = part;
  }
  auto info = TRY(sys::stat_entry(sys::cwd(), node.host_path));
  bool is_node = info && (S_ISCHR(info->st_mode) || S_ISBLK(info->st_mode));
  if (!is_node && given.optional) return std::optional<oci::DeviceNode>();
  if (!is_node) {
    return make_error(Kind::not_found, "rule " + quote(given.rule) + ": device " +
                                           quote(given.text) + ": there is no such node");
  }
  node.type = S_ISBLK(info->st_mode) ? "b" : "c";
  node.major = static_cast<int64_t>(major(info->st_rdev));
  node.minor = static_cast<int64_t>(minor(info->st_rdev));
  node.file_mode = info->st_mode & 07777;
  node.uid = info->st_uid;
  node.gid = info->st_gid;
  return std::optional<oci::DeviceNode>(std::move(node));
}

/// The id of the pod's sandbox; empty if the container is in no pod.
std::string sandbox_of(const oci::Spec& spec) {
  // podman also copies annotations of images, which must not choose the group.
  if (spec.annotations.contains("io.container.manager")) return {};
  for (const char* name : {"io.kubernetes.cri.sandbox-id", "io.kubernetes.cri-o.SandboxID"}) {
    auto found = spec.annotations.find(name);
    if (found != spec.annotations.end() && !found->second.empty()) return found->second;
  }
  return {};
}

/// "default/train/main", for people; empty if the engine does not tell, or in no pod.
std::string pod_name(const oci::Spec& spec) {
  constexpr size_t kLongest = 253;
  std::string name;
  for (const char* part : {"sandbox-namespace", "sandbox-name", "container-name"}) {
    auto found = spec.annotations.find(std::string("io.kubernetes.cri.") + part);
    if (found == spec.annotations.end() || found->second.size() > kLongest) return {};
    name += (name.empty() ? "" : "/") + escape_controls(found->second);
  }
  return name;
}

/// Containers of one pod share their GPUs.
std::string group_of(const oci::Spec& spec, const std::string& container) {
  std::string sandbox = sandbox_of(spec);
  return sandbox.empty() ? container : sandbox;
}

/// Processes on NVIDIA's GPUs; empty if the driver cannot be asked.
std::vector<Computing> Injector::ask_computing(const Asked& asked) const {
  if (asked.gpus.empty()) return {};
  auto read = [&] { return read_computing(options_.state_dir, asked); };
  auto computing = read();
  if (!computing) {
    auto told = ask_berth({"gpu", "top", "--once", "--format", "json"});
    computing = read();
    std::string why = told.ok() ? "the driver does not say" : to_line(told.error());
    if (!computing)
      log_.warn("cannot find out which other processes use GPUs: " + why + "; ignoring");
  }
  return std::move(computing).value_or(std::vector<Computing>());
}

Outside Injector::look_outside(const Inventory& inventory) const {
  auto here = look_around();
  if (!here.ok()) return {};
  auto computing = ask_computing(asked_of(inventory, *here));
  add_amd_computing(inventory, see_process, computing);
  return {computing, {see_process, here->pid_space}};
}

Result<std::vector<Selected>> Injector::lease(const Choice& choice, const Inventory& inventory) {
  Strings beside = keys_of(choice.cdi_names, inventory);
  if (!has_all_devices(spec_)) {
    for (std::string& key : keys_of_nodes(given_nodes(spec_), inventory)) {
      bool known = std::ranges::find(beside, key) != beside.end();
      if (!known) beside.push_back(std::move(key));
    }
  }
  Request request = choice.request;
  request.exclusive = policy_.exclusive;
  Chooser chooser(std::move(request), inventory, std::move(beside));
  // A pod's own variables must not lead to GPUs of another pod.
  bool by_name = choice.request.want == Request::Want::none || choice.request.source == kAnnotation;
  if (by_name && !sandbox_of(spec_).empty()) chooser.given_by_kubelet();
  if (!chooser.wants_any()) return chooser.selected();
  Wanted wanted = TRY(chooser.wanted());
  if (policy_.outside_processes && chooser.minds_others(wanted))
    chooser.count(look_outside(inventory));
  Lease lease;
  lease.container = container_.id;
  lease.group = group_of(spec_, container_.id);
  if (!sandbox_of(spec_).empty()) lease.name = pod_name(spec_);
  lease.engine = "berth-runtime";
  std::string place = policy_.ledger.empty() ? std::string(kMachineLedger) : policy_.ledger;
  Ledger ledger = TRY(Ledger::open(place, options_.state_dir));
  HeldLease held = TRY(ledger.take(std::move(lease), [&](const Holders& holders, Lease& given) {
    return chooser.choose(holders, given);
  }));
  lease_ = ContainerLease{std::move(ledger), std::move(held), true};
  return chooser.selected();
}

// Devices by CDI name and by path need no grant, so they are not refused if the machine's GPUs
// cannot be found.
Result<void> Injector::lease_nodes(const Choice& choice) {
  auto machine = look_at_machine();
  if (!machine.ok()) {
    log_.warn("cannot find out which containers have the GPUs given by name or path: " +
              to_line(machine.error()) + "; ignoring");
    return {};
  }
  TRY(lease(choice, machine->ours));
  return {};
}

Result<void> Injector::add_gpus(const Request& request, const Inventory& inventory,
                                const std::vector<Selected>& selected) {
  if (request.want == Request::Want::none) return {};
  using policy::DriverMode;
  // Mode `copy` writes into the image's files, and mode `image` reads them.
  if (policy_.driver_mode == DriverMode::copy || policy_.driver_mode == DriverMode::image) {
    return make_error(
        Kind::unsupported,
        "driver mode " + quote(enum_text(policy_.driver_mode)) + ": only berth run has it",
        "gpu.driver-mode of the policy: bind, volume or none");
  }
  ImageFiles image = look_at_image(container_.rootfs, spec_, policy_.forward_compatibility);
  PlaceOptions place_options;
  place_options.state_dir = options_.state_dir;
  place_options.volume_dir = options_.state_dir + "/volumes";
  place_options.musl = image.driver.musl;
  // Existing files in this directory are used by name, without a check of their content.
  TRY(sys::open_trusted_directory_if_exists(place_options.volume_dir));
  GrantOptions grant_options;
  grant_options.mode = policy_.driver_mode;
  grant_options.image = &image.driver;
  grant_options.selected = &selected;
  grant_options.forward_compatibility = policy_.forward_compatibility;
  grant_options.compat_later = image.compat;
  grant_options.real_path = real_path_in(container_.rootfs);
  grant_options.user_mounts = user_mounts(spec_, grant_options.real_path);
  Grant grant = TRY(make_grant(request, inventory, grant_options));
  leave_out_denied(grant);
  for (const Reason& reason : grant.reasons) {
    log_.debug(reason.kind + " " + reason.object + ": " + reason.why);
  }
  for (const std::string& warning : grant.warnings) log_.warn(warning);
  if (grant.synthetic) log_.warn("the driver tree is synthetic: these are not real GPUs");
  Placement placed = TRY(place(grant, place_options));
  if (!policy_.additional_gids) placed.edits.additional_gids.clear();
  oci::apply(placed.edits, spec_);
  return {};
}

Result<void> Injector::add_cdi(oci::ContainerEdits edits) {
  bool nodes_alone = policy_.driver_mode == policy::DriverMode::image;
  if (nodes_alone && keep_nodes(edits)) log_.warn(kNodesAlone);
  FinishOptions options{options_.state_dir, policy_.forward_compatibility, nullptr};
  // If no driver is found here, only the CDI file decides.
  std::optional<Inventory> inventory;
  if (wants_inventory(edits)) {
    auto found = find_inventory();
    if (found.ok()) inventory = std::move(*found);
  }
  if (inventory) options.inventory = &*inventory;
  TRY(finish_edits(edits, options));
  RealPath real_path = real_path_in(container_.rootfs);
  auto left_out =
      TRY(fit_places(edits.mounts, user_mounts(spec_, real_path), real_path, look_at_host));
  if (!left_out.empty()) log_.warn(left_out_text(left_out));
  oci::apply(edits, spec_);
  return {};
}

Result<void> Injector::add(Choice& choice) {
  if (options_.state_dir.empty()) options_.state_dir = default_state_directory();
  auto index = TRY(look_up_names(choice));
  Request& request = choice.request;
  const auto& cdi = choice.cdi_names;
  bool by_name = std::ranges::any_of(
      cdi, [](const std::string& name) { return vendor_of_cdi_name(name).has_value(); });
  bool by_path = !has_all_devices(spec_) && names_gpus(spec_);
  const std::vector<oci::Device> of_the_engine = spec_.linux_.devices;
  if (request.want != Request::Want::none || !policy_.never.empty() || !request.limits.empty()) {
    Machine machine = TRY(look_at_machine());
    TRY(narrow(choice, machine));
    if (spec_.process) keep_last(spec_.process->env);
    std::vector<Selected> selected = TRY(lease(choice, machine.ours));
    TRY(add_gpus(request, machine.ours, selected));
  } else if (by_name || by_path) {
    TRY(lease_nodes(choice));
  }
  if (!cdi.empty()) {
    oci::ContainerEdits edits = TRY(cdi::edits_of(*index, cdi));
    TRY(add_cdi(std::move(edits)));
  }
  std::vector<oci::Device> ours = spec_.linux_.devices;
  std::erase_if(ours, [&](const oci::Device& one) {
    return std::ranges::find(of_the_engine, one.path, &oci::Device::path) != of_the_engine.end();
  });
  return check_devices(ours, user_mounts(spec_, real_path_in(container_.rootfs)), is_host_device);
}

// Call after the requests were read: a variable that a rule adds must not be mistaken for the last
// one, which dockerd appends.
Result<void> Injector::apply_rules(const std::vector<policy::PlacedRule>& rules, Sources& sources) {
  policy::Facts facts = policy::facts_of(spec_, options_.caller);
  // Ids are numbers only, because this program uses no name service.
  facts.uid = std::to_string(calling_user().value_or(0));
  if (policy::needs_of(rules).groups && !sys::in_initial_user_namespace()) {
    return make_error(Kind::denied,
                      "cannot decide which rules of the site apply, because some depend on the "
                      "caller's groups: nobody sees them in a user namespace",
                      "the same command outside of it");
  }
  sys::Identity who = TRY(sys::identity());
  facts.groups.push_back(std::to_string(who.gid));
  for (gid_t group : who.groups) facts.groups.push_back(std::to_string(group));
  facts.gpus = sources.gpus.has_value() && *sources.gpus != "none";
  policy::Outcome outcome = policy::evaluate(rules, facts);
  for (const policy::Verdict& verdict : outcome.verdicts) {
    log_.debug("rule " + quote(verdict.rule) + (verdict.applied ? " " : " does not apply: ") +
               verdict.why);
  }
  for (const policy::Given& given : outcome.effects.warnings) {
    log_.warn("the site says: " + escape_controls(given.text) + " (rule " + quote(given.rule) +
              ")");
  }
  policy::Lookups lookups = TRY(policy::amend(outcome.effects, is_there, spec_));
  for (const policy::Given& given : lookups.cdi_names) sources.devices.push_back(given.text);
  bool sites = lookups.gpus && (!sources.gpus || lookups.gpus->forced);
  if (sites) sources.gpus = lookups.gpus->text;
  oci::ContainerEdits edits;
  for (const policy::Given& given : lookups.nodes) {
    auto node = TRY(node_of(given));
    if (node) edits.device_nodes.push_back(std::move(*node));
  }
  oci::apply(edits, spec_);
  return {};
}

Result<std::optional<ContainerLease>> Injector::run() {
  if (options_.config_dir.empty()) options_.config_dir = "/etc/berth";
  auto compiled =
      TRY_CTX(policy::read_compiled(options_.config_dir), "cannot read the site's policy");
  policy_ = std::move(compiled.policy.gpu);
  Wish wish = TRY(take_wish(spec_, policy_));
  take_job(options_.caller, wish.sources, policy_);
  if (!compiled.rules.empty()) TRY(apply_rules(compiled.rules, wish.sources));
  Choice choice = TRY(choose(wish.sources, policy_));
  for (const Verdict& verdict : choice.verdicts) {
    log_.debug(verdict.source + " " + quote(verdict.text) +
               (verdict.used ? " counts: " : " does not count: ") + verdict.why);
  }
  for (const std::string& warning : wish.warnings) log_.warn(warning);
  for (const std::string& warning : choice.warnings) log_.warn(warning);
  if (choice.grants()) {
    TRY(add(choice));
  } else if (!has_all_devices(spec_) && names_gpus(spec_)) {
    if (options_.state_dir.empty()) options_.state_dir = default_state_directory();
    TRY(lease_nodes(choice));
  }
  return std::move(lease_);
}

}  // namespace

Result<std::optional<ContainerLease>> find_lease(const std::string& bundle) {
  const std::string path = bundle + "/" + kLeaseNote;
  auto text = TRY(sys::read_file_if_exists(sys::cwd(), path, kLongestNote));
  if (!text) return std::optional<ContainerLease>();
  LeaseNote note = TRY(json::read<LeaseNote>(*text, path));
  Ledger ledger = TRY(Ledger::open(note.ledger, default_state_directory()));
  HeldLease held = TRY(ledger.hold_again(note.file, note.lease));
  if (held.note().file != note.file) {
    TRY(sys::write_file(sys::cwd(), path, json::write(held.note()), 0600));
  }
  return std::optional<ContainerLease>(ContainerLease{std::move(ledger), std::move(held), false});
}

Result<std::string> set_life(ContainerLease& lease, pid_t pid, const std::string& cgroup) {
  Here here = TRY(look_around());
  Life life = TRY(life_of(pid, cgroup, here));
  TRY(lease.ledger.set_life(lease.held, std::move(life)));
  if (lease.taken_here) return lease.held.path();
  lease.held.leave();
  return std::string();
}

Result<std::optional<ContainerLease>> inject(const InjectOptions& options,
                                             const Injected& container, oci::Spec& spec, Log& log) {
  if (options.decided) {
    // A rule may add NVIDIA's hook, which trusts the image's variables.
    take_nvidia_hook(spec.hooks);
    return find_lease(container.bundle);
  }
  for (const std::string& path : {options.config_dir, options.state_dir}) {
    if (path.empty() || path.starts_with('/')) continue;
    return make_error(Kind::usage, "expected an absolute path, got " + quote(path),
                      "--config-dir DIR, --state DIR");
  }
  return TRY_CTX(Injector(options, container, spec, log).run(),
                 "cannot give the container its devices");
}

}  // namespace berth::gpu
