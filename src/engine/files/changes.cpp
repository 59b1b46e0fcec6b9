// SPDX-License-Identifier: Apache-2.0
#include "engine/files/changes.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <optional>
#include <set>

#include "base/text.hpp"
#include "engine/container/list.hpp"
#include "engine/container/root_view.hpp"
#include "engine/gpu/loader.hpp"
#include "engine/image/merged.hpp"
#include "sys/file/file.hpp"
#include "sys/file/tree.hpp"
#include "sys/mount/copy_tree.hpp"
#include "sys/mount/layer.hpp"

namespace berth::engine {
namespace {

constexpr int kDirectory = O_RDONLY | O_DIRECTORY | O_NOFOLLOW;
constexpr int kMaxDepth = kMaxLayerDepth;
constexpr const char* kOpaqueMark = ".wh..wh..opq";  // fuse-overlayfs's; it also sets an attribute

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
    // On some file systems the size of a directory counts its names, and our loader cache is one of
    // them.
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

/// `hidden`: the layers below, if the directory was replaced as a whole.
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

bool same_owner(const struct stat& a, const struct stat& b) {
  return a.st_mode == b.st_mode && a.st_uid == b.st_uid && a.st_gid == b.st_gid &&
         a.st_mtim.tv_sec == b.st_mtim.tv_sec && a.st_mtim.tv_nsec == b.st_mtim.tv_nsec;
}

bool is_unchanged(const struct stat& below, const struct stat& copied) {
  if (S_ISDIR(below.st_mode)) return same_owner(below, copied);
  // A copied device or pipe has the time of the copying.
  if (!S_ISREG(below.st_mode) && !S_ISLNK(below.st_mode)) {
    return below.st_mode == copied.st_mode && below.st_rdev == copied.st_rdev &&
           below.st_uid == copied.st_uid && below.st_gid == copied.st_gid;
  }
  return same_owner(below, copied) && below.st_size == copied.st_size;
}

// Nodes that may be missing from a copy, because the user may not make them.
bool may_be_left_out(const struct stat& below) {
  return S_ISCHR(below.st_mode) || S_ISBLK(below.st_mode) || S_ISSOCK(below.st_mode);
}

class CopyWalk {
 public:
  CopyWalk(image::OverlayXattr kind, const std::vector<scan::LoaderEntry>& added)
      : attributes_(kind), added_(added) {}
  Result<void> directory(const sys::Fd& copy, const Merged& lower, const std::string& path,
                         int depth);
  std::vector<PathChange> changes;

 private:
  Result<void> entry(const sys::Fd& copy, const Merged& lower, const std::string& parent,
                     const std::string& name, int depth);
  OverlayAttributes attributes_;
  const std::vector<scan::LoaderEntry>& added_;
};

Result<void> CopyWalk::entry(const sys::Fd& copy, const Merged& lower, const std::string& parent,
                             const std::string& name, int depth) {
  std::string path = parent + "/" + name;
  auto status = TRY(sys::stat_entry(copy, name));
  Below below = TRY(look_below(attributes_, lower, name));
  if (!status) {
    if (below.status && !may_be_left_out(*below.status)) changes.push_back({'D', path});
    return {};
  }
  if (path == kLoaderCache && TRY(judge_loader_cache(copy, lower, added_)).unchanged) return {};
  if (!below.status) changes.push_back({'A', path});
  if (below.status && !is_unchanged(*below.status, *status)) changes.push_back({'C', path});
  if (!S_ISDIR(status->st_mode)) return {};
  auto opened = sys::open_at(copy, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  if (opened.ok()) return directory(*opened, below.directory, path, depth + 1);
  // The container has removed or replaced it meanwhile.
  return opened.error().kind == Kind::denied ? Result<void>(std::move(opened).error())
                                             : Result<void>();
}

Result<void> CopyWalk::directory(const sys::Fd& copy, const Merged& lower, const std::string& path,
                                 int depth) {
  if (depth > kMaxLayerDepth) {
    return make_error(Kind::usage, "compare " + quote(path.substr(0, 100)) + ": too deep");
  }
  std::set<std::string> names;
  for (std::string& name : TRY(sys::list_directory(copy, "."))) names.insert(std::move(name));
  for (const sys::Fd& layer : lower) {
    for (std::string& name : TRY(sys::list_directory(layer, "."))) names.insert(std::move(name));
  }
  for (const std::string& name : names) TRY(entry(copy, lower, path, name, depth));
  return {};
}

/// A directory of the copy, and its counterpart in the layer.
struct Pair {
  sys::Fd copy;
  sys::Fd layer;
};

/// Opens the directory of `path`, creating it with its parents in the layer. The copy belongs to a
/// container: links are not followed.
Result<std::optional<Pair>> open_parent(const sys::Fd& copy, const sys::Fd& upper,
                                        std::string_view path, std::set<std::string>& made) {
  constexpr int kOpenDirectory = O_RDONLY | O_DIRECTORY | O_NOFOLLOW;
  Pair here{TRY(sys::duplicate(copy)), TRY(sys::duplicate(upper))};
  std::string reached;
  for (std::string_view part : split(path, '/')) {
    if (part.empty()) continue;
    const std::string name(part);
    auto below = sys::open_at(here.copy, name, kOpenDirectory);
    if (!below.ok()) return std::optional<Pair>();  // removed meanwhile
    TRY(sys::make_directory(here.layer, name, 0700));
    here.layer = TRY(sys::open_at(here.layer, name, kOpenDirectory));
    here.copy = std::move(*below);
    reached += "/" + name;
    made.insert(reached);
  }
  return std::optional<Pair>(std::move(here));
}

Result<void> add_change(const sys::Fd& copy, const sys::Fd& upper, const PathChange& change,
                        std::set<std::string>& made) {
  size_t slash = change.path.rfind('/');
  std::string name = change.path.substr(slash + 1);
  auto parent = TRY(open_parent(copy, upper, change.path.substr(0, slash), made));
  if (!parent) return {};
  if (change.kind == 'D') return sys::make_node(parent->layer, name, S_IFCHR, 0, 0);
  auto status = TRY(sys::stat_entry(parent->copy, name));
  if (!status) return {};
  if (!S_ISDIR(status->st_mode)) {
    return sys::make_hard_link(parent->copy, name, parent->layer, name);
  }
  TRY(open_parent(copy, upper, change.path, made));
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

Result<std::vector<PathChange>> copy_changes(const sys::Fd& copy, const std::vector<sys::Fd>& lower,
                                             image::OverlayXattr kind,
                                             const std::vector<scan::LoaderEntry>& added) {
  CopyWalk walk(kind, added);
  TRY(walk.directory(copy, lower, "", 1));
  return std::move(walk.changes);
}

Result<void> make_layer_of_copy(const sys::Fd& copy, const std::vector<PathChange>& changes,
                                const sys::Fd& upper) {
  std::set<std::string> made;
  for (const PathChange& change : changes) TRY(add_change(copy, upper, change, made));
  // Last, and deepest first: creating an entry changes the times of its directory.
  for (auto path = made.rbegin(); path != made.rend(); ++path) {
    auto from = sys::open_in_root(copy, *path, O_RDONLY | O_DIRECTORY);
    if (!from.ok()) continue;
    sys::Fd to = TRY(sys::open_in_root(upper, *path, O_RDONLY | O_DIRECTORY));
    TRY(sys::copy_directory_metadata(*from, to, *path));
  }
  return {};
}

}  // namespace berth::engine
