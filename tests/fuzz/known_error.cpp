// SPDX-License-Identifier: Apache-2.0
// Logs of any bytes: no crash, no end, each known error once, causes first, and words that stay one
// line. What is kept of a stream does not depend on its pieces.
#include <algorithm>
#include <cstdint>
#include <set>

#include "base/assert.hpp"
#include "known_error/end.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace berth::known_error;
  std::string_view bytes(reinterpret_cast<const char*>(data), size);
  std::vector<Found> all = find(bytes);
  std::set<std::string_view> ids;
  Level last = Level::cause;
  for (const Found& found : all) {
    BERTH_ASSERT(ids.insert(found.id).second);
    BERTH_ASSERT(found.level >= last);
    last = found.level;
    BERTH_ASSERT(found.text.size() <= 300);
    std::string line = to_line(found);
    BERTH_ASSERT(std::none_of(line.begin(), line.end(),
                              [](char c) { return static_cast<unsigned char>(c) < 0x20; }));
  }
  int status = size > 0 ? data[0] : 0;
  auto reason = reason_of({.status = status}, bytes, {});
  BERTH_ASSERT(!reason || is_own_failure({.status = status}));

  Tail whole, pieces;
  whole.add(bytes);
  for (size_t at = 0; at < size; at += 7) pieces.add(bytes.substr(at, 7));
  BERTH_ASSERT(whole.text() == pieces.text());
  return 0;
}
