// SPDX-License-Identifier: Apache-2.0
#include "gpu/place/place.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <set>

#include "base/text.hpp"
#include "gpu/place/finish.hpp"
#include "gpu/place/publish.hpp"
#include "sys/file/file.hpp"
#include "sys/file/file_system.hpp"
#include "sys/file/mode.hpp"
#include "sys/file/remove_tree.hpp"
#include "sys/file/tree.hpp"
#include "sys/process/stream.hpp"
#include "sys/user/identity.hpp"

namespace berth::gpu {
namespace {

constexpr std::string_view kVolumePrefix = "nvidia_driver_";
bool is_in_volume(const Grant& grant, const GrantedFile& file) {
  return file.container_path.starts_with(grant.directory + "/");
}

Result<void> copy_file(const sys::Fd& source, const sys::Fd& directory, const std::string& path,
                       mode_t mode) {
  auto target = TRY(sys::open_at(directory, path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600));
  TRY(sys::copy_rest(source, target, path));
  TRY(sys::change_mode(target, mode, path));
  return sys::close_checked(std::move(target), path);
}

Result<void> add_file(const GrantedFile& file, const sys::Fd& directory, const std::string& path) {
  // A hard link only works within one file system, and for files of this user.
  if (sys::make_hard_link(sys::cwd(), file.host_path, directory, path).ok()) return {};
  auto source = TRY(sys::open_at(sys::cwd(), file.host_path, O_RDONLY | O_NONBLOCK));
  struct stat info = TRY(sys::stat_fd(source, file.host_path));
  if (!S_ISREG(info.st_mode)) {
    return make_error(Kind::io, "driver file " + quote(file.host_path) + " is not a file");
  }
  return copy_file(source, directory, path, info.st_mode & 0555);
}

Result<void> fill_volume(const Grant& grant, const sys::Fd& directory) {
  std::set<std::string> made;
  for (const GrantedFile& file : grant.files) {
    if (!is_in_volume(grant, file)) continue;
    std::string path = file.container_path.substr(grant.directory.size() + 1);
    TRY(make_parents(directory, path, made));
    TRY_CTX(add_file(file, directory, path), "cannot put " + quote(file.host_path) + " into it");
  }
  for (const GrantedLink& link : grant.links) {
    std::string path = link.path.substr(grant.directory.size() + 1);
    TRY(make_parents(directory, path, made));
    auto linked = sys::make_symlink(link.target, directory, path);
    if (!linked.ok() && linked.error().kind != Kind::exists) return linked;
  }
  return {};
}

/// Whether a process that we may examine has something of the volume `name` mounted.
bool is_mounted(const std::string& name) {
  auto processes = sys::list_directory(sys::cwd(), "/proc");
  if (!processes.ok()) return true;
  const std::string needle = "/" + name + "/";
  return std::ranges::any_of(*processes, [&](const std::string& process) {
    if (process.find_first_not_of("0123456789") != std::string::npos) return false;
    auto table = sys::read_file_if_exists(sys::cwd(), "/proc/" + process + "/mountinfo");
    return table.ok() && *table && (*table)->find(needle) != std::string::npos;
  });
}

void remove_others(const sys::Fd& volumes, const std::string& current,
                   const std::function<bool(const std::string& name)>& is_kept) {
  auto names = sys::list_directory(volumes, ".");
  if (!names.ok()) return;
  for (const std::string& name : *names) {
    if (!name.starts_with(kVolumePrefix) || name == current || is_mounted(name)) continue;
    if (is_kept && is_kept(name)) continue;
    ignore(sys::remove_tree(volumes, name));  // the next start of another version tries again
  }
}

// A volume has the driver's files in one directory, as in nvidia-docker 1 and Mesos: bin, lib
// (32-bit) and lib64.
/// The absolute path of a directory with the grant's files below Grant::directory, made once below
/// `<volume_dir>/nvidia_driver_<version>`: by hard links where possible, else by copies (reflinks
/// where the file system can). Making a volume removes volumes of other versions that no process
/// has mounted, unless `is_kept` returns true for them (`is_kept` may be empty). Errors: io (no
/// space), denied.
Result<std::string> find_or_make_volume(
    const Grant& grant, const std::string& volume_dir,
    const std::function<bool(const std::string& name)>& is_kept) {
  std::string content;
  for (const GrantedFile& file : grant.files) {
    if (!is_in_volume(grant, file)) continue;
    struct stat info = TRY(stat_driver_file(file.host_path));
    content += fmt::format("{}\t{}\t{}:{}:{}:{}\n", file.container_path, file.host_path,
                           info.st_dev, info.st_ino, info.st_size, info.st_mtim.tv_sec);
  }
  for (const GrantedLink& link : grant.links) content += link.path + "\t" + link.target + "\n";
  std::string version = std::string(kVolumePrefix) + grant.driver_version;
  std::string key = key_of_text(content);
  std::string path = volume_dir + "/" + version + "/" + key;
  if (TRY(sys::stat_entry(sys::cwd(), path))) return path;
  std::string context = "cannot make volume " + quote(version);
  TRY_CTX(sys::make_directories(sys::cwd(), volume_dir + "/" + version, 0700), context);
  auto volumes = TRY(sys::open_at(sys::cwd(), volume_dir, O_RDONLY | O_DIRECTORY));
  auto parent = TRY(sys::open_at(volumes, version, O_RDONLY | O_DIRECTORY));
  auto fill = [&](const sys::Fd& directory) { return fill_volume(grant, directory); };
  TRY_CTX(publish_directory(parent, key, fill), context);
  remove_others(volumes, version, is_kept);
  return path;
}

using policy::DriverMode;

#if defined(__x86_64__)
constexpr const char* kMuslPath = "etc/ld-musl-x86_64.path";
#else
constexpr const char* kMuslPath = "etc/ld-musl-aarch64.path";
#endif
constexpr const char* kProcDriver = "/proc/driver";
constexpr uint32_t kOverflowId = 65534;  // an id that this user namespace does not map
bool comes_and_goes(FileKind kind) {
  return kind == FileKind::socket || kind == FileKind::directory;
}

class Placer {
 public:
  Placer(const Grant& grant, const PlaceOptions& options) : grant_(grant), options_(options) {}

