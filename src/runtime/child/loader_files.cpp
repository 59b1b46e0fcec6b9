// SPDX-License-Identifier: Apache-2.0
#include "runtime/child/loader_files.hpp"

#include <fcntl.h>
#include <linux/mount.h>
#include <signal.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include "base/text.hpp"
#include "runtime/child/mounts.hpp"
#include "runtime/mount/attach.hpp"
#include "runtime/mount/target.hpp"
#include "runtime/state/loader_state.hpp"
#include "scan/driver_files.hpp"
#include "scan/loader.hpp"
#include "sys/file/file.hpp"
#include "sys/file/mode.hpp"
#include "sys/file/regular.hpp"
#include "sys/mount/mount.hpp"
#include "sys/process/signals.hpp"

namespace berth::runtime {
namespace {

constexpr size_t kMostRootNames = 4096;

// The file type is checked before and after opening, because opening a device may have effects.
std::optional<sys::Fd> open_own_regular(const std::string& path) {
  auto place = sys::open_at(sys::cwd(), path, O_PATH | O_NOFOLLOW);
  if (!place.ok()) return {};
  auto info = sys::stat_fd(*place, path);
  if (!info.ok() || !S_ISREG(info->st_mode)) return {};
  auto file = sys::open_at(sys::cwd(), path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW);
  if (!file.ok()) return {};
  auto opened = sys::stat_fd(*file, path);
  if (!opened.ok() || !S_ISREG(opened->st_mode)) return {};
  return std::move(*file);
}

/// The root of the calling process, for scan/. Opens only regular files.
class OwnRoot : public scan::Tree {
 public:
  /// Does not find links: NVIDIA's packages are recognised by a regular file.
  Result<std::optional<File>> find_file(const std::string& path) const override;
  Result<std::vector<std::string>> list(const std::string& path) const override;
  Result<std::string> read(const File& file, uint64_t offset, size_t length) const override;
};

Result<std::optional<scan::Tree::File>> OwnRoot::find_file(const std::string& path) const {
  auto file = open_own_regular(path);
  if (!file) return std::optional<File>();
  auto info = TRY(sys::stat_fd(*file, path));
  return std::optional<File>({path, static_cast<uint64_t>(info.st_size)});
}

Result<std::vector<std::string>> OwnRoot::list(const std::string& path) const {
  auto names = sys::list_directory(sys::cwd(), path, kMostRootNames);
  return names.ok() ? std::move(*names) : std::vector<std::string>();
}

Result<std::string> OwnRoot::read(const File& file, uint64_t offset, size_t length) const {
  auto opened = open_own_regular(file.path);
  if (!opened) return std::string();
  return sys::read_at(*opened, offset, length, file.path);
}

#if defined(__x86_64__)
constexpr const char* kMuslLoader = "/lib/ld-musl-x86_64.so.1";
constexpr const char* kMuslPath = "/etc/ld-musl-x86_64.path";
constexpr uint16_t kMachine = scan::kMachineX86_64;
#else
constexpr const char* kMuslLoader = "/lib/ld-musl-aarch64.so.1";
constexpr const char* kMuslPath = "/etc/ld-musl-aarch64.path";
constexpr uint16_t kMachine = scan::kMachineAarch64;
#endif
constexpr std::string_view kMuslDefault = "/lib:/usr/local/lib:/usr/lib\n";  // musl dynlink.c
constexpr int64_t kMaxPath = int64_t{64} << 10;

Result<StateFile> make_file(const sys::Fd& entry, const std::string& name) {
  StateFile file;
  file.writable = TRY(sys::open_at(entry, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0644));
  TRY(sys::change_mode(file.writable, 0644, name));  // our umask may say 077
  file.path = TRY(sys::read_link(sys::cwd(), sys::fd_path(file.writable)));
  // In its user namespace the child may not be able to reach our state directory. Where no view can
  // be made (for an ordinary user, or on an old kernel), the child owns the directory.
  auto view = make_view(file.writable, false, name);
  if (view.ok()) file.mount = std::move(view->detached);
  return file;
}

bool is_of_root(const sys::Fd& root, const sys::Fd& place, const std::string& path) {
  auto ours = sys::mount_id(root, "/");
  auto its = sys::mount_id(place, path);
  return ours.ok() && its.ok() && *ours == *its;
}

// In a volume only a file at exactly this path counts: a link could lead to any file of the volume,
// and we can read files that the volume's owner has closed to other users.
Result<void> check_of_image(const sys::Fd& root, const sys::Fd& place, const std::string& path) {
  if (is_of_root(root, place, path)) return {};
  size_t slash = path.rfind('/');
  auto directory = sys::open_at(root, path.substr(1, slash - 1), O_PATH | O_DIRECTORY | O_NOFOLLOW);
  if (directory.ok()) {
    auto exact = TRY(sys::stat_entry(*directory, path.substr(slash + 1)));
    struct stat found = TRY(sys::stat_fd(place, path));
    if (exact && exact->st_dev == found.st_dev && exact->st_ino == found.st_ino) return {};
  }
  return make_error(Kind::denied, "a symbolic link leads " + quote(path) + " to another mount");
}

// We may read more than the container's user may. The loader of that user cannot read a file that
// is not world-readable, so we ignore such a file.
sys::Fd open_for_all(const sys::Fd& root, const std::string& path, int64_t max_bytes) {
  auto place = sys::open_in_root(root, path, O_PATH);
  if (!place.ok() || !refuse_kernel_target(*place, path).ok()) return {};
  if (!check_of_image(root, *place, path).ok()) return {};
  auto info = sys::stat_fd(*place, path);
  if (!info.ok() || info->st_size > max_bytes) return {};
  if ((info->st_mode & S_IROTH) == 0) return {};
  auto file = sys::open_regular(*place, path);
  return file.ok() && *file ? std::move(**file) : sys::Fd();
}

Result<void> cover(Inside& inside, const StateFile& file, const std::string& path) {
  sys::Fd target = TRY(open_target(inside.root, path, TargetType::file, MakeIn::mount_of_root));
  TRY(refuse_kernel_target(target, path));
  TRY(check_of_image(inside.root, target, path));
  sys::Fd source;
  NewMount view;
  if (file.mount) {
    view.detached = TRY(sys::duplicate(file.mount));
  } else {
    source = TRY(sys::open_at(sys::cwd(), file.path, O_PATH | O_NOFOLLOW));
    view = TRY(make_view(source, false, file.path));
  }
  plan::MountAttributes harmless;
  harmless.set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC;
  harmless.propagation = plan::PropagationChange{plan::Propagation::private_, false};
  TRY(attach(std::move(view), target, harmless, path));
  return {};
}

// The image's bytes, as far as they can be read. The file belongs to the container: a change or an
// error harms only the container.
std::string content(const sys::Fd& file, int64_t max_bytes) {
  constexpr const char* kName = "the image's loader file";
  if (!file) return {};
  auto info = sys::stat_fd(file, kName);
  if (!info.ok() || info->st_size > max_bytes) return {};
  auto bytes = sys::read_at(file, 0, static_cast<size_t>(info->st_size), kName);
  return bytes.ok() ? std::move(*bytes) : std::string();
}

std::string musl_path(const std::vector<scan::LoaderEntry>& entries, std::string image) {
  auto native = scan::loader_flags(scan::ElfClass::elf64, kMachine);
  std::vector<std::string> directories;
  for (const auto& entry : entries) {
    if (entry.flags != native) continue;  // musl would stop at a library of another ELF class
    std::string directory = entry.path.substr(0, entry.path.rfind('/'));
    if (std::ranges::find(directories, directory) == directories.end()) {
      directories.push_back(std::move(directory));
    }
  }
  return join(directories, "\n") + "\n" + (image.empty() ? std::string(kMuslDefault) : image);
}

// Puts the libraries of the image's compat package first, if they can be used; else the driver's
// libraries remain.
void add_compat(const oci::CompatRequest& request, std::vector<scan::LoaderEntry>& entries) {
  auto look = scan::find_compat(OwnRoot(), request.container_root, kMachine);
  if (!look.ok() || !look->package) return;
  scan::CompatVerdict verdict = scan::judge_compat(*look->package, request.host_driver_version,
                                                   request.host_cuda_version, request.brands);
  if (verdict.use) scan::put_first(*look->package, kMachine, entries);
}

std::vector<scan::LoaderEntry> entries_of(const plan::FillLoaderFiles& step) {
  std::vector<scan::LoaderEntry> entries;
  entries.reserve(step.entries.size());
  for (const auto& entry : step.entries) entries.push_back({entry.soname, entry.path, entry.flags});
  return entries;
}

/// Notes for remove_loader_files() that `path` was made.
Result<void> note_made(const Inside& inside, const std::string& path) {
  if (!inside.prepared.loader_made) return {};
  return sys::write_all(inside.prepared.loader_made, path + "\n", path);
}

// Makes the links that linkers need, and loaders without a cache. Files of the image are not
// replaced, and a root that cannot be changed gets no links.
Result<void> make_links(const Inside& inside) {
  std::string path;  // of the directory that is open
  sys::Fd directory;
  for (const scan::LibraryLink& link : inside.prepared.loader_links) {
    size_t slash = link.path.rfind('/');
    if (!directory || link.path.compare(0, slash, path) != 0) {
      path = link.path.substr(0, slash);
      auto opened = sys::open_in_root(inside.root, path, O_PATH | O_DIRECTORY);
      if (!opened.ok() || !is_of_root(inside.root, *opened, link.path)) return {};
      directory = std::move(*opened);
    }
    auto made = sys::make_symlink(link.target, directory, link.path.substr(slash + 1));
    if (made.ok()) TRY(note_made(inside, link.path));
  }
  return {};
}

/// Replaces the image's cache by a new file, which has the same bytes until it is filled, so that a
/// failed start loses nothing. Nothing if the root has a link, a device, a mount or an unreadable
/// file there, or is not writable.
Result<sys::Fd> put_cache(const Inside& inside, const sys::Fd& image) {
  auto directory = open_target(inside.root, "/etc", TargetType::directory, MakeIn::mount_of_root);
  if (!directory.ok() || !is_of_root(inside.root, *directory, "/etc")) return sys::Fd();
  auto there = sys::open_if_exists(*directory, "ld.so.cache", O_PATH | O_NOFOLLOW);
  if (!there.ok()) return sys::Fd();
  std::string bytes = content(image, kMaxCache);
  if (*there) {
    struct stat info = TRY(sys::stat_fd(**there, kCachePath));
    bool is_read = S_ISREG(info.st_mode) && static_cast<uint64_t>(info.st_size) == bytes.size();
    if (!is_read || !is_of_root(inside.root, **there, kCachePath)) return sys::Fd();
  }
  auto file = replace_cache(*directory, bytes);
  if (!file.ok()) {
    int number = file.error().sys_errno;
    bool is_closed = file.error().kind == Kind::denied || number == EROFS || number == ENOSPC ||
                     number == EDQUOT;
    return is_closed ? Result<sys::Fd>(sys::Fd()) : std::move(file);
  }
  TRY(note_made(inside, (*there ? std::string(kReplaced) : std::string()) + kCachePath));
  return file;
}

// An image without /etc/ld.so.conf gets one that includes ours.
Result<void> make_main_configuration(const Inside& inside) {
  auto etc = sys::open_in_root(inside.root, "/etc", O_PATH | O_DIRECTORY);
  if (!etc.ok() || !is_of_root(inside.root, *etc, "/etc")) return {};
  constexpr int kNew = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW;
  auto made = sys::open_at(*etc, "ld.so.conf", kNew, 0644);
  if (!made.ok()) return {};
  TRY(note_made(inside, scan::kMainConfiguration));
  TRY(sys::change_mode(*made, 0644, scan::kMainConfiguration));
  return sys::write_all(*made, scan::kMainConfigurationText, scan::kMainConfiguration);
}

// Lists the directories for ldconfig in a file of our own, which no package replaces.
Result<void> cover_configuration(Inside& inside) {
  const StateFile& file = inside.prepared.loader_configuration;
  TRY(make_main_configuration(inside));
  bool is_new = !sys::open_in_root(inside.root, scan::kLoaderConfiguration, O_PATH).ok();
  auto covered = cover(inside, file, scan::kLoaderConfiguration);
  // Either a user's volume is there, and ldconfig uses that, or the directory is missing, and
  // ldconfig skips it.
  bool has_no_place = !covered.ok() && (covered.error().kind == Kind::denied ||
                                        covered.error().sys_errno == ENOTDIR);
  if (has_no_place) return {};
  TRY_CTX(std::move(covered), "cannot cover " + quote(scan::kLoaderConfiguration));
  if (is_new) TRY(note_made(inside, scan::kLoaderConfiguration));
  inside.loader.configuration = TRY(sys::duplicate(file.writable));
  return {};
}

}  // namespace

Result<void> make_loader_files(const plan::Plan& plan, const sys::Fd& entry, Prepared& prepared) {
  const auto* place = plan::find<plan::PlaceLoaderFiles>(plan);
  const auto* fill = plan::find<plan::FillLoaderFiles>(plan);
  if (place == nullptr || fill == nullptr) return {};
  const char* context = "cannot make the loader cache";
  prepared.loader_cache = TRY_CTX(make_file(entry, kKeptCache), context);
  prepared.loader_path = TRY_CTX(make_file(entry, "ld-musl.path"), context);
  prepared.loader_links = scan::default_links(entries_of(*fill));
  if (place->in_root) {
    prepared.loader_configuration = TRY_CTX(make_file(entry, "ld.so.conf"), context);
  }
  if (!leaves_loader_files(plan)) return {};
  TRY_CTX(sys::write_file(entry, kKeptLines, oci::to_annotation(fill->entries), 0600), context);
  constexpr int kNew = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW;
  prepared.loader_made = TRY_CTX(sys::open_at(entry, kMadeNames, kNew, 0600), context);
  if (!place->in_root) return {};
  prepared.loader_original = TRY_CTX(sys::open_at(entry, kOriginalCache, kNew, 0600), context);
  return {};
}

Result<void> place_loader_files(Inside& inside, const plan::PlaceLoaderFiles& step) {
  const Prepared& prepared = inside.prepared;
  LoaderHandles& loader = inside.loader;
  TRY_CTX(make_links(inside), "cannot make the links of the driver's libraries");
  loader.image_cache = open_for_all(inside.root, kCachePath, kMaxCache);
  if (step.in_root) {
    loader.cache =
        TRY_CTX(put_cache(inside, loader.image_cache), "cannot write the container's loader cache");
  }
  loader.cache_in_root = static_cast<bool>(loader.cache);
  if (loader.cache_in_root) {
    TRY(cover_configuration(inside));
    if (prepared.loader_original) {
      loader.original = TRY(sys::duplicate(prepared.loader_original));
      loader.kept = TRY(sys::duplicate(prepared.loader_cache.writable));
    }
  } else {
    loader.cache = TRY(sys::duplicate(prepared.loader_cache.writable));
    TRY_CTX(cover(inside, prepared.loader_cache, kCachePath), "cannot cover '/etc/ld.so.cache'");
  }
  if (!sys::open_in_root(inside.root, kMuslLoader, O_PATH).ok()) return {};
  loader.image_path = open_for_all(inside.root, kMuslPath, kMaxPath);
  loader.path = TRY(sys::duplicate(prepared.loader_path.writable));
  TRY_CTX(cover(inside, prepared.loader_path, kMuslPath), "cannot cover " + quote(kMuslPath));
  return {};
}

Result<void> fill_loader_files(Inside& inside, const plan::FillLoaderFiles& step) {
  const char* context = "cannot write the loader cache";
  std::vector<scan::LoaderEntry> added = entries_of(step);
  if (step.compat) add_compat(*step.compat, added);
  LoaderHandles loader = std::move(inside.loader);
  std::string image = content(loader.image_cache, kMaxCache);
  sys::IgnoredSignal limit(SIGXFSZ);
  std::string merged = scan::merged_loader_cache(image, added);
  // First saves what is needed to undo the change.
  if (loader.original) {
    // Entries that an earlier start left, because the machine crashed, do not belong to the image.
    std::string original = scan::loader_cache_without(image, added);
    TRY_CTX(sys::write_all(loader.original, original, kCachePath), context);
    TRY_CTX(sys::write_all(loader.kept, merged, kCachePath), context);
  }
  if (loader.cache_in_root) {
    // Reserved before the first byte is changed, so that neither a limit nor a full disk can
    // interrupt the writing.
    TRY_CTX(sys::reserve(loader.cache, merged.size(), kCachePath), context);
  }
  TRY_CTX(sys::write_all(loader.cache, merged, kCachePath), context);
  if (loader.cache_in_root && image.size() > merged.size()) {
    TRY_CTX(sys::truncate(loader.cache, merged.size(), kCachePath), context);
  }
  if (loader.configuration) {
    std::string text = scan::loader_configuration(added);
    TRY_CTX(sys::write_all(loader.configuration, text, scan::kLoaderConfiguration), context);
  }
  if (!loader.path) return {};
  std::string path = musl_path(added, content(loader.image_path, kMaxPath));
  TRY_CTX(sys::write_all(loader.path, path, kMuslPath), context);
  return {};
}

}  // namespace berth::runtime
