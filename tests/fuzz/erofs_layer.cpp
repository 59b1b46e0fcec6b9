// SPDX-License-Identifier: Apache-2.0
// A layer's tar into an EROFS image, which is looked through. The first byte says whose layer it
// is, and in what pieces the stream arrives.
#include <algorithm>
#include <string>

#include "support/erofs_reader.hpp"
#include "support/tar_checksums.hpp"
#include "sys/file/file.hpp"
#include "transfer/layer/erofs.hpp"
#include "transfer/layer/unpack_options.hpp"
#include "transfer/tar/entry.hpp"
#include "transfer/tar/tar.hpp"

namespace {

using namespace berth;

Result<void> unpack(std::string_view bytes, size_t piece, transfer::ErofsLayer& layer) {
  transfer::TarReader tar([&]() -> Result<std::string_view> {
    std::string_view part = bytes.substr(0, std::min(piece, bytes.size()));
    bytes.remove_prefix(part.size());
    return part;
  });
  transfer::TarEntry entry;
  while (TRY(tar.next(entry))) TRY(layer.add(entry, tar));
  return layer.finish();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  transfer::UnpackOptions options;
  if (data[0] & 0x80) {
    options.ownership = image::Ownership::single;
    options.overlay_xattr = image::OverlayXattr::user;
  }
  if (data[0] & 0x40) options.limits.path_depth = 5;
  facts::LayerScan scan;
  options.scan = &scan;
  sys::Fd image = *sys::memory_file("image", "");
  transfer::ErofsLayer layer(image, {}, options);
  std::string bytes = with_checksums({reinterpret_cast<const char*>(data) + 1, size - 1});
  if (!unpack(bytes, size_t{1} << (data[0] % 16), layer).ok()) return 0;
  uint64_t length = static_cast<uint64_t>(sys::stat_fd(image, "image")->st_size);
  // What is wrong with an image ends the run.
  TreeLooks tree = ErofsReader::read(*sys::read_at(image, 0, length, "image"));
  BERTH_ASSERT(S_ISDIR(tree.at("").mode));
  return 0;
}
