// SPDX-License-Identifier: Apache-2.0
#include "runtime/update.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <thread>
#include <utility>

#include "base/text.hpp"
#include "oci/config.hpp"
#include "runtime/cgroup/scope.hpp"
#include "runtime/engine_scope.hpp"
#include "runtime/state/bundle.hpp"
#include "runtime/state/find.hpp"
#include "sys/file/file.hpp"
#include "sys/file/mode.hpp"
#include "sys/file/open_devices.hpp"
#include "sys/mount/table.hpp"

namespace berth::runtime {
namespace {

constexpr size_t kMaxText = size_t{16} << 20;

struct Text {
  std::string text;
  std::string name;
};
Result<Text> read_text(const std::string& file) {
  bool is_input = file == "-";
  std::string name = is_input ? "standard input" : file;
  sys::Fd input = is_input ? sys::Fd(STDIN_FILENO) : TRY(sys::open_at(sys::cwd(), file, O_RDONLY));
  auto read = sys::read_all(input, name, kMaxText);
  if (is_input) input.release();
  std::string text = TRY(std::move(read));
  return Text{std::move(text), std::move(name)};
}

/// A container with processes. Errors: those of find(), usage ("container not running").
Result<Found> find_changeable(const Store& store, const std::string& id) {
  Found found = TRY(find(store, id));
  if (found.status == Status::stopped || found.status == Status::creating) {
    return make_error(Kind::usage, "container not running: " + quote(id) + " is " +
                                       std::string(status_name(found.status)));
  }
  return found;
}

/// update() for a container that was found already.
Result<void> apply_resources(Found& found, oci::Resources resources, Log& log) {
  const State& state = found.state;
  if (!resources.devices.empty()) {
    // With every change of the cpuset kubelet sends all rules that it knows, so the rules that we
    // added have to be kept.
    const auto& kept = state.added_devices;
    resources.devices.insert(resources.devices.end(), kept.begin(), kept.end());
  }
  CgroupLayout layout = TRY(cgroup_layout_of(state));
  TRY(give_scope(found));
  if (state.cgroup_path.empty()) {
    return make_error(Kind::unsupported, "find a cgroup on this machine");
  }
  // Done before we make a cgroup directory, of which a `run` in the foreground does not know.
  TRY(sys::write_file(found.entry.fd(), kUpdatedMark, ""));
  TRY(found.cgroups.update(layout, state.cgroup_path, resources, [&](const UnmetLimit& unmet) {
    return refuse_or_warn(unmet, Unmet::is_error, log);
  }));
  if (!state.systemd_unit.empty()) {
    TRY(update_scope(state.systemd_unit, state.systemd_user, resources));
    // Done after systemd's update, because systemd rounds values and writes old ones again. Unmet
    // limits have been reported above.
    TRY(found.cgroups.update(layout, state.cgroup_path, resources,
                             [](const UnmetLimit&) { return Result<void>(); }));
  }
  return {};
}

using Devices = std::vector<oci::Device>;

bool is_same(const oci::Device& a, const oci::Device& b) {
  return a.path == b.path && a.type == b.type && a.major == b.major && a.minor == b.minor;
}

bool contains(const Devices& many, const oci::Device& one) {
  return std::ranges::any_of(many, [&](const oci::Device& other) { return is_same(one, other); });
}

dev_t number_of(const oci::Device& device) {
  return makedev(static_cast<unsigned>(device.major), static_cast<unsigned>(device.minor));
}

/// The container's own /dev. Nodes are made only through handles of that file system, whatever the
/// container's processes put in the way, and no step waits for those processes.
class OwnDev {
 public:
  static Result<OwnDev> open(const State& state);

  Result<void> make(const oci::Device& device) const;
  /// Does nothing if the node is missing or has become another file.
  Result<void> remove(const oci::Device& device) const;

 private:
  OwnDev(sys::Fd directory, dev_t file_system)
      : directory_(std::move(directory)), file_system_(file_system) {}
  Result<sys::Fd> step_into(const sys::Fd& at, const std::string& name) const;
  Result<sys::Fd> parent_of(const std::string& path) const;

