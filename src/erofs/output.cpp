// SPDX-License-Identifier: Apache-2.0
#include "erofs/output.hpp"

#include "base/assert.hpp"
#include "erofs/bytes.hpp"
#include "erofs/format.hpp"
#include "sys/file/file.hpp"

namespace berth::erofs {
namespace {

constexpr const char* kOutputName = "image";

}  // namespace

size_t RecordBlocks::best(size_t size) const {
  size_t found = used_.size();
  for (size_t i = 0; i < used_.size(); ++i) {
    if (used_[i] + size > kBlock) continue;
    if (found == used_.size() || used_[i] > used_[found]) found = i;
  }
  return found;
}

bool RecordBlocks::fits(size_t size) const {
  return best(size) < used_.size();
}

uint64_t RecordBlocks::put(std::string_view record) {
  size_t block = best(record.size());
  BERTH_ASSERT(block < used_.size());
  uint64_t at = block * kBlock + used_[block];
  bytes_.replace(at, record.size(), record);
  used_[block] = static_cast<uint32_t>(round_up(used_[block] + record.size(), kSlot));
  return start_ + at;
}

bool RecordBlocks::holds(uint64_t address) const {
  return address >= start_ && address < start_ + bytes_.size();
}

std::string RecordBlocks::read(uint64_t address, size_t length) const {
  return bytes_.substr(address - start_, length);
}

void RecordBlocks::replace(uint64_t address, std::string_view bytes) {
  bytes_.replace(address - start_, bytes.size(), bytes);
}

void RecordBlocks::begin(uint64_t address, size_t count) {
  start_ = address;
  used_.assign(count, 0);
  bytes_.assign(count * kBlock, '\0');
}

Result<void> RecordBlocks::flush() {
  if (bytes_.empty()) return {};
  TRY(sys::write_at(*file_, start_, bytes_, kOutputName));
  bytes_.clear();
  used_.clear();
  return {};
}

}  // namespace berth::erofs