  Result<Placement> run() {
    TRY(open_state());
    switch (grant_.mode) {
      case DriverMode::bind:
        TRY(place_skeleton());
        break;
      case DriverMode::volume:
        TRY(place_volume());
        break;
      case DriverMode::copy:
        place_copies();
        break;
      case DriverMode::image:
      case DriverMode::none:
        break;
    }
    TRY(place_files());
    place_loader_entries();
    TRY(place_procfs());
    TRY(place_nodes());
    place_.edits.application_profile = grant_.egl_gpus;
    TRY(place_requests(place_.edits, options_.state_dir, ""));
    place_.edits.env = grant_.env;
    TRY(build_placeholder_layer());
    return std::move(place_);
  }

 private:
  Result<void> open_state();
  Result<void> place_skeleton();
  Result<void> build_skeleton(const sys::Fd& directory) const;
  Result<void> place_volume();
  void place_copies();
  Result<void> place_files();
  void place_loader_entries();
  Result<void> place_procfs();
  Result<void> place_nodes();
  Result<void> build_placeholder_layer();

  bool is_inside(const std::string& path) const { return path.starts_with(inside_); }
  std::string state_path(const std::string& name) const {
    return options_.state_dir + "/gpu/" + name;
  }
  void bind(std::string source, std::string destination) {
    oci::Mount mount;
    mount.type = "bind";
    mount.source = std::move(source);
    mount.destination = std::move(destination);
    mount.options = {"bind", "ro", "nosuid", "nodev"};
    place_.edits.mounts.push_back(std::move(mount));
  }

