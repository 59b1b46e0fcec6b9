// SPDX-License-Identifier: Apache-2.0
#include "engine/files/changes.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <set>

#include "base/text.hpp"
#include "engine/container/list.hpp"
#include "engine/container/root_view.hpp"
#include "engine/gpu/loader_cache.hpp"
#include "engine/gpu/loader_places.hpp"
#include "engine/image/merged.hpp"
#include "sys/file/file.hpp"
#include "sys/mount/layer.hpp"

namespace berth::engine {
namespace {

constexpr int kDirectory = O_RDONLY | O_DIRECTORY | O_NOFOLLOW;
constexpr int kMaxDepth = kMaxLayerDepth;
constexpr const char* kOpaqueMark = ".wh..wh..opq";  // fuse-overlayfs also sets an attribute

// Docker's criterion for a changed directory.
bool is_same_directory(const struct stat& a, const struct stat& b) {
  return a.st_mode == b.st_mode && a.st_uid == b.st_uid && a.st_gid == b.st_gid &&
         a.st_size == b.st_size && a.st_mtim.tv_sec == b.st_mtim.tv_sec &&
         a.st_mtim.tv_nsec == b.st_mtim.tv_nsec;
}

class Walk {
 public:
  Walk(image::OverlayXattr kind, const std::vector<scan::LoaderEntry>& added)
      : attributes_(kind), added_(added) {}
  Result<void> directory(const sys::Fd& upper, const Merged& lower, const Merged& hidden,
                         const std::string& path, int depth);
  std::vector<PathChange> changes;

 private:
  void record(char kind, const std::string& parent, const std::string& path);
  Result<void> entry(const sys::Fd& upper, const Merged& lower, const Merged& hidden,
                     const std::string& parent, const std::string& name, int depth);

  OverlayAttributes attributes_;
  const std::vector<scan::LoaderEntry>& added_;
  std::set<std::string> told_;  ///< directories that are in `changes` already
};

// An added or deleted entry changes its directory, even if the directory's times are equal.
void Walk::record(char kind, const std::string& parent, const std::string& path) {
  if (kind != 'C' && !parent.empty() && told_.insert(parent).second) {
    changes.push_back({'C', parent});
  }
  changes.push_back({kind, path});
}

Result<void> Walk::entry(const sys::Fd& upper, const Merged& lower, const Merged& hidden,
                         const std::string& parent, const std::string& name, int depth) {
  auto status = TRY(sys::stat_entry(upper, name));
  if (!status) return {};
  std::string path = parent + "/" + name;
  Below below = TRY(look_below(attributes_, hidden.empty() ? lower : hidden, name));
  if (TRY(is_whiteout(attributes_, upper, name, *status))) {
    if (below.status) record('D', parent, path);
    return {};
  }
  if (path == kLoaderCache &&
      TRY(judge_loader_cache(upper, hidden.empty() ? lower : hidden, added_)).unchanged) {
    return {};
  }
  if (!S_ISDIR(status->st_mode)) {
    record(below.status ? 'C' : 'A', parent, path);
    return {};
  }
  auto opened = sys::open_at(upper, name, kDirectory);
  if (!opened.ok()) {
    // The container has removed or replaced it meanwhile.
    return opened.error().kind == Kind::denied ? Result<void>(std::move(opened).error())
                                               : Result<void>();
  }
  // A replaced directory hides everything below it.
  bool opaque = !hidden.empty() || TRY(attributes_.opaque(*opened));
  bool was_directory = below.status && S_ISDIR(below.status->st_mode);
  if (was_directory && path == "/etc" &&
      TRY(judge_loader_cache(*opened, below.directory, added_)).unchanged) {
    // On a file system where a directory's size counts its names, our loader cache is one of them.
    below.status->st_size = status->st_size;
  }
  bool same = was_directory && !opaque && is_same_directory(*below.status, *status);
  if (!same) {
    record(below.status ? 'C' : 'A', parent, path);
    told_.insert(path);
  }
  Merged none;
  return directory(*opened, opaque ? none : below.directory, opaque ? below.directory : none, path,
                   depth + 1);
}

/// `hidden`: the layers below a directory that was replaced as a whole.
Result<void> Walk::directory(const sys::Fd& upper, const Merged& lower, const Merged& hidden,
                             const std::string& path, int depth) {
  if (depth > kMaxDepth) {
    return make_error(Kind::usage, "compare " + quote(path.substr(0, 100)) + ": too deep");
  }
  auto listed = TRY(sys::list_directory(upper, "."));
  std::set<std::string> names(listed.begin(), listed.end());
  names.erase(kOpaqueMark);
  std::set<std::string> gone;
  for (const sys::Fd& layer : hidden) {
    for (std::string& name : TRY(sys::list_directory(layer, "."))) {
      if (!names.contains(name)) gone.insert(std::move(name));
    }
  }
  names.insert(gone.begin(), gone.end());
  for (const std::string& name : names) {
    if (gone.contains(name)) {
      if (TRY(look_below(attributes_, hidden, name)).status) record('D', path, path + "/" + name);
    } else {
      TRY(entry(upper, lower, hidden, path, name, depth));
    }
  }
  return {};
}

}  // namespace

Result<std::vector<PathChange>> layer_changes(const sys::Fd& upper,
                                              const std::vector<sys::Fd>& lower,
                                              image::OverlayXattr kind,
                                              const std::vector<scan::LoaderEntry>& added) {
  Walk walk(kind, added);
  TRY(walk.directory(upper, lower, {}, "", 1));
  return std::move(walk.changes);
}

Result<std::vector<PathChange>> container_changes(const Context& context,
                                                  std::string_view reference) {
  ContainerSummary container = TRY(get_container(context, reference));
  bool root = context.identity == Identity::root;
  auto kind = root ? image::OverlayXattr::trusted : image::OverlayXattr::user;
  auto added = loader_entries_of(TRY(read_config(context, container)));
  auto copy = TRY(open_copy(context, container));
  if (copy) return copy_changes(copy->root, copy->layers, kind, added);
  sys::Fd upper = TRY(open_upper(context, container));
  std::vector<sys::Fd> lower;
  for (const std::string& path : TRY(lower_layers(context, container))) {
    sys::Layer opened = TRY(sys::open_layer(path));
    lower.push_back(std::move(opened.root));
  }
  return layer_changes(upper, lower, kind, added);
}

}  // namespace berth::engine
