// SPDX-License-Identifier: Apache-2.0
// Removes images until the store is small enough. The mtime of its manifest's file is the time when
// an image was last used: all of its names share that file, and the time has no other use.
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <map>

#include "base/text.hpp"
#include "image/layout.hpp"
#include "image/records.hpp"
#include "image/staging.hpp"
#include "image/store.hpp"
#include "sys/file/mode.hpp"

namespace berth::image {
namespace {

/// One image and the existing objects that it needs, as paths below the root.
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

Result<std::vector<ImageRecord>> whole_records(const sys::Fd& root) {
  std::vector<std::string> damaged;
  auto records = TRY(read_records(root, damaged));
  if (damaged.empty()) return records;
  return make_error(Kind::corrupt, "read image record " + quote(damaged.front()),
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
  std::ranges::stable_sort(candidates,
                           [](const auto& a, const auto& b) { return a.is_older_than(b); });
  return candidates;
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

/// Chooses the images to remove, and the objects to remove with them.
class Shrinking {
 public:
  Shrinking(const Sizes& sizes, const std::set<std::string>& held,
            const std::vector<Candidate>& candidates)
      : sizes_(sizes) {
    for (const auto& path : held) ++users_[path];
    for (const auto& candidate : candidates) {
      for (const auto& path : candidate.objects) ++users_[path];
    }
    for (const auto& [path, bytes] : sizes_.bytes) {
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
      image.bytes += sizes_.bytes.at(path);
      drop(path);
    }
    result_.after -= image.bytes;
    result_.images.push_back(std::move(image));
  }
  Shrunk take() { return std::move(result_); }

 private:
  void drop(const std::string& path) {
    constexpr std::string_view kLayers = "layers/";
    if (!path.starts_with(kLayers) || sizes_.sharers.contains(path)) return;
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
  // An unwritable store, or another user's, is used all the same.
  auto held = sys::hold_entry(dir_, blob_file(manifest));
  sys::FileTime used{seconds.count(), static_cast<uint32_t>(rest.count())};
  if (held.ok()) ignore(sys::set_modified(*held, used, manifest.text()));
}

Result<Shrunk> Store::shrink(uint64_t most_bytes, Act act, const std::set<Digest>& kept) {
  Collected collected;
  Shrunk result;
  {
    Sizes sizes = TRY(measure(dir_));  // may take a while: not under the lock
    // Even for a report: only a process that could take its lock sees whether a delivery lives.
    StoreLock lock = TRY(this->lock(sys::LockMode::exclusive));
    auto candidates = TRY(find_candidates(dir_, sizes));
    auto held = TRY(held_objects(dir_, sizes, act == Act::yes ? &lock : nullptr));
    Shrinking shrinking(sizes, held, candidates);
    for (const auto& candidate : candidates) {
      if (shrinking.bytes() <= most_bytes) break;
      if (candidate.held || kept.contains(candidate.records.front().manifest)) continue;
      shrinking.remove(candidate);
      if (act == Act::no) continue;
      TRY(lock.renew());
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
