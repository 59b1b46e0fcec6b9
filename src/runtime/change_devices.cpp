// SPDX-License-Identifier: Apache-2.0
#include "runtime/change_devices.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <set>

#include "base/rollback.hpp"
#include "base/text.hpp"
#include "runtime/bundle.hpp"
#include "runtime/find.hpp"
#include "runtime/mount_table.hpp"
#include "runtime/update.hpp"
#include "sys/file.hpp"
#include "sys/mode.hpp"
#include "sys/namespace.hpp"
#include "sys/node.hpp"
#include "sys/open_devices.hpp"
#include "sys/umask.hpp"

namespace berth::runtime {
namespace {

using Devices = std::vector<oci::Device>;

bool is_same(const oci::Device& a, const oci::Device& b) {
  return a.path == b.path && a.type == b.type && a.major == b.major && a.minor == b.minor;
}

bool contains(const Devices& many, const oci::Device& one) {
  return std::any_of(many.begin(), many.end(),
                     [&](const oci::Device& other) { return is_same(one, other); });
}

/// The container's own /dev. What is made there is made on a handle of that file system, and
/// nowhere else, whatever its processes put in the way.
class OwnDev {
 public:
  static Result<OwnDev> open(const State& state);

  Result<void> make(const oci::Device& device) const;
  /// What is not there, or is another file by now, is none of ours.
  Result<void> remove(const oci::Device& device) const;

 private:
  OwnDev(sys::Fd directory, dev_t file_system)
      : directory_(std::move(directory)), file_system_(file_system) {}
  Result<sys::Fd> parent_of(const std::string& path) const;