  const Grant& grant_;
  const PlaceOptions& options_;
  const std::string inside_ = grant_.directory + "/";
  sys::Fd state_;
  Placement place_;
};

Result<void> Placer::open_state() {
  std::string path = options_.state_dir + "/gpu";
  auto there = TRY(sys::open_if_exists(sys::cwd(), path, O_RDONLY | O_DIRECTORY));
  if (there) {
    state_ = std::move(*there);
    return {};
  }
  TRY(sys::make_directories(sys::cwd(), path, 0700));
  state_ = TRY(sys::open_at(sys::cwd(), path, O_RDONLY | O_DIRECTORY));
  return {};
}

// Makes the driver's directory: an empty file for each library, over which the library is bound,
// and the links. It is a directory of the host, so that no name has to be made inside of the image.
Result<void> Placer::place_skeleton() {
  std::string content;
  for (const GrantedFile& file : grant_.files) {
    if (is_inside(file.container_path)) content += file.container_path + "\n";
  }
  for (const GrantedLink& link : grant_.links) content += link.path + "\t" + link.target + "\n";
  if (content.empty()) return {};
  std::string name = "skeleton-" + key_of_text(content);
  TRY_CTX(publish_directory(state_, name, [this](const sys::Fd& fd) { return build_skeleton(fd); }),
          "cannot prepare the driver's directory");
  bind(state_path(name), grant_.directory);
  return {};
}

Result<void> Placer::build_skeleton(const sys::Fd& directory) const {
  std::set<std::string> made;
  for (const GrantedFile& file : grant_.files) {
    if (!is_inside(file.container_path)) continue;
    std::string path = file.container_path.substr(inside_.size());
    TRY(make_parents(directory, path, made));
    TRY(sys::write_file(directory, path, "", 0444));
  }
  for (const GrantedLink& link : grant_.links) {
    std::string path = link.path.substr(inside_.size());
    TRY(make_parents(directory, path, made));
    auto linked = sys::make_symlink(link.target, directory, path);
    // If two libraries want the same development link (libnvidia-nvvm), the first one gets it.
    if (!linked.ok() && linked.error().kind != Kind::exists) return linked;
  }
  return {};
}

Result<void> Placer::place_volume() {
  auto in_volume = [this](const GrantedFile& file) { return is_inside(file.container_path); };
  if (std::ranges::none_of(grant_.files, in_volume)) return {};
  std::string volume = TRY(find_or_make_volume(grant_, options_.volume_dir, options_.keeps_volume));
  bind(volume, grant_.directory);
  // Mounts, because a link in a layer below the image's would be hidden by a program of the image.
  for (const GrantedLink& program : grant_.volume_programs) {
    bind(volume + program.target.substr(grant_.directory.size()), program.path);
  }
  return {};
}

void Placer::place_copies() {
  for (const GrantedFile& file : grant_.files) {
    if (comes_and_goes(file.kind)) continue;
    uint32_t mode = file.kind == FileKind::binary ? 0555 : 0444;
    place_.copies.push_back({file.host_path, file.container_path, mode});
  }
  place_.copied_links = grant_.links;
}

Result<void> Placer::place_files() {
  for (const GrantedFile& file : grant_.files) {
    bool laid_out = grant_.mode == DriverMode::copy ||
                    (grant_.mode == DriverMode::volume && is_inside(file.container_path));
    if (comes_and_goes(file.kind)) {
      // The service of the socket may have ended since the probe.
      if (!TRY(sys::stat_entry(sys::cwd(), file.host_path))) continue;
    } else {
      if (laid_out) continue;
      TRY(stat_driver_file(file.host_path));
    }
    bind(file.host_path, file.container_path);
  }
  return {};
}

void Placer::place_loader_entries() {
  place_.edits.compat = grant_.compat;
  place_.edits.loader_entries.reserve(grant_.loader_entries.size());
  for (const scan::LoaderEntry& entry : grant_.loader_entries) {
    place_.edits.loader_entries.push_back({entry.soname, entry.path, entry.flags});
  }
}

// The container must not see more than it was granted, so a directory with the permitted files is
// bound over /proc/driver. It is read-only, so nothing can be set through it.
Result<void> Placer::place_procfs() {
  if (grant_.proc.empty() || !TRY(sys::stat_entry(sys::cwd(), kProcDriver))) return {};
  std::string content;
  for (const ProcFile& file : grant_.proc) content += file.path + "\n" + file.text;
  std::string name = "proc-" + key_of_text(content);
  auto fill = [this](const sys::Fd& directory) -> Result<void> {
    std::set<std::string> made;
    for (const ProcFile& file : grant_.proc) {
      TRY(make_parents(directory, file.path, made));
      auto made_file = TRY(sys::open_at(directory, file.path, O_WRONLY | O_CREAT | O_EXCL, 0600));
      TRY(sys::write_all(made_file, file.text, file.path));
      TRY(sys::change_mode(made_file, 0444, file.path));
    }
    return {};
  };
  TRY_CTX(publish_directory(state_, name, fill), "cannot prepare '/proc/driver'");
  bind(state_path(name), kProcDriver);
  place_.edits.mounts.back().options.emplace_back("noexec");
  return {};
}

// In a user namespace, nodes cannot be made. They can only be bound from the host.
Error cannot_make(const Node& node) {
  return make_error(
      Kind::denied,
      fmt::format("{} does not exist on this machine, and only root can make it", quote(node.path)),
      fmt::format("as root: mknod -m 666 {} c {} {}", node.path, node.major, node.minor));
}

Result<void> Placer::place_nodes() {
  std::set<uint32_t> groups;
  // In a user namespace the owners of the host's nodes cannot be set.
  bool ids_are_real = sys::in_initial_user_namespace();
  for (const Node& node : grant_.nodes) {
    if (node.host_path.empty() && !ids_are_real) return cannot_make(node);
    oci::DeviceNode out;
    out.path = node.path;
    out.host_path = node.host_path;
    out.major = node.major;
    out.minor = node.minor;
    out.file_mode = node.mode;
    bool group_is_known = ids_are_real && node.gid != 0 && node.gid != kOverflowId;
    if (group_is_known) out.gid = node.gid;
    // If only a group may open a node, the container needs that group.
    if (group_is_known && (node.mode & 0006) != 0006) groups.insert(node.gid);
    place_.edits.device_nodes.push_back(std::move(out));
  }
  place_.edits.additional_gids.assign(groups.begin(), groups.end());
  for (const NodeLink& link : grant_.node_links) {
    place_.edits.links.push_back({link.path, link.target});
  }
  return {};
}

// The layer has every mount destination outside of procfs and of the skeleton, which has its own
// mount points. Making them in a container's upper directory would copy up /usr, /usr/bin and /etc,
// which takes milliseconds on a disk.
Result<void> Placer::build_placeholder_layer() {
  std::vector<std::string> paths;
  for (const oci::Mount& mount : place_.edits.mounts) {
    const std::string& path = mount.destination;
    if (!is_inside(path) && !path.starts_with("/proc/")) paths.push_back(path.substr(1));
  }
  if (!grant_.loader_entries.empty() && options_.musl) paths.emplace_back(kMuslPath);
  if (paths.empty()) return {};
  std::set<std::string> directories = {grant_.directory.substr(1)};
  for (const GrantedFile& file : grant_.files) {
    if (file.kind == FileKind::directory) directories.insert(file.container_path.substr(1));
  }
  // The key distinguishes files from directories: for the same path they need different layers.
  std::string content = join(paths, "\n");
  for (const std::string& path : directories) content += "\n" + path + "/";
  std::string name = "mountpoints-" + key_of_text(content);
  auto fill = [&](const sys::Fd& directory) -> Result<void> {
    std::set<std::string> made;
    for (const std::string& path : paths) {
      if (directories.contains(path)) {
        TRY(make_parents(directory, path + "/", made));
      } else {
        TRY(make_parents(directory, path, made));
        TRY(sys::write_file(directory, path, "", 0444));
      }
    }
    return {};
  };
  TRY_CTX(publish_directory(state_, name, fill), "cannot prepare the driver's mount points");
  place_.mountpoint_layer = state_path(name);
  return {};
}

}  // namespace

void leave_out_denied(Grant& grant) {
  // Nodes of GPUs get their reasons later, in complete_reasons().
  for (Reason& reason : grant.reasons) {
    bool there = reason.kind == "node" && reason.given && !reason.host_path.empty();
    if (!there || !sys::is_denied_by_cgroup(reason.host_path)) continue;
    std::erase_if(grant.nodes, [&](const Node& node) { return node.path == reason.object; });
    reason.given = false;
    reason.why = "the device cgroup of this job denies it";
  }
}

Result<Placement> place(const Grant& grant, const PlaceOptions& options) {
  if (grant.nodes.empty() && grant.files.empty() && grant.env.empty()) return Placement{};
  return Placer(grant, options).run();
}

}  // namespace berth::gpu
