// SPDX-License-Identifier: Apache-2.0
#include "engine/gpu/image_driver.hpp"

#include <fcntl.h>

#include "base/text.hpp"
#include "gpu/place/publish.hpp"
#include "json/fields.hpp"
#include "sys/file/file.hpp"
#include "sys/file/mode.hpp"
#include "sys/file/tree.hpp"
#include "sys/process/stream.hpp"

namespace berth::engine {
namespace {

constexpr std::string_view kLibraryPath = "LD_LIBRARY_PATH=";
constexpr const char* kFormat = "1";  // of the cached facts
constexpr size_t kMaxFacts = size_t{1} << 20;
constexpr const char* kWhiteoutPrefix = ".wh.";   // fuse-overlayfs's, where it may make no device
constexpr const char* kCopied = "copied-driver";  ///< the paths, a line each

std::string library_path_of(const oci::Process& process) {
  for (const std::string& entry : process.env) {
    if (entry.starts_with(kLibraryPath)) return entry.substr(kLibraryPath.size());
  }
  return {};
}

/// The host path that a volume shows at `path` of the container; empty: none.
std::string in_volumes(const RunRequest& request, const std::string& path) {
  for (const Volume& volume : request.volumes) {
    if (path.starts_with(volume.destination + "/")) {
      return volume.source + path.substr(volume.destination.size());
    }
  }
  return {};
}

Result<void> add_those_of_volumes(const RunRequest& request, const scan::LoaderSettings& settings,
                                  scan::DriverFiles& found) {
  if (request.volumes.empty()) return {};
  for (std::string_view directory : split(settings.library_path, ':')) {
    if (directory == settings.ours) return {};
    std::string path = std::string(directory) + "/libcuda.so.1";
    std::string source = in_volumes(request, path);
    if (source.empty() || !TRY(sys::stat_entry(sys::cwd(), source))) continue;
    found.libraries.insert(found.libraries.begin(), {path, path, {}, "LD_LIBRARY_PATH", true});
  }
  return {};
}

std::string leaf_of(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

/// Opens the directory `name` of a container's layer, which a program in the container may have
/// replaced by a link: none is followed.
Result<std::optional<sys::Fd>> open_own(const sys::Fd& parent, const std::string& name) {
  return sys::open_if_exists(parent, name, O_PATH | O_DIRECTORY | O_NOFOLLOW);
}

/// Marks a directory of a container's layer as overlay does one that the container has made where
/// the image has another one: nothing of the image's is seen in it.
Result<void> hide_lower(const sys::Fd& directory) {
  // Overlays of the machine's root read the first mark, which nobody else may set; those of users
  // read the second one, and fuse-overlayfs the third.
  auto marked = sys::write_attribute(directory, "trusted.overlay.opaque", "y");
  if (marked.ok() || marked.error().kind != Kind::denied) return marked;
  for (const char* key : {"user.overlay.opaque", "user.fuseoverlayfs.opaque"}) {
    marked = sys::write_attribute(directory, key, "y");
    // On a file system without such attributes the container cannot hide anything either.
    if (!marked.ok() && marked.error().kind != Kind::unsupported) return marked;
  }
  return {};
}

/// Removes the mark by which the container has removed the image's entry `name`. True if there was
/// one.
Result<bool> remove_whiteout(const sys::Fd& directory, const std::string& name) {
  const std::string by_name = kWhiteoutPrefix + name;
  bool named = TRY(sys::stat_entry(directory, by_name)).has_value();
  if (named) TRY(sys::remove_entry(directory, by_name));
  auto there = TRY(sys::stat_entry(directory, name));
  bool device = there && S_ISCHR(there->st_mode) && there->st_rdev == 0;
  if (device) TRY(sys::remove_entry(directory, name));
  return named || device;
}

/// Opens the directory of `path` in a container's layer, making what is missing: also what the
/// container has removed, of which only this directory comes back.
Result<sys::Fd> make_parent(const sys::Fd& layer, const std::string& path) {
  sys::Fd at = TRY(sys::duplicate(layer));
  for (size_t start = 0, slash = path.find('/'); slash != std::string::npos;
       start = slash + 1, slash = path.find('/', start)) {
    const std::string name = path.substr(start, slash - start);
    bool removed = TRY(remove_whiteout(at, name));
    bool there = !removed && TRY(sys::stat_entry(at, name)).has_value();
    if (!there) TRY(sys::make_directory(at, name, 0755));
    auto opened = sys::open_at(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    if (!opened.ok()) {
      return std::move(opened).error().with_hint(
          "a new container: a program in this one has replaced /" + path.substr(0, slash));
    }
    at = *std::move(opened);
    if (!there) TRY(sys::change_mode(at, 0755, name));
    if (removed) TRY(hide_lower(at));
  }
  return at;
}

/// Removes what an earlier start of the container has copied: another version of the driver has
/// other names.
Result<void> remove_earlier_copies(const ContainerDirectory& directory, const sys::Fd& layer) {
  auto copied = TRY(sys::read_file_if_exists(directory.fd(), kCopied, kMaxFacts));
  if (!copied) return {};
  for (std::string_view line : split(*copied, '\n')) {
    const std::string path(line);
    sys::Fd at = TRY(sys::duplicate(layer));
    bool there = !path.empty();
    for (size_t start = 0, slash = path.find('/'); there && slash != std::string::npos;
         start = slash + 1, slash = path.find('/', start)) {
      auto found = open_own(at, path.substr(start, slash - start));
      there = found.ok() && *found;
      if (there) at = std::move(**found);
    }
    if (!there) continue;
    auto removed = sys::remove_entry(at, leaf_of(path));
    if (!removed.ok() && removed.error().kind == Kind::io) return removed;
  }
  return {};
}

}  // namespace

Result<scan::DriverFiles> driver_files_of(const Context& context, const ImageLook& look,
                                          const oci::Process& process) {
  scan::LoaderSettings settings;
  settings.library_path = library_path_of(process);
  // For a name without a path, the RPATH of the program is not considered: PATH would have to be
  // searched.
  if (!process.args.empty() && process.args[0].starts_with('/')) settings.program = process.args[0];
  std::string directory = context.paths.state + "/gpu";
  // The image chooses parts of the key, so file names can collide: the whole key is stored with the
  // facts.
  std::string key = look.image.id.text() + "\n" + kFormat + "\n" + settings.library_path + "\n" +
                    settings.program + std::string(1, '\0');
  std::string name = "image-" + gpu::key_of_text(key);
  scan::DriverFiles found;
  // A directory or file of the host may change at any time, so its facts are not kept.
  bool fixed = is_of_store(look.request);
  std::optional<std::string> kept;
  if (fixed) kept = TRY(sys::read_file_if_exists(sys::cwd(), directory + "/" + name, kMaxFacts));
  if (kept && !kept->starts_with(key)) kept.reset();
  auto read = kept ? json::read<scan::DriverFiles>(std::string_view(*kept).substr(key.size()), name)
                   : Result<scan::DriverFiles>(found);
  if (kept && read.ok()) {
    found = std::move(*read);
  } else {
    found = TRY(scan::find_driver_files(LayerTree(look.view), settings));
    if (fixed) {
      TRY(sys::make_directories(sys::cwd(), directory, 0700));
      TRY(sys::replace_file(sys::cwd(), directory + "/" + name, key + json::write(found), 0600));
    }
  }
  TRY(add_those_of_volumes(look.request, settings, found));
  return found;
}

Result<void> copy_driver_files(const std::vector<gpu::Copy>& files,
                               const std::vector<gpu::GrantedLink>& links,
                               const ContainerDirectory& directory) {
  if (files.empty()) return {};
  const char* context = "cannot copy the driver's files into the container";
  auto upper = TRY_CTX(sys::open_at(directory.fd(), std::string(kUpperDirectory),
                                    O_RDONLY | O_DIRECTORY | O_NOFOLLOW),
                       context);
  TRY_CTX(remove_earlier_copies(directory, upper), context);
  std::string copied;
  for (const gpu::Copy& file : files) copied += file.path.substr(1) + "\n";
  for (const gpu::GrantedLink& link : links) copied += link.path.substr(1) + "\n";
  TRY_CTX(sys::write_file(directory.fd(), kCopied, copied, 0600), context);
  for (const gpu::Copy& file : files) {
    const std::string path = file.path.substr(1), name = leaf_of(path);
    sys::Fd parent = TRY_CTX(make_parent(upper, path), context);
    auto source = TRY_CTX(sys::open_at(sys::cwd(), file.host_path, O_RDONLY | O_NONBLOCK), context);
    TRY_CTX(sys::remove_entry(parent, name), context);  // the container's own of this name
    auto target = TRY_CTX(sys::open_at(parent, name, O_WRONLY | O_CREAT | O_EXCL, 0600), context);
    TRY_CTX(sys::copy_rest(source, target, path), context);
    TRY_CTX(sys::change_mode(target, file.mode, path), context);
  }
  for (const gpu::GrantedLink& link : links) {
    const std::string path = link.path.substr(1);
    sys::Fd parent = TRY_CTX(make_parent(upper, path), context);
    auto linked = sys::make_symlink(link.target, parent, leaf_of(path));
    if (!linked.ok() && linked.error().kind != Kind::exists) return linked;
  }
  return {};
}

}  // namespace berth::engine
