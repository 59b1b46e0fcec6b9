// SPDX-License-Identifier: Apache-2.0
#include "engine/image/layer_view.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/text.hpp"
#include "sys/file/file.hpp"
#include "sys/file/regular.hpp"
#include "sys/file/tree.hpp"
#include "sys/mount/copy_tree.hpp"
#include "sys/mount/layer.hpp"

namespace berth::engine {
namespace {

constexpr int kMaxLinks = 40;  // the kernel's limit for a path

bool is_whiteout(const struct stat& status) {
  return S_ISCHR(status.st_mode) && status.st_rdev == makedev(0, 0);
}

// The value "y" means opaque; "x" only means that the directory may have whiteouts marked by
// attributes.
Result<bool> is_opaque(const sys::Fd& directory) {
  for (const char* key : {"trusted.overlay.opaque", "user.overlay.opaque"}) {
    auto value = TRY(sys::read_attribute(directory, key));
    if (value && *value == "y") return true;
  }
  return false;
}

void drop_last(std::string& path) {
  if (!path.empty()) path.erase(path.rfind('/'));
}

/// The names of a path, one after the other.
class Parts {
 public:
  explicit Parts(std::string_view path) : text_(path) {}

  /// Empty: there is none left. Valid until put_before().
  std::string_view next() {
    while (at_ < text_.size()) {
      size_t end = std::min(text_.find('/', at_), text_.size());
      std::string_view part = std::string_view(text_).substr(at_, end - at_);
      at_ = end + 1;
      if (!part.empty() && part != ".") return part;
    }
    return {};
  }

  /// The target of a link comes before what is left.
  void put_before(std::string_view target) {
    std::string rest = at_ < text_.size() ? text_.substr(at_) : "";
    text_.assign(target).append("/").append(rest);
    at_ = 0;
  }

