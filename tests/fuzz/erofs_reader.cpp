// SPDX-License-Identifier: Apache-2.0
// An EROFS image of anybody, looked through as far as a reader gets. The first byte says whether
// its superblock is made good before, so that what lies behind it is looked at, too.
#include <algorithm>
#include <cstring>
#include <string>

#include "base/assert.hpp"
#include "erofs/format.hpp"
#include "erofs/reader.hpp"
#include "support/erofs_walk.hpp"
#include "sys/file/file.hpp"

namespace {

using namespace berth;

/// Whole blocks, with a superblock that says so.
void make_good(std::string& image) {
  image.resize(std::max<size_t>(erofs::round_up(image.size(), erofs::kBlock), erofs::kBlock));
  erofs::Superblock superblock;
  char* at = image.data() + erofs::kSuperblockAt;
  std::memcpy(&superblock, at, sizeof superblock);
  superblock.magic = erofs::kMagic;
  superblock.compatible = erofs::kCompatMtime;
  superblock.block_bits = erofs::kBlockBits;
  superblock.blocks = static_cast<uint32_t>(image.size() / erofs::kBlock);
  superblock.incompatible = 0;
  std::memcpy(at, &superblock, sizeof superblock);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  std::string bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] & 1) make_good(bytes);
  sys::Fd image = *sys::memory_file("image", bytes);
  auto reader = erofs::Reader::open(image);
  if (!reader.ok()) return 0;
  erofs::Walk walk(*reader, {200, 40, 1 << 20});
  auto tree = walk.all();
  if (!tree.ok()) return 0;
  // What was read lies in the image: no file is larger.
  for (const auto& [path, looks] : *tree) BERTH_ASSERT(looks.content.size() <= bytes.size());
  return 0;
}
