// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "image/additional_store.hpp"
#include "image/image.hpp"
#include "image/store_lock.hpp"
#include "sys/fd/fd.hpp"
#include "sys/file/file.hpp"

/// The images of one user as plain files below --root. Any number of processes may use it at once:
/// everything is published by rename, so a reader never sees an incomplete object. A process that
/// is killed at any time leaves at most an entry in tmp/, which the next writer removes.
///
/// Durability is that of a cache: nothing is fsynced. After a power cut (not a kill) an image may
/// have to be removed and pulled again.
namespace berth::image {

class Lease;
enum class Locks;

struct RemoveOptions {
  bool force = false;  ///< even if containers use it or it has several names
};

struct Removal {
  std::vector<Reference> untagged;
  std::vector<Digest> deleted;  ///< deleted objects: the image id, then diff ids of layers
  std::optional<Error> kept;    ///< why nothing was deleted: something needed may be damaged
};

/// An image that shrink() has removed, or would remove.
struct ShrunkImage {
  Digest id;
  std::vector<Reference> references;
  int64_t used_at = 0;  ///< seconds since 1970
  uint64_t bytes = 0;   ///< freed by its removal: of objects that no remaining image has
};
struct Shrunk {
  std::vector<ShrunkImage> images;  ///< least recently used first
  std::vector<Digest> layers;       ///< diff ids of the deleted layers
  uint64_t before = 0;              ///< bytes of layers and blobs
  uint64_t after = 0;
};
enum class Act { no, yes };

/// All objects of the store by their path below the root.
struct Survey {
  std::vector<ImageRecord> records;
  std::vector<std::string> damaged_records;
  std::vector<std::string> blobs;   ///< every file in blobs/sha256, with any name
  std::vector<std::string> layers;  ///< every entry of layers/, with any name
  std::vector<std::string> origins;
  std::vector<std::string> leftovers;                 ///< of killed processes, in tmp/ and images/
  std::vector<std::pair<std::string, Digest>> users;  ///< containers and their manifests
  /// Objects that no record, container or delivery needs; empty if that is unknown because of
  /// damage.
  std::vector<std::string> unneeded;
};

class Store {
 public:
  /// Opens the store at the absolute path `root`, and makes it (0700) if it is missing. The
  /// `additional` stores are searched after it, in this order, and are read-only: writing,
  /// removing, counting and checking concern only the store at `root`. An unusable additional store
  /// counts as empty (AdditionalStore::open() gives the reason).
  /// Errors: denied, unsupported (a store of a later version), io.
  static Result<Store> open(const std::string& root, LayerFlavor flavor,
                            const std::vector<std::string>& additional = {});

  const std::string& root() const { return root_; }
  LayerFlavor flavor() const { return flavor_; }
  /// The path of the blob; if no store has it, the path that it would get in this store.
  std::string blob_path(const Digest& digest) const;
  /// The path in this store: …/fs or …/fs.erofs
  std::string layer_directory(const Digest& diff_id, LayerFormat format) const;

  /// The image that `name` means: a reference, or the unique start of an image id (hex, with or
  /// without "sha256:"). A reference has precedence over an id.
  /// Errors: usage (no name at all; an ambiguous id), corrupt (a damaged record).
  Result<std::optional<Image>> find_image(std::string_view name) const;
  /// The same for a complete reference, without reading any other image: the cost of a start does
  /// not depend on the number of images. Image::references is only this reference.
  Result<std::optional<Image>> find_image_named(std::string_view name) const;
  /// As find_image(), but only in this store.
  Result<std::optional<Image>> find_own_image(std::string_view name) const;
  /// Errors: as find_image(), and not_found.
  Result<Image> get_image(std::string_view name) const;

  /// Every image, newest first. An additional store contributes the names that no store before it
  /// has. Damaged images are skipped; `damaged` gets a sentence about each.
  Result<std::vector<Image>> list(std::vector<std::string>* damaged = nullptr) const;

