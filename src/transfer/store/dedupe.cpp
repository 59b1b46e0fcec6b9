// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <compare>
#include <map>
#include <set>
#include <span>

#include "base/text.hpp"
#include "image/store.hpp"
#include "image/upkeep.hpp"
#include "sys/fd/blocks.hpp"
#include "sys/file/file.hpp"
#include "sys/file/tree.hpp"
#include "transfer/layer/links.hpp"
#include "transfer/layer/rules.hpp"
#include "transfer/layer/tree_record.hpp"
#include "transfer/store/store.hpp"
#include "transfer/work/event.hpp"

namespace berth::transfer {

using image::LayerPhase;

namespace {

constexpr size_t kComparePiece = size_t{1} << 20;
constexpr size_t kBatch = 256;        // files that are replaced under one lock
constexpr uint64_t kBlock = 4096;     // smaller files seldom have a block that could be shared
constexpr uint64_t kSector = 512;     // of st_blocks
constexpr const char* kId = "files";  // of progress
constexpr auto kSilent = std::chrono::seconds(1);
constexpr int kDedupeRead = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;

enum class Way { blocks, links };

/// A regular file of a layer, from its record.
struct File {
  uint64_t size = 0;
  uint64_t content = 0;  ///< checksum
  /// The path and the following members are empty or 0 if only the content has to be equal.
  std::string path;
  uint32_t mode = 0;
  uint32_t uid = 0;
  uint32_t gid = 0;
  int64_t seconds = 0;
  uint32_t nanoseconds = 0;
  uint64_t attributes = 0;

  auto operator<=>(const File&) const = default;
};

/// The place of such a file.
struct FilePlace {
  size_t layer = 0;
  std::string path;
};

struct Layer {
  std::string name;
  bool used = false;  ///< a container uses the layer
};

/// An open file and its status.
struct Opened {
  sys::Fd fd;
  struct stat status;
};

bool is_writable_by_others(uint32_t mode) {
  return (mode & (S_IWGRP | S_IWOTH)) != 0;
}

class Dedupe {
 public:
  Dedupe(image::Store& store, const image::DedupeRequest& request, Events& events,
         const Cancel& cancel)
      : store_(store), request_(request), events_(events), cancel_(cancel) {}

  Result<image::DedupeReport> run() {
    root_ = TRY(sys::open_at(sys::cwd(), store_.root(), O_RDONLY | O_DIRECTORY));
    image::Delivery delivery = TRY(image::Delivery::begin(store_));
    auto stopped = [this] { return cancel_.requested(); };
    image::Claim claim = TRY(delivery.claim_upkeep(stopped));
    staged_ = TRY(delivery.stage_layer(image::LayerFormat::erofs));
    way_ = TRY(find_way());
    TRY(list_layers());
    for (size_t i = 0; i < layers_.size(); ++i) TRY(read_layer(i));
    for (const auto& [file, places] : files_) wanted_ += file.size * (places.size() - 1);
    for (const auto& [file, places] : files_) {
      if (places.size() > 1) TRY(make_one(file, places));
    }
    std::map<size_t, std::vector<LinkPlan>> rest;
    rest.swap(plans_);
    for (auto& [layer, plans] : rest) TRY(carry_out(layer, plans));
    if (way_ == Way::links) {
      for (const Layer& layer : layers_) report_.used += layer.used ? 1 : 0;
    }
    if (report_.identical > 0) report_.way = way_ == Way::blocks ? "blocks" : "links";
    if (shown_) events_.layer(kId, LayerPhase::done, wanted_, wanted_);
    return std::move(report_);
  }

 private:
  /// Tests with two new files whether the file system can share blocks.
  Result<Way> find_way() {
    const std::string bytes(kBlock, 'b');
    constexpr int kNew = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW;
    sys::Fd one = TRY(sys::open_at(staged_.fd(), "one", kNew, 0600));
    sys::Fd two = TRY(sys::open_at(staged_.fd(), "two", kNew, 0600));
    for (const sys::Fd* fd : {&one, &two}) TRY(sys::write_all(*fd, bytes, "a trial"));
    auto shared = sys::share_blocks(one, two, kBlock, "a trial");
    TRY(sys::remove_entry(staged_.fd(), "one"));
    TRY(sys::remove_entry(staged_.fd(), "two"));
    return shared.ok() && *shared == sys::Shared::yes ? Way::blocks : Way::links;
  }

  /// Lists the directories that were unpacked for this user's ids. Layers in use come first, as
  /// they stay unchanged and other layers link to their files.
  Result<void> list_layers() {
    image::Survey survey = TRY(store_.survey());
    std::set<std::string> used = TRY(used_layers(survey));
    for (const std::string& path : survey.layers) {
      std::string name = path.substr(path.rfind('/') + 1);
      auto digest = Digest::parse("sha256:" + name.substr(0, 64));
      if (!digest.ok()) continue;
      std::string own = store_.layer_directory(*digest, image::LayerFormat::directory);
      if (own != store_.root() + "/layers/" + name + "/fs") continue;
      bool mounted = std::ranges::find(request_.mounted, *digest) != request_.mounted.end();
      layers_.push_back({name, mounted || used.contains(name)});
    }
    std::ranges::stable_sort(layers_, std::ranges::greater{}, &Layer::used);
    return {};
  }

