// SPDX-License-Identifier: Apache-2.0
#include "transfer/layer/unpack.hpp"

#include "transfer/layer/block_stream.hpp"
#include "transfer/layer/members_and_whiteouts.hpp"
#include "transfer/tar/entry.hpp"
#include "transfer/tar/tar.hpp"
#include "transfer/work/cancel.hpp"

namespace berth::transfer {

Result<UnpackedLayer> unpack_layer(std::unique_ptr<Inflater> bytes, MemberSink& sink,
                                   const UnpackOptions& options) {
  BlockStream blocks(std::move(bytes), options);
  TarReader tar([&] { return blocks.next(); });

  TarEntry entry;
  while (TRY(tar.next(entry))) {
    if (options.cancel != nullptr) TRY(options.cancel->check());
    TRY(sink.add(entry, tar));
  }
  TRY(sink.finish());

  UnpackedLayer layer;
  // Bytes after the end of the archive are part of the digest, too.
  layer.diff_id = TRY(blocks.finish());
  layer.entries = sink.entries();
  layer.bytes = sink.bytes();
  return layer;
}

}  // namespace berth::transfer