  /// The bytes of a blob that is not a layer (index, manifest, config); checks only the limits of
  /// its length. Errors: not_found, corrupt (over 4 MiB).
  Result<std::string> read_document(const Digest& digest) const;
  Result<bool> has_blob(const Digest& digest) const;
  /// Repositories that had the blob, the first known first; ignore the tags. Only a hint: a
  /// repository may have lost the blob.
  std::vector<Reference> origins(const Digest& digest) const;
  Result<bool> has_layer(const Digest& diff_id) const;
  /// Whether the layer exists and `blob` is known to contain it. A config and a manifest that claim
  /// so are no proof, as their author may lie.
  Result<bool> has_layer_of(const Digest& diff_id, const Digest& blob) const;

  /// Gives `image` one more name in this store, taking the name from the image that had it. The
  /// image may be in any store.
  Result<void> tag(const Image& image, const Reference& reference);

  /// Removes a name from its image, or, by id, all names, and deletes the objects that are not
  /// needed any more.
  /// Errors: not_found; busy (a container uses it, or an id has several names, without force);
  /// denied (an additional store has it).
  Result<Removal> remove(std::string_view name, RemoveOptions options);

  /// Records that the container needs the layers of `images`: writes a line for each to the file
  /// "image" in containers/`container_id`. The use ends when that directory is removed.
  /// Errors: not_found (an image has just been removed: look it up again).
  Result<void> mark_used(const std::string& container_id, const std::vector<Image>& images) const;

  /// Records that the image is used now: the time of its manifest's file. Takes no lock. Does
  /// nothing if the store is not writable.
  void note_used(const Digest& manifest) const;

  /// Removes unneeded objects in any case, and images that no container uses, the least recently
  /// used first, until layers and blobs take at most `most_bytes`. With Act::no it only reports.
  /// `kept`: manifests of images to keep in any case.
  /// Errors: corrupt (the needed objects are unknown because of damage), io.
  Result<Shrunk> shrink(uint64_t most_bytes, Act act, const std::set<Digest>& kept = {});

  /// All objects and the needed ones, listed under one lock.  Errors: io.
  Result<Survey> survey() const;

  /// Removes the damaged object `path` (as in Survey) from the store; with a manifest, config or
  /// index also the records that need it. Does so only if `path` is still the file of `seen`. If a
  /// container needs the object, leaves it in place and returns the id of the container; else
  /// returns an empty string.  Errors: io.
  Result<std::string> discard(const std::string& path, const struct stat& seen);

  /// Removes a record with missing blobs, if they are still missing.  Errors: io.
  Result<bool> forget(const ImageRecord& record);

  /// Deletes blobs and layers that no record, container or delivery needs, and the entries that
  /// dead processes left in tmp/. Returns the number of objects deleted.
  Result<uint64_t> collect();

  /// While a shared lock is held, no other process removes objects or changes records; while an
  /// exclusive lock is held, none begins to use objects either. Hold it only briefly.  Errors: busy
  /// (another machine holds it for too long), io.
  Result<StoreLock> lock(sys::LockMode mode) const;

 private:
  friend class Delivery;
  Store() = default;

  /// The stores to search.
  enum class Scope { own, all };

  Result<Image> load_image(const ImageRecord& record,
                           const std::vector<ImageRecord>& records) const;
  Result<Layer> find_layer(const Digest& diff_id) const;
  Result<std::vector<ImageRecord>> read_all_records(Scope scope,
                                                    std::vector<std::string>& damaged) const;
  Result<std::optional<ImageRecord>> record_of(const Reference& reference, Scope scope) const;
  Result<std::vector<ImageRecord>> match(std::string_view name,
                                         const std::vector<ImageRecord>& records,
                                         Scope scope) const;
  Result<std::optional<Image>> look_up(std::string_view name, Scope scope) const;
  Result<bool> owns_blob(const Digest& digest) const;
  Result<void> copy_documents(const Image& image) const;
  Result<void> copy_origins(const Image& image) const;
  Result<void> wait_for_other_machines() const;

