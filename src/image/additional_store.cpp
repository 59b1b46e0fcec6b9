// SPDX-License-Identifier: Apache-2.0
#include "image/additional_store.hpp"

#include <fcntl.h>

#include <cerrno>

#include "base/text.hpp"
#include "image/layout.hpp"
#include "sys/file/file.hpp"
#include "sys/mount/layer.hpp"
#include "sys/user/identity.hpp"
#include "sys/user/trusted_file.hpp"

namespace berth::image {
namespace {

constexpr int kDirectory = O_RDONLY | O_DIRECTORY | O_NOFOLLOW;
/// The directories that we read.
constexpr const char* kRead[] = {"blobs/sha256", "images", "layers"};
constexpr int kFile = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;

/// Whether the caller can use `found`. The files of an unpacked directory have owners that fit only
/// the user who unpacked it, so only that user can use it (`own`: the name of the layer's directory
/// is that for the caller's LayerFlavor). An EROFS image records the original owners, so every user
/// who can mount it can use it.
bool suits(const LayerRecord& found, const struct stat& directory, bool own) {
  if (found.flavor.format == LayerFormat::directory) {
    return own && directory.st_uid == sys::effective_uid();
  }
  return sys::check_erofs().ok();
}

/// The record of the layer in layers/`name`, if it is usable.
Result<std::optional<LayerRecord>> read_usable(const sys::Fd& root, const std::string& name,
                                               bool own) {
  const std::string path = "layers/" + name;
  auto directory = TRY(sys::open_if_exists(root, path, kDirectory));
  if (!directory) return std::optional<LayerRecord>();
  TRY(sys::check_trusted(*directory, path));
  LayerRecord record = TRY(read_layer_record_at(*directory, path));
  struct stat seen = TRY(sys::stat_fd(*directory, path));
  bool one_file = record.flavor.format == LayerFormat::erofs;
  auto tree = TRY(sys::open_if_exists(*directory, tree_name(record.flavor.format),
                                      one_file ? kFile : kDirectory));
  if (!tree || !suits(record, seen, own)) return std::optional<LayerRecord>();
  return std::optional<LayerRecord>(std::move(record));
}

}  // namespace

Result<void> AdditionalStore::check_owner(const std::string& root) {
  auto dir = TRY(sys::open_trusted_directory_if_exists(root));
  if (!dir) return make_error(Kind::not_found, "it is not there");
  for (const char* path : kRead) {
    auto directory = TRY(sys::open_if_exists(*dir, path, kDirectory));
    if (!directory) return make_error(Kind::not_found, "it is not a store");
    TRY(sys::check_trusted(*directory, root + "/" + path));
  }
  return {};
}

Result<AdditionalStore> AdditionalStore::open(const std::string& root) {
  AdditionalStore store;
  store.root_ = root;
  auto dir = TRY(sys::open_if_exists(sys::cwd(), root, O_RDONLY | O_DIRECTORY));
  if (!dir) return make_error(Kind::not_found, "it is not there");
  store.dir_ = std::move(*dir);
  auto version = TRY(sys::read_file_if_exists(store.dir_, "version", 64));
  if (!version) return make_error(Kind::not_found, "it is not a store");
  if (trim(*version) != kStoreVersion) {
    return make_error(Kind::unsupported,
                      "it has version " + quote(trim(*version)) + ", this program knows version 1");
  }
  for (const char* path : kRead) TRY(sys::open_at(store.dir_, path, kDirectory));
  return store;
}

bool AdditionalStore::has_file(const std::string& path) const {
  auto file = sys::open_if_exists(dir_, path, kFile);
  return file.ok() && file->has_value();
}

std::optional<AdditionalLayer> AdditionalStore::find_layer(const Digest& diff_id,
                                                           const LayerFlavor& mine) const {
  bool own = true;
  for (const std::string& name : layer_names(diff_id, mine)) {
    // A layer that cannot be read, for any reason, is unpacked in our own store instead.
    auto record = read_usable(dir_, name, own);
    own = false;
    if (!record.ok() || !*record) continue;
    std::string place = root_ + "/layers/" + name + "/" + tree_name((*record)->flavor.format);
    return AdditionalLayer{**record, std::move(place)};
  }
  return std::nullopt;
}

bool has_gone(const Error& error) {
  return error.kind == Kind::not_found || error.sys_errno == ESTALE;
}

}  // namespace berth::image
