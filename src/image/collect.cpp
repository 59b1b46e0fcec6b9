// SPDX-License-Identifier: Apache-2.0
// The objects that records, containers and running deliveries need. All others may be removed.
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <set>
#include <thread>

#include "base/text.hpp"
#include "image/layout.hpp"
#include "image/lease.hpp"
#include "image/staging.hpp"
#include "image/store.hpp"
#include "sys/file/file.hpp"
#include "sys/file/mode.hpp"
#include "sys/file/remove_tree.hpp"

namespace berth::image {
namespace {

constexpr LayerFlavor kFlavors[] = {
    {Ownership::full, OverlayXattr::trusted},
    {Ownership::full, OverlayXattr::user},
    {Ownership::single, OverlayXattr::user},
};

/// Empty if the directory does not exist: the first pull makes it.
Result<std::vector<std::string>> origin_names(const sys::Fd& root) {
  if (!TRY(sys::stat_entry(root, "origins"))) return std::vector<std::string>();
  return sys::list_directory(root, "origins");
}

Result<Needed> find_needed(const sys::Fd& root, StoreLock& lock) {
  Needed needed;
  std::vector<std::string> damaged;
  auto records = TRY(read_records(root, damaged));
  if (!damaged.empty()) {
    return make_error(Kind::corrupt, "read image record " + quote(damaged.front()),
                      "remove that file from images/ in the store and pull the image again");
  }
  for (const auto& record : records) {
    needed.blobs.insert(record.target.hex());
    TRY(need_manifest(root, record.manifest, needed));
  }
  for (const auto& [container, manifest] : TRY(container_uses(root))) {
    auto known = TRY(sys::stat_entry(root, blob_file(manifest)));
    if (known) TRY(need_manifest(root, manifest, needed));
  }
  TRY(need_pins(root, needed, &lock));
  return needed;
}

}  // namespace

Result<void> need_manifest(const sys::Fd& root, const Digest& digest, Needed& needed) {
  needed.blobs.insert(digest.hex());
  std::string text = TRY(sys::read_file(root, blob_file(digest), oci::kMaxManifestBytes));
  auto document = TRY(oci::parse_manifest(text, {}, digest.text()));
  const auto* manifest = std::get_if<oci::Manifest>(&document);
  if (manifest == nullptr) {
    return make_error(Kind::corrupt, digest.text() + ": expected a manifest, got an index");
  }
  needed.blobs.insert(manifest->config.digest.hex());
  for (const auto& layer : manifest->layers) needed.blobs.insert(layer.digest.hex());
  text = TRY(sys::read_file(root, blob_file(manifest->config.digest), oci::kMaxConfigBytes));
  auto config = TRY(oci::parse_config(text, manifest->config.digest.text()));
  for (const auto& diff_id : config.rootfs.diff_ids) {
    for (LayerFlavor flavor : kFlavors) needed.layers.insert(layer_name(diff_id, flavor));
  }
  return {};
}

namespace {

void add_pins(std::string_view text, Needed& needed) {
  for (std::string_view line : split(text, '\n')) {
    if (line.starts_with("blob ")) needed.blobs.emplace(line.substr(5));
    if (line.starts_with("layer ")) needed.layers.emplace(line.substr(6));
  }
}

std::string who_says(std::string_view text) {
  std::vector<std::string_view> words = split(text.substr(0, text.find('\n')), ' ');
  if (words.size() < 4) return "another machine";
  return "process " + std::string(words[3]) + " on " + std::string(words[2]);
}

/// A lease and its text. No lock of its owner is visible here, so the owner may be alive or dead.
struct Unknown {
  std::string name;
  std::string text;
  Watch watch;
};

/// Waits until all owners of `leases` have ended; a live owner is an error. Removes expired leases,
/// so that an owner that is alive after all notices it.
Result<void> require_end(const sys::Fd& root, StoreLock& lock, std::vector<Unknown> leases) {
  while (true) {
    for (size_t i = leases.size(); i-- > 0;) {
      Unknown& lease = leases[i];
      Watch::Seen seen = lease.watch.look(root, lease.name);
      if (seen == Watch::Seen::alive) {
        return make_error(Kind::busy,
                          "tell what is needed: " + who_says(lease.text) + " is at work there",
                          "berth system prune, when it has ended");
      }
      if (seen == Watch::Seen::expired) TRY(sys::remove_entry(root, "tmp/" + lease.name));
      bool ended = seen == Watch::Seen::expired || seen == Watch::Seen::gone;
      if (ended) leases.erase(leases.begin() + static_cast<ptrdiff_t>(i));
    }
    if (leases.empty()) return {};
    TRY(lock.renew());
    std::this_thread::sleep_for(Watch::pause());
  }
}

}  // namespace

// Reads the pins files of live deliveries; sweep() removes the others.
Result<void> need_pins(const sys::Fd& root, Needed& needed, StoreLock* lock,
                       std::string_view but_for) {
  std::vector<Unknown> leases;
  for (const auto& name : TRY(sys::list_directory(root, "tmp"))) {
    if (!name.starts_with(kPinsPrefix) || name == but_for) continue;
    auto fd = TRY(sys::open_if_exists(root, "tmp/" + name, O_RDONLY | O_NOFOLLOW));
    if (!fd) continue;
    auto locked = sys::try_lock(*fd, sys::LockMode::exclusive, name);
    if (!locked.ok() && !lacks_locks(locked.error())) return std::move(locked).error();
    std::string text = TRY(sys::read_all(*fd, name));
    bool unknown = !locked.ok() || is_of_other_machine(text);
    if (unknown && lock != nullptr) {
      leases.push_back({name, std::move(text), {}});
    } else if (unknown || !*locked) {
      add_pins(text, needed);
    }
  }
  if (leases.empty()) return {};
  return require_end(root, *lock, std::move(leases));
}

// The file has a line for each image that the container mounts.
constexpr size_t kMaxUses = size_t{1} << 20;

Result<std::vector<std::pair<std::string, Digest>>> container_uses(const sys::Fd& root) {
  std::vector<std::pair<std::string, Digest>> uses;
  for (const auto& id : TRY(sys::list_directory(root, "containers"))) {
    auto text = TRY(sys::read_file_if_exists(root, "containers/" + id + "/image", kMaxUses));
    if (!text) continue;
    // An incomplete line was left by a writer that was killed or had no space; its container never
    // ran. No writer is active now, as writers hold the store's lock.
    for (std::string_view line : split(trim(*text), '\n')) {
      auto manifest = Digest::parse(line);
      if (manifest.ok()) uses.emplace_back(id, std::move(*manifest));
    }
  }
  return uses;
}

Result<std::string> user_of_layer(const sys::Fd& root, const std::string& name) {
  for (const auto& [container, manifest] : TRY(container_uses(root))) {
    // A missing manifest is in an additional store, and so are all of its layers.
    if (!TRY(sys::stat_entry(root, blob_file(manifest)))) continue;
    Needed needed;
    bool whole = need_manifest(root, manifest, needed).ok();
    if (!whole || needed.layers.contains(name)) return container;
  }
  return std::string();
}

Result<Collected> unlink_unneeded(const sys::Fd& root, StoreLock& lock) {
  Needed needed = TRY(find_needed(root, lock));
  Collected collected;
  // Incomplete records of killed writers. Writers hold the lock, so none is active now.
  for (const auto& name : TRY(sys::list_directory(root, "images"))) {
    if (!name.ends_with(".json")) TRY(sys::remove_entry(root, "images/" + name));
  }
  auto discard = [&](const std::string& path) -> Result<void> {
    TRY(lock.renew());
    std::string trash = "tmp/" + std::string(kTrashPrefix) + sys::random_hex(8);
    TRY(sys::rename(root, path, root, trash));
    collected.trash.push_back(std::move(trash));
    return {};
  };
  for (const auto& name : TRY(sys::list_directory(root, "layers"))) {
    if (needed.layers.contains(name)) continue;
    TRY(discard("layers/" + name));
    collected.layers.push_back(name);
  }
  for (const auto& name : TRY(sys::list_directory(root, "blobs/sha256"))) {
    if (needed.blobs.contains(name)) continue;
    TRY(discard("blobs/sha256/" + name));
    collected.blobs.push_back(name);
  }
  for (const auto& name : TRY(origin_names(root))) {
    if (!needed.blobs.contains(name)) TRY(sys::remove_entry(root, "origins/" + name));
  }
  return collected;
}

void empty_trash(const sys::Fd& root, const Collected& collected) {
  // Trash that cannot be removed now stays in tmp/ without a lock; the next sweep removes it.
  for (const auto& path : collected.trash) ignore(sys::remove_tree(root, path));
}

// ---- shrinking ----------------------------------------------------------------------------------

// Removes images until the store is small enough. The time when an image was last used is the mtime
// of its manifest's file: all names of the image share that file, and its mtime has no other use.
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
  // Errors do not matter: an image in a store that is not writable can be used, too.
  auto held = sys::hold_entry(dir_, blob_file(manifest));
  sys::FileTime used{seconds.count(), static_cast<uint32_t>(rest.count())};
  if (held.ok()) ignore(sys::set_modified(*held, used, manifest.text()));
}

Result<Shrunk> Store::shrink(uint64_t most_bytes, Act act, const std::set<Digest>& kept) {
  Collected collected;
  Shrunk result;
  {
    Sizes sizes = TRY(measure(dir_));  // may take a while, so before the lock
    // Exclusive even for a report: only then is it possible to test by lock whether a delivery is
    // alive.
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