  Result<std::set<std::string>> used_layers(const image::Survey& survey) {
    std::set<std::string> names;
    std::vector<std::string> damaged;
    std::vector<image::Image> images = TRY(store_.list(&damaged));
    for (const auto& [container, manifest] : survey.users) {
      for (const image::Image& image : images) {
        if (image.manifest_digest != manifest) continue;
        for (const std::string& directory : image.layer_directories()) {
          std::string layer = directory.substr(0, directory.rfind('/'));
          names.insert(layer.substr(layer.rfind('/') + 1));
        }
      }
    }
    return names;
  }

  Result<void> read_layer(size_t index) {
    TRY(cancel_.check());
    const std::string path = "layers/" + layers_[index].name;
    if (!TRY(sys::stat_entry(root_, path + "/fs"))) return {};  // an EROFS image, or removed
    if (!request_.dry_run && TRY(sys::stat_entry(root_, path + "/" + image::kLinkingFile))) {
      auto mended = LayerLinks(store_, root_, staged_).mend(layers_[index].name);
      if (!mended.ok() && mended.error().kind == Kind::corrupt) {  // 'system check' says more
        ++report_.unrecorded;
        return {};
      }
      TRY(std::move(mended));
    }
    auto record = TRY(sys::open_if_exists(root_, path + "/" + kTreeFile, kDedupeRead));
    Result<TreeEntries> entries = TreeEntries();
    if (record) entries = read_tree_record(*record);
    if (!record || !entries.ok()) {  // 'system check' says more
      ++report_.unrecorded;
      return {};
    }
    ++report_.layers;
    std::set<std::string> several;  // files with several names in the layer
    for (const auto& [name, entry] : *entries) {
      if (S_ISREG(entry.mode) && !entry.link.empty()) several.insert(entry.link);
    }
    for (const auto& [name, entry] : *entries) {
      if (!S_ISREG(entry.mode) || !entry.link.empty()) continue;
      ++report_.files;
      add_file(index, name, entry, several.contains(name) ? Names::several : Names::one);
    }
    return {};
  }

  enum class Names { one, several };
  void add_file(size_t layer, const std::string& path, const TreeEntry& entry, Names names) {
    if (!entry.content || entry.size == 0) return;
    File file;
    file.size = entry.size;
    file.content = *entry.content;
    if (way_ == Way::blocks) {
      if (entry.size < kBlock) return;
    } else {
      // A file with several names cannot be replaced atomically.
      if (is_writable_by_others(entry.mode) || names == Names::several) return;
      file.path = path;
      file.mode = entry.mode;
      file.uid = entry.uid;
      file.gid = entry.gid;
      file.seconds = entry.seconds;
      file.nanoseconds = entry.nanoseconds;
      file.attributes = entry.attributes;
    }
    files_[std::move(file)].push_back({layer, path});
  }

  Result<std::optional<Opened>> open(const FilePlace& place, const File& file) {
    const std::string& layer = layers_[place.layer].name;
    auto directory = open_in_layer(root_, layer, parent_of(place.path));
    if (!directory.ok()) return pass_over(std::move(directory).error());
    auto fd = sys::open_at(*directory, name_of(place.path), kDedupeRead);
    if (!fd.ok()) return pass_over(std::move(fd).error());
    Opened opened{std::move(*fd), {}};
    opened.status = TRY(sys::stat_fd(opened.fd, place.path));
    // A file that differs from the record is damaged, which is for 'system check'.
    bool known =
        S_ISREG(opened.status.st_mode) && static_cast<uint64_t>(opened.status.st_size) == file.size;
    if (!known) return std::optional<Opened>();
    return std::optional<Opened>(std::move(opened));
  }
  static Result<std::optional<Opened>> pass_over(Error error) {
    if (error.kind == Kind::not_found || error.kind == Kind::denied) return std::optional<Opened>();
    return error;
  }

  Result<void> make_one(const File& file, const std::vector<FilePlace>& places) {
    std::optional<Opened> first;
    const FilePlace* source = nullptr;
    for (const FilePlace& place : places) {
      TRY(cancel_.check());
      auto opened = TRY(open(place, file));
      if (source != nullptr) emit_progress(file.size);
      if (!opened) continue;
      if (source == nullptr) {
        first = std::move(opened);
        source = &place;
        continue;
      }
      bool one = opened->status.st_ino == first->status.st_ino;
      if (one) continue;
      if (way_ == Way::blocks) {
        TRY(share(*first, *opened, file, place));
      } else {
        TRY(plan_link(*first, *opened, file, *source, place));
      }
    }
    return {};
  }