  sys::Fd directory_;
  dev_t file_system_;
};

std::string name_of(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

Result<OwnDev> OwnDev::open(const State& state) {
  const std::string process = std::to_string(state.pid);
  sys::Fd root = TRY(sys::open_at(sys::cwd(), "/proc/" + process + "/root", O_PATH | O_DIRECTORY));
  // Only then is it the root of the process that is meant.
  TRY(first_process(state)).release();
  sys::Fd dev = TRY(sys::open_at(root, "dev", O_PATH | O_DIRECTORY | O_NOFOLLOW));
  struct stat info = TRY(sys::stat_fd(dev, "/dev"));
  bool own = TRY(sys::file_system_type(dev, "/dev")) == TMPFS_MAGIC;
  const std::string number =
      std::to_string(major(info.st_dev)) + ":" + std::to_string(minor(info.st_dev));
  for (const MountLine& line : TRY(mount_table("self"))) own = own && line.device != number;
  if (!own) {
    return make_error(Kind::unsupported,
                      "change devices: /dev of the container is not a file system of its own",
                      "stop it, and start it with other devices");
  }
  return OwnDev(std::move(dev), info.st_dev);
}

Result<sys::Fd> OwnDev::parent_of(const std::string& path) const {
  sys::Fd at = TRY(sys::duplicate(directory_));
  std::vector<std::string_view> parts = split(std::string_view(path).substr(1), '/');
  for (size_t i = 1; i + 1 < parts.size(); ++i) {
    const std::string name(parts[i]);
    auto made = sys::make_new_directory(at, name, 0755);
    if (!made.ok() && made.error().kind != Kind::exists) return std::move(made).error();
    at = TRY(sys::open_at(at, name, O_PATH | O_DIRECTORY | O_NOFOLLOW));
  }
  if (TRY(sys::stat_fd(at, path)).st_dev == file_system_) return at;
  return make_error(Kind::denied, "make " + quoted(path) + ": something is mounted in its place");
}

Result<void> OwnDev::make(const oci::Device& device) const {
  sys::Fd parent = TRY(parent_of(device.path));
  const std::string name = name_of(device.path);
  auto major = static_cast<unsigned>(device.major), minor = static_cast<unsigned>(device.minor);
  mode_t mode = device.file_mode.value_or(0666) & 07777;
  auto made = sys::make_node(parent, name, S_IFCHR | mode, major, minor);
  if (!made.ok() && made.error().kind == Kind::exists) {
    sys::Fd there = TRY(sys::open_at(parent, name, O_PATH | O_NOFOLLOW));
    if (TRY(sys::is_device(there, "c", major, minor, device.path))) return {};
  }
  TRY_CTX(std::move(made), "cannot make device " + quoted(device.path));
  return sys::change_owner_at(parent, name, device.uid.value_or(0), device.gid.value_or(0));
}

Result<void> OwnDev::remove(const oci::Device& device) const {
  sys::Fd parent = TRY(parent_of(device.path));
  const std::string name = name_of(device.path);
  auto there = TRY(sys::stat_entry(parent, name));
  auto number = makedev(static_cast<unsigned>(device.major), static_cast<unsigned>(device.minor));
  if (!there || !S_ISCHR(there->st_mode) || there->st_rdev != number) return {};
  return sys::remove_entry(parent, name);
}

/// A process that is born while we look has its files from one that has been looked at, or will be
/// in the next list.
Result<void> check_unused(const Found& found, const Devices& devices) {
  std::vector<dev_t> numbers;
  for (const oci::Device& one : devices) {
    numbers.push_back(makedev(static_cast<unsigned>(one.major), static_cast<unsigned>(one.minor)));
  }
  std::set<pid_t> seen;
  for (bool grown = true; grown;) {
    grown = false;
    for (pid_t pid : TRY(processes_of(found))) {
      if (!seen.insert(pid).second) continue;
      grown = true;
      auto open = TRY(sys::find_open_device(pid, numbers));
      if (!open) continue;
      auto at = std::find(numbers.begin(), numbers.end(), *open) - numbers.begin();
      return make_error(Kind::busy,
                        "take away " + quoted(devices[static_cast<size_t>(at)].path) +
                            ": process " + std::to_string(pid) + " has it open",
                        "end that process first");
    }
  }
  return {};
}

oci::Resources device_resources(const oci::Spec& spec) {
  oci::Resources resources;
  if (!spec.linux_.resources) return resources;
  resources.devices = spec.linux_.resources->devices;
  const auto& cpu = spec.linux_.resources->cpu;
  if (!cpu || (cpu->cpus.empty() && cpu->mems.empty())) return resources;
  resources.cpu.emplace();
  resources.cpu->cpus = cpu->cpus;
  resources.cpu->mems = cpu->mems;
  return resources;
}

Result<void> check_changeable(const oci::Spec& spec, const DeviceChange& change) {
  bool mapped = std::any_of(spec.linux_.namespaces.begin(), spec.linux_.namespaces.end(),
                            [](const auto& space) { return space.type == "user"; });
  if (mapped) {
    return make_error(Kind::unsupported, "change devices: it is in a user namespace");
  }
  for (const Devices* devices : {&change.added, &change.removed}) {
    for (const oci::Device& one : *devices) {
      bool plain = one.path.starts_with("/dev/") && one.path.find("/../") == std::string::npos &&
                   !one.path.ends_with('/') && (one.type == "c" || one.type == "u");
      if (!plain) {
        return make_error(Kind::unsupported, "change device " + quoted(one.path) +
                                                 ": only character devices in /dev come and go");
      }
    }
  }
  return {};
}

}  // namespace

DeviceChange compare_devices(const Devices& before, const Devices& after) {
  DeviceChange change;
  std::copy_if(after.begin(), after.end(), std::back_inserter(change.added),
               [&](const oci::Device& one) { return !contains(before, one); });
  std::copy_if(before.begin(), before.end(), std::back_inserter(change.removed),
               [&](const oci::Device& one) { return !contains(after, one); });
  return change;
}

Result<void> change_devices(const Store& store, const std::string& id, const oci::Spec& wanted,
                            Log& log) {
  sys::set_umask(0);
  Found found = TRY(find_changeable(store, id));
  const oci::Spec before = TRY(read_bundle(found.state.bundle)).spec;
  const DeviceChange change = compare_devices(before.linux_.devices, wanted.linux_.devices);
  TRY(check_changeable(before, change));
  OwnDev dev = TRY(OwnDev::open(found.state));
  Rollback undo;
  for (const oci::Device& one : change.removed) {
    undo.add([&] { ignore(dev.make(one)); });
    TRY(dev.remove(one));
  }
  undo.add([&] { ignore(apply_resources(found, device_resources(before), log)); });
  TRY(apply_resources(found, device_resources(wanted), log));
  if (!change.removed.empty()) TRY(check_unused(found, change.removed));
  for (const oci::Device& one : change.added) {
    undo.add([&] { ignore(dev.remove(one)); });
    TRY(dev.make(one));
  }
  undo.commit();
  return {};
}

}  // namespace berth::runtime
