// SPDX-License-Identifier: Apache-2.0
#include "gpu/cdi/registry.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <set>

#include "base/text.hpp"
#include "gpu/cdi/resolve.hpp"
#include "sys/file/file.hpp"
#include "sys/user/trusted_file.hpp"
#include "yaml/read.hpp"

namespace berth::gpu::cdi {
namespace {

constexpr size_t kMaxFile = size_t{16} << 20;
constexpr size_t kMaxFiles = 10'000;  // of one directory

// Converts numbers to strings where the specification requires strings: handwritten YAML often
// lacks the quotes, and other engines accept that.
void take_as_text(json::Value& value) {
  if (auto* array = value.get_if<json::Array>()) {
    for (json::Value& element : *array) take_as_text(element);
  } else if (const auto* number = value.get_if<int64_t>()) {
    value = std::to_string(*number);
  } else if (const auto* large = value.get_if<uint64_t>()) {
    value = std::to_string(*large);
  }
}

void take_texts(json::Value& value, std::string_view name) {
  if (name == "name" || name == "args" || name == "options") {
    take_as_text(value);
  } else if (auto* array = value.get_if<json::Array>()) {
    for (json::Value& element : *array) take_texts(element, "");
  } else if (auto* object = value.get_if<json::Object>()) {
    for (auto& [key, member] : *object) {
      if (name == "annotations") take_as_text(member);
      take_texts(member, key);
    }
  }
}

/// `believed`: the hooks of the file will be run, so no user but root and the caller may own the
/// file or be able to write it.
Result<oci::cdi::Spec> read_spec(const std::string& path, bool believed) {
  bool yaml = path.ends_with(".yaml");
  if (!yaml && !path.ends_with(".json")) {
    return make_error(Kind::unsupported, quote(path) + ": expected .json or .yaml");
  }
  // The type is checked before the file is opened: a fifo would block.
  auto place = TRY(sys::open_at(sys::cwd(), path, O_PATH));
  if (!S_ISREG(TRY(sys::stat_fd(place, path)).st_mode)) {
    return make_error(Kind::unsupported, quote(path) + " is not a file");
  }
  auto file = TRY(sys::open_at(sys::cwd(), sys::fd_path(place), O_RDONLY));
  if (believed) TRY(sys::check_trusted(file, path));
  std::string text = TRY(sys::read_all(file, path, kMaxFile));
  if (!yaml) return oci::cdi::read_json(text, path);
  json::Value document = TRY(yaml::parse(text, path));
  take_texts(document, "");
  return oci::cdi::from_document(document, path);
}

/// A parsed CDI file of one of the directories.
struct File {
  std::string path;
  size_t priority = 0;
  oci::cdi::Spec spec;
};

class Maker {
 public:
  Maker(const std::vector<std::string>& directories, const std::vector<std::string>& names)
      : names_(names.begin(), names.end()) {
    index_.directories = directories;
  }

  Result<Index> run() {
    for (size_t i = 0; i < index_.directories.size(); ++i) TRY(read_directory(i));
    choose();
    for (size_t i = 0; i < files_.size(); ++i) TRY(resolve_file(i));
    std::ranges::sort(index_.devices, [](const IndexDevice& left, const IndexDevice& right) {
      return left.name < right.name;
    });
    return std::move(index_);
  }

 private:
  Result<void> read_directory(size_t priority);
  void choose();
  Result<void> resolve_file(size_t number);
  Result<void> stamp(const std::string& path) {
    if (stamped_.insert(path).second) index_.stamps.push_back(TRY(stamp_of(path)));
    return {};
  }
  bool is_wanted(const std::string& name) const { return names_.empty() || names_.contains(name); }
  /// The resolved edits. On failure nothing, and a fault is added for each of `devices`.
  Result<std::optional<Resolved>> resolve_or_blame(const oci::cdi::Edits& edits,
                                                   const Inherited& inherited,
                                                   const std::vector<std::string>& devices);