  Result<void> share(const Opened& from, const Opened& to, const File& file,
                     const FilePlace& place) {
    if (sys::have_same_blocks(from.fd, to.fd)) return {};
    if (request_.dry_run) {
      if (!TRY(have_same_bytes(from.fd, to.fd, file.size))) return {};
    } else {
      auto shared = sys::share_blocks(from.fd, to.fd, file.size, place.path);
      // Some files cannot share blocks (compressed, without checksums), and stay as they are.
      if (!shared.ok() &&
          (shared.error().kind == Kind::unsupported || shared.error().kind == Kind::denied)) {
        return {};
      }
      if (TRY(std::move(shared)) == sys::Shared::differ) return {};
    }
    ++report_.identical;
    report_.bytes += static_cast<uint64_t>(to.status.st_blocks) * kSector;
    return {};
  }

  Result<void> plan_link(const Opened& from, const Opened& to, const File& file,
                         const FilePlace& source, const FilePlace& place) {
    if (layers_[place.layer].used || source.layer == place.layer) return {};
    if (!TRY(are_alike(from, to))) return {};
    if (!TRY(have_same_bytes(from.fd, to.fd, file.size))) return {};
    if (request_.dry_run) {
      ++report_.identical;
      bool first = told_.insert(to.status.st_ino).second;
      if (first) report_.bytes += static_cast<uint64_t>(to.status.st_blocks) * kSector;
      return {};
    }
    auto& plans = plans_[place.layer];
    plans.push_back({layers_[source.layer].name, source.path, from.status, to.status});
    if (plans.size() < kBatch) return {};
    std::vector<LinkPlan> batch = std::move(plans);
    plans_.erase(place.layer);
    return carry_out(place.layer, batch);
  }

  Result<void> carry_out(size_t layer, std::vector<LinkPlan>& plans) {
    TRY(cancel_.check());
    auto done = TRY(LayerLinks(store_, root_, staged_).replace(layers_[layer].name, plans));
    report_.identical += done.files;
    report_.bytes += done.bytes;
    layers_[layer].used |= done.used;
    return {};
  }

  /// The record may be years old, so the present attributes decide.
  static Result<bool> are_alike(const Opened& from, const Opened& to) {
    const struct stat& a = from.status;
    const struct stat& b = to.status;
    bool alike = a.st_mode == b.st_mode && a.st_uid == b.st_uid && a.st_gid == b.st_gid &&
                 a.st_mtim.tv_sec == b.st_mtim.tv_sec && a.st_mtim.tv_nsec == b.st_mtim.tv_nsec &&
                 a.st_dev == b.st_dev && !is_writable_by_others(b.st_mode);
    if (!alike) return false;
    auto keys = TRY(sys::list_attributes(from.fd));
    auto others = TRY(sys::list_attributes(to.fd));
    std::ranges::sort(keys);
    std::ranges::sort(others);
    if (keys != others) return false;
    for (const std::string& key : keys) {
      auto one = TRY(sys::read_attribute(from.fd, key));
      auto other = TRY(sys::read_attribute(to.fd, key));
      if (one != other) return false;
    }
    return true;
  }

  Result<bool> have_same_bytes(const sys::Fd& one, const sys::Fd& other, uint64_t size) {
    for (uint64_t at = 0; at < size; at += kComparePiece) {
      TRY(cancel_.check());
      size_t length = std::min<uint64_t>(kComparePiece, size - at);
      std::string a = TRY(sys::read_at(one, at, length, "a layer's file"));
      std::string b = TRY(sys::read_at(other, at, length, "a layer's file"));
      if (a != b || a.size() != length) return false;
    }
    return true;
  }

  void emit_progress(uint64_t bytes) {
    done_ += bytes;
    shown_ |= std::chrono::steady_clock::now() - began_ > kSilent;
    if (shown_) events_.layer(kId, LayerPhase::verifying, done_, wanted_);
  }

  image::Store& store_;
  const image::DedupeRequest& request_;
  Events& events_;
  const Cancel& cancel_;
  sys::Fd root_;
  image::Staged staged_;
  Way way_ = Way::links;
  std::vector<Layer> layers_;
  std::map<File, std::vector<FilePlace>> files_;
  std::map<size_t, std::vector<LinkPlan>> plans_;  ///< by layer
  std::set<ino_t> told_;                           ///< in a dry run: files that would be removed
  uint64_t wanted_ = 0;                            ///< bytes of files that may be identical
  uint64_t done_ = 0;
  bool shown_ = false;
  std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  image::DedupeReport report_;
};

}  // namespace

Result<image::TransferResult> dedupe(const image::DedupeRequest& request, const EventSink& sink,
                                     const Cancel& cancel) {
  image::Store store = TRY(image::Store::open(request.root, request.flavor));
  Events events(sink, Events::Layers::shown);
  Dedupe dedupe(store, request, events, cancel);
  image::TransferResult result;
  result.dedupe = TRY_CTX(dedupe.run(), "cannot dedupe the store " + quote(request.root));
  return result;
}

}  // namespace berth::transfer
