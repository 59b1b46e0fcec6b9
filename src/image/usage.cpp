// SPDX-License-Identifier: Apache-2.0
// The disk usage of a store's objects, and the images that have them.
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <map>

#include "base/text.hpp"
#include "image/layout.hpp"
#include "image/upkeep.hpp"

namespace berth::image {
namespace {

constexpr uint64_t kSector = 512;          // of st_blocks
constexpr int kMaxDepth = 4096;            // more than any limit of unpacking
constexpr size_t kMaxNames = 100'000'000;  // of a directory; unpacking has its own limit
constexpr int kEnter = O_RDONLY | O_DIRECTORY | O_NOFOLLOW;

/// A file with several names, and the layers that have one of them.
struct LinkedFile {
  uint64_t bytes = 0;
  std::set<std::string> layers;
};
using LinkedFiles = std::map<ino_t, LinkedFile>;

Result<void> add_links(const sys::Fd& parent, const std::string& name, const std::string& layer,
                       int depth, LinkedFiles& files) {
  auto here = TRY(sys::open_if_exists(parent, name, kEnter));
  if (!here || depth > kMaxDepth) return {};
  for (const auto& entry : TRY(sys::list_directory(*here, ".", kMaxNames))) {
    auto status = TRY(sys::stat_entry(*here, entry));
    if (!status) continue;
    if (S_ISDIR(status->st_mode)) {
      TRY(add_links(*here, entry, layer, depth + 1, files));
    } else if (S_ISREG(status->st_mode) && status->st_nlink > 1) {
      LinkedFile& file = files[status->st_ino];
      file.bytes = static_cast<uint64_t>(status->st_size);
      file.layers.insert(layer);
    }
  }
  return {};
}

/// The size of the files next to the tree in a layer's directory, and of the tree if it is an EROFS
/// image.
Result<uint64_t> files_beside(const sys::Fd& root, const std::string& name, bool& is_image) {
  uint64_t bytes = 0;
  std::string directory = "layers/" + name;
  auto here = TRY(sys::open_if_exists(root, directory, kEnter));
  if (!here) return bytes;  // just removed
  for (const auto& entry : TRY(sys::list_directory(*here, "."))) {
    auto status = TRY(sys::stat_entry(*here, entry));
    if (!status || !S_ISREG(status->st_mode)) continue;
    // An EROFS image is a sparse file if files in it have holes.
    bool image = entry == tree_name(LayerFormat::erofs);
    is_image |= image;
    bytes += image ? static_cast<uint64_t>(status->st_blocks) * kSector
                   : static_cast<uint64_t>(status->st_size);
  }
  return bytes;
}

Result<uint64_t> layer_bytes(const sys::Fd& root, const std::string& name) {
  bool is_image = false;
  uint64_t beside = TRY(files_beside(root, name, is_image));
  if (is_image) return beside;
  auto record = read_layer_record(root, name);
  return beside + (record.ok() && *record ? (*record)->bytes : 0);
}

/// Moves the size of shared files from the layers to objects of their own.
void share_out(const LinkedFiles& files, Sizes& sizes) {
  for (const auto& [inode, file] : files) {
    if (file.layers.size() < 2) continue;
    std::string key =
        "layers/" + join(std::vector<std::string>(file.layers.begin(), file.layers.end()), "+");
    sizes.bytes[key] += file.bytes;
    sizes.sharers[key] = file.layers;
    for (const auto& layer : file.layers) {
      uint64_t& own = sizes.bytes["layers/" + layer];
      own -= std::min(own, file.bytes);
    }
  }
}

/// Records which objects each image needs. Skips damaged images.
Result<void> add_images(const sys::Fd& root, const Sizes& sizes,
                        std::map<std::string, ObjectUse>& uses) {
  std::vector<std::string> damaged;
  std::map<Digest, Needed> images;
  for (const auto& record : TRY(read_records(root, damaged))) {
    images[record.manifest].blobs.insert(record.target.hex());
  }
  for (auto& [manifest, needed] : images) {
    if (!need_manifest(root, manifest, needed).ok()) continue;
    for (const auto& path : objects_of(needed, sizes)) uses[path].images.insert(manifest);
  }
  return {};
}

}  // namespace

Result<Sizes> measure(const sys::Fd& root) {
  Sizes sizes;
  LinkedFiles linked;
  for (const auto& name : TRY(sys::list_directory(root, "layers"))) {
    auto entry = TRY(sys::stat_entry(root, "layers/" + name));
    if (!entry || !S_ISDIR(entry->st_mode)) continue;
    sizes.bytes["layers/" + name] = TRY(layer_bytes(root, name));
    if (TRY(sys::stat_entry(root, "layers/" + name + "/" + kLinkedFile))) {
      TRY(add_links(root, "layers/" + name + "/fs", name, 0, linked));
    }
  }
  share_out(linked, sizes);
  for (const auto& name : TRY(sys::list_directory(root, "blobs/sha256"))) {
    auto entry = TRY(sys::stat_entry(root, "blobs/sha256/" + name));
    if (entry) sizes.bytes["blobs/sha256/" + name] = static_cast<uint64_t>(entry->st_size);
  }
  return sizes;
}

std::set<std::string> objects_of(const Needed& needed, const Sizes& sizes) {
  std::set<std::string> objects;
  auto add = [&](const std::string& path) {
    if (sizes.bytes.contains(path)) objects.insert(path);
  };
  for (const auto& name : needed.layers) add("layers/" + name);
  for (const auto& hex : needed.blobs) add("blobs/sha256/" + hex);
  for (const auto& [path, layers] : sizes.sharers) {
    bool shares = std::ranges::any_of(
        layers, [&](const std::string& name) { return needed.layers.contains(name); });
    if (shares) add(path);
  }
  return objects;
}

Result<std::set<std::string>> held_objects(const sys::Fd& root, const Sizes& sizes,
                                           StoreLock* lock) {
  Needed needed;
  TRY(need_pins(root, needed, lock));
  for (const auto& [container, manifest] : TRY(container_uses(root))) {
    auto known = TRY(sys::stat_entry(root, blob_file(manifest)));
    if (known) TRY(need_manifest(root, manifest, needed));
  }
  return objects_of(needed, sizes);
}

Result<Usage> measure_usage(const Store& store) {
  sys::Fd root = TRY(sys::open_at(sys::cwd(), store.root(), O_RDONLY | O_DIRECTORY));
  Sizes sizes = TRY(measure(root));  // may take a while, so before the lock
  // Exclusive: only then is it possible to test by lock whether a delivery is alive.
  StoreLock lock = TRY(store.lock(sys::LockMode::exclusive));
  std::map<std::string, ObjectUse> uses;
  for (const auto& [path, bytes] : sizes.bytes) uses[path] = {path, bytes, {}, false};
  TRY(add_images(root, sizes, uses));
  auto held = held_objects(root, sizes, nullptr);
  // The objects that a damaged image needs are unknown, so any object may be held.
  for (auto& [path, use] : uses) use.held = !held.ok() || held->contains(path);
  Usage usage;
  for (auto& [path, use] : uses) usage.objects.push_back(std::move(use));
  for (const auto& [path, layers] : sizes.sharers) {
    usage.saved += sizes.bytes.at(path) * (layers.size() - 1);
  }
  return usage;
}

Result<std::string> with_idle_layer(const Store& store, const std::string& name,
                                    const std::function<Result<void>()>& act, const Delivery* own) {
  sys::Fd root = TRY(sys::open_at(sys::cwd(), store.root(), O_RDONLY | O_DIRECTORY));
  StoreLock lock = TRY(store.lock(sys::LockMode::exclusive));
  if (!TRY(sys::stat_entry(root, "layers/" + name))) {
    return make_error(Kind::not_found, "find layer " + quote(name) + ": it has been removed");
  }
  std::string user = TRY(user_of_layer(root, name));
  if (!user.empty()) return user;
  Needed needed;
  TRY(need_pins(root, needed, nullptr, own == nullptr ? "" : own->name()));
  if (needed.layers.contains(name)) return std::string(kBusyDelivery);
  TRY(act());
  return user;
}

}  // namespace berth::image
