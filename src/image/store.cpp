// SPDX-License-Identifier: Apache-2.0
#include "image/store.hpp"

#include <fcntl.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/text.hpp"
#include "image/layout.hpp"
#include "image/records.hpp"

namespace berth::image {
namespace {

constexpr std::string_view kVersion = "1";
constexpr const char* kDirectories[] = {"blobs",      "blobs/sha256", "layers", "images",
                                        "containers", "names",        "tmp"};

/// Another process may do the same at this moment: every step is content with what is there.
Result<void> create_layout(const sys::Fd& root) {
  for (const char* directory : kDirectories) TRY(sys::make_directory(root, directory, 0700));
  TRY(sys::open_at(root, "lock", O_RDWR | O_CREAT | O_NOFOLLOW, 0600));
  return sys::replace_file(root, "version", std::string(kVersion) + "\n", 0600);
}

/// The digits of "sha256:abc" or "abc", when it may be the start of an image id.
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

/// The records that a removal unlinks, and who else matters to it.
struct RemovalPlan {
  std::vector<ImageRecord> doomed;
  std::set<Digest> still_named;                       ///< manifests that other records name
  std::vector<std::pair<std::string, Digest>> users;  ///< containers and their manifests
};

Result<void> check_removable(std::string_view name, const RemovalPlan& plan) {
  std::string refusal = "remove image " + quoted(name) + ": ";
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

/// What is untagged, and which images nothing holds any more.
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
  return std::all_of(layers.begin(), layers.end(), [](const Layer& l) { return l.unpacked; });
}

std::vector<std::string> Image::layer_directories() const {
  std::vector<std::string> directories;
  for (const auto& layer : layers) directories.push_back(layer.directory);
  return directories;
}

Result<Store> Store::open(const std::string& root, LayerFlavor flavor) {
  if (!root.starts_with('/')) {
    return make_error(Kind::usage, "open store " + quoted(root) + ": expected an absolute path");
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
    auto version = TRY(sys::read_file_if_exists(store.dir_, "version", 64));
    if (!version) {
      TRY(create_layout(store.dir_));
    } else if (trim(*version) != kVersion) {
      return make_error(Kind::unsupported, "the store has version " + quoted(trim(*version)) +
                                               ", this program knows version 1");
    }
    return store;
  };
  return TRY_CTX(open_store(), "cannot open the store " + quoted(root));
}

Result<sys::Fd> Store::lock(sys::LockMode mode) const {
  sys::Fd fd = TRY(sys::open_at(dir_, "lock", O_RDWR | O_CREAT | O_NOFOLLOW, 0600));
  TRY(sys::wait_lock(fd, mode, root_ + "/lock"));
  return fd;
}

std::string Store::blob_path(const Digest& digest) const {
  return root_ + "/" + blob_file(digest);
}

std::string Store::layer_directory(const Digest& diff_id, LayerFormat format) const {
  return root_ + "/layers/" + layer_name(diff_id, flavor_) + "/" +
         std::string(kTreeNames[static_cast<size_t>(format)]);
}

Result<bool> Store::has_blob(const Digest& digest) const {
  return TRY(sys::stat_entry(dir_, blob_file(digest))).has_value();
}

std::vector<Reference> Store::origins(const Digest& digest) const {
  std::vector<Reference> repositories;
  auto text = sys::read_file_if_exists(dir_, origin_file(digest), 4096);
  if (!text.ok() || !*text) return repositories;
  for (std::string_view line : split(**text, '\n')) {
    if (line.empty()) continue;
    auto reference = Reference::parse(line);
    if (reference.ok()) repositories.push_back(std::move(*reference));
  }
  return repositories;
}

Result<bool> Store::has_layer(const Digest& diff_id) const {
  return TRY(sys::stat_entry(dir_, "layers/" + layer_name(diff_id, flavor_))).has_value();
}

Result<std::string> Store::read_document(const Digest& digest) const {
  return sys::read_file(dir_, blob_file(digest), oci::kMaxManifestBytes);
}

Result<Image> Store::load_image(const ImageRecord& record,
                                const std::vector<ImageRecord>& records) const {
  Image image;
  image.id = record.config;
  image.manifest_digest = record.manifest;
  image.target = record.target;
  image.pulled_at = record.created_at;
  for (const auto& other : records) {
    if (other.reference && other.manifest == record.manifest) {
      image.references.push_back(*other.reference);
    }
  }
  std::sort(image.references.begin(), image.references.end());

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
    Layer layer;
    layer.diff_id = image.config.rootfs.diff_ids[i];
    layer.blob = image.manifest.layers[i];
    auto known = TRY(read_layer_record(dir_, layer_name(layer.diff_id, flavor_)));
    LayerFormat format = known ? known->flavor.format : LayerFormat::directory;
    layer.directory = layer_directory(layer.diff_id, format);
    if (known) {
      layer.unpacked = true;
      layer.bytes = known->bytes;
      layer.entries = known->entries;
      image.size += known->bytes;
    }
    image.layers.push_back(std::move(layer));
  }
  return image;
}

/// The records that a name means. By id there may be several, all of one image id.
Result<std::vector<ImageRecord>> Store::match(std::string_view name,
                                              const std::vector<ImageRecord>& records) const {
  std::vector<ImageRecord> found;
  auto reference = Reference::parse(name);
  if (reference.ok()) {
    auto exact = TRY(read_record(dir_, *reference));
    if (exact) return std::vector{*exact};
    for (const auto& record : records) {
      // A pull by tag also answers to the digest that it had then.
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
        "image id " + quoted(name) + " is the start of " + std::to_string(ids.size()) + " ids",
        "berth images --no-trunc");
  }
  return found;
}

Result<std::optional<Image>> Store::find_image(std::string_view name) const {
  std::vector<std::string> damaged;
  auto records = TRY(read_records(dir_, damaged));
  auto found = TRY(match(name, records));
  if (found.empty()) return std::optional<Image>();
  return std::optional<Image>(
      TRY_CTX(load_image(found.front(), records), "cannot read image " + quoted(name)));
}

Result<std::optional<Image>> Store::find_image_named(std::string_view name) const {
  auto reference = Reference::parse(name);
  if (!reference.ok()) return std::optional<Image>();
  auto record = TRY(read_record(dir_, *reference));
  if (!record) return std::optional<Image>();
  return std::optional<Image>(
      TRY_CTX(load_image(*record, {*record}), "cannot read image " + quoted(name)));
}

Result<Image> Store::get_image(std::string_view name) const {
  auto image = TRY(find_image(name));
  if (!image) return no_such_image(name);
  return std::move(*image);
}

Result<std::vector<Image>> Store::list(std::vector<std::string>* damaged) const {
  std::vector<std::string> unreadable;
  auto records = TRY(read_records(dir_, unreadable));
  for (std::string& name : unreadable) name = "image record " + quoted(name) + " is damaged";
  std::map<Digest, Image> by_manifest;
  for (const auto& record : records) {
    if (by_manifest.contains(record.manifest)) continue;
    auto image = load_image(record, records);
    if (image.ok()) {
      by_manifest.emplace(record.manifest, std::move(*image));
    } else {
      unreadable.push_back(
          "image " +
          quoted(record.reference ? record.reference->familiar() : record.manifest.text()) +
          " is damaged: " + to_line(image.error()));
    }
  }
  if (damaged != nullptr) *damaged = std::move(unreadable);
  std::vector<Image> images;
  for (auto& [manifest, image] : by_manifest) images.push_back(std::move(image));
  std::stable_sort(images.begin(), images.end(), [](const Image& a, const Image& b) {
    return a.config.created > b.config.created;
  });
  return images;
}

Result<void> Store::tag(const Image& image, const Reference& reference) {
  if (reference.digest()) {
    return make_error(Kind::usage, "tag an image as " + quoted(reference.familiar()) +
                                       ": a digest cannot be given as a name");
  }
  sys::Fd lock = TRY(this->lock(sys::LockMode::exclusive));
  if (!TRY(has_blob(image.manifest_digest)) || !TRY(has_blob(image.id))) {
    return no_such_image(image.id.text());
  }
  ImageRecord record;
  record.reference = reference;
  record.target = image.target;
  record.manifest = image.manifest_digest;
  record.config = image.id;
  record.created_at = timestamp_now();
  return put_record(dir_, record);
}

Result<Removal> Store::remove(std::string_view name, RemoveOptions options) {
  Removal removal;
  Collected collected;
  {
    sys::Fd lock = TRY(this->lock(sys::LockMode::exclusive));
    std::vector<std::string> damaged;
    auto records = TRY(read_records(dir_, damaged));
    RemovalPlan plan;
    plan.doomed = TRY(match(name, records));
    if (plan.doomed.empty()) {
      return make_error(Kind::not_found, "no such image: " + escape_controls(name.substr(0, 300)),
                        "berth images");
    }
    for (const auto& record : records) {
      bool doomed = std::any_of(plan.doomed.begin(), plan.doomed.end(),
                                [&](const auto& other) { return same_record(record, other); });
      if (!doomed) plan.still_named.insert(record.manifest);
    }
    plan.users = TRY(container_uses(dir_));
    if (!options.force) TRY(check_removable(name, plan));
    for (const auto& record : plan.doomed) TRY(unlink_record(dir_, record));
    removal = describe(plan);
    auto unlinked = unlink_unneeded(dir_);
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

Result<void> Store::mark_used(const std::string& container_id, const std::vector<Image>& images) {
  sys::Fd lock = TRY(this->lock(sys::LockMode::shared));
  std::string lines;
  for (const Image& image : images) {
    bool whole = TRY(has_blob(image.manifest_digest));
    for (const auto& layer : image.layers) {
      whole = whole && TRY(has_layer(layer.diff_id));
      // Its form may have been changed since it was looked up.
      whole = whole && TRY(sys::stat_entry(sys::cwd(), layer.directory)).has_value();
    }
    if (!whole) return no_such_image(image.id.text());
    lines += image.manifest_digest.text() + "\n";
    note_used(image.manifest_digest);
  }
  return sys::write_file(dir_, "containers/" + container_id + "/image", lines, 0600);
}

Result<uint64_t> Store::collect() {
  Collected collected;
  {
    sys::Fd lock = TRY(this->lock(sys::LockMode::exclusive));
    collected = TRY(unlink_unneeded(dir_));
  }
  empty_trash(dir_, collected);
  sweep(dir_);
  return collected.layers.size() + collected.blobs.size();
}

}  // namespace berth::image
