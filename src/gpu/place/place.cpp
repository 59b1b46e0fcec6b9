// SPDX-License-Identifier: Apache-2.0
#include "gpu/place/place.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/sysmacros.h>

#include <optional>
#include <set>
#include <utility>

#include "base/text.hpp"
#include "scan/loader_cache.hpp"
#include "sys/file.hpp"
#include "sys/identity.hpp"
#include "sys/mode.hpp"

namespace berth::gpu {
namespace {

#if defined(__x86_64__)
constexpr std::string_view kMuslArch = "x86_64";
#else
constexpr std::string_view kMuslArch = "aarch64";
#endif
constexpr std::string_view kMuslDefault = "/lib:/usr/local/lib:/usr/lib";  // musl ldso/dynlink.c
constexpr size_t kMaxLoaderFile = size_t{16} << 20;
constexpr uint32_t kOverflowId = 65534;  // an id that this user namespace does not map

// FNV-1a. Names what our own process wrote below a directory that only we can write: a collision
// would take an attacker who already is us.
std::string key_of(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (unsigned char c : text) hash = (hash ^ c) * 0x100000001b3;
  return fmt::format("{:016x}", hash);
}

// A file of the image, opened for reading, and what tells it from another version of itself.
struct ImageFile {
  sys::Fd fd;
  std::string identity;
};

class Placer {
 public:
  Placer(const Grant& grant, const PlaceOptions& options) : grant_(grant), options_(options) {}

  Result<Placement> run() {
    TRY(open_state());
    TRY(place_skeleton());
    TRY(place_files());
    TRY(place_loader_cache());
    TRY(place_musl_path());
    TRY(place_procfs());
    place_nodes();
    edits_.env = grant_.env;
    TRY(build_placeholder_layer());
    return Placement{std::move(edits_), std::move(placeholder_layer_)};
  }

 private:
  Result<void> open_state();
  Result<void> place_skeleton();
  Result<void> build_skeleton(const sys::Fd& directory) const;
  Result<void> place_files();
  Result<void> place_loader_cache();
  Result<void> place_musl_path();
  Result<void> place_procfs();
  void place_nodes();
  Result<void> build_placeholder_layer();

  std::optional<ImageFile> find_in_layers(const std::string& path) const;
  bool image_has(const std::string& path) const;
  Result<bool> is_there(const std::string& name) const {
    return TRY(sys::stat_entry(state_, name)).has_value();
  }
  std::string state_path(const std::string& name) const {
    return options_.state_dir + "/gpu/" + name;
  }

  /// Makes the directory `name` with `fill`, once; others may do the same at the same time.
  Result<sys::TempDir> stage() const;
  template <class Fill>
  Result<void> publish_directory(const std::string& name, Fill fill) const;

  Result<void> publish_file(const std::string& name, std::string_view bytes) const;

  void bind(std::string source, std::string destination) {
    oci::Mount mount;
    mount.type = "bind";
    mount.source = std::move(source);
    mount.destination = std::move(destination);
    mount.options = {"bind", "ro", "nosuid", "nodev"};
    edits_.mounts.push_back(std::move(mount));
  }

