// SPDX-License-Identifier: Apache-2.0
// Store::survey(), for a check of the store, and discard() and forget(), for its repair.

#include "image/layout.hpp"
#include "image/staging.hpp"
#include "image/store.hpp"
#include "sys/file/remove_tree.hpp"

namespace berth::image {
namespace {

Result<std::vector<std::string>> entries_of(const sys::Fd& root, const std::string& directory) {
  std::vector<std::string> paths;
  if (!TRY(sys::stat_entry(root, directory))) return paths;
  for (const auto& name : TRY(sys::list_directory(root, directory))) {
    paths.push_back(directory + "/" + name);
  }
  return paths;
}

/// Entries of tmp/ with dead owners, and incomplete records. No writer of a record is active, as
/// writers hold the lock.
Result<std::vector<std::string>> leftovers_of(const sys::Fd& root) {
  std::vector<std::string> found;
  for (const auto& name : TRY(sys::list_directory(root, "tmp"))) {
    if (take_leftover(root, name)) found.push_back("tmp/" + name);
  }
  for (const auto& path : TRY(entries_of(root, "images"))) {
    if (!path.ends_with(".json")) found.push_back(path);
  }
  return found;
}

/// Nothing if a manifest is unreadable, as the objects that it needs are unknown.
std::optional<Needed> needed_by(const sys::Fd& root, const Survey& survey) {
  Needed needed;
  if (!survey.damaged_records.empty()) return std::nullopt;
  for (const auto& record : survey.records) {
    needed.blobs.insert(record.target.hex());
    if (!need_manifest(root, record.manifest, needed).ok()) return std::nullopt;
  }
  for (const auto& [container, manifest] : survey.users) {
    auto known = sys::stat_entry(root, blob_file(manifest));
    if (!known.ok()) return std::nullopt;
    if (*known && !need_manifest(root, manifest, needed).ok()) return std::nullopt;
  }
  if (!need_pins(root, needed, nullptr).ok()) return std::nullopt;
  return needed;
}

std::string last_name(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

std::vector<std::string> unneeded_of(const Survey& survey, const Needed& needed) {
  std::vector<std::string> paths;
  for (const auto& path : survey.layers) {
    if (!needed.layers.contains(last_name(path))) paths.push_back(path);
  }
  for (const auto* list : {&survey.blobs, &survey.origins}) {
    for (const auto& path : *list) {
      if (!needed.blobs.contains(last_name(path))) paths.push_back(path);
    }
  }
  return paths;
}

/// Whether the container with this manifest needs the object.
bool uses(const sys::Fd& root, const Digest& manifest, const std::string& path) {
  // A missing manifest is in an additional store, and so are all of its layers.
  auto there = sys::stat_entry(root, blob_file(manifest));
  if (there.ok() && !*there) return false;
  Needed needed;
  bool whole = need_manifest(root, manifest, needed).ok();
  std::string name = last_name(path);
  if (!path.starts_with("layers/")) return needed.blobs.contains(name);
  // If the manifest is damaged, its layers are unknown, and `name` may be one of them.
  return !whole || needed.layers.contains(name);
}

/// Removes the records that are useless without this blob.
Result<void> unlink_records_of(const sys::Fd& root, const std::string& hex) {
  std::vector<std::string> damaged;
  for (const auto& record : TRY(read_records(root, damaged))) {
    bool needs =
        record.manifest.hex() == hex || record.config.hex() == hex || record.target.hex() == hex;
    if (needs) TRY(unlink_record(root, record));
  }
  return {};
}

}  // namespace

Result<Survey> Store::survey() const {
  // Exclusive: only then is it possible to test by lock whether a delivery is alive.
  StoreLock lock = TRY(this->lock(sys::LockMode::exclusive));
  Survey survey;
  survey.records = TRY(read_records(dir_, survey.damaged_records));
  for (auto& name : survey.damaged_records) name.insert(0, "images/");
  survey.blobs = TRY(entries_of(dir_, "blobs/sha256"));
  survey.layers = TRY(entries_of(dir_, "layers"));
  survey.origins = TRY(entries_of(dir_, "origins"));
  survey.leftovers = TRY(leftovers_of(dir_));
  survey.users = TRY(container_uses(dir_));
  if (auto needed = needed_by(dir_, survey)) survey.unneeded = unneeded_of(survey, *needed);
  return survey;
}

Result<bool> Store::forget(const ImageRecord& record) {
  StoreLock lock = TRY(this->lock(sys::LockMode::exclusive));
  for (const auto& digest : {record.target, record.manifest, record.config}) {
    if (TRY(has_blob(digest))) continue;
    std::vector<std::string> damaged;
    for (const auto& now : TRY(read_records(dir_, damaged))) {
      if (same_record(now, record) && now.manifest == record.manifest) {
        TRY(unlink_record(dir_, now));
      }
    }
    return true;
  }
  return false;
}

Result<std::string> Store::discard(const std::string& path, const struct stat& seen) {
  std::string trash = "tmp/" + std::string(kTrashPrefix) + sys::random_hex(8);
  {
    StoreLock lock = TRY(this->lock(sys::LockMode::exclusive));
    auto now = TRY(sys::stat_entry(dir_, path));
    // It was removed or replaced meanwhile.
    bool same = now && now->st_ino == seen.st_ino && now->st_ctim.tv_sec == seen.st_ctim.tv_sec &&
                now->st_ctim.tv_nsec == seen.st_ctim.tv_nsec;
    if (!same) return std::string();
    for (const auto& [container, manifest] : TRY(container_uses(dir_))) {
      if (uses(dir_, manifest, path)) return container;
    }
    // The records first: if the process is killed in between, it leaves a superfluous blob, not a
    // record without its blob.
    if (path.starts_with("blobs/")) TRY(unlink_records_of(dir_, last_name(path)));
    TRY(sys::rename(dir_, path, dir_, trash));
  }
  ignore(sys::remove_tree(dir_, trash));  // else the next sweep does
  return std::string();
}

}  // namespace berth::image
