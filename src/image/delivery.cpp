// SPDX-License-Identifier: Apache-2.0
// The writing side of the store: staging, claims, publishing by rename.
#include <fcntl.h>
#include <sys/stat.h>

#include <chrono>
#include <thread>
#include <utility>

#include "base/text.hpp"
#include "image/layout.hpp"
#include "image/records.hpp"
#include "image/upkeep.hpp"
#include "json/fields.hpp"
#include "sys/exchange.hpp"

namespace berth::image {
namespace {

constexpr auto kClaimPoll = std::chrono::milliseconds(20);
constexpr int kMaxTries = 100;

/// The layer.json beside a layer's tree.
struct LayerFile {
  Digest diff_id;
  std::string ownership;
  std::string overlay_xattr;
  std::string format;  ///< empty: "directory"
  uint64_t entries = 0;
  uint64_t bytes = 0;
};
template <class V>
void fields(V& v, LayerFile& l) {
  v.required("diff_id", l.diff_id);
  v.required("ownership", l.ownership);
  v.required("overlay_xattr", l.overlay_xattr);
  v.optional("format", l.format);
  v.required("entries", l.entries);
  v.required("bytes", l.bytes);
}

constexpr size_t kMaxLayerFile = 4096;

Result<LayerRecord> parse_layer_record(std::string_view text, const std::string& name) {
  auto file = TRY(json::read<LayerFile>(text, name + "/layer.json"));
  LayerRecord record;
  record.diff_id = file.diff_id;
  if (!file.format.empty()) record.flavor.format = TRY(parse_layer_format(file.format));
  record.entries = file.entries;
  record.bytes = file.bytes;
  return record;
}

/// Whether the open file is still what its path names. A sweeper that was between our open() and
/// our lock may have removed it.
Result<bool> still_there(const sys::Fd& fd, const std::string& path) {
  struct stat open = TRY(sys::stat_fd(fd, path));
  auto named = TRY(sys::stat_entry(sys::cwd(), path));
  return named && named->st_ino == open.st_ino && named->st_dev == open.st_dev;
}

enum class Shape { file, directory };

Result<sys::Fd> stage(const std::string& path, Shape shape) {
  sys::Fd fd;
  if (shape == Shape::directory) {
    TRY(sys::make_directory(sys::cwd(), path, 0700));
    fd = TRY(sys::open_at(sys::cwd(), path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
  } else {
    fd = TRY(sys::open_at(sys::cwd(), path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0600));
  }
  TRY(sys::wait_lock(fd, sys::LockMode::exclusive, path));
  return fd;
}

/// A name that a sweeper took in that moment is simply tried again.
Result<std::pair<sys::Fd, std::string>> stage_in(const std::string& root, std::string_view prefix,
                                                 Shape shape) {
  for (int attempt = 0; attempt < kMaxTries; ++attempt) {
    std::string path = root + "/tmp/" + std::string(prefix) + sys::random_hex(8);
    auto fd = stage(path, shape);
    if (!fd.ok()) {
      if (fd.error().kind == Kind::not_found) continue;
      return std::move(fd).error();
    }
    if (TRY(still_there(*fd, path))) return std::pair(std::move(*fd), std::move(path));
  }
  return make_error(Kind::busy, "stage a file in " + quoted(root + "/tmp"));
}

/// Writes layer.json beside the tree.
Result<void> describe_layer(const Staged& directory, const LayerRecord& record) {
  LayerFile file{record.diff_id,
                 std::string(ownership_name(record.flavor.ownership)),
                 std::string(overlay_xattr_name(record.flavor.overlay_xattr)),
                 std::string(layer_format_name(record.flavor.format)),
                 record.entries,
                 record.bytes};
  return sys::write_file(directory.fd(), "layer.json", json::write(file) + "\n", 0600);
}

}  // namespace

Staged::Staged(Staged&& other) noexcept
    : fd_(std::move(other.fd_)), path_(std::exchange(other.path_, {})) {}

Staged& Staged::operator=(Staged&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(path_, other.path_);
  return *this;
}

Staged::~Staged() {
  // Best effort: without its lock it is swept later.
  if (!path_.empty()) ignore(sys::remove_tree(sys::cwd(), path_));
}

Claim::Claim(Claim&& other) noexcept
    : fd_(std::move(other.fd_)), path_(std::exchange(other.path_, {})) {}

Claim& Claim::operator=(Claim&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(path_, other.path_);
  return *this;
}

Claim::~Claim() {
  // Removed while the lock is held: who waits on this file finds that its path is gone and starts
  // again with a new one.
  if (!path_.empty()) ignore(sys::remove_entry(sys::cwd(), path_));
}

Result<Delivery> Delivery::begin(const Store& store) {
  sweep(store.dir_);
  Delivery delivery;
  delivery.store_ = &store;
  auto [fd, path] = TRY(stage_in(store.root_, kPinsPrefix, Shape::file));
  delivery.pins_.fd_ = std::move(fd);
  delivery.pins_.path_ = std::move(path);
  return delivery;
}

Result<void> Delivery::keep(const std::string& key) {
  // Under the lock, so that a collection either sees the line or has finished: what it removed is
  // then not found by the caller, who looks afterwards.
  sys::Fd lock = TRY(store_->lock(sys::LockMode::shared));
  return sys::write_all(pins_.fd_, key + "\n", pins_.path_);
}

Result<bool> Delivery::keep_blob(const Digest& digest) {
  TRY(keep(blob_pin(digest)));
  return store_->has_blob(digest);
}

Result<bool> Delivery::keep_layer(const Digest& diff_id) {
  TRY(keep(layer_pin(diff_id, store_->flavor_)));
  return store_->has_layer(diff_id);
}

Result<Claim> Delivery::claim(const std::string& key, const std::function<bool()>& give_up) {
  std::string path = store_->root_ + "/tmp/" + std::string(kClaimPrefix) + key;
  while (true) {
    Claim claim;
    claim.fd_ = TRY(sys::open_at(sys::cwd(), path, O_RDWR | O_CREAT | O_NOFOLLOW, 0600));
    while (!TRY(sys::try_lock(claim.fd_, sys::LockMode::exclusive, path))) {
      if (give_up && give_up()) {
        return make_error(Kind::interrupted, "wait for another process that works on " + key);
      }
      std::this_thread::sleep_for(kClaimPoll);
    }
    if (!TRY(still_there(claim.fd_, path))) continue;
    claim.path_ = path;
    return claim;
  }
}

Result<Claim> Delivery::claim_layer(const Digest& diff_id, const std::function<bool()>& give_up) {
  return claim("layer-" + layer_name(diff_id, store_->flavor_), give_up);
}

Result<Staged> Delivery::stage_file() {
  auto [fd, path] = TRY(stage_in(store_->root_, kStagePrefix, Shape::file));
  Staged staged;
  staged.fd_ = std::move(fd);
  staged.path_ = std::move(path);
  return staged;
}

Result<Staged> Delivery::stage_layer(LayerFormat format) {
  auto [fd, path] = TRY(stage_in(store_->root_, kStagePrefix, Shape::directory));
  Staged staged;
  staged.fd_ = std::move(fd);
  staged.path_ = std::move(path);
  if (format == LayerFormat::directory) TRY(sys::make_directory(staged.fd_, "fs", 0755));
  return staged;
}

Result<void> Delivery::publish_blob(Staged file, const Digest& digest) {
  TRY(keep(blob_pin(digest)));
  TRY(sys::rename(sys::cwd(), file.path_, store_->dir_, blob_file(digest)));
  file.path_.clear();
  return {};
}

Result<void> Delivery::publish_blob_from(const Staged& directory, const std::string& name,
                                         const Digest& digest) {
  TRY(keep(blob_pin(digest)));
  return sys::rename(directory.fd_, name, store_->dir_, blob_file(digest));
}

Result<void> Delivery::note_origin(const Digest& blob, const Reference& repository) {
  constexpr size_t kMost = 4;
  std::vector<std::string> lines = {repository.registry() + "/" + repository.repository()};
  for (const Reference& known : store_->origins(blob)) {
    std::string line = known.registry() + "/" + known.repository();
    if (line != lines[0] && lines.size() < kMost) lines.push_back(std::move(line));
  }
  std::string text = join(lines, "\n") + "\n";
  auto same = sys::read_file_if_exists(store_->dir_, origin_file(blob), 4096);
  if (same.ok() && *same && **same == text) return {};
  TRY(sys::make_directory(store_->dir_, "origins", 0700));
  return sys::replace_file(store_->dir_, origin_file(blob), text, 0600);
}

Result<void> Delivery::put_document(const Digest& digest, std::string_view bytes) {
  if (TRY(keep_blob(digest))) return {};
  Staged file = TRY(stage_file());
  TRY(sys::write_all(file.fd_, bytes, file.path_));
  return publish_blob(std::move(file), digest);
}

Result<void> Delivery::publish_layer(Staged directory, const LayerRecord& record) {
  TRY(keep(layer_pin(record.diff_id, record.flavor)));
  TRY(describe_layer(directory, record));
  auto published = sys::rename_new(sys::cwd(), directory.path_, store_->dir_,
                                   "layers/" + layer_name(record.diff_id, record.flavor));
  if (!published.ok()) {
    // Somebody without a claim was faster: the two are the same, ours goes.
    if (published.error().kind == Kind::exists) return {};
    return published;
  }
  directory.path_.clear();
  return {};
}

Result<std::string> replace_layer(const Store& store, Staged directory, const LayerRecord& record) {
  TRY(describe_layer(directory, record));
  std::string layer = "layers/" + layer_name(record.diff_id, record.flavor);
  sys::Fd root = TRY(sys::open_at(sys::cwd(), store.root(), O_RDONLY | O_DIRECTORY));
  auto exchange = [&]() -> Result<void> {
    // The old one is then in tmp/, where it goes with what was staged, or is swept.
    auto exchanged = sys::rename_exchange(sys::cwd(), directory.path(), root, layer);
    if (exchanged.ok() || exchanged.error().kind != Kind::unsupported) return exchanged;
    // A file system without that: who is killed between the two leaves a layer that is missing,
    // which the next run unpacks.
    std::string trash = "tmp/" + std::string(kTrashPrefix) + sys::random_hex(8);
    TRY(sys::rename(root, layer, root, trash));
    TRY(sys::rename(sys::cwd(), directory.path(), root, layer));
    ignore(sys::remove_tree(root, trash));
    return {};
  };
  return with_idle_layer(store, layer.substr(layer.find('/') + 1), exchange);
}

Result<void> Delivery::publish_image(const ImageRecord& record) {
  sys::Fd lock = TRY(store_->lock(sys::LockMode::exclusive));
  for (const Digest& digest : {record.target, record.manifest, record.config}) {
    if (!TRY(store_->has_blob(digest))) {
      return make_error(Kind::bug,
                        "record an image whose blob " + digest.text() + " is not in the store");
    }
  }
  ImageRecord stamped = record;
  if (stamped.created_at.empty()) stamped.created_at = timestamp_now();
  store_->note_used(record.manifest);  // the manifest may have been there for long
  return put_record(store_->dir_, stamped);
}

Result<std::optional<LayerRecord>> read_layer_record(const sys::Fd& root, const std::string& name) {
  auto text = TRY(sys::read_file_if_exists(root, "layers/" + name + "/layer.json", kMaxLayerFile));
  if (!text) return std::optional<LayerRecord>();
  return std::optional<LayerRecord>(TRY(parse_layer_record(*text, "layers/" + name)));
}

Result<LayerRecord> read_layer_record_at(const sys::Fd& layer, const std::string& name) {
  std::string text = TRY(sys::read_file(layer, "layer.json", kMaxLayerFile));
  return parse_layer_record(text, name);
}

}  // namespace berth::image
