// SPDX-License-Identifier: Apache-2.0
// The tar reader: the first byte says in what pieces the stream arrives.
#include "transfer/tar/tar.hpp"

#include <algorithm>

#include "transfer/tar/entry.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace berth;
  if (size == 0) return 0;
  size_t piece = size_t{1} << (data[0] % 16);
  std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  transfer::TarReader tar([&]() -> Result<std::string_view> {
    std::string_view part = rest.substr(0, std::min(piece, rest.size()));
    rest.remove_prefix(part.size());
    return part;
  });
  transfer::TarEntry entry;
  while (true) {
    auto more = tar.next(entry);
    if (!more.ok() || !*more) return 0;
    uint64_t seen = 0;
    while (true) {
      seen += tar.skip_hole();  // which may be exabytes
      auto part = tar.content();
      if (!part.ok()) return 0;
      if (part->empty()) break;
      seen += part->size();
    }
    BERTH_ASSERT(seen == entry.size);
    BERTH_ASSERT(entry.mode <= 07777 && entry.mtime_nanoseconds < 1'000'000'000);
  }
}
