// SPDX-License-Identifier: Apache-2.0
// The writing side of the store: staging, claims, publishing by rename.
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <thread>
#include <utility>

#include "base/text.hpp"
#include "image/layout.hpp"
#include "image/lease.hpp"
#include "image/staging.hpp"
#include "image/upkeep.hpp"
#include "json/fields.hpp"
#include "sys/file/file.hpp"
#include "sys/file/mode.hpp"
#include "sys/file/remove_tree.hpp"

namespace berth::image {
namespace {

constexpr auto kClaimPoll = std::chrono::milliseconds(20);

/// The file layer.json next to a layer's tree.
struct LayerFile {
  Digest diff_id;
  LayerFlavor flavor;
  uint64_t entries = 0;
  uint64_t bytes = 0;
  std::vector<Digest> blobs;
};
void fields(auto& v, LayerFile& l) {
  v.required("diff_id", l.diff_id);
  v.required("ownership", l.flavor.ownership);
  v.required("overlay_xattr", l.flavor.overlay_xattr);
  v.optional("format", l.flavor.format);
  v.required("entries", l.entries);
  v.required("bytes", l.bytes);
  v.optional("blobs", l.blobs);
}

constexpr size_t kMaxLayerFile = 4096;
constexpr size_t kMostBlobs = 16;  // fit into the file; any further blob is unpacked each time

Result<LayerRecord> parse_layer_record(std::string_view text, const std::string& name) {
  auto file = TRY(json::read<LayerFile>(text, name + "/layer.json"));
  LayerRecord record;
  record.diff_id = file.diff_id;
  record.flavor = file.flavor;
  record.entries = file.entries;
  record.bytes = file.bytes;
  record.blobs = std::move(file.blobs);
  return record;
}

// Whether the flags of renameat2(2) are not supported: on NFS, FUSE and old kernels.
bool lacks_flags(const Error& error) {
  return error.sys_errno == EINVAL || error.sys_errno == ENOSYS;
}

bool is_there_already(const Error& error) {
  return error.kind == Kind::exists || error.sys_errno == ENOTEMPTY;
}

Result<bool> try_lock_file(const sys::Fd& fd, const std::string& path, Locks locks) {
  auto locked = sys::try_lock(fd, sys::LockMode::exclusive, path);
  bool none = !locked.ok() && locks == Locks::if_there_are && lacks_locks(locked.error());
  return none ? Result<bool>(true) : std::move(locked);
}

// Files in a layer directory have the owners and set-id bits of the image. Below a directory that
// everyone can enter, set-id bits would be effective for every user of the machine; inside an EROFS
// image they are not.
Result<void> open_to_readers(const sys::Fd& layer, LayerFormat format, const sys::Fd& root) {
  if (format == LayerFormat::directory) return {};
  mode_t readers = TRY(readers_of(root, "layers"));
  if (readers == 0) return {};
  for (const std::string& name : TRY(sys::list_directory(layer, "."))) {
    sys::Fd file = TRY(sys::hold_entry(layer, name));
    TRY(sys::change_mode(file, 0600 | readers, name));
  }
  return sys::change_mode(layer, 0700 | readers | readers >> 2, "layer");
}

/// Writes layer.json next to the tree.
Result<void> describe_layer(const Staged& directory, const LayerRecord& record) {
  LayerFile file{record.diff_id, record.flavor, record.entries, record.bytes, record.blobs};
  return sys::write_file(directory.fd(), "layer.json", json::write(file) + "\n", 0600);
}

/// Adds `blobs` to the layer.json of `layer`, which another process has published. If two processes
/// add blobs at the same time, those of one are lost, and a later pull unpacks them again.
Result<void> add_blobs(const sys::Fd& root, const std::string& layer,
                       const std::vector<Digest>& blobs) {
  const std::string path = layer + "/layer.json";
  auto text = TRY(sys::read_file_if_exists(root, path, kMaxLayerFile));
  auto entry = TRY(sys::stat_entry(root, path));
  if (!text || !entry) return {};  // removed meanwhile; the process that needs it will notice
  auto file = TRY(json::read<LayerFile>(*text, path));
  bool changed = false;
  for (const Digest& blob : blobs) {
    bool known = std::ranges::find(file.blobs, blob) != file.blobs.end();
    if (known || file.blobs.size() >= kMostBlobs) continue;
    file.blobs.push_back(blob);
    changed = true;
  }
  if (!changed) return {};
  return sys::replace_file(root, path, json::write(file) + "\n", entry->st_mode & 0777);
}

/// Moves the layer into tmp/ at once. Returns the path to remove; a sweep would remove it, too.
Result<std::string> discard_layer(const sys::Fd& root, const std::string& layer) {
  std::string trash = "tmp/" + std::string(kTrashPrefix) + sys::random_hex(8);
  TRY(sys::rename(root, layer, root, trash));
  return trash;
}

/// For file systems without atomic exchange. A process that is killed between the two renames
/// leaves a missing layer, which the next run fetches. Returns the path to remove.
Result<std::string> replace_in_two(const sys::Fd& root, const std::string& staged,
                                   const std::string& layer) {
  std::string trash = TRY(discard_layer(root, layer));
  auto renamed = sys::rename(sys::cwd(), staged, root, layer);
  if (renamed.ok()) return trash;
  ignore(sys::rename(root, trash, root, layer));
  return std::move(renamed).error();
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
  // Best effort: the entry has no lock any more, so a later sweep removes it.
  if (!path_.empty()) ignore(sys::remove_tree(sys::cwd(), path_));
}

Claim::Claim(Claim&& other) noexcept
    : fd_(std::move(other.fd_)),
      path_(std::exchange(other.path_, {})),
      lease_(std::move(other.lease_)) {}

Claim& Claim::operator=(Claim&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(path_, other.path_);
  std::swap(lease_, other.lease_);
  return *this;
}

std::string Claim::mark() const {
  std::string name = path_.substr(path_.rfind('/') + 1);
  return std::string(kMarkPrefix) + name.substr(kClaimPrefix.size());
}

Claim::~Claim() {
  if (path_.empty()) return;
  if (lease_) lease_->drop(mark());
  // Removed under the lock: a process that waits on this file finds that its path is gone and
  // starts again with a new one.
  ignore(sys::remove_entry(sys::cwd(), path_));
}

Result<Delivery> Delivery::begin(const Store& store) {
  sweep(store.dir_);
  Delivery delivery;
  delivery.store_ = &store;
  StagedEntry pins = TRY(stage_in(store.root_, kPinsPrefix, Shape::file, store.locks_));
  delivery.pins_.fd_ = std::move(pins.fd);
  delivery.pins_.path_ = std::move(pins.path);
  if (store.locks_ == Locks::needed) return delivery;
  TRY(sys::write_all(delivery.pins_.fd_, lease_line(), delivery.pins_.path_));
  delivery.lease_ = TRY(Lease::begin(store.dir_, delivery.name(), Lease::Beat::background));
  // A process of another machine that is removing objects now may not have seen this delivery;
  // later ones will.
  TRY(store.wait_for_other_machines());
  return delivery;
}

/// The name of the pins file in tmp/.
std::string Delivery::name() const {
  return pins_.path_.substr(pins_.path_.rfind('/') + 1);
}

/// The name of a staged entry contains the name of its delivery.
std::string Delivery::stage_prefix() const {
  return std::string(kStagePrefix) + name().substr(kPinsPrefix.size()) + "-";
}

Result<void> Delivery::keep(const std::string& key) {
  // Under the lock, so that a collection either sees the line or has finished before it is written.
  // The caller checks afterwards whether the object exists.
  StoreLock lock = TRY(store_->lock(sys::LockMode::shared));
  return sys::write_all(pins_.fd_, key + "\n", pins_.path_);
}

Result<bool> Delivery::keep_blob(const Digest& digest) {
  TRY(keep(blob_pin(digest)));
  return store_->has_blob(digest);
}

Result<bool> Delivery::keep_layer(const Digest& diff_id) {
  for (const std::string& name : layer_names(diff_id, store_->flavor_)) TRY(keep(layer_pin(name)));
  return store_->has_layer(diff_id);
}

Result<bool> Delivery::keep_layer_of(const Digest& diff_id, const Digest& blob) {
  return TRY(keep_layer(diff_id)) && TRY(store_->has_layer_of(diff_id, blob));
}

Result<Claim> Delivery::claim(const std::string& key, const std::function<bool()>& give_up) {
  std::string path = store_->root_ + "/tmp/" + std::string(kClaimPrefix) + key;
  while (true) {
    Claim claim;
    claim.fd_ = TRY(sys::open_at(sys::cwd(), path, O_RDWR | O_CREAT | O_NOFOLLOW, 0600));
    while (!TRY(try_lock_file(claim.fd_, path, store_->locks_))) {
      if (give_up && give_up()) {
        return make_error(Kind::interrupted, "wait for another process that works on " + key);
      }
      std::this_thread::sleep_for(kClaimPoll);
    }
    if (!TRY(still_there(claim.fd_, path))) continue;
    claim.path_ = path;
    if (!lease_) return claim;
    claim.lease_ = lease_;
    TRY(lease_->take(claim.mark(), give_up));
    // Refreshes the directory, to see layers that another machine has published meanwhile.
    ignore(sys::list_directory(store_->dir_, "layers"));
    return claim;
  }
}

Result<Claim> Delivery::claim_layer(const Digest& diff_id, const std::function<bool()>& give_up) {
  return claim("layer-" + layer_name(diff_id, store_->flavor_), give_up);
}

Result<Claim> Delivery::claim_upkeep(const std::function<bool()>& give_up) {
  return claim("upkeep", give_up);
}

Result<Staged> Delivery::stage_file() {
  StagedEntry entry = TRY(stage_in(store_->root_, stage_prefix(), Shape::file, store_->locks_));
  Staged staged;
  staged.fd_ = std::move(entry.fd);
  staged.path_ = std::move(entry.path);
  return staged;
}

Result<Staged> Delivery::stage_layer(LayerFormat format) {
  StagedEntry entry =
      TRY(stage_in(store_->root_, stage_prefix(), Shape::directory, store_->locks_));
  Staged staged;
  staged.fd_ = std::move(entry.fd);
  staged.path_ = std::move(entry.path);
  if (format == LayerFormat::directory) TRY(sys::make_directory(staged.fd_, "fs", 0755));
  return staged;
}

Result<void> Delivery::publish_blob(Staged file, const Digest& digest) {
  TRY(keep(blob_pin(digest)));
  mode_t readers = TRY(readers_of(store_->dir_, "blobs/sha256"));
  if (readers != 0) TRY(sys::change_mode(file.fd_, 0600 | readers, file.path_));
  TRY(sys::rename(sys::cwd(), file.path_, store_->dir_, blob_file(digest)));
  file.path_.clear();
  return {};
}

Result<void> Delivery::publish_blob_from(const Staged& directory, const std::string& name,
                                         const Digest& digest) {
  TRY(keep(blob_pin(digest)));
  mode_t readers = TRY(readers_of(store_->dir_, "blobs/sha256"));
  if (readers != 0) {
    sys::Fd file = TRY(sys::hold_entry(directory.fd_, name));
    TRY(sys::change_mode(file, 0600 | readers, name));
  }
  return sys::rename(directory.fd_, name, store_->dir_, blob_file(digest));
}

Result<void> Delivery::note_origin(const Digest& blob, const Reference& repository) {
  constexpr size_t kMost = 4;
  std::vector<std::string> lines;
  for (const Reference& known : store_->origins(blob)) {
    lines.push_back(known.registry() + "/" + known.repository());
  }
  // The first repository delivered the blob. Later ones only named a stored blob in a manifest,
  // which is no proof that they have it, so they do not replace earlier entries.
  std::string own = repository.registry() + "/" + repository.repository();
  if (std::ranges::find(lines, own) == lines.end()) lines.push_back(std::move(own));
  if (lines.size() > kMost) lines.resize(kMost);
  std::string text = join(lines, "\n") + "\n";
  auto same = sys::read_file_if_exists(store_->dir_, origin_file(blob), kMaxOrigins);
  if (same.ok() && *same && **same == text) return {};
  mode_t readers = TRY(readers_of(store_->dir_, "blobs/sha256"));
  TRY(sys::make_directory(store_->dir_, "origins", 0700 | readers | readers >> 2));
  return sys::replace_file(store_->dir_, origin_file(blob), text, 0600 | readers);
}

Result<void> Delivery::put_document(const Digest& digest, std::string_view bytes) {
  TRY(keep(blob_pin(digest)));
  if (TRY(store_->owns_blob(digest))) return {};
  Staged file = TRY(stage_file());
  TRY(sys::write_all(file.fd_, bytes, file.path_));
  return publish_blob(std::move(file), digest);
}

Result<void> Delivery::publish_layer(Staged directory, const LayerRecord& record) {
  const std::string name = layer_name(record.diff_id, record.flavor);
  TRY(keep(layer_pin(name)));
  TRY(describe_layer(directory, record));
  TRY(open_to_readers(directory.fd_, record.flavor.format, store_->dir_));
  const std::string place = "layers/" + name;
  auto published = sys::rename_new(sys::cwd(), directory.path_, store_->dir_, place);
  if (!published.ok() && lacks_flags(published.error())) {
    // Even without RENAME_NOREPLACE a rename does not replace a directory that is not empty.
    published = sys::rename(sys::cwd(), directory.path_, store_->dir_, place);
  }
  if (!published.ok()) {
    // Another process without a claim was faster. The layers are equal, so ours is dropped.
    if (is_there_already(published.error())) return add_blobs(store_->dir_, place, record.blobs);
    TRY(check_not_lost());
    return published;
  }
  directory.path_.clear();
  return {};
}

/// Fails if another machine has declared this delivery dead, as objects that it needs may be gone.
Result<void> Delivery::check_not_lost() const {
  if (!lease_ || !lease_->is_lost()) return {};
  return make_error(Kind::busy,
                    "publish an image: this process was delayed for so long that another machine "
                    "takes it for dead",
                    "try again");
}

Result<std::string> replace_layer(const Store& store, const Delivery& delivery,
                                  const std::string& old, Staged directory,
                                  const LayerRecord& record) {
  const std::string was = "layers/" + old;
  const std::string becomes = "layers/" + layer_name(record.diff_id, record.flavor);
  sys::Fd root = TRY(sys::open_at(sys::cwd(), store.root(), O_RDONLY | O_DIRECTORY));
  TRY(describe_layer(directory, record));
  TRY(open_to_readers(directory.fd(), record.flavor.format, root));
  std::string trash;
  auto replace = [&]() -> Result<void> {
    if (was != becomes) {
      // Another process may have made the new form already. The layers are equal, so the staged one
      // is dropped.
      bool there = TRY(sys::stat_entry(root, becomes)).has_value();
      if (!there) TRY(sys::rename(sys::cwd(), directory.path(), root, becomes));
      trash = TRY(discard_layer(root, was));
      return {};
    }
    // Moves the old layer to tmp/, where it is removed with the staged entry, or by a sweep.
    auto exchanged = sys::rename_exchange(sys::cwd(), directory.path(), root, was);
    if (exchanged.ok() || exchanged.error().kind != Kind::unsupported) return exchanged;
    trash = TRY(replace_in_two(root, directory.path(), was));
    return {};
  };
  std::string user = TRY(with_idle_layer(store, old, replace, &delivery));
  // Without the lock, as it may take a while.
  if (!trash.empty()) ignore(sys::remove_tree(root, trash));
  return user;
}

Result<void> Delivery::publish_image(const ImageRecord& record) {
  StoreLock lock = TRY(store_->lock(sys::LockMode::exclusive));
  TRY(check_not_lost());
  for (const Digest& digest : {record.target, record.manifest, record.config}) {
    if (!TRY(store_->owns_blob(digest))) {
      return make_error(Kind::bug,
                        "record an image whose blob " + digest.text() + " is not in the store");
    }
  }
  ImageRecord stamped = record;
  if (stamped.created_at.empty()) stamped.created_at = timestamp_now();
  store_->note_used(record.manifest);  // the manifest's file may be old
  return put_record(store_->dir_, stamped);
}

Result<void> Delivery::adopt(const Image& image) {
  if (image.store.empty()) return {};
  for (const Digest& digest : {image.target, image.manifest_digest, image.id}) {
    std::string text = TRY(store_->read_document(digest));
    TRY(put_document(digest, text));
  }
  TRY(store_->copy_origins(image));
  ImageRecord record;
  record.target = image.target;
  record.manifest = image.manifest_digest;
  record.config = image.id;
  record.sources = image.sources;
  for (const Reference& reference : image.references) {
    record.reference = reference;
    TRY(publish_image(record));
  }
  if (image.references.empty()) TRY(publish_image(record));
  return {};
}

Result<mode_t> readers_of(const sys::Fd& root, const std::string& directory) {
  constexpr mode_t kReaders = S_IRGRP | S_IROTH;
  auto entry = TRY(sys::stat_entry(root, directory));
  return entry ? entry->st_mode & kReaders : 0;
}

Result<std::optional<LayerRecord>> read_layer_record(const sys::Fd& root, const std::string& name) {
  auto text = TRY(sys::read_file_if_exists(root, "layers/" + name + "/layer.json", kMaxLayerFile));
  if (!text) return std::optional<LayerRecord>();
  return std::optional<LayerRecord>(TRY(parse_layer_record(*text, "layers/" + name)));
}

Result<std::optional<LayerRecord>> find_layer_record(const sys::Fd& root, const Digest& diff_id,
                                                     LayerFlavor flavor) {
  bool own = true;
  for (const std::string& name : layer_names(diff_id, flavor)) {
    auto record = TRY(read_layer_record(root, name));
    // A directory that was unpacked for another user has other owners.
    if (record && (own || record->flavor.format == LayerFormat::erofs)) return record;
    own = false;
  }
  return std::optional<LayerRecord>();
}

Result<LayerRecord> read_layer_record_at(const sys::Fd& layer, const std::string& name) {
  constexpr int kReadRegular = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
  sys::Fd file = TRY(sys::open_at(layer, "layer.json", kReadRegular));
  std::string text = TRY(sys::read_all(file, "layer.json", kMaxLayerFile));
  return parse_layer_record(text, name);
}

}  // namespace berth::image
