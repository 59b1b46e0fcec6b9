// SPDX-License-Identifier: Apache-2.0
// Logs of both formats: no crash, however the bytes are cut; and what is decoded does not depend on
// where they were.
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "base/assert.hpp"
#include "logs/reader.hpp"

namespace {

std::vector<std::string> decode(std::string_view bytes, size_t step) {
  berth::logs::Decoder decoder;
  decoder.begin_file(bytes.substr(0, berth::logs::kFileHeader));
  std::vector<std::string> texts;
  size_t taken = 0;
  for (size_t end = 0; end < bytes.size();) {
    end = std::min(bytes.size(), end + step);
    taken += decoder.feed(bytes.substr(taken, end - taken));
    BERTH_ASSERT(taken <= end);
    while (auto entry = decoder.take()) texts.push_back(std::move(entry->text));
  }
  decoder.finish();
  while (auto entry = decoder.take()) texts.push_back(std::move(entry->text));
  return texts;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view bytes(reinterpret_cast<const char*>(data), size);
  auto whole = decode(bytes, size + 1);
  BERTH_ASSERT(decode(bytes, 7) == whole);
  // Frames whose check sum holds, which no fuzzer finds.
  std::string framed;
  berth::logs::LocalKey key{7};
  auto header = berth::logs::write_file_header(key);
  framed.append(header.data(), header.size());
  for (size_t at = 0; at < size;) {
    size_t length = std::min<size_t>(data[at] + 1U, size - at);
    berth::logs::Frame frame{data[at] & 1 ? berth::logs::Stream::error : berth::logs::Stream::out,
                             false, static_cast<uint32_t>(length), 0};
    auto head = berth::logs::write_frame_header(frame, key);
    framed.append(head.data(), data[at] == 255 ? size_t{9} : head.size());
    framed.append(bytes.substr(at, length));
    at += length;
  }
  BERTH_ASSERT(decode(framed, 11) == decode(framed, framed.size()));
  return 0;
}
