// SPDX-License-Identifier: Apache-2.0
// The record of a layer's files, compared with an empty tree and with an image of a few bytes.
#include "transfer/layer/tree_record.hpp"

#include <fcntl.h>

#include <string>

#include "base/assert.hpp"
#include "sys/file/file.hpp"
#include "sys/file/remove_tree.hpp"

using namespace berth;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static sys::TempDir directory =
      *sys::TempDir::make(*sys::open_at(sys::cwd(), "/tmp", O_RDONLY | O_DIRECTORY), "berth-fuzz-");
  static sys::Fd image = *sys::memory_file("image", std::string(100, 'x'));
  std::string_view text(reinterpret_cast<const char*>(data), size);
  sys::Fd record = *sys::memory_file("record", text);
  auto tree = transfer::compare_tree(directory.fd(), record, transfer::Depth::all, {});
  if (tree.ok()) BERTH_ASSERT(tree->count >= tree->texts.size());
  auto extents = transfer::compare_extents(image, record, {});
  if (extents.ok()) BERTH_ASSERT(extents->count >= extents->texts.size());
  return 0;
}