 private:
  std::string text_;
  size_t at_ = 0;
};

}  // namespace

struct LayerView::Entry {
  Type type = Type::absent;
  SharedDirectory directory;  ///< of a directory; otherwise nullptr
  sys::Fd parent;             ///< otherwise: the directory in its layer
  std::string name;
  std::string path;  ///< absolute, links resolved
  uint64_t size = 0;
  uint64_t number = 0;  ///< the inode number in the layer
  uint64_t links = 0;   ///< the number of hard links in the layer
  size_t layer = 0;
  bool link = false;
  bool regular = false;
};

Result<LayerView> LayerView::open(const std::vector<std::string>& layers) {
  LayerView view;
  for (const std::string& layer : layers) {
    sys::Layer opened = TRY(sys::open_layer(layer));
    view.layers_.push_back(std::move(opened.root));
  }
  return view;
}

Result<LayerView::SharedDirectory> LayerView::root() const {
  if (auto known = known_.find(""); known != known_.end()) return known->second;
  Directory directory;
  for (size_t i = 0; i < layers_.size(); ++i) {
    directory.push_back({TRY(sys::duplicate(layers_[i])), i});
  }
  auto shared = std::make_shared<const Directory>(std::move(directory));
  remember("", shared);
  return shared;
}

void LayerView::remember(const std::string& path, const SharedDirectory& directory) const {
  constexpr size_t kMostHandles = 128;
  constexpr size_t kMostPaths = 1024;
  size_t handles = directory ? directory->size() : 0;
  if (handles_ + handles > kMostHandles || known_.size() + real_.size() >= kMostPaths) {
    known_.clear();
    real_.clear();
    handles_ = 0;
  }
  handles_ += handles;
  known_[path] = directory;
}

Result<LayerView::Entry> LayerView::look_in(const Directory& directory, const std::string& name) {
  Entry entry;
  Directory merged;
  for (const auto& [layer, index] : directory) {
    auto status = TRY(sys::stat_entry(layer, name));
    if (!status) continue;
    if (is_whiteout(*status)) break;
    if (!S_ISDIR(status->st_mode)) {
      // A file below a directory of a higher layer is hidden; otherwise the container sees the
      // file.
      if (entry.type != Type::absent) break;
      entry.type = Type::other;
      entry.parent = TRY(sys::duplicate(layer));
      entry.name = name;
      entry.link = S_ISLNK(status->st_mode);
      entry.regular = S_ISREG(status->st_mode);
      entry.layer = index;
      entry.size = static_cast<uint64_t>(status->st_size);
      entry.number = status->st_ino;
      entry.links = status->st_nlink;
      break;
    }
    entry.type = Type::directory;
    sys::Fd part = TRY(sys::open_at(layer, name, O_DIRECTORY | O_NOFOLLOW | O_RDONLY));
    bool opaque = TRY(is_opaque(part));
    merged.push_back({std::move(part), index});
    if (opaque) break;
  }
  if (!merged.empty()) entry.directory = std::make_shared<const Directory>(std::move(merged));
  return entry;
}

Result<LayerView::Entry> LayerView::look_below(const Directory& directory, const std::string& path,
                                               const std::string& name) const {
  std::string below = path + "/" + name;
  if (auto known = known_.find(below); known != known_.end()) {
    Entry entry;
    if (known->second) entry.type = Type::directory;
    entry.directory = known->second;
    return entry;
  }
  Entry entry = TRY(look_in(directory, name));
  if (entry.type != Type::other) remember(below, entry.directory);
  return entry;
}

/// The result of a path walk: the entry, and its absolute path with links resolved.
struct LayerView::Walked {
  Entry entry;
  std::string path;  ///< "" is the root
};

Result<LayerView::Walked> LayerView::walk(std::string_view path) const {
  Parts pending(path);
  std::vector<SharedDirectory> stack;  // the directories from the root to here, for ".."
  stack.push_back(TRY(root()));
  Walked walked;
  std::string& here = walked.path;  // the last directory of the stack
  int links = 0;
  for (auto part = pending.next(); !part.empty(); part = pending.next()) {
    if (part == "..") {
      if (stack.size() == 1) continue;
      stack.pop_back();
      drop_last(here);
      continue;
    }
    std::string name(part);
    Entry entry = TRY(look_below(*stack.back(), here, name));
    if (entry.type == Type::directory) {
      stack.push_back(std::move(entry.directory));
      here.append("/").append(name);
    } else if (entry.link && ++links <= kMaxLinks) {
      std::string target = TRY(sys::read_link(entry.parent, name));
      if (target.starts_with('/')) {
        stack.erase(stack.begin() + 1, stack.end());
        here.clear();
      }
      pending.put_before(target);
    } else {
      // A link loop has no target, and only a directory has entries.
      bool is_found = !entry.link;
      here.append("/").append(name);
      for (auto rest = pending.next(); !rest.empty(); rest = pending.next()) {
        is_found = false;
        rest == ".." ? drop_last(here) : void(here.append("/").append(rest));
      }
      if (is_found) walked.entry = std::move(entry);
      return walked;
    }
  }
  walked.entry.type = Type::directory;
  walked.entry.directory = std::move(stack.back());
  return walked;
}

Result<LayerView::Entry> LayerView::resolve(std::string_view path) const {
  Walked walked = TRY(walk(path));
  walked.entry.path = walked.path.empty() ? "/" : std::move(walked.path);
  return std::move(walked.entry);
}

Result<std::string> LayerView::real_path(std::string_view path) const {
  size_t slash = path.rfind('/');
  std::string_view directory = path.substr(0, slash);
  std::string name(slash == path.npos ? "" : path.substr(slash + 1));
  if (name.empty() || name == "." || name == "..") return TRY(resolve(path)).path;
  auto known = real_.find(directory);
  if (known == real_.end()) {
    Walked walked = TRY(walk(directory));
    RealDirectory found{std::move(walked.path), std::move(walked.entry.directory)};
    known = real_.emplace(directory, std::move(found)).first;
  }
  const RealDirectory here = known->second;  // look_below() may forget it
  std::string real = here.path + "/" + name;
  if (!here.directory) return real;
  Entry entry = TRY(look_below(*here.directory, here.path, name));
  return entry.link ? TRY(resolve(path)).path : std::move(real);
}

Result<LayerView::Type> LayerView::look_up(std::string_view path) const {
  Entry entry = TRY(resolve(path));
  return entry.type;
}

Result<std::optional<LayerView::File>> LayerView::find_file(std::string_view path) const {
  Entry entry = TRY(resolve(path));
  if (!entry.regular) return std::optional<File>();
  return std::optional<File>(File{std::move(entry.path), entry.size});
}

Result<std::string> LayerView::read_at(std::string_view path, uint64_t offset,
                                       size_t length) const {
  Entry entry = TRY(resolve(path));
  if (!entry.regular) return std::string();
  auto file = TRY(sys::find_regular(entry.parent, entry.name));
  if (!file) return std::string();
  return sys::read_at(*file, offset, length, std::string(path));
}

Result<std::vector<std::string>> LayerView::list(std::string_view path) const {
  constexpr size_t kMaxNames = 4096;
  Entry entry = TRY(resolve(path));
  std::vector<std::string> names;
  std::set<std::string> seen;
  if (entry.type != Type::directory) return names;
  for (const auto& [layer, index] : *entry.directory) {
    auto listed = sys::list_directory(layer, ".", kMaxNames);
    if (!listed.ok()) continue;  // too many names to search
    for (std::string& name : *listed) {
      if (!seen.insert(name).second) continue;
      auto status = TRY(sys::stat_entry(layer, name));
      if (status && !is_whiteout(*status)) names.push_back(std::move(name));
    }
  }
  return names;
}

Result<std::vector<std::optional<size_t>>> LayerView::layers_of(
    std::string_view directory, const std::vector<std::string>& names) const {
  std::vector<std::optional<size_t>> found(names.size());
  SharedDirectory here = TRY(root());
  std::string path;
  for (std::string_view part : split(directory, '/')) {
    if (part.empty()) continue;
    std::string name(part);
    Entry entry = TRY(look_below(*here, path, name));
    if (entry.type != Type::directory) return found;
    here = std::move(entry.directory);
    path += "/" + name;
  }
  for (size_t i = 0; i < names.size(); ++i) {
    Entry entry = TRY(look_in(*here, names[i]));
    if (entry.regular) found[i] = entry.layer;
  }
  return found;
}

struct LayerView::Copy {
  const sys::Fd& root;
  Sharing sharing = Sharing::nothing;
  /// For each file with hard links, by layer and inode number: the first name in the copy.
  std::map<std::pair<size_t, uint64_t>, std::string> first = {};
};

Result<void> LayerView::copy_other(Copy& copy, const Entry& entry, const sys::Fd& to,
                                   const std::string& path) {
  // A file that cannot be linked (another file system, too many links) is copied.
  if (copy.sharing == Sharing::files && entry.regular &&
      sys::make_hard_link(entry.parent, entry.name, to, entry.name).ok()) {
    return {};
  }
  if (copy.sharing != Sharing::nothing && entry.regular && entry.links > 1) {
    auto [known, is_new] = copy.first.emplace(std::pair(entry.layer, entry.number), path);
    if (!is_new && sys::make_hard_link(copy.root, known->second, to, entry.name).ok()) return {};
  }
  return sys::copy_entry(entry.parent, to, entry.name);
}

Result<void> LayerView::copy_directory(Copy& copy, const Directory& from, const sys::Fd& to,
                                       const std::string& name, int depth) {
  constexpr int kMostDepth = 128;
  if (depth > kMostDepth) return make_error(Kind::usage, "copy " + quote(name) + ": too deep");
  std::set<std::string> seen;
  for (const auto& [layer, index] : from) {
    for (const std::string& one : TRY(sys::list_directory(layer, "."))) {
      if (!seen.insert(one).second) continue;
      Entry entry = TRY(look_in(from, one));
      std::string path = name.empty() ? one : name + "/" + one;
      if (entry.type == Type::other) TRY(copy_other(copy, entry, to, path));
      if (entry.type != Type::directory) continue;
      TRY(sys::make_directory(to, one, 0700));
      sys::Fd below = TRY(sys::open_at(to, one, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
      TRY(copy_directory(copy, *entry.directory, below, path, depth + 1));
    }
  }
  return sys::copy_directory_metadata(from.front().fd, to, name);
}

Result<void> LayerView::copy_tree(std::string_view path, const sys::Fd& to, Sharing sharing) const {
  Entry entry = TRY(resolve(path));
  if (entry.type != Type::directory || entry.directory->empty()) return {};
  Copy copy{to, sharing};
  return copy_directory(copy, *entry.directory, to, "", 1);
}

Result<std::optional<std::string>> LayerView::read_file(std::string_view path,
                                                        size_t max_bytes) const {
  Entry entry = TRY(resolve(path));
  if (!entry.regular) return std::optional<std::string>();
  auto file = TRY(sys::find_regular(entry.parent, entry.name));
  if (!file) return std::optional<std::string>();
  std::string text = TRY(sys::read_all(*file, std::string(path), max_bytes));
  return std::optional<std::string>(std::move(text));
}

}  // namespace berth::engine
