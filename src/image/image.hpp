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

/// Images and their layers, as the store knows them.
namespace berth::image {

/// Layers whose files have other owners or other overlay marks are other directories, so a user who
/// gains subordinate ids never mounts the wrong one. An EROFS layer is the same file for everybody.
struct LayerFlavor {
  Ownership ownership = Ownership::full;
  OverlayXattr overlay_xattr = OverlayXattr::trusted;
  /// Of layers that are made from now on; those that are there are used as they are.
  LayerFormat format = LayerFormat::directory;
};

/// One layer of an image as it lies in the store.
struct Layer {
  Digest diff_id;          ///< of the unpacked tar
  oci::Descriptor blob;    ///< the compressed one, as the manifest names it
  std::string directory;   ///< absolute; as sys::open_layer() takes it
  bool unpacked = false;   ///< whether `directory` is there
  bool read_only = false;  ///< it lies in an additional store, where nothing may be written
  uint64_t bytes = 0;      ///< of its regular files; 0 when not unpacked
  uint64_t entries = 0;
};

/// A name and what it stands for: one file in images/.
struct ImageRecord {
  std::optional<Reference> reference;  ///< none: an image without a name, kept by its id
  Digest target;                       ///< what the registry named: index or manifest
  Digest manifest;
  Digest config;           ///< the image id
  std::string created_at;  ///< RFC 3339, when this record was written
  /// As what its bytes were pulled, whatever they are called now; empty: they were made, loaded or
  /// imported here.
  std::vector<Reference> sources;
  std::string store;  ///< root of the additional store that has it; empty: the own one
};

/// All that is known of an image. Two names of the same manifest are one image.
struct Image {
  Digest id;  ///< of the config
  Digest manifest_digest;
  Digest target;                      ///< of the record that was asked for, else of the first
  std::vector<Reference> references;  ///< sorted; empty for an image without a name
  std::vector<Reference> sources;     ///< of its records
  oci::Manifest manifest;
  oci::ImageConfig config;
  std::vector<Layer> layers;  ///< lowest first
  uint64_t size = 0;          ///< bytes of all unpacked layers
  std::string pulled_at;      ///< RFC 3339
  std::string store;          ///< as of its record

  bool unpacked() const;                               ///< every layer is there
  std::vector<std::string> layer_directories() const;  ///< lowest first
};

/// "2026-09-01T12:00:00Z", as records and configs have it.
std::string timestamp_now();

/// What the file layer.json beside a layer's tree says.
struct LayerRecord {
  Digest diff_id;
  LayerFlavor flavor;
  uint64_t entries = 0;
  uint64_t bytes = 0;
  /// The packed layers that were unpacked, here, to these contents.
  std::vector<Digest> blobs = {};
};

/// What layer.json in the layer's directory says; `name` is for errors.
/// Errors: not_found, corrupt, io.
Result<LayerRecord> read_layer_record_at(const sys::Fd& layer, const std::string& name);

}  // namespace berth::image
