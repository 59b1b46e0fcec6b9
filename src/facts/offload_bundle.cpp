// SPDX-License-Identifier: Apache-2.0
// Code for AMD's GPUs, as clang's offload bundler joins it.
#include <algorithm>

#include "facts/fat_binary.hpp"
#include "facts/unpack_prefix.hpp"
#include "facts/window.hpp"

namespace berth::facts {
namespace {

constexpr std::string_view kBundleMagic = "__CLANG_OFFLOAD_BUNDLE__";
constexpr std::string_view kPackedMagic = "CCOB";
constexpr uint64_t kAlignment = 4096;  // of bundles in their section
constexpr uint64_t kMaxBundleEntries = 1024;
constexpr size_t kMaxId = 256;
constexpr size_t kTable = 64 << 10;    // more than the tables of all targets that there are
constexpr size_t kPacked = 144 << 10;  // has the first block of a zstd frame
constexpr uint64_t kMaxPages = 1'000'000;

Error corrupt_bundle(std::string_view what) {
  return make_error(Kind::corrupt, "offload bundle: " + std::string(what));
}

/// "hipv4-amdgcn-amd-amdhsa--gfx90a:xnack+" → "gfx90a:xnack+"; empty for the host's entry.
std::string_view target_of(std::string_view id) {
  size_t at = id.find("-gfx");
  if (at == std::string_view::npos) return {};
  std::string_view target = id.substr(at + 1);
  bool plain = target.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789:+-") == target.npos;
  return plain ? target : std::string_view();
}

/// `table`: the first bytes of a bundle. Returns its length.
Result<uint64_t> read_bundle(std::string_view table, FoundCode& found) {
  uint64_t count = number_at(table, kBundleMagic.size(), 8);
  if (count > kMaxBundleEntries) return corrupt_bundle("too many entries");
  size_t at = kBundleMagic.size() + 8;
  uint64_t end = at;
  for (uint64_t i = 0; i < count; ++i) {
    uint64_t offset = number_at(table, at, 8), size = number_at(table, at + 8, 8);
    uint64_t id_size = number_at(table, at + 16, 8);
    if (id_size > kMaxId || at + 24 + id_size > table.size())
      return corrupt_bundle("id of an entry");
    if (size > UINT64_MAX / 2 || offset > UINT64_MAX / 2) return corrupt_bundle("size of an entry");
    std::string_view target = target_of(table.substr(at + 24, static_cast<size_t>(id_size)));
    if (!target.empty() && size != 0) {
      found.code.insert({GpuCode::Kind::gfx, std::string(target), ""});
    }
    end = std::max(end, offset + size);
    at += 24 + static_cast<size_t>(id_size);
  }
  ++found.members;
  return end;
}

/// Returns its length; 0 if its header, of the first version, lacks it.
Result<uint64_t> read_packed(std::string_view bytes, FoundCode& found) {
  uint64_t version = number_at(bytes, 4, 2), method = number_at(bytes, 6, 2);
  if (version < 1 || version > 3) return corrupt_bundle("version of a packed one");
  if (method != 1) {
    return make_error(Kind::unsupported, "offload bundle: packed with zlib, not with zstd");
  }
  uint64_t total = version == 1 ? 0 : number_at(bytes, 8, version == 2 ? 4 : 8);
  size_t header = version == 1 ? 20 : version == 2 ? 24 : 32;
  if (bytes.size() <= header) return corrupt_bundle("header of a packed one");
  std::string table = zstd_prefix(bytes.substr(header), kTable);
  if (!table.starts_with(kBundleMagic)) return corrupt_bundle("a packed one holds none");
  TRY(read_bundle(table, found));
  return total;
}

}  // namespace

Result<void> read_offload_bundles(const scan::ReadAt& read_at, uint64_t offset, uint64_t size,
                                  FoundCode& found) {
  if (size > UINT64_MAX - offset) return corrupt_bundle("section outside of the file");
  uint64_t pages_looked_at = 0;
  for (uint64_t at = 0; size - at > kBundleMagic.size();) {
    std::string magic = TRY(read_at(offset + at, kBundleMagic.size()));
    if (magic.size() < kBundleMagic.size()) return corrupt_bundle("section outside of the file");
    uint64_t length = 0;
    uint64_t room = size - at;
    if (magic == kBundleMagic) {
      std::string table = TRY(read_at(offset + at, std::min<uint64_t>(room, kTable)));
      length = TRY(read_bundle(table, found));
      if (length > room) return corrupt_bundle("it is longer than its section");
    } else if (magic.starts_with(kPackedMagic)) {
      std::string bytes = TRY(read_at(offset + at, std::min<uint64_t>(room, kPacked)));
      length = TRY(read_packed(bytes, found));
      if (length > room) return corrupt_bundle("it is longer than its section");
    }
    if (++pages_looked_at > kMaxPages) return corrupt_bundle("too many of them");
    uint64_t pages = std::max<uint64_t>((length + kAlignment - 1) / kAlignment, 1);
    if (pages > (size - at) / kAlignment) break;
    at += pages * kAlignment;
  }
  return {};
}

}  // namespace berth::facts
