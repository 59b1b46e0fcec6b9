// SPDX-License-Identifier: Apache-2.0
#include "image/store.hpp"

#include <fcntl.h>

#include <algorithm>

#include "base/text.hpp"
#include "image/layout.hpp"
#include "image/lease.hpp"
#include "image/staging.hpp"

namespace berth::image {
namespace {

constexpr const char* kDirectories[] = {"blobs",      "blobs/sha256", "layers",  "images",
                                        "containers", "names",        "origins", "tmp"};

/// How often to look up an image that other processes remove and bring back. If an object is
/// missing each time, the image is damaged.
constexpr int kTries = 20;

/// Another process may do the same at the same time, so every step accepts existing entries.
Result<void> create_layout(const sys::Fd& root) {
  for (const char* directory : kDirectories) TRY(sys::make_directory(root, directory, 0700));
  TRY(sys::open_at(root, "lock", O_RDWR | O_CREAT | O_NOFOLLOW, 0600));
  return sys::replace_file(root, "version", std::string(kStoreVersion) + "\n", 0644);
}

/// The digits of "sha256:abc" or "abc", if they may be the start of an image id.
std::string_view id_digits(std::string_view name) {
  if (name.starts_with("sha256:")) name.remove_prefix(7);
  bool hex = !name.empty() && name.size() <= 64 &&
             name.find_first_not_of("0123456789abcdef") == std::string_view::npos;
  return hex ? name : std::string_view();
}

Error no_such_image(std::string_view name) {
  return make_error(Kind::not_found, "no such image: " + escape_controls(name.substr(0, 300)),
                    "berth pull " + escape_controls(name.substr(0, 300)));
}

Error of_additional_store(std::string_view name, const std::string& store) {
  return make_error(
      Kind::denied,
      "remove image " + quote(name) + ": it is in the read-only store " + quote(store),
      "berth --root " + store + " rmi, as its owner");
}

std::string cannot_read(std::string_view name, const std::string& store) {
  std::string image = "cannot read image " + quote(name);
  return store.empty() ? image : image + " in the additional store " + quote(store);
}

/// The records that a removal unlinks, and other images and containers that it affects.
struct RemovalPlan {
  std::vector<ImageRecord> doomed;
  std::set<Digest> still_named;                       ///< manifests that other records name
  std::vector<std::pair<std::string, Digest>> users;  ///< containers and their manifests
};

Result<void> check_removable(std::string_view name, const RemovalPlan& plan) {
  std::string refusal = "remove image " + quote(name) + ": ";
  if (plan.doomed.size() > 1) {
    std::vector<std::string> names;
    for (const auto& record : plan.doomed) {
      if (record.reference) names.push_back(record.reference->familiar());
    }
    return make_error(Kind::busy, refusal + "it has several names: " + join(names, ", "),
                      "berth rmi NAME, or berth rmi -f for all of them");
  }
  for (const auto& record : plan.doomed) {
    if (plan.still_named.contains(record.manifest)) continue;
    for (const auto& [container, manifest] : plan.users) {
      if (manifest != record.manifest) continue;
      std::string id = container.substr(0, 12);
      return make_error(Kind::busy, refusal + "container " + id + " uses it",
                        "berth rm " + id + ", or berth rmi -f");
    }
  }
  return {};
}

/// The removed names, and the images that have no name left.
Removal describe(const RemovalPlan& plan) {
  Removal removal;
  std::set<Digest> held = plan.still_named;
  for (const auto& [container, manifest] : plan.users) held.insert(manifest);
  std::set<Digest> deleted;
  for (const auto& record : plan.doomed) {
    if (record.reference) removal.untagged.push_back(*record.reference);
    if (!held.contains(record.manifest)) deleted.insert(record.config);
  }
  removal.deleted.assign(deleted.begin(), deleted.end());
  return removal;
}

}  // namespace

bool Image::unpacked() const {
  return std::ranges::all_of(layers, [](const Layer& l) { return l.unpacked; });
}

std::vector<std::string> Image::layer_directories() const {
  std::vector<std::string> directories;
  for (const auto& layer : layers) directories.push_back(layer.directory);
  return directories;
}

Result<Store> Store::open(const std::string& root, LayerFlavor flavor,
                          const std::vector<std::string>& additional) {
  if (!root.starts_with('/')) {
    return make_error(Kind::usage, "open store " + quote(root) + ": expected an absolute path");
  }
  auto open_store = [&]() -> Result<Store> {
    Store store;
    store.root_ = root;
    while (store.root_.size() > 1 && store.root_.ends_with('/')) store.root_.pop_back();
    store.flavor_ = flavor;
    auto dir = TRY(sys::open_if_exists(sys::cwd(), root, O_RDONLY | O_DIRECTORY));
    if (!dir) {
      size_t slash = store.root_.rfind('/');
      if (slash > 0) TRY(sys::make_directories(sys::cwd(), store.root_.substr(0, slash), 0755));
      TRY(sys::make_directory(sys::cwd(), store.root_, 0700));
      dir = TRY(sys::open_at(sys::cwd(), store.root_, O_RDONLY | O_DIRECTORY));
    }
    store.dir_ = std::move(*dir);
    if (uses_leases(store.dir_)) store.locks_ = Locks::if_there_are;
    auto version = TRY(sys::read_file_if_exists(store.dir_, "version", 64));
    if (!version) {
      TRY(create_layout(store.dir_));
    } else if (trim(*version) != kStoreVersion) {
      return make_error(Kind::unsupported, "the store has version " + quote(trim(*version)) +
                                               ", this program knows version 1");
    }
    for (const std::string& place : additional) {
      auto opened = AdditionalStore::open(place);
      if (opened.ok()) store.additional_.push_back(std::move(*opened));
    }
    return store;
  };
  return TRY_CTX(open_store(), "cannot open the store " + quote(root));
}

Result<StoreLock> Store::lock(sys::LockMode mode) const {
  StoreLock lock;
  lock.fd_ = TRY(sys::open_at(dir_, "lock", O_RDWR | O_CREAT | O_NOFOLLOW, 0600));
  TRY(lock_file(lock.fd_, mode, root_ + "/lock", locks_));
  if (locks_ == Locks::needed || mode == sys::LockMode::shared) return lock;
  // Other machines may not see this lock, so there is a lease, too.
  StagedEntry holder = TRY(stage_in(root_, kHolderPrefix, Shape::file, locks_));
  lock.holder_ = std::move(holder.path);
  lock.holder_fd_ = std::move(holder.fd);
  TRY(sys::write_all(lock.holder_fd_, lease_line(), lock.holder_));
  std::string name = lock.holder_.substr(lock.holder_.rfind('/') + 1);
  lock.lease_ = TRY(Lease::begin(dir_, std::move(name), Lease::Beat::on_request));
  TRY(lock.lease_->take(kStoreMark));
  return lock;
}

StoreLock::~StoreLock() {
  if (lease_) lease_->drop(kStoreMark);
  if (!holder_.empty()) ignore(sys::remove_entry(sys::cwd(), holder_));
}

Result<void> StoreLock::renew() {
  return lease_ ? lease_->renew() : Result<void>();
}

std::string Store::blob_path(const Digest& digest) const {
  const std::string file = blob_file(digest);
  auto owned = owns_blob(digest);
  if (owned.ok() && *owned) return root_ + "/" + file;
  for (const AdditionalStore& store : additional_) {
    if (store.has_file(file)) return store.root() + "/" + file;
  }
  return root_ + "/" + file;
}

std::string Store::layer_directory(const Digest& diff_id, LayerFormat format) const {
  LayerFlavor flavor = flavor_;
  flavor.format = format;
  return root_ + "/layers/" + layer_name(diff_id, flavor) + "/" + tree_name(format);
}

Result<bool> Store::owns_blob(const Digest& digest) const {
  return TRY(sys::stat_entry(dir_, blob_file(digest))).has_value();
}

Result<bool> Store::has_blob(const Digest& digest) const {
  if (TRY(owns_blob(digest))) return true;
  return std::ranges::any_of(
      additional_, [&](const AdditionalStore& store) { return store.has_file(blob_file(digest)); });
}

std::vector<Reference> Store::origins(const Digest& digest) const {
  std::vector<Reference> repositories;
  auto add_from = [&](const sys::Fd& dir) {
    auto text = sys::read_file_if_exists(dir, origin_file(digest), kMaxOrigins);
    if (!text.ok() || !*text) return;
    for (std::string_view line : split(**text, '\n')) {
      if (line.empty()) continue;
      auto reference = Reference::parse(line);
      if (reference.ok()) repositories.push_back(std::move(*reference));
    }
  };
  add_from(dir_);
  for (const AdditionalStore& store : additional_) add_from(store.dir());
  return repositories;
}

Result<bool> Store::has_layer(const Digest& diff_id) const {
  std::string own = "layers/" + layer_names(diff_id, flavor_).front();
  if (TRY(sys::stat_entry(dir_, own))) return true;
  if (TRY(find_layer_record(dir_, diff_id, flavor_))) return true;
  return std::ranges::any_of(additional_, [&](const AdditionalStore& store) {
    return store.find_layer(diff_id, flavor_).has_value();
  });
}

Result<bool> Store::has_layer_of(const Digest& diff_id, const Digest& blob) const {
  auto holds = [&](const LayerRecord& record) {
    return std::ranges::find(record.blobs, blob) != record.blobs.end();
  };
  auto own = TRY(find_layer_record(dir_, diff_id, flavor_));
  if (own && holds(*own)) return true;
  return std::ranges::any_of(additional_, [&](const AdditionalStore& store) {
    auto found = store.find_layer(diff_id, flavor_);
    return found && holds(found->record);
  });
}

Result<std::string> Store::read_document(const Digest& digest) const {
  auto own = sys::read_file(dir_, blob_file(digest), oci::kMaxManifestBytes);
  if (own.ok() || own.error().kind != Kind::not_found) return own;
  std::optional<Error> unread;
  for (const AdditionalStore& store : additional_) {
    auto text = sys::read_file(store.dir(), blob_file(digest), oci::kMaxManifestBytes);
    if (text.ok()) return text;
    if (text.error().kind != Kind::not_found && !unread) unread = std::move(text).error();
  }
  if (unread) return std::move(*unread);
  return own;
}

/// The layer's directory and record, from the first store that has the layer.
Result<Layer> Store::find_layer(const Digest& diff_id) const {
  Layer layer;
  layer.diff_id = diff_id;
  auto record = TRY(find_layer_record(dir_, diff_id, flavor_));
  layer.directory =
      layer_directory(diff_id, record ? record->flavor.format : LayerFormat::directory);
  for (const AdditionalStore& store : additional_) {
    if (record) break;
    auto found = store.find_layer(diff_id, flavor_);
    if (!found) continue;
    record = std::move(found->record);
    layer.directory = std::move(found->directory);
    layer.read_only = true;
  }
  if (!record) return layer;
  layer.unpacked = true;
  layer.bytes = record->bytes;
  layer.entries = record->entries;
  return layer;
}

Result<Image> Store::load_image(const ImageRecord& record,
                                const std::vector<ImageRecord>& records) const {
  Image image;
  image.id = record.config;
  image.manifest_digest = record.manifest;
  image.target = record.target;
  image.pulled_at = record.created_at;
  image.store = record.store;
  for (const auto& other : records) {
    bool same = other.manifest == record.manifest && other.store == record.store;
    if (other.reference && same) {
      image.references.push_back(*other.reference);
    }
    if (other.manifest == record.manifest) add_sources(other.sources, image.sources);
  }
  std::ranges::sort(image.references);

  std::string text = TRY(read_document(record.manifest));
  auto document = TRY(oci::parse_manifest(text, {}, record.manifest.text()));
  auto* manifest = std::get_if<oci::Manifest>(&document);
  if (manifest == nullptr) {
    return make_error(Kind::corrupt, record.manifest.text() + ": expected a manifest");
  }
  image.manifest = std::move(*manifest);
  text = TRY(read_document(record.config));
  image.config = TRY(oci::parse_config(text, record.config.text()));
  TRY(oci::check_image(image.manifest, image.config));

  for (size_t i = 0; i < image.manifest.layers.size(); ++i) {
    Layer layer = TRY(find_layer(image.config.rootfs.diff_ids[i]));
    layer.blob = image.manifest.layers[i];
    image.size += layer.bytes;
    image.layers.push_back(std::move(layer));
  }
  return image;
}

/// From an additional store only records that no earlier store has: with the same name or, for
/// images without a name, for the same image.
Result<std::vector<ImageRecord>> Store::read_all_records(Scope scope,
                                                         std::vector<std::string>& damaged) const {
  auto records = TRY(read_records(dir_, damaged));
  if (scope == Scope::own) return records;
  for (const AdditionalStore& store : additional_) {
    std::vector<std::string> unreadable;
    auto more = read_records(store.dir(), unreadable);
    // The owner may have made the store unreadable, or its server may be down. The other stores are
    // still used.
    if (!more.ok()) unreadable.push_back("images");
    for (const std::string& name : unreadable) damaged.push_back(store.root() + "/" + name);
    if (!more.ok()) continue;
    const size_t before = records.size();
    for (ImageRecord& record : *more) {
      bool known = std::any_of(records.begin(), records.begin() + static_cast<long>(before),
                               [&](const ImageRecord& earlier) {
                                 return record.reference ? earlier.reference == record.reference
                                                         : earlier.manifest == record.manifest;
                               });
      if (known) continue;
      record.store = store.root();
      records.push_back(std::move(record));
    }
  }
  return records;
}

/// The record of exactly this name, from the first store that has it.
Result<std::optional<ImageRecord>> Store::record_of(const Reference& reference, Scope scope) const {
  auto own = TRY(read_record(dir_, reference));
  if (own || scope == Scope::own) return own;
  for (const AdditionalStore& store : additional_) {
    auto found = TRY_CTX(read_record(store.dir(), reference),
                         "cannot read the additional store " + quote(store.root()));
    if (!found) continue;
    found->store = store.root();
    return found;
  }
  return std::optional<ImageRecord>();
}

/// The records that a name matches. An id may match several records, all of the same image id.
Result<std::vector<ImageRecord>> Store::match(std::string_view name,
                                              const std::vector<ImageRecord>& records,
                                              Scope scope) const {
  std::vector<ImageRecord> found;
  auto reference = Reference::parse(name);
  if (reference.ok()) {
    auto exact = TRY(record_of(*reference, scope));
    if (exact) return std::vector{*exact};
    for (const auto& record : records) {
      // An image that was pulled by tag also matches the digest that the tag had then.
      bool same_digest =
          reference->digest() && record.reference &&
          record.reference->registry() == reference->registry() &&
          record.reference->repository() == reference->repository() &&
          (record.target == *reference->digest() || record.manifest == *reference->digest());
      if (same_digest) return std::vector{record};
    }
  }
  std::string_view digits = id_digits(name);
  if (digits.empty()) {
    if (!reference.ok()) return std::move(reference).error();
    return found;
  }
  std::set<std::string> ids;
  for (const auto& record : records) {
    if (!record.config.hex().starts_with(digits)) continue;
    ids.insert(record.config.hex());
    found.push_back(record);
  }
  if (ids.size() > 1) {
    return make_error(
        Kind::usage,
        "image id " + quote(name) + " is the start of " + std::to_string(ids.size()) + " ids",
        "berth images --no-trunc");
  }
  return found;
}

Result<std::optional<Image>> Store::look_up(std::string_view name, Scope scope) const {
  for (int attempt = 1;; ++attempt) {
    std::vector<std::string> damaged;
    auto records = TRY(read_all_records(scope, damaged));
    auto found = TRY(match(name, records, scope));
    if (found.empty()) return std::optional<Image>();
    auto image = load_image(found.front(), records);
    if (image.ok()) return std::optional<Image>(std::move(*image));
    // It was removed or replaced meanwhile.
    if (has_gone(image.error()) && attempt < kTries) continue;
    return std::move(image).error().with_context(cannot_read(name, found.front().store));
  }
}

Result<std::optional<Image>> Store::find_image(std::string_view name) const {
  return look_up(name, Scope::all);
}

Result<std::optional<Image>> Store::find_own_image(std::string_view name) const {
  return look_up(name, Scope::own);
}

Result<std::optional<Image>> Store::find_image_named(std::string_view name) const {
  auto reference = Reference::parse(name);
  if (!reference.ok()) return std::optional<Image>();
  auto record = TRY(record_of(*reference, Scope::all));
  if (!record) return std::optional<Image>();
  auto image = load_image(*record, {*record});
  if (image.ok()) return std::optional<Image>(std::move(*image));
  if (has_gone(image.error())) return look_up(name, Scope::all);
  return std::move(image).error().with_context(cannot_read(name, record->store));
}

Result<Image> Store::get_image(std::string_view name) const {
  auto image = TRY(find_image(name));
  if (!image) return no_such_image(name);
  return std::move(*image);
}

Result<std::vector<Image>> Store::list(std::vector<std::string>* damaged) const {
  std::vector<std::string> unreadable;
  std::map<std::pair<Digest, std::string>, Image> known;  // by manifest and store
  bool again = true;
  for (int attempt = 1; again && attempt <= kTries; ++attempt) {
    again = false;
    known.clear();
    unreadable.clear();
    auto records = TRY(read_all_records(Scope::all, unreadable));
    for (std::string& name : unreadable) name = "image record " + quote(name) + " is damaged";
    for (const auto& record : records) {
      std::pair key(record.manifest, record.store);
      if (known.contains(key)) continue;
      auto image = load_image(record, records);
      if (image.ok()) {
        known.emplace(std::move(key), std::move(*image));
        continue;
      }
      again |= has_gone(image.error());  // perhaps just removed
      unreadable.push_back(
          "image " +
          quote(record.reference ? record.reference->familiar() : record.manifest.text()) +
          " is damaged: " + to_line(image.error()));
    }
  }
  if (damaged != nullptr) *damaged = std::move(unreadable);
  std::vector<Image> images;
  for (auto& [key, image] : known) images.push_back(std::move(image));
  std::ranges::stable_sort(
      images, [](const Image& a, const Image& b) { return a.config.created > b.config.created; });
  return images;
}

/// Copies an additional store's documents of the image, so that they stay available if that store
/// disappears. The caller holds the lock, so no collection runs before a record names them.
Result<void> Store::copy_documents(const Image& image) const {
  mode_t readers = TRY(readers_of(dir_, "blobs/sha256"));
  for (const Digest& digest : {image.target, image.manifest_digest, image.id}) {
    if (TRY(owns_blob(digest))) continue;
    std::string text = TRY(read_document(digest));
    TRY(sys::replace_file(dir_, blob_file(digest), text, 0600 | readers));
  }
  return copy_origins(image);
}

/// Copies the origins of the image's layers, so that the layers can be fetched if that store
/// disappears.
Result<void> Store::copy_origins(const Image& image) const {
  mode_t readers = TRY(readers_of(dir_, "blobs/sha256"));
  for (const oci::Descriptor& layer : image.manifest.layers) {
    const std::string file = origin_file(layer.digest);
    if (TRY(sys::stat_entry(dir_, file))) continue;
    for (const AdditionalStore& store : additional_) {
      auto text = sys::read_file_if_exists(store.dir(), file, kMaxOrigins);
      if (!text.ok() || !*text) continue;
      TRY(sys::make_directory(dir_, "origins", 0700 | readers | readers >> 2));
      TRY(sys::replace_file(dir_, file, **text, 0600 | readers));
      break;
    }
  }
  return {};
}

Result<void> Store::tag(const Image& image, const Reference& reference) {
  if (reference.digest()) {
    return make_error(Kind::usage, "tag an image as " + quote(reference.familiar()) +
                                       ": a digest cannot be given as a name");
  }
  StoreLock lock = TRY(this->lock(sys::LockMode::exclusive));
  if (!image.store.empty()) TRY(copy_documents(image));
  if (!TRY(owns_blob(image.manifest_digest)) || !TRY(owns_blob(image.id))) {
    return no_such_image(image.id.text());
  }
  ImageRecord record;
  record.reference = reference;
  record.target = image.target;
  record.manifest = image.manifest_digest;
  record.config = image.id;
  record.sources = image.sources;
  record.created_at = timestamp_now();
  return put_record(dir_, record);
}

Result<Removal> Store::remove(std::string_view name, RemoveOptions options) {
  Removal removal;
  Collected collected;
  {
    StoreLock lock = TRY(this->lock(sys::LockMode::exclusive));
    std::vector<std::string> damaged;
    auto records = TRY(read_records(dir_, damaged));
    RemovalPlan plan;
    plan.doomed = TRY(match(name, records, Scope::own));
    if (plan.doomed.empty()) {
      auto elsewhere = TRY(find_image(name));
      if (elsewhere) return of_additional_store(name, elsewhere->store);
      return make_error(Kind::not_found, "no such image: " + escape_controls(name.substr(0, 300)),
                        "berth images");
    }
    for (const auto& record : records) {
      bool doomed = std::ranges::any_of(
          plan.doomed, [&](const auto& other) { return same_record(record, other); });
      if (!doomed) plan.still_named.insert(record.manifest);
    }
    plan.users = TRY(container_uses(dir_));
    if (!options.force) TRY(check_removable(name, plan));
    for (const auto& record : plan.doomed) TRY(unlink_record(dir_, record));
    removal = describe(plan);
    auto unlinked = unlink_unneeded(dir_, lock);
    if (unlinked.ok()) {
      collected = std::move(*unlinked);
    } else {
      removal.deleted.clear();
      removal.kept = std::move(unlinked).error();
    }
  }
  for (const auto& layer : collected.layers) {
    auto digest = Digest::parse("sha256:" + layer.substr(0, layer.find('-')));
    if (digest.ok()) removal.deleted.push_back(std::move(*digest));
  }
  empty_trash(dir_, collected);
  sweep(dir_);
  return removal;
}

Result<void> Store::mark_used(const std::string& container_id,
                              const std::vector<Image>& images) const {
  StoreLock lock = TRY(this->lock(sys::LockMode::shared));
  std::string lines;
  for (const Image& image : images) lines += image.manifest_digest.text() + "\n";
  TRY(sys::write_file(dir_, "containers/" + container_id + "/image", lines, 0600));
  // The file is written first, then the images are checked: a collection on another machine has
  // seen the file, or we wait for its end.
  if (locks_ == Locks::if_there_are) TRY(wait_for_other_machines());
  for (const Image& image : images) {
    bool whole = TRY(has_blob(image.manifest_digest));
    bool mixed = false;
    for (const auto& layer : image.layers) {
      whole = whole && TRY(has_layer(layer.diff_id));
      // The layer may have been converted since the look-up.
      whole = whole && TRY(sys::stat_entry(sys::cwd(), layer.directory)).has_value();
      mixed = mixed || !layer.read_only;
    }
    if (!whole) return no_such_image(image.id.text());
    // Our layers are kept only while a manifest of ours names them.
    if (mixed && !image.store.empty()) TRY(copy_documents(image));
    note_used(image.manifest_digest);
  }
  return {};
}

Result<void> Store::wait_for_other_machines() const {
  return wait_without(dir_, kStoreMark);
}

Result<uint64_t> Store::collect() {
  Collected collected;
  {
    StoreLock lock = TRY(this->lock(sys::LockMode::exclusive));
    collected = TRY(unlink_unneeded(dir_, lock));
  }
  empty_trash(dir_, collected);
  sweep(dir_);
  return collected.layers.size() + collected.blobs.size();
}

}  // namespace berth::image