  std::string root_;
  LayerFlavor flavor_;
  Locks locks_{};
  sys::Fd dir_;
  std::vector<AdditionalStore> additional_;
};

/// A file or directory in tmp/ that belongs to this process: its flock keeps sweepers away, and the
/// destructor removes it unless it was published.
class Staged {
 public:
  Staged() = default;
  Staged(Staged&& other) noexcept;
  Staged& operator=(Staged&& other) noexcept;
  ~Staged();

  const sys::Fd& fd() const { return fd_; }          ///< open for reading and writing
  const std::string& path() const { return path_; }  ///< absolute

 private:
  friend class Delivery;
  friend class Store;
  sys::Fd fd_;
  std::string path_;
};

/// The right to produce one layer; other processes wait, and continue when this process publishes
/// the layer or dies (the kernel releases the lock).
class Claim {
 public:
  Claim() = default;
  Claim(Claim&& other) noexcept;
  Claim& operator=(Claim&& other) noexcept;
  ~Claim();

 private:
  friend class Delivery;
  std::string mark() const;

  sys::Fd fd_;
  std::string path_;
  std::shared_ptr<Lease> lease_;  ///< as in StoreLock
};

/// A writer's session: objects that the delivery needed or published are kept until it ends,
/// although no record names them yet. Each pull, load or import has one; several threads may use
/// it.
class Delivery {
 public:
  /// Also removes the entries that dead writers left.
  static Result<Delivery> begin(const Store& store);
  Delivery(Delivery&&) noexcept = default;
  Delivery& operator=(Delivery&&) noexcept = default;

  /// Whether the blob (or the layer) exists. If so, it is kept until this delivery ends.
  Result<bool> keep_blob(const Digest& digest);
  Result<bool> keep_layer(const Digest& diff_id);
  /// As Store::has_layer_of().
  Result<bool> keep_layer_of(const Digest& diff_id, const Digest& blob);

  /// Waits until no other process produces the layer, then claims it. Call keep_layer() again
  /// afterwards: the other process may have published the layer. A thread must not claim the same
  /// layer twice. Calls `give_up` while waiting. Errors: interrupted (`give_up` returned true), io.
  Result<Claim> claim_layer(const Digest& diff_id, const std::function<bool()>& give_up = {});

  /// The same for changes to existing layers: only one process makes them at a time.
  Result<Claim> claim_upkeep(const std::function<bool()>& give_up = {});

  /// The name of this delivery's pins file in tmp/.
  std::string name() const;

  Result<Staged> stage_file();
  /// Makes a directory in tmp/. For LayerFormat::directory it contains an empty directory "fs"
  /// (0755).
  Result<Staged> stage_layer(LayerFormat format = LayerFormat::directory);

  /// The caller has checked that the bytes have this digest. An existing blob is not an error.
  Result<void> publish_blob(Staged file, const Digest& digest);
  /// The same for the file `name` in a staged directory.
  Result<void> publish_blob_from(const Staged& directory, const std::string& name,
                                 const Digest& digest);
  /// Records that the repository has the blob.
  Result<void> note_origin(const Digest& blob, const Reference& repository);
  /// Publishes a small document as a blob, with the digest that the caller has computed.
  Result<void> put_document(const Digest& digest, std::string_view bytes);
  Result<void> publish_layer(Staged directory, const LayerRecord& record);

  /// Writes the record, as the last step. If another image has the name, takes it from that image.
  /// Errors: bug (its index, manifest or config is not in the store), busy (another machine has
  /// declared this delivery dead), io.
  Result<void> publish_image(const ImageRecord& record);
  /// Copies the record and documents of an additional store's image into this store; its layers
  /// stay there. An image of this store is left unchanged.
  Result<void> adopt(const Image& image);

 private:
  Delivery() = default;
  Result<void> keep(const std::string& key);
  Result<Claim> claim(const std::string& key, const std::function<bool()>& give_up);
  std::string stage_prefix() const;
  Result<void> check_not_lost() const;

  const Store* store_ = nullptr;
  std::shared_ptr<Lease> lease_;  ///< as in StoreLock
  Staged pins_;                   ///< one line per kept object, each appended in one write
};

}  // namespace berth::image