  sys::Fd directory_;
  dev_t file_system_;
};

std::string name_of(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

Error not_own() {
  return make_error(Kind::unsupported,
                    "change devices: /dev of the container is not a file system of its own",
                    "stop it, and start it with other devices");
}

/// The type of the mount that `directory` is in; empty if it is not in `table`.
Result<std::string> type_of(const sys::Fd& directory, const std::vector<sys::MountEntry>& table) {
  auto seen = TRY(sys::stat_quietly(directory, ""));
  for (const sys::MountEntry& entry : table) {
    if (seen && entry.id == seen->mount) return entry.type;
  }
  return std::string();
}

Result<OwnDev> OwnDev::open(const State& state) {
  const std::string process = std::to_string(state.pid);
  sys::Fd root = TRY(sys::open_at(sys::cwd(), "/proc/" + process + "/root", O_PATH | O_DIRECTORY));
  std::vector<sys::MountEntry> mounts = TRY(sys::mount_table(process));
  // If the first process still lives, the table was read from that process and not from one with
  // the same pid.
  TRY(first_process(state)).release();
  std::string type = TRY(type_of(root, mounts));
  if (type.empty() || type.starts_with("fuse")) return not_own();
  sys::Fd dev = TRY(sys::open_at(root, "dev", O_PATH | O_DIRECTORY | O_NOFOLLOW));
  type = TRY(type_of(dev, mounts));
  if (type != "tmpfs") return not_own();
  auto seen = TRY(sys::stat_quietly(dev, ""));
  const std::string number =
      std::to_string(major(seen->device)) + ":" + std::to_string(minor(seen->device));
  for (const sys::MountEntry& entry : TRY(sys::mount_table())) {
    if (entry.device == number) return not_own();
  }
  return OwnDev(std::move(dev), seen->device);
}

Result<sys::Fd> OwnDev::step_into(const sys::Fd& at, const std::string& name) const {
  sys::Fd next = TRY(sys::open_at(at, name, O_PATH | O_DIRECTORY | O_NOFOLLOW));
  auto seen = TRY(sys::stat_quietly(next, ""));
  if (seen && seen->device == file_system_) return next;
  return make_error(Kind::denied, "change devices: something is mounted over " + quote(name));
}

/// The directory in /dev that holds `path`. Errors: not_found.
Result<sys::Fd> OwnDev::parent_of(const std::string& path) const {
  sys::Fd at = TRY(sys::duplicate(directory_));
  std::vector<std::string_view> parts = split(std::string_view(path).substr(1), '/');
  for (size_t i = 1; i + 1 < parts.size(); ++i) at = TRY(step_into(at, std::string(parts[i])));
  return at;
}

Result<void> OwnDev::make(const oci::Device& device) const {
  sys::Fd at = TRY(sys::duplicate(directory_));
  std::vector<std::string_view> parts = split(std::string_view(device.path).substr(1), '/');
  for (size_t i = 1; i + 1 < parts.size(); ++i) {
    const std::string directory(parts[i]);
    auto made = sys::make_new_directory(at, directory, 0755);
    if (!made.ok() && made.error().kind != Kind::exists) return made;
    at = TRY(step_into(at, directory));
  }
  const std::string name = name_of(device.path);
  mode_t mode = device.file_mode.value_or(0666) & 07777;
  auto made = sys::make_node(at, name, S_IFCHR | mode, static_cast<unsigned>(device.major),
                             static_cast<unsigned>(device.minor));
  if (!made.ok() && made.error().kind != Kind::exists) return made;
  sys::Fd node = TRY(sys::open_at(at, name, O_PATH | O_NOFOLLOW));
  auto seen = TRY(sys::stat_quietly(node, ""));
  bool same = seen && seen->device == file_system_ && S_ISCHR(seen->mode) &&
              seen->rdev == number_of(device);
  if (!same) return make_error(Kind::exists, "there is another file at this path");
  if (!made.ok()) return {};
  return sys::change_owner(node, device.uid.value_or(0), device.gid.value_or(0), device.path);
}

Result<void> OwnDev::remove(const oci::Device& device) const {
  auto parent = parent_of(device.path);
  if (!parent.ok() && parent.error().kind == Kind::not_found) return {};
  sys::Fd at = TRY(std::move(parent));
  const std::string name = name_of(device.path);
  auto seen = TRY(sys::stat_quietly(at, name));
  bool same = seen && seen->device == file_system_ && S_ISCHR(seen->mode) &&
              seen->rdev == number_of(device);
  if (!same) return {};
  return sys::remove_entry(at, name);
}

/// Fails when a process of the container has one of `devices` open or mapped. Repeats until two
/// rounds see the same processes, because a process that was born meanwhile has inherited its files
/// from one of them. Freezing the processes is not an option: if the runtime is killed, nothing
/// thaws them.
Result<void> check_unused(const Found& found, const Devices& devices) {
  constexpr std::chrono::seconds kPatience{5};
  if (devices.empty()) return {};
  std::vector<dev_t> numbers;
  for (const oci::Device& one : devices) numbers.push_back(number_of(one));
  auto end = std::chrono::steady_clock::now() + kPatience;
  std::vector<pid_t> before;
  while (true) {
    std::vector<pid_t> now = TRY(processes_of(found));
    std::ranges::sort(now);
    for (pid_t pid : now) {
      auto open = TRY(sys::find_open_device(pid, numbers));
      if (!open) continue;
      auto at = std::ranges::find(numbers, *open) - numbers.begin();
      return make_error(Kind::busy,
                        "take away " + quote(devices[static_cast<size_t>(at)].path) + ": process " +
                            std::to_string(pid) + " has it open",
                        "end that process first");
    }
    if (now == before) return {};
    before = std::move(now);
    if (std::chrono::steady_clock::now() > end) {
      return make_error(Kind::busy, "take away " + quote(devices[0].path) +
                                        ": its processes change too fast to be checked");
    }
  }
}

oci::Resources rules_of(const std::vector<oci::DeviceRule>& rules) {
  oci::Resources resources;
  resources.devices = rules;
  return resources;
}

std::vector<oci::DeviceRule> rules_of(const oci::Spec& spec) {
  return spec.linux_.resources ? spec.linux_.resources->devices : std::vector<oci::DeviceRule>();
}

/// `rules` without the rules that allow exactly one of `devices`.
std::vector<oci::DeviceRule> without(std::vector<oci::DeviceRule> rules, const Devices& devices) {
  std::erase_if(rules, [&](const oci::DeviceRule& rule) {
    return rule.allow && std::ranges::any_of(devices, [&](const oci::Device& one) {
             return rule.major == one.major && rule.minor == one.minor;
           });
  });
  return rules;
}

/// `removed` and the nodes that all GPUs have in common: AMD's driver lets a process that has
/// closed the node of a GPU continue to compute through the common node.
Devices with_common_nodes(Devices removed, const Devices& before) {
  bool of_drm = std::ranges::any_of(
      removed, [](const oci::Device& one) { return one.path.starts_with("/dev/dri/"); });
  for (const oci::Device& one : before) {
    bool common = of_drm && one.path == "/dev/kfd" && !contains(removed, one);
    if (common) removed.push_back(one);
  }
  return removed;
}

/// Changes a container's devices, and undoes the change.
class Changing {
 public:
  Changing(Found& found, const OwnDev& dev, Log& log) : found_(found), dev_(dev), log_(log) {}

  Result<void> run(const oci::Spec& before, const DeviceChange& change, const oci::Spec& wanted);
  /// Errors name what could not be restored.
  Result<void> undo(const oci::Spec& before, const DeviceChange& change);

 private:
  Result<void> set_rules(const std::vector<oci::DeviceRule>& rules) {
    return apply_resources(found_, rules_of(rules), log_);
  }

  Found& found_;
  const OwnDev& dev_;
  Log& log_;
};

// Adds the new devices last, so that they can be opened only when nothing else can fail.
Result<void> Changing::run(const oci::Spec& before, const DeviceChange& change,
                           const oci::Spec& wanted) {
  TRY(set_rules(without(rules_of(before), change.removed)));
  for (const oci::Device& one : change.removed) TRY(dev_.remove(one));
  TRY(check_unused(found_, with_common_nodes(change.removed, before.linux_.devices)));
  for (const oci::Device& one : change.added) {
    TRY_CTX(dev_.make(one), "cannot make device " + quote(one.path));
  }
  TRY(set_rules(rules_of(wanted)));
  // If the container has ended, the change reached no process.
  TRY(first_process(found_.state)).release();
  return {};
}

Result<void> Changing::undo(const oci::Spec& before, const DeviceChange& change) {
  TRY(set_rules(rules_of(before)));
  TRY(check_unused(found_, change.added));
  for (const oci::Device& one : change.added) TRY(dev_.remove(one));
  for (const oci::Device& one : change.removed) {
    if (contains(before.linux_.devices, one)) TRY(dev_.make(one));
  }
  return {};
}

Result<void> check_changeable(const oci::Spec& spec, const DeviceChange& change) {
  bool mapped = std::ranges::any_of(spec.linux_.namespaces,
                                    [](const auto& space) { return space.type == "user"; });
  if (mapped) {
    return make_error(Kind::unsupported, "change devices: it is in a user namespace");
  }
  for (const Devices* devices : {&change.added, &change.removed}) {
    for (const oci::Device& one : *devices) {
      bool plain = one.path.starts_with("/dev/") && one.path.find("/../") == std::string::npos &&
                   !one.path.ends_with('/') && (one.type == "c" || one.type == "u");
      if (!plain) {
        return make_error(Kind::unsupported,
                          "change device " + quote(one.path) +
                              ": only character devices in /dev can be added and removed");
      }
    }
  }
  return {};
}

/// Devices that a killed update may have left in the container, besides those of the configuration.
Result<Devices> left_devices(const std::string& bundle) {
  constexpr size_t kLongest = size_t{16} << 20;
  const std::string path = bundle + "/" + kNextConfig;
  auto text = TRY(sys::read_file_if_exists(sys::cwd(), path, kLongest));
  if (!text) return Devices();
  oci::Spec spec = TRY(oci::parse_spec(*text, path));
  return std::move(spec.linux_.devices);
}

/// Waits for the lock that allows one change of devices at a time. berth-runtime holds it, so it
/// also keeps out a change whose caller was killed.
Result<sys::Fd> take_turn(const Entry& entry) {
  constexpr std::chrono::seconds kPatience{20};
  constexpr std::chrono::milliseconds kPause{10};
  sys::Fd file = TRY(sys::open_at(entry.fd(), "devices.lock", O_RDWR | O_CREAT | O_NOFOLLOW, 0600));
  auto end = std::chrono::steady_clock::now() + kPatience;
  while (!TRY(sys::try_lock(file, sys::LockMode::exclusive, entry.id()))) {
    if (std::chrono::steady_clock::now() > end) {
      return make_error(Kind::busy, "change devices: another process is doing it");
    }
    std::this_thread::sleep_for(kPause);
  }
  return file;
}

}  // namespace

Result<oci::Resources> read_resources(const std::string& file) {
  Text read = TRY(read_text(file));
  return oci::parse_resources(read.text, read.name);
}

Result<oci::Spec> read_wanted_spec(const std::string& file) {
  Text read = TRY(read_text(file));
  return oci::parse_spec(read.text, read.name);
}

Result<void> update(const Store& store, const std::string& id, const oci::Resources& resources,
                    Log& log) {
  Found found = TRY(find_changeable(store, id));
  return apply_resources(found, resources, log);
}

DeviceChange compare_devices(const Devices& before, const Devices& after) {
  DeviceChange change;
  std::ranges::copy_if(after, std::back_inserter(change.added),
                       [&](const oci::Device& one) { return !contains(before, one); });
  std::ranges::copy_if(before, std::back_inserter(change.removed),
                       [&](const oci::Device& one) { return !contains(after, one); });
  return change;
}

Result<void> change_devices(const Store& store, const std::string& id, const oci::Spec& wanted,
                            Log& log) {
  sys::set_umask(0);
  Found found = TRY(find_changeable(store, id));
  sys::Fd turn = TRY(take_turn(found.entry));
  const oci::Spec before = TRY(read_bundle(found.state.bundle, found.state.config)).spec;
  Devices there = before.linux_.devices;
  for (oci::Device& one : TRY(left_devices(found.state.bundle))) {
    if (!contains(there, one)) there.push_back(std::move(one));
  }
  DeviceChange change = compare_devices(there, wanted.linux_.devices);
  change.added = compare_devices(before.linux_.devices, wanted.linux_.devices).added;
  TRY(check_changeable(before, change));
  OwnDev dev = TRY(OwnDev::open(found.state));
  Changing changing(found, dev, log);
  auto changed = changing.run(before, change, wanted);
  if (changed.ok()) return {};
  auto undone = changing.undo(before, change);
  if (undone.ok()) return changed;
  Error error = std::move(changed).error();
  error.kind = Kind::interrupted;
  error.what += "; and not all is as before: " + to_line(undone.error());
  return error;
}

}  // namespace berth::runtime