  const Grant& grant_;
  const PlaceOptions& options_;
  sys::Fd state_;
  oci::ContainerEdits edits_;
  std::string placeholder_layer_;
};

Result<void> Placer::open_state() {
  std::string path = options_.state_dir + "/gpu";
  TRY(sys::make_directories(sys::cwd(), path, 0700));
  state_ = TRY(sys::open_at(sys::cwd(), path, O_RDONLY | O_DIRECTORY));
  return {};
}

// The modes are set, not asked for: every user of a container reads these, and our umask may say
// 077.
Result<void> make_open_directory(const sys::Fd& parent, const std::string& name) {
  TRY(sys::make_directory(parent, name, 0755));
  auto fd = TRY(sys::open_at(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
  return sys::change_mode(fd, 0755, name);
}

// The directories on the way to `path`, each once.
Result<void> make_parents(const sys::Fd& directory, const std::string& path,
                          std::set<std::string>& made) {
  for (size_t slash = path.find('/'); slash != std::string::npos;
       slash = path.find('/', slash + 1)) {
    std::string parent = path.substr(0, slash);
    if (made.insert(parent).second) TRY(make_open_directory(directory, parent));
  }
  return {};
}

// One builder at a time: what another has left here was left by a kill.
Result<sys::TempDir> Placer::stage() const {
  constexpr const char* kPrefix = "building-";
  TRY(sys::wait_lock(state_, sys::LockMode::exclusive, "gpu"));
  for (const std::string& name : TRY(sys::list_directory(state_, "."))) {
    if (name.starts_with(kPrefix)) TRY(sys::remove_tree(state_, name));
  }
  return sys::TempDir::make(state_, kPrefix);
}

template <class Fill>
Result<void> Placer::publish_directory(const std::string& name, Fill fill) const {
  if (TRY(is_there(name))) return {};
  auto staged = TRY(stage());
  TRY(fill(staged.fd()));
  TRY(sys::change_mode(staged.fd(), 0755, name));
  auto renamed = sys::rename_new(state_, staged.name(), state_, name);
  if (renamed.ok()) {
    staged.release();
  } else if (renamed.error().kind != Kind::exists) {
    return std::move(renamed).error();
  }
  return {};
}

Result<void> Placer::publish_file(const std::string& name, std::string_view bytes) const {
  if (TRY(is_there(name))) return {};
  auto staged = TRY(stage());
  auto file = TRY(sys::open_at(staged.fd(), name, O_WRONLY | O_CREAT | O_EXCL, 0600));
  TRY(sys::write_all(file, bytes, name));
  TRY(sys::change_mode(file, 0444, name));
  TRY(sys::close_checked(std::move(file), name));
  return sys::rename(staged.fd(), name, state_, name);
}

// /usr/local/nvidia: an empty file for each library to be bound over, and the links. A directory of
// the host, so that not one name has to be made inside of the image.
Result<void> Placer::place_skeleton() {
  std::string content;
  for (const GrantedFile& file : grant_.files) {
    if (file.kind == FileKind::library) content += file.container_path + "\n";
  }
  for (const GrantedLink& link : grant_.links) content += link.path + "\t" + link.target + "\n";
  std::string name = "skeleton-" + key_of(content);
  TRY_CTX(publish_directory(name, [this](const sys::Fd& fd) { return build_skeleton(fd); }),
          "cannot prepare the driver's directory");
  bind(state_path(name), kDriverDirectory);
  return {};
}

Result<void> Placer::build_skeleton(const sys::Fd& directory) const {
  const std::string base = std::string(kDriverDirectory) + "/";
  std::set<std::string> made;
  for (const GrantedFile& file : grant_.files) {
    if (file.kind != FileKind::library) continue;
    std::string path = file.container_path.substr(base.size());
    TRY(make_parents(directory, path, made));
    TRY(sys::write_file(directory, path, "", 0444));
  }
  for (const GrantedLink& link : grant_.links) {
    std::string path = link.path.substr(base.size());
    TRY(make_parents(directory, path, made));
    auto linked = sys::make_symlink(link.target, directory, path);
    // Two libraries may want one development link (libnvidia-nvvm): the first has it.
    if (!linked.ok() && linked.error().kind != Kind::exists) return std::move(linked).error();
  }
  return {};
}

Result<void> Placer::place_files() {
  for (const GrantedFile& file : grant_.files) {
    if (!TRY(sys::stat_entry(sys::cwd(), file.host_path))) {
      if (file.kind == FileKind::socket) continue;  // its service has ended
      return make_error(Kind::not_found,
                        fmt::format("driver file {} is gone", quoted(file.host_path)),
                        "berth gpu list --refresh");
    }
    bind(file.host_path, file.container_path);
  }
  return {};
}

// The topmost regular file of that name. A whiteout hides what is below it. An opaque directory is
// not looked for: a loader cache that names libraries which are gone does no harm.
std::optional<ImageFile> Placer::find_in_layers(const std::string& path) const {
  for (const std::string& layer : options_.layers) {
    auto root = sys::open_at(sys::cwd(), layer, O_PATH | O_DIRECTORY);
    if (!root.ok()) continue;
    // Looked at before it is opened: a whiteout is a device that cannot be, a fifo would block.
    auto place = sys::open_in_root(*root, path, O_PATH | O_NOFOLLOW);
    if (!place.ok()) continue;
    auto info = sys::stat_fd(*place, path);
    if (!info.ok() || S_ISCHR(info->st_mode)) return std::nullopt;
    if (!S_ISREG(info->st_mode)) continue;
    auto file = sys::open_at(sys::cwd(), sys::fd_path(*place), O_RDONLY);
    if (!file.ok()) continue;
    return ImageFile{
        .fd = std::move(*file),
        .identity = fmt::format("{}:{}:{}:{}.{:09}", info->st_dev, info->st_ino, info->st_size,
                                info->st_ctim.tv_sec, info->st_ctim.tv_nsec)};
  }
  return std::nullopt;
}

bool Placer::image_has(const std::string& path) const {
  for (const std::string& layer : options_.layers) {
    auto root = sys::open_at(sys::cwd(), layer, O_PATH | O_DIRECTORY);
    if (root.ok() && sys::open_in_root(*root, path, O_PATH).ok()) return true;
  }
  return false;
}

Result<void> Placer::place_loader_cache() {
  if (grant_.loader_entries.empty()) return {};
  auto image = find_in_layers("etc/ld.so.cache");
  std::string content = image ? image->identity : "none";
  for (const scan::LoaderEntry& entry : grant_.loader_entries) {
    content += fmt::format("\n{} {} {}", entry.soname, entry.path, entry.flags);
  }
  std::string name = "ld.so.cache-" + key_of(content);
  if (!TRY(is_there(name))) {
    scan::LoaderCache base;
    if (image) {
      std::string bytes = TRY(sys::read_all(image->fd, "etc/ld.so.cache", kMaxLoaderFile));
      auto read = scan::read_loader_cache(bytes);
      // An image's broken cache is as good as none: its loader would not use it either.
      if (read.ok()) base = std::move(*read);
    }
    auto merged = scan::merge(std::move(base), grant_.loader_entries);
    TRY_CTX(publish_file(name, scan::write_loader_cache(merged)),
            "cannot write the container's loader cache");
  }
  bind(state_path(name), "/etc/ld.so.cache");
  return {};
}

// musl has no cache but a list of directories, one for the whole system.
Result<void> Placer::place_musl_path() {
  if (grant_.loader_entries.empty()) return {};
  std::string loader = fmt::format("ld-musl-{}.so.1", kMuslArch);
  if (!image_has("lib/" + loader) && !image_has("usr/lib/" + loader)) return {};
  std::string path = fmt::format("etc/ld-musl-{}.path", kMuslArch);
  std::string content = join(grant_.library_directories, "\n") + "\n";
  if (auto image = find_in_layers(path)) {
    content += TRY(sys::read_all(image->fd, path, kMaxLoaderFile));
  } else {
    content += std::string(kMuslDefault) + "\n";
  }
  std::string name = "ld-musl.path-" + key_of(content);
  TRY(publish_file(name, content));
  bind(state_path(name), "/" + path);
  return {};
}

// What was not granted is not to be seen either: the GPUs' directory becomes one with the granted
// ones only, each bound from procfs; with every GPU granted nothing is done.
Result<void> Placer::place_procfs() {
  if (grant_.hide_other_gpus) {
    std::string base = "/proc/driver/nvidia/gpus";
    std::string name = "gpus-" + key_of(join(grant_.visible_pci_addresses, " "));
    auto fill = [this](const sys::Fd& fd) -> Result<void> {
      for (const std::string& address : grant_.visible_pci_addresses) {
        TRY(make_open_directory(fd, address));
      }
      return {};
    };
    TRY(publish_directory(name, fill));
    bind(state_path(name), base);
    for (const std::string& address : grant_.visible_pci_addresses) {
      bind(base + "/" + address, base + "/" + address);
    }
  }
  if (grant_.params.empty()) return {};
  std::string name = "params-" + key_of(grant_.params);
  TRY(publish_file(name, grant_.params));
  bind(state_path(name), "/proc/driver/nvidia/params");
  return {};
}

void Placer::place_nodes() {
  std::set<uint32_t> groups;
  // In a user namespace the ids of the host's nodes are not ours to give.
  bool ids_are_real = sys::in_initial_user_namespace();
  for (const Node& node : grant_.nodes) {
    oci::DeviceNode out;
    out.path = node.path;
    out.host_path = node.host_path;
    out.major = node.major;
    out.minor = node.minor;
    out.file_mode = node.mode;
    bool group_is_known = ids_are_real && node.gid != 0 && node.gid != kOverflowId;
    if (group_is_known) out.gid = node.gid;
    // A node that only a group may open is of no use without that group.
    if (group_is_known && (node.mode & 0006) != 0006) groups.insert(node.gid);
    edits_.device_nodes.push_back(std::move(out));
  }
  edits_.additional_gids.assign(groups.begin(), groups.end());
}

// Every destination outside of procfs and of the skeleton, which brings its own. Making them in a
// container's upper directory would copy up /usr, /usr/bin and /etc: milliseconds on a disk.
Result<void> Placer::build_placeholder_layer() {
  const std::string inside = std::string(kDriverDirectory) + "/";
  std::vector<std::string> paths;
  for (const oci::Mount& mount : edits_.mounts) {
    const std::string& path = mount.destination;
    if (!path.starts_with(inside) && !path.starts_with("/proc/")) paths.push_back(path.substr(1));
  }
  std::string name = "placeholders-" + key_of(join(paths, "\n"));
  auto fill = [&](const sys::Fd& directory) -> Result<void> {
    std::set<std::string> made;
    for (const std::string& path : paths) {
      TRY(make_parents(directory, path, made));
      if ("/" + path == kDriverDirectory) {
        TRY(make_open_directory(directory, path));
      } else {
        TRY(sys::write_file(directory, path, "", 0644));
      }
    }
    return {};
  };
  TRY_CTX(publish_directory(name, fill), "cannot prepare the driver's mount points");
  placeholder_layer_ = state_path(name);
  return {};
}

}  // namespace

Result<Placement> place(const Grant& grant, const PlaceOptions& options) {
  if (grant.nodes.empty() && grant.files.empty()) return Placement{};
  return Placer(grant, options).run();
}

}  // namespace berth::gpu
