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
/// everything is published by rename, so a reader never sees half of anything, and a process that
/// is killed at any moment leaves at most an entry in tmp/ that the next writer sweeps.
///
/// Durability is that of a cache: nothing is fsynced. After a power cut (not a kill) an image may
/// have to be removed and pulled again.
namespace berth::image {

class Lease;
enum class Locks;

struct RemoveOptions {
  bool force = false;  ///< although containers use it or several names have it
};

struct Removal {
  std::vector<Reference> untagged;
  std::vector<Digest> deleted;  ///< what is gone: the image id, then diff ids of layers
  std::optional<Error> kept;  ///< why nothing was deleted: something that is needed may be damaged
};

/// An image that shrink() has removed, or would remove.
struct ShrunkImage {
  Digest id;
  std::vector<Reference> references;
  int64_t used_at = 0;  ///< seconds since 1970
  uint64_t bytes = 0;   ///< that went with it: of what no image that stays has
};
struct Shrunk {
  std::vector<ShrunkImage> images;  ///< least recently used first
  std::vector<Digest> layers;       ///< diff ids of those that are gone
  uint64_t before = 0;              ///< bytes of layers and blobs
  uint64_t after = 0;
};
enum class Act { no, yes };

/// Everything in the store by its path below the root.
struct Survey {
  std::vector<ImageRecord> records;
  std::vector<std::string> damaged_records;
  std::vector<std::string> blobs;   ///< also what only looks as if it were one
  std::vector<std::string> layers;  ///< the same
  std::vector<std::string> origins;
  std::vector<std::string> leftovers;                 ///< of killed processes, in tmp/ and images/
  std::vector<std::pair<std::string, Digest>> users;  ///< containers and their manifests
  /// What no record, container or delivery needs; nothing where damage lets nobody tell.
  std::vector<std::string> unneeded;
};

class Store {
 public:
  /// Opens the store at the absolute path `root`, making it (0700) when it is not there. Behind it
  /// lie the `additional` ones, read-only: what is asked for is looked for there, too, in this
  /// order, and what is written, removed, counted or checked is of this one alone. One of them that
  /// cannot be used counts as empty (AdditionalStore::open() says why).
  /// Errors: denied, unsupported (a store of a later version), io.
  static Result<Store> open(const std::string& root, LayerFlavor flavor,
                            const std::vector<std::string>& additional = {});

  const std::string& root() const { return root_; }
  LayerFlavor flavor() const { return flavor_; }
  /// Where the blob lies; where it will lie, when it is nowhere.
  std::string blob_path(const Digest& digest) const;
  /// In this store: …/fs, or …/fs.erofs
  std::string layer_directory(const Digest& diff_id, LayerFormat format) const;

  /// The image that `name` means: a reference, or at least a unique start of an image id (hex, with
  /// or without "sha256:"). A reference wins over an id.
  /// Errors: usage (no name at all; an id with several meanings), corrupt (a damaged record).
  Result<std::optional<Image>> find_image(std::string_view name) const;
  /// The same for a reference that is spelled out, without a look at any other image: what a start
  /// costs does not depend on how many there are. `references` is this one alone.
  Result<std::optional<Image>> find_image_named(std::string_view name) const;
  /// As find_image(), in this store alone.
  Result<std::optional<Image>> find_own_image(std::string_view name) const;
  /// Errors: as find_image(), and not_found.
  Result<Image> get_image(std::string_view name) const;

  /// Every image, newest first. Of an additional store those names that no store before it has.
  /// What is damaged is passed over and told in `damaged`, a sentence each.
  Result<std::vector<Image>> list(std::vector<std::string>* damaged = nullptr) const;

  /// The bytes of a blob that is no layer (index, manifest, config), checked against its digest's
  /// length limits only. Errors: not_found, corrupt (over 4 MiB).
  Result<std::string> read_document(const Digest& digest) const;
  Result<bool> has_blob(const Digest& digest) const;
  /// Repositories that had the blob, the latest first; the tags mean nothing. A hint: it may be
  /// gone from there.
  std::vector<Reference> origins(const Digest& digest) const;
  Result<bool> has_layer(const Digest& diff_id) const;
  /// Whether the layer is there and `blob` is known to hold it: that a config and a manifest say so
  /// proves nothing, their author may have lied.
  Result<bool> has_layer_of(const Digest& diff_id, const Digest& blob) const;

  /// Gives `image` one more name, taking the name from whatever had it. The name is this store's,
  /// whichever has the image.
  Result<void> tag(const Image& image, const Reference& reference);

  /// Takes a name from its image, or, by id, all names, and deletes what nothing needs any more.
  /// Errors: not_found; busy (a container uses it, or an id has several names, without force);
  /// denied (an additional store has it).
  Result<Removal> remove(std::string_view name, RemoveOptions options);

