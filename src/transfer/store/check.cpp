// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "base/text.hpp"
#include "image/store.hpp"
#include "image/upkeep.hpp"
#include "sys/file/file.hpp"
#include "sys/file/mode.hpp"
#include "transfer/layer/tree_record.hpp"
#include "transfer/store/store.hpp"
#include "transfer/work/sha256.hpp"
#include "transfer/work/threads.hpp"

namespace berth::transfer {

using image::CheckFinding;

namespace {

constexpr size_t kMostFindings = 500;  // all findings are on one line of at most 1 MiB
constexpr size_t kMostNames = 4;
constexpr size_t kMaxCheckedText = 300;
constexpr size_t kMostThreads = 4;  // more seldom make a disk faster
constexpr int kCheckRead = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;

std::string last_name(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

class StoreCheck {
 public:
  StoreCheck(image::Store& store, const image::CheckRequest& request, const Cancel& cancel)
      : store_(store), request_(request), cancel_(cancel) {}

  Result<image::CheckReport> run() {
    root_ = TRY(sys::open_at(sys::cwd(), store_.root(), O_RDONLY | O_DIRECTORY));
    survey_ = TRY(store_.survey());
    TRY(name_images());
    TRY(check_permissions());
    check_records();
    TRY(in_threads(survey_.blobs, [this](const std::string& path) { return check_blob(path); }));
    TRY(in_threads(survey_.layers, [this](const std::string& path) { return check_layer(path); }));
    TRY(check_references());
    TRY(check_containers());
    report_leftovers();
    if (request_.repair) clean_up();
    std::ranges::stable_sort(report_.findings, std::ranges::greater{}, &CheckFinding::damage);
    return std::move(report_);
  }

 private:
  using Task = std::function<Result<void>(const std::string& path)>;

  /// Calls `task` once for each path, in as many threads as are useful. The first error ends the
  /// work.
  Result<void> in_threads(const std::vector<std::string>& paths, const Task& task) {
    size_t next = 0;
    std::optional<Error> error;
    size_t count = std::clamp<size_t>(std::thread::hardware_concurrency(), 1, kMostThreads);
    run_in_threads(std::min(count, paths.size()), [&] {
      while (true) {
        const std::string* path = nullptr;
        {
          std::lock_guard lock(mutex_);
          if (error || next == paths.size()) return;
          path = &paths[next++];
        }
        auto done = task(*path);
        if (done.ok()) continue;
        std::lock_guard lock(mutex_);
        if (!error) error = std::move(done).error();
      }
    });
    if (error) return std::move(*error);
    return {};
  }

  void add(CheckFinding finding) {
    if (finding.text.size() > kMaxCheckedText)
      finding.text = finding.text.substr(0, kMaxCheckedText) + "...";
    std::lock_guard lock(mutex_);
    if (report_.findings.size() < kMostFindings) report_.findings.push_back(std::move(finding));
  }

  /// Records which images have a blob, or a layer by its diff id.
  Result<void> name_images() {
    for (const auto& record : survey_.records) {
      std::string name = record.reference ? record.reference->familiar() : record.config.text();
      for (const auto& digest : {record.target, record.manifest, record.config}) {
        owners_[digest.hex()].insert(name);
      }
    }
    std::vector<std::string> damaged;
    images_ = TRY(store_.list(&damaged));
    std::erase_if(images_, [](const image::Image& image) { return !image.store.empty(); });
    for (const auto& image : images_) {
      for (const auto& layer : image.layers) {
        for (const auto& reference : image.references) {
          owners_[layer.diff_id.hex()].insert(reference.familiar());
          owners_[layer.blob.digest.hex()].insert(reference.familiar());
        }
      }
    }
    return {};
  }
  std::vector<std::string> images_with(const std::string& path) const {
    auto found = owners_.find(last_name(path).substr(0, 64));
    if (found == owners_.end()) return {};
    size_t count = std::min(found->second.size(), kMostNames);
    return {found->second.begin(), std::next(found->second.begin(), static_cast<long>(count))};
  }

  /// Records damage of the object at `path`, unless it has been replaced by now.
  Result<void> damaged(std::string_view kind, const std::string& path, const struct stat& seen,
                       std::vector<std::string> texts) {
    auto now = TRY(sys::stat_entry(root_, path));
    if (!now || now->st_ino != seen.st_ino || now->st_ctim.tv_sec != seen.st_ctim.tv_sec ||
        now->st_ctim.tv_nsec != seen.st_ctim.tv_nsec) {
      return {};
    }
    std::string done;
    if (request_.repair) {
      std::string container = TRY(store_.discard(path, seen));
      done = container.empty() ? "removed"
                               : "kept: container " + container.substr(0, 12) +
                                     " uses it; try: berth rm " + container.substr(0, 12);
    }
    {
      std::lock_guard lock(mutex_);
      ++report_.damaged;
    }
    for (std::string& text : texts) {
      add({std::string(kind), path, std::move(text), images_with(path), done, true});
    }
    return {};
  }

  Result<void> check_permissions() {
    struct stat root = TRY(sys::stat_fd(root_, store_.root()));
    owner_ = root.st_uid;
    for (const char* path : {".", "version", "lock", "blobs", "blobs/sha256", "layers", "images",
                             "containers", "names", "tmp", "origins"}) {
      auto entry = TRY(sys::stat_entry(root_, path));
      if (entry && !S_ISLNK(entry->st_mode)) TRY(check_permission(path, *entry));
    }
    std::vector<std::string> records;
    for (const auto& name : TRY(sys::list_directory(root_, "images"))) {
      records.push_back("images/" + name);
    }
    for (const auto* list : {&records, &survey_.blobs, &survey_.layers}) {
      for (const auto& path : *list) {
        auto entry = TRY(sys::stat_entry(root_, path));
        if (entry && !S_ISLNK(entry->st_mode)) TRY(check_permission(path, *entry));
      }
    }
    return {};
  }

  /// Reports an object that other users can write: they would decide what a container runs.
  Result<void> check_permission(const std::string& path, const struct stat& entry) {
    constexpr mode_t kOthers = S_IWGRP | S_IWOTH;
    CheckFinding finding{"permissions", path, "", images_with(path), "", true};
    if ((entry.st_mode & kOthers) != 0) {
      finding.text = "can be written by others";
      if (request_.repair) {
        sys::Fd held = TRY(sys::hold_made(root_, path, entry.st_mode & S_IFMT, entry.st_rdev));
        TRY(sys::change_mode(held, entry.st_mode & 07777 & ~kOthers, path));
        finding.done = "mended";
      }
    } else if (entry.st_uid != owner_) {
      finding.text = "belongs to user " + std::to_string(entry.st_uid) + ", the store to user " +
                     std::to_string(owner_);
      if (request_.repair) finding.done = "kept: try: chown, or berth rmi";
    } else {
      return {};
    }
    ++report_.damaged;
    add(std::move(finding));
    return {};
  }

  /// Whether the error means that the object at `path` is damaged; otherwise the machine has a
  /// problem, and the object is not judged.
  static bool is_damage(const Error& error) {
    constexpr int kOfTheObject[] = {ENOENT, ENOTDIR, ELOOP, EISDIR, ENXIO, EIO, EUCLEAN};
    return error.kind == Kind::corrupt ||
           std::ranges::find(kOfTheObject, error.sys_errno) != std::end(kOfTheObject);
  }

  void check_records() {
    report_.records = survey_.records.size() + survey_.damaged_records.size();
    for (const auto& path : survey_.damaged_records) {
      auto entry = sys::stat_entry(root_, path);
      if (entry.ok() && *entry) {
        ignore(damaged("record", path, **entry, {"is not an image record"}));
      }
    }
  }

  Result<void> check_blob(const std::string& path) {
    auto file = sys::open_if_exists(root_, path, kCheckRead);
    if (file.ok() && !*file) return {};
    auto named = TRY(sys::stat_entry(root_, path));
    if (!named) return {};
    if (!file.ok() && !is_damage(file.error())) return std::move(file).error();
    if (!file.ok() || !S_ISREG(named->st_mode)) {
      return damaged("blob", path, *named, {"is not a readable regular file"});
    }
    struct stat seen = TRY(sys::stat_fd(**file, path));
    Sha256 hash;
    std::string buffer(size_t{1} << 20, '\0');
    for (uint64_t at = 0;;) {
      TRY(cancel_.check());
      auto count = sys::read_at(**file, at, buffer.data(), buffer.size(), path);
      if (!count.ok() && !is_damage(count.error())) return std::move(count).error();
      if (!count.ok()) return damaged("blob", path, seen, {to_line(count.error())});
      if (*count == 0) break;
      hash.update(std::string_view(buffer).substr(0, *count));
      at += *count;
    }
    {
      std::lock_guard lock(mutex_);
      ++report_.blobs;
      report_.bytes += static_cast<uint64_t>(seen.st_size);
    }
    if (hash.finish().hex() == last_name(path)) return {};
    return damaged("blob", path, seen, {"does not have the digest that it is named by"});
  }

  Result<void> check_layer(const std::string& path) {
    auto opened = sys::open_if_exists(root_, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    if (opened.ok() && !*opened) return {};
    auto seen = TRY(sys::stat_entry(root_, path));
    if (!seen) return {};
    if (!opened.ok() && !is_damage(opened.error())) return std::move(opened).error();
    if (!opened.ok()) return damaged("layer", path, *seen, {"is not the directory of a layer"});
    auto compared = compare_layer(**opened, last_name(path));
    TRY(cancel_.check());
    if (!compared.ok() && !is_damage(compared.error())) {
      return std::move(compared).error().with_context("cannot check " + quote(path));
    }
    if (!compared.ok()) return damaged("layer", path, *seen, {to_line(compared.error())});
    {
      std::lock_guard lock(mutex_);
      ++report_.layers;
      report_.files += compared->files;
      report_.bytes += compared->bytes;
    }
    note_left_out(path, compared->left_out);
    if (compared->count == 0) return {};
    if (compared->count > compared->texts.size()) {
      compared->texts.push_back("and " + std::to_string(compared->count - compared->texts.size()) +
                                " more");
    }
    return damaged("layer", path, *seen, std::move(compared->texts));
  }

  void note_left_out(const std::string& path, const std::vector<LeftOutDevice>& devices) {
    if (devices.empty()) return;
    const LeftOutDevice& first = devices.front();
    add({"note", path,
         fmt::format("is without {} of its device nodes, which this user cannot make; the first: "
                     "{} ({} {}:{})",
                     devices.size(), quote(first.path), S_ISBLK(first.mode) ? 'b' : 'c',
                     major(first.number), minor(first.number)),
         images_with(last_name(path)), "", false});
  }

  Result<TreeDifferences> compare_layer(const sys::Fd& layer, const std::string& name) {
    auto record = TRY(image::read_layer_record_at(layer, name));
    if (record.diff_id.hex() != name.substr(0, 64)) {
      return make_error(Kind::corrupt, "its record 'layer.json' is of another layer");
    }
    auto stop = [this] { return cancel_.requested(); };
    auto file = TRY(sys::open_if_exists(layer, kTreeFile, kCheckRead));
    if (!file) {
      add({"note", "layers/" + name,
           "was unpacked before there were records of files, and is not compared",
           images_with(name), "", false});
    }
    if (record.flavor.format == image::LayerFormat::erofs) {
      sys::Fd image = TRY(sys::open_at(layer, "fs.erofs", kCheckRead));
      return file ? compare_extents(image, *file, stop) : TreeDifferences{};
    }
    sys::Fd tree = TRY(sys::open_at(layer, "fs", O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
    if (!file) return TreeDifferences{};
    auto differences = TRY(compare_tree(tree, *file, depth_for(name), stop));
    if (differences.count == 0 || !TRY(sys::stat_entry(layer, image::kLinkingFile))) {
      return differences;
    }
    add({"note", "layers/" + name,
         "times of its directories are later: 'berth system dedupe' was killed, and sets them when "
         "it is run again",
         images_with(name), "", false});
    return compare_tree(tree, *file, depth_for(name), stop, DirectoryTimes::any);
  }

  /// Owners are compared only in layers that were unpacked for this user namespace.
  Depth depth_for(const std::string& name) const {
    image::LayerFlavor flavor = store_.flavor();
    bool single = flavor.ownership == image::Ownership::single;
    bool mapped = !single && flavor.overlay_xattr == image::OverlayXattr::user;
    std::string_view ending = single ? "-single" : mapped ? "-mapped" : "";
    return name.substr(64) == ending ? Depth::all : Depth::without_owners;
  }

  /// Reports blobs and layers that images need and that are missing.
  Result<void> check_references() {
    for (const auto& record : survey_.records) {
      std::string name = record.reference ? record.reference->familiar() : record.config.text();
      for (const auto& digest : {record.target, record.manifest, record.config}) {
        std::string path = "blobs/sha256/" + digest.hex();
        if (std::ranges::find(survey_.blobs, path) != survey_.blobs.end()) continue;
        if (TRY(store_.has_blob(digest))) continue;
        TRY(missing_blob(record, path, name));
        break;
      }
    }
    for (const auto& image : images_) {
      for (const auto& layer : image.layers) {
        if (TRY(store_.has_layer(layer.diff_id))) continue;
        if (TRY(has_other_flavor(layer.diff_id))) continue;
        auto owners = images_with(layer.diff_id.hex());
        std::string hint = owners.empty() ? image.id.text() : owners.front();
        bool known =
            TRY(store_.has_blob(layer.blob.digest)) || !store_.origins(layer.blob.digest).empty();
        std::string text =
            known ? "is not unpacked; the next run or berth pull " + hint + " does it"
                  : "is missing, and its registry is not known; pull, import, load or build " +
                        hint + " again";
        add({"note", "layers/" + layer.diff_id.hex(), text, owners, "", false});
      }
    }
    return {};
  }
  Result<bool> has_other_flavor(const Digest& diff_id) {
    for (const auto& path : survey_.layers) {
      if (last_name(path).starts_with(diff_id.hex())) {
        return TRY(sys::stat_entry(root_, path)).has_value();
      }
    }
    return false;
  }
  Result<void> missing_blob(const image::ImageRecord& record, const std::string& path,
                            const std::string& name) {
    // No damage: another process has removed the image with its records.
    auto found = record.reference ? store_.find_image_named(record.reference->canonical())
                                  : store_.find_image(record.config.text());
    if (found.ok() && !*found) return {};
    CheckFinding finding{"blob", path, "is missing", {name}, "", true};
    if (request_.repair) finding.done = TRY(store_.forget(record)) ? "removed the name" : "kept";
    ++report_.damaged;
    add(std::move(finding));
    return {};
  }

  Result<void> check_containers() {
    for (const auto& [container, manifest] : survey_.users) {
      if (TRY(store_.has_blob(manifest))) continue;
      if (!TRY(sys::stat_entry(root_, "containers/" + container))) continue;
      ++report_.damaged;
      std::string hint = "berth rm " + container.substr(0, 12);
      add({"container",
           "containers/" + container,
           "its image " + manifest.text() + " is gone",
           {},
           request_.repair ? "kept; try: " + hint : "",
           true});
    }
    return {};
  }

  void report_leftovers() {
    for (const auto& path : survey_.leftovers) {
      auto there = sys::stat_entry(root_, path);
      if (there.ok() && *there) {
        add({"leftover", path, "was left by a process that was killed", {}, "", false});
      }
    }
    for (const auto& path : survey_.unneeded) {
      auto there = sys::stat_entry(root_, path);
      if (there.ok() && *there) add({"leftover", path, "nothing needs it", {}, "", false});
    }
  }

  /// Removes unneeded objects, including those that became unneeded by the repair.
  void clean_up() {
    auto collected = store_.collect();
    for (auto& finding : report_.findings) {
      if (finding.kind != "leftover") continue;
      auto there = sys::stat_entry(root_, finding.object);
      if (there.ok() && !*there) finding.done = "removed";
      if (!collected.ok() && finding.done.empty())
        finding.done = "kept: " + to_line(collected.error());
    }
  }

  image::Store& store_;
  const image::CheckRequest& request_;
  const Cancel& cancel_;
  sys::Fd root_;
  image::Survey survey_;
  std::vector<image::Image> images_;
  std::map<std::string, std::set<std::string>> owners_;
  uid_t owner_ = 0;
  std::mutex mutex_;  ///< guards the report
  image::CheckReport report_;
};

}  // namespace

Result<image::TransferResult> check_store(const image::CheckRequest& request,
                                          const Cancel& cancel) {
  image::Store store =
      TRY(image::Store::open(request.root, request.flavor, request.additional_stores));
  StoreCheck check(store, request, cancel);
  image::TransferResult result;
  result.check = TRY_CTX(check.run(), "cannot check the store " + quote(request.root));
  return result;
}

}  // namespace berth::transfer
