// SPDX-License-Identifier: Apache-2.0
// Removing images until the store is small enough. When an image was used last is the time of its
// manifest's file: whatever names it has, there is one such file, and nobody else needs that time.
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <map>

#include "base/text.hpp"
#include "image/layout.hpp"
#include "image/records.hpp"
#include "image/staging.hpp"
#include "sys/tree.hpp"

namespace berth::image {
namespace {

constexpr uint64_t kSector = 512;  // of st_blocks

/// One image and all that it needs of what is there, as paths below the root.
struct Candidate {
  std::vector<ImageRecord> records;
  std::set<std::string> objects;
  int64_t used_at = 0;
  int64_t used_nanoseconds = 0;
  bool held = false;  ///< a container uses it

  bool is_older_than(const Candidate& other) const {
    return std::pair(used_at, used_nanoseconds) < std::pair(other.used_at, other.used_nanoseconds);
  }
};

/// What lies in the store and how much it takes.
using Sizes = std::map<std::string, uint64_t>;

Result<uint64_t> layer_bytes(const sys::Fd& root, const std::string& name) {
  for (std::string_view tree : kTreeNames) {
    auto entry = TRY(sys::stat_entry(root, "layers/" + name + "/" + std::string(tree)));
    // Sparse where a file of the image has holes.
    if (entry && S_ISREG(entry->st_mode)) return static_cast<uint64_t>(entry->st_blocks) * kSector;
  }
  auto record = read_layer_record(root, name);
  return record.ok() && *record ? (*record)->bytes : 0;
}

Result<Sizes> measure(const sys::Fd& root) {
  Sizes sizes;
  for (const auto& name : TRY(sys::list_directory(root, "layers"))) {
    sizes["layers/" + name] = TRY(layer_bytes(root, name));
  }
  for (const auto& name : TRY(sys::list_directory(root, "blobs/sha256"))) {
    auto entry = TRY(sys::stat_entry(root, "blobs/sha256/" + name));
    if (entry) sizes["blobs/sha256/" + name] = static_cast<uint64_t>(entry->st_size);
  }
  return sizes;
}

/// Of what is needed the part that is there.
std::set<std::string> objects_of(const Needed& needed, const Sizes& sizes) {
  std::set<std::string> objects;
  auto add = [&](const std::string& path) {
    if (sizes.contains(path)) objects.insert(path);
  };
  for (const auto& name : needed.layers) add("layers/" + name);
  for (const auto& hex : needed.blobs) add("blobs/sha256/" + hex);
  return objects;
}

Result<std::vector<ImageRecord>> whole_records(const sys::Fd& root) {
  std::vector<std::string> damaged;
  auto records = TRY(read_records(root, damaged));
  if (damaged.empty()) return records;
  return make_error(Kind::corrupt, "read image record " + quoted(damaged.front()),
                    "berth system check --repair");
}

/// The images, the least recently used first.
Result<std::vector<Candidate>> find_candidates(const sys::Fd& root, const Sizes& sizes) {
  std::map<Digest, Candidate> by_manifest;
  for (auto& record : TRY(whole_records(root))) {
    Candidate& candidate = by_manifest[record.manifest];
    Needed needed;
    needed.blobs.insert(record.target.hex());
    TRY(need_manifest(root, record.manifest, needed));
    candidate.objects.merge(objects_of(needed, sizes));
    auto file = TRY(sys::stat_entry(root, blob_file(record.manifest)));
    if (file) candidate.used_at = file->st_mtim.tv_sec;
    if (file) candidate.used_nanoseconds = file->st_mtim.tv_nsec;
    candidate.records.push_back(std::move(record));
  }
  for (const auto& [container, manifest] : TRY(container_uses(root))) {
    auto user = by_manifest.find(manifest);
    if (user != by_manifest.end()) user->second.held = true;
  }
  std::vector<Candidate> candidates;
  for (auto& [manifest, candidate] : by_manifest) candidates.push_back(std::move(candidate));
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const auto& a, const auto& b) { return a.is_older_than(b); });
  return candidates;
}

/// What containers and running deliveries need, whatever becomes of the images.
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

ShrunkImage describe(const Candidate& candidate) {
  ShrunkImage image;
  image.id = candidate.records.front().config;
  for (const auto& record : candidate.records) {
    if (record.reference) image.references.push_back(*record.reference);
  }
  image.used_at = candidate.used_at;
  return image;
}

/// Which images have to go, and what goes with them.
class Shrinking {
 public:
  Shrinking(const Sizes& sizes, const std::set<std::string>& held,
            const std::vector<Candidate>& candidates)
      : sizes_(sizes) {
    for (const auto& path : held) ++users_[path];
    for (const auto& candidate : candidates) {
      for (const auto& path : candidate.objects) ++users_[path];
    }
    for (const auto& [path, bytes] : sizes_) {
      result_.before += bytes;
      if (users_.contains(path)) result_.after += bytes;
      if (!users_.contains(path)) drop(path);
    }
  }

  uint64_t bytes() const { return result_.after; }
  void remove(const Candidate& candidate) {
    ShrunkImage image = describe(candidate);
    for (const auto& path : candidate.objects) {
      if (--users_[path] > 0) continue;
      image.bytes += sizes_.at(path);
      drop(path);
    }
    result_.after -= image.bytes;
    result_.images.push_back(std::move(image));
  }
  Shrunk take() { return std::move(result_); }

 private:
  void drop(const std::string& path) {
    constexpr std::string_view kLayers = "layers/";
    if (!path.starts_with(kLayers)) return;
    std::string name = path.substr(kLayers.size());
    auto digest = Digest::parse("sha256:" + name.substr(0, name.find('-')));
    if (digest.ok()) result_.layers.push_back(std::move(*digest));
  }

  const Sizes& sizes_;
  std::map<std::string, uint64_t> users_;
  Shrunk result_;
};

}  // namespace

void Store::note_used(const Digest& manifest) const {
  auto now = std::chrono::system_clock::now().time_since_epoch();
  auto seconds = std::chrono::duration_cast<std::chrono::seconds>(now);
  auto rest = std::chrono::duration_cast<std::chrono::nanoseconds>(now - seconds);
  // A store that cannot be written, or one of somebody else, is used all the same.
  ignore(sys::set_modified_at(dir_, blob_file(manifest),
                              {seconds.count(), static_cast<uint32_t>(rest.count())}));
}

Result<Shrunk> Store::shrink(uint64_t most_bytes, Act act) {
  Collected collected;
  Shrunk result;
  {
    // Also to tell alone: whether a delivery lives is seen by who could have its lock.
    StoreLock lock = TRY(this->lock(sys::LockMode::exclusive));
    Sizes sizes = TRY(measure(dir_));
    auto candidates = TRY(find_candidates(dir_, sizes));
    auto held = TRY(held_objects(dir_, sizes, act == Act::yes ? &lock : nullptr));
    Shrinking shrinking(sizes, held, candidates);
    for (const auto& candidate : candidates) {
      if (shrinking.bytes() <= most_bytes) break;
      if (candidate.held) continue;
      shrinking.remove(candidate);
      if (act == Act::no) continue;
      for (const auto& record : candidate.records) TRY(unlink_record(dir_, record));
    }
    result = shrinking.take();
    if (act == Act::no) return result;
    collected = TRY(unlink_unneeded(dir_, lock));
  }
  empty_trash(dir_, collected);
  sweep(dir_);
  return result;
}

}  // namespace berth::image