  /// Says that the container's directory containers/`container_id` needs the layers of `images`,
  /// in a file "image" in it, a line for each; the use ends with the directory.
  /// Errors: not_found (one was removed in this moment: look it up again).
  Result<void> mark_used(const std::string& container_id, const std::vector<Image>& images) const;

  /// Notes that the image is used now. One system call and no lock; where the store cannot be
  /// written nothing is noted.
  void note_used(const Digest& manifest) const;

  /// Removes images that no container uses, the least recently used first, until layers and blobs
  /// take at most `most_bytes`, and what nothing needs in any case. With Act::no it only tells.
  /// `kept`: manifests of images that stay, whoever uses them.
  /// Errors: corrupt (damaged: nobody knows what is needed), io.
  Result<Shrunk> shrink(uint64_t most_bytes, Act act, const std::set<Digest>& kept = {});

  /// What there is and what is needed, at one moment.  Errors: io.
  Result<Survey> survey() const;

  /// Takes a damaged object, `path` as Survey has it, out of the store, and with a manifest, config
  /// or index the records that need it. Only if it is still the one that `seen` tells. Gives the
  /// container that needs it, which keeps it where it is; empty: it is gone.  Errors: io.
  Result<std::string> discard(const std::string& path, const struct stat& seen);

  /// Removes a record whose blobs are missing, if it is still so.  Errors: io.
  Result<bool> forget(const ImageRecord& record);

  /// Deletes blobs and layers that no record, container or delivery needs, and what dead processes
  /// left in tmp/. Returns the number of objects deleted.
  Result<uint64_t> collect();

  /// Nobody else changes what is there, or with an exclusive one looks at it, until the end of the
  /// lock. For moments.  Errors: busy (another machine has it for too long), io.
  Result<StoreLock> lock(sys::LockMode mode) const;

 private:
  friend class Delivery;
  Store() = default;

  /// Which stores are looked at.
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

/// A file or directory in tmp/ that belongs to this process: it holds a flock on it, so nobody
/// sweeps it, and removes it unless it was published.
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

/// The right to produce one layer; whoever else wants it waits, and goes on when this
/// process publishes or dies (the kernel holds the lock).
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
  std::shared_ptr<Lease> lease_;  ///< as of StoreLock
};

/// A writer's stay in the store: what it has needed or published stays until it ends, although no
/// record names it yet. One per pull, load or import; may be used from several threads.
class Delivery {
 public:
  /// Also sweeps what dead writers left.
  static Result<Delivery> begin(const Store& store);
  Delivery(Delivery&&) noexcept = default;
  Delivery& operator=(Delivery&&) noexcept = default;

  /// Whether the blob (the layer) is there; if so it stays until this delivery ends.
  Result<bool> keep_blob(const Digest& digest);
  Result<bool> keep_layer(const Digest& diff_id);
  /// As Store::has_layer_of().
  Result<bool> keep_layer_of(const Digest& diff_id, const Digest& blob);

  /// Waits until nobody else produces the layer, then claims it. Ask keep_layer() again afterwards:
  /// the other may have published it. A thread must not claim the same thing twice.
  /// `give_up` is asked while waiting. Errors: interrupted (it said so), io.
  Result<Claim> claim_layer(const Digest& diff_id, const std::function<bool()>& give_up = {});

  /// The same for changes to layers that are there: one process makes them at a time.
  Result<Claim> claim_upkeep(const std::function<bool()>& give_up = {});

  /// Of what says in tmp/ what this one needs.
  std::string name() const;

  Result<Staged> stage_file();
  /// A directory, for the format `directory` with an empty directory "fs" (0755) in it.
  Result<Staged> stage_layer(LayerFormat format = LayerFormat::directory);

  /// The caller has checked that the bytes have this digest. Already there is not an error.
  Result<void> publish_blob(Staged file, const Digest& digest);
  /// The same for the file `name` in a staged directory.
  Result<void> publish_blob_from(const Staged& directory, const std::string& name,
                                 const Digest& digest);
  /// Remembers that the repository has the blob.
  Result<void> note_origin(const Digest& blob, const Reference& repository);
  /// A small document whose digest the caller computed.
  Result<void> put_document(const Digest& digest, std::string_view bytes);
  Result<void> publish_layer(Staged directory, const LayerRecord& record);

  /// Writes the record, last of all; its name moves from whatever had it.
  /// Errors: bug (a blob or layer that it needs is not in the store).
  Result<void> publish_image(const ImageRecord& record);
  /// Makes an image of an additional store one of this store, with its documents; its layers stay
  /// where they are. An image of this store is left as it is.
  Result<void> adopt(const Image& image);

 private:
  Delivery() = default;
  Result<void> keep(const std::string& key);
  Result<Claim> claim(const std::string& key, const std::function<bool()>& give_up);
  std::string stage_prefix() const;
  Result<void> check_not_lost() const;

  const Store* store_ = nullptr;
  std::shared_ptr<Lease> lease_;  ///< as of StoreLock
  Staged pins_;                   ///< one line per object kept, appended in one write each
};

}  // namespace berth::image
