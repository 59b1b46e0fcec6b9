// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/digest.hpp"
#include "base/result.hpp"
#include "image/reference.hpp"
#include "image/transfer_protocol.hpp"
#include "oci/image_spec.hpp"
#include "sys/fd/fd.hpp"

/// Images and their layers in the store.
namespace berth::image {

/// One layer of an image in the store.
struct Layer {
  Digest diff_id;          ///< of the uncompressed tar
  oci::Descriptor blob;    ///< the compressed layer, as the manifest names it
  std::string directory;   ///< absolute; as sys::open_layer() takes it
  bool unpacked = false;   ///< whether `directory` exists
  bool read_only = false;  ///< the layer is in an additional store, which must not be written
  uint64_t bytes = 0;      ///< size of the layer's regular files; 0 if not unpacked
  uint64_t entries = 0;
};

/// A name and the image it refers to: one file in images/.
struct ImageRecord {
  std::optional<Reference> reference;  ///< none: an image without a name, kept by its id
  Digest target;                       ///< index or manifest that the registry has under the name
  Digest manifest;
  Digest config;           ///< the image id
  std::string created_at;  ///< RFC 3339, when this record was written
  /// The references under which it was pulled, whatever its name is now; empty: it was made, loaded
  /// or imported here.
  std::vector<Reference> sources;
  std::string store;  ///< root of the additional store that has it; empty: the own store
};

/// Everything known about an image. Two names of the same manifest are one image.
struct Image {
  Digest id;  ///< of the config
  Digest manifest_digest;
  Digest target;                      ///< of the requested record, else of the first record
  std::vector<Reference> references;  ///< sorted; empty for an image without a name
  std::vector<Reference> sources;     ///< of its records
  oci::Manifest manifest;
  oci::ImageConfig config;
  std::vector<Layer> layers;  ///< lowest first
  uint64_t size = 0;          ///< bytes of all unpacked layers
  std::string pulled_at;      ///< RFC 3339
  std::string store;          ///< as in ImageRecord

  bool unpacked() const;                               ///< every layer exists
  std::vector<std::string> layer_directories() const;  ///< lowest first
};

/// "2026-09-01T12:00:00Z", the format of records and configs.
std::string timestamp_now();

/// The content of the file layer.json next to a layer's tree.
struct LayerRecord {
  Digest diff_id;
  LayerFlavor flavor;
  uint64_t entries = 0;
  uint64_t bytes = 0;
  /// The compressed layers from which this store has unpacked exactly these contents.
  std::vector<Digest> blobs = {};
};

/// Reads layer.json in the layer's directory; `name` is for errors.
/// Errors: not_found, corrupt, io.
Result<LayerRecord> read_layer_record_at(const sys::Fd& layer, const std::string& name);

}  // namespace berth::image