  Index index_;
  std::set<std::string> names_;
  std::set<std::string> stamped_;
  std::vector<File> files_;
  std::map<std::string, size_t> owners_;  ///< device name to the file with the definition that
                                          ///< counts
};

Result<void> Maker::read_directory(size_t priority) {
  const std::string& directory = index_.directories[priority];
  // The stamp is taken before the directory is read, so that a change while we read makes it stale.
  TRY(stamp(directory));
  auto names = sys::list_directory(sys::cwd(), directory, kMaxFiles);
  if (!names.ok()) {
    if (names.error().kind == Kind::not_found) return {};
    index_.bad_files.push_back({directory, to_line(names.error())});
    return {};
  }
  for (const std::string& name : *names) {
    if (!name.ends_with(".json") && !name.ends_with(".yaml")) continue;
    std::string path = directory + "/" + name;
    TRY(stamp(path));
    auto spec = read_spec(path, true);
    if (spec.ok()) {
      files_.push_back({std::move(path), priority, std::move(*spec)});
    } else {
      index_.bad_files.push_back({path, to_line(spec.error())});
    }
  }
  return {};
}

void Maker::choose() {
  std::map<std::string, std::string> conflicts;
  for (size_t i = 0; i < files_.size(); ++i) {
    for (const auto& device : files_[i].spec.devices) {
      std::string name = files_[i].spec.kind + "=" + device.name;
      auto [owner, added] = owners_.try_emplace(name, i);
      if (added) continue;
      const File& other = files_[owner->second];
      if (other.priority == files_[i].priority) {
        conflicts[name] = "defined in both " + quote(other.path) + " and " + quote(files_[i].path);
      } else {
        conflicts.erase(name);  // files are in the order of their directories
        owner->second = i;
      }
    }
  }
  for (const auto& [name, text] : conflicts) {
    owners_.erase(name);
    index_.unavailable.push_back({name, text});
  }
}

Result<std::optional<Resolved>> Maker::resolve_or_blame(const oci::cdi::Edits& edits,
                                                        const Inherited& inherited,
                                                        const std::vector<std::string>& devices) {
  auto resolved = resolve(edits, inherited);
  if (resolved.ok()) {
    for (const std::string& node : resolved->nodes) TRY(stamp(node));
    return std::optional<Resolved>(std::move(*resolved));
  }
  for (const std::string& device : devices) {
    index_.unavailable.push_back({device, to_line(resolved.error())});
  }
  return std::optional<Resolved>();
}

Result<void> Maker::resolve_file(size_t number) {
  const File& file = files_[number];
  std::vector<std::string> names;
  for (const auto& device : file.spec.devices) {
    std::string name = file.spec.kind + "=" + device.name;
    auto owner = owners_.find(name);
    if (is_wanted(name) && owner != owners_.end() && owner->second == number) names.push_back(name);
  }
  if (names.empty()) return {};
  auto common = TRY(resolve_or_blame(file.spec.edits, {}, names));
  if (!common) return {};
  auto place = static_cast<uint32_t>(index_.files.size());
  index_.files.push_back({file.path, file.spec.kind, std::move(common->edits)});
  for (const auto& device : file.spec.devices) {
    std::string name = file.spec.kind + "=" + device.name;
    if (std::ranges::find(names, name) == names.end()) continue;
    auto own = TRY(resolve_or_blame(device.edits, common->inherited, {name}));
    if (own) index_.devices.push_back({std::move(name), place, std::move(own->edits)});
  }
  return {};
}

}  // namespace

Result<oci::cdi::Spec> read_file(const std::string& path) {
  return read_spec(path, false);
}

Result<Index> make_index(const std::vector<std::string>& directories,
                         const std::vector<std::string>& names) {
  return Maker(directories, names).run();
}

}  // namespace berth::gpu::cdi
