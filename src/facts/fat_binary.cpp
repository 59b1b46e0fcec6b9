// SPDX-License-Identifier: Apache-2.0
#include "facts/fat_binary.hpp"

#include <algorithm>

#include "facts/unpack_prefix.hpp"
#include "facts/window.hpp"

namespace berth::facts {
namespace {

constexpr uint32_t kContainerMagic = 0xba55'ed50;
constexpr size_t kContainerHeader = 16, kMemberHeader = 64;
constexpr uint64_t kMaxPadding = 4096;
// The largest library of CUDA 13.0 has about 40,000 members.
constexpr uint64_t kMaxMembers = 1'000'000;

constexpr uint64_t kPtx = 1, kCubin = 2, kIr = 8, kMercury = 16;  // kinds of members
constexpr uint64_t kLz4 = 0x2000, kZstd = 0x8000, kExact = 0x10'0000, kFamily = 0x20'0000;

// ABI version of the cubins of CUDA 13, and its version as earlier compilers write theirs.
constexpr unsigned char kLaterAbi = 8;
constexpr uint32_t kLaterToolkit = 130;

constexpr uint64_t kFirstWithSuffix = 90;
// Old compilers record the suffix of a target ("a" in "90a") only in the payload.
constexpr uint64_t kMaxUnpacked = 256;
constexpr size_t kPayload = 1024;          // contains the whole header of a cubin, and the
                                           // directives of PTX
constexpr size_t kPackedZstd = 144 << 10;  // contains the first block of a zstd frame
constexpr size_t kCubinHeader = 64;
constexpr uint64_t kZstdToolkits = 8;  // of a file, unpacked for their toolkit alone

Error corrupt_fat_binary(std::string_view what) {
  return make_error(Kind::corrupt, "fat binary: " + std::string(what));
}

struct Member {
  uint64_t kind = 0, header_size = 0, size = 0, packed_size = 0;
  uint64_t minor = 0, major = 0, arch = 0, flags = 0;
};

Member parse_member(std::string_view header) {
  return {.kind = number_at(header, 0, 2),
          .header_size = number_at(header, 4, 4),
          .size = number_at(header, 8, 8),
          .packed_size = number_at(header, 16, 4),
          .minor = number_at(header, 24, 2),
          .major = number_at(header, 26, 2),
          .arch = number_at(header, 28, 4),
          .flags = number_at(header, 40, 8)};
}

/// The suffix ("a", "f" or nothing) in the line ".target sm_90a, …" of PTX code.
std::string suffix_in_ptx(std::string_view text) {
  constexpr std::string_view kTarget = ".target sm_";
  size_t at = text.find(kTarget);
  if (at == std::string_view::npos) return {};
  at = text.find_first_not_of("0123456789", at + kTarget.size());
  bool known = at != std::string_view::npos && (text[at] == 'a' || text[at] == 'f');
  return known ? std::string(1, text[at]) : std::string();
}

class Reader {
 public:
  Reader(const scan::ReadAt& read_at, FoundCode& found, const OnContainer& done)
      : read_at_(read_at), file_(read_at), found_(found), done_(done) {}

  Window& file() { return file_; }

  /// Returns the offset of the next fat binary.
  Result<uint64_t> read_container(uint64_t at, uint64_t end);

 private:
  Result<void> read_members(uint64_t at, uint64_t end);
  Result<void> add(const Member& member, uint64_t payload_at);
  Result<uint32_t> toolkit(const Member& member, uint64_t payload_at);
  Result<std::string> suffix(const Member& member, uint64_t payload_at);
  Result<std::string> payload(const Member& member, uint64_t payload_at);

  const scan::ReadAt& read_at_;
  Window file_;
  FoundCode& found_;
  const OnContainer& done_;
  CodePiece piece_;  ///< of the container
  uint64_t zstd_toolkits_ = 0;
};

Result<uint64_t> Reader::read_container(uint64_t at, uint64_t end) {
  const uint64_t start = at;
  std::string_view header = TRY(file_.need(at, kContainerHeader, "fat binary: header"));
  uint64_t version = number_at(header, 4, 2), header_size = number_at(header, 6, 2);
  uint64_t size = number_at(header, 8, 8);
  if (version != 1)
    return corrupt_fat_binary("version " + std::to_string(version) + " is not known");
  if (header_size < kContainerHeader || header_size > end - at)
    return corrupt_fat_binary("header size");
  at += header_size;
  if (size > end - at) return corrupt_fat_binary("it is longer than its section");
  end = at + size;
  piece_ = {};
  TRY(read_members(at, end));
  found_.add(piece_);
  if (done_) done_(start, piece_);
  return end;
}

Result<void> Reader::read_members(uint64_t at, uint64_t end) {
  while (end - at >= kMemberHeader) {
    if (++found_.members > kMaxMembers) return corrupt_fat_binary("too many members");
    Member member = parse_member(TRY(file_.need(at, kMemberHeader, "fat binary: member")));
    if (member.header_size < kMemberHeader || member.header_size > end - at) {
      return corrupt_fat_binary("header size of a member");
    }
    at += member.header_size;
    if (member.size > end - at) return corrupt_fat_binary("a member is longer than its container");
    TRY(add(member, at));
    at += member.size;
  }
  return {};
}

Result<void> Reader::add(const Member& member, uint64_t payload_at) {
  if (member.arch == 0 || member.arch > 999) return {};  // no GPU code: a table, a list of names
  GpuCode code;
  switch (member.kind) {
    case kPtx:
      code.kind = GpuCode::Kind::ptx;
      code.isa = std::to_string(member.major) + "." + std::to_string(member.minor);
      break;
    case kCubin:
    case kMercury:
      code.kind = GpuCode::Kind::sass;
      break;
    case kIr:
      code.kind = GpuCode::Kind::ir;
      break;
    default:
      return {};
  }
  // The program itself decompresses and links IR; the driver decompresses everything else.
  if ((member.flags & kZstd) != 0 && member.kind != kIr) piece_.zstd = true;
  uint32_t compiler = TRY(toolkit(member, payload_at));
  piece_.toolkit = std::max(piece_.toolkit, compiler);
  std::string ending = TRY(suffix(member, payload_at));
  code.arch = std::to_string(member.arch) + ending;
  piece_.code.insert(std::move(code));
  return {};
}

// The header of a member has no version of its compiler; that of a code object has.
Result<uint32_t> Reader::toolkit(const Member& member, uint64_t payload_at) {
  if (member.kind != kCubin) return 0U;
  if ((member.flags & kZstd) != 0) {
    if (zstd_toolkits_ >= kZstdToolkits || found_.unpacked >= kMaxUnpacked) return 0U;
    ++zstd_toolkits_;
    ++found_.unpacked;
    std::string header = TRY(payload(member, payload_at));
    return cubin_toolkit(header);
  }
  // Next to the member's header, so no further read.
  bool packed = (member.flags & kLz4) != 0;
  std::string_view bytes = TRY(file_.read(
      payload_at, static_cast<size_t>(std::min<uint64_t>(member.size, 2 * kCubinHeader))));
  return packed ? cubin_toolkit(lz4_prefix(bytes, kCubinHeader)) : cubin_toolkit(bytes);
}

Result<std::string> Reader::suffix(const Member& member, uint64_t payload_at) {
  if ((member.flags & kExact) != 0) return std::string("a");
  if ((member.flags & kFamily) != 0) return std::string("f");
  if (member.arch < kFirstWithSuffix || found_.unpacked >= kMaxUnpacked) return std::string();
  bool ptx = member.kind == kPtx;
  if (!ptx && member.kind != kCubin) return std::string();
  ++found_.unpacked;
  std::string bytes = TRY(payload(member, payload_at));
  if (ptx) return suffix_in_ptx(bytes);
  auto target = cubin_target(bytes);
  return target && target->arch.ends_with('a') ? std::string("a") : std::string();
}

Result<std::string> Reader::payload(const Member& member, uint64_t payload_at) {
  bool lz4 = (member.flags & kLz4) != 0, zstd = (member.flags & kZstd) != 0;
  uint64_t size = lz4 || zstd ? std::min(member.packed_size, member.size) : member.size;
  size_t most = zstd ? kPackedZstd : lz4 ? kPayload + 64 : kPayload;
  std::string bytes = TRY(read_at_(payload_at, std::min<uint64_t>(size, most)));
  if (lz4) return lz4_prefix(bytes, kPayload);
  if (zstd) return zstd_prefix(bytes, kPayload);
  return bytes;
}

// Bundles of code for AMD's GPUs, as clang's offload bundler writes them.
constexpr std::string_view kBundleMagic = "__CLANG_OFFLOAD_BUNDLE__";
constexpr std::string_view kPackedMagic = "CCOB";
constexpr uint64_t kAlignment = 4096;  // of bundles in their section
constexpr uint64_t kMaxBundleEntries = 1024;
constexpr size_t kMaxId = 256;
constexpr size_t kTable = 64 << 10;    // more than tables with all existing targets take
constexpr size_t kPacked = 144 << 10;  // contains the first block of a zstd frame
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

/// `table`: the first bytes of a bundle. Returns the length of the bundle.
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

/// Returns the length of the compressed bundle; 0 if its header does not have it (version 1).
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

void CodePiece::add(const CodePiece& other) {
  code.insert(other.code.begin(), other.code.end());
  zstd = zstd || other.zstd;
  toolkit = std::max(toolkit, other.toolkit);
}

std::string toolkit_text(uint32_t toolkit) {
  if (toolkit == 0) return {};
  std::string major = std::to_string(toolkit / 10);
  return toolkit >= kLaterToolkit ? major : major + "." + std::to_string(toolkit % 10);
}

uint32_t cubin_toolkit(std::string_view header) {
  if (!cubin_target(header)) return 0;
  if (static_cast<unsigned char>(header[8]) >= kLaterAbi) return kLaterToolkit;
  constexpr uint64_t kOldest = 40;  // earlier compilers write 1, as other linkers do
  uint64_t version = number_at(header, 20, 4);
  return version < kOldest || version >= kLaterToolkit ? 0 : static_cast<uint32_t>(version);
}

std::optional<GpuCode> cubin_target(std::string_view header) {
  bool elf = header.size() >= kCubinHeader && header.starts_with(
                                                  "\x7f"
                                                  "ELF\2\1");
  if (!elf || number_at(header, 18, 2) != kMachineCuda) return std::nullopt;
  auto abi = static_cast<unsigned char>(header[8]);
  uint64_t flags = number_at(header, 48, 4);
  // Up to CUDA 12 the target is the lowest byte; in later versions it is the next byte.
  bool later = abi >= kLaterAbi;
  uint64_t arch = later ? flags >> 8 & 0xff : flags & 0xff;
  bool exact = (flags & (later ? 0x8U : 0x800U)) != 0;
  if (arch == 0) return std::nullopt;
  return GpuCode{GpuCode::Kind::sass, std::to_string(arch) + (exact ? "a" : ""), ""};
}

Result<std::optional<GpuCode>> read_cubin(const scan::ReadAt& read_at) {
  constexpr size_t kHeader = 64, kRow = 64;
  constexpr uint64_t kMaxSections = 100'000, kMaxNotes = 8;  // there are some for every kernel
  constexpr uint64_t kMaxNote = 4096;
  std::string header = TRY(read_at(0, kHeader));
  auto target = cubin_target(header);
  if (!target || target->arch.ends_with('a')) return target;
  uint64_t at = number_at(header, 40, 8);
  uint64_t count = std::min(number_at(header, 60, 2), kMaxSections);
  Window table(read_at);
  uint64_t notes = 0;
  for (uint64_t i = 0; i < count && notes < kMaxNotes; ++i, at += kRow) {
    std::string_view row = TRY(table.read(at, kRow));
    if (row.size() < kRow) break;
    uint64_t offset = number_at(row, 24, 8), size = number_at(row, 32, 8);
    if (number_at(row, 4, 4) != scan::kSectionNote || size > kMaxNote) continue;
    ++notes;
    // The command line of the compiler: "-arch sm_90a -m 64".
    std::string note = TRY(read_at(offset, static_cast<size_t>(size)));
    std::string option = "-arch sm_" + target->arch;
    size_t found = note.find(option);
    if (found == std::string::npos) continue;
    char suffix = note.c_str()[found + option.size()];
    if (suffix == 'a' || suffix == 'f') target->arch += suffix;
    break;
  }
  return target;
}

Result<void> read_fat_binaries(const scan::ReadAt& read_at, uint64_t offset, uint64_t size,
                               FoundCode& found, const OnContainer& done) {
  if (size > UINT64_MAX - offset) return corrupt_fat_binary("section outside of the file");
  Reader reader(read_at, found, done);
  uint64_t padding = 0;
  for (uint64_t at = offset, end = offset + size; end - at >= kContainerHeader;) {
    std::string_view magic = TRY(reader.file().need(at, 8, "fat binary: section"));
    if (number_at(magic, 0, 4) == kContainerMagic) {
      at = TRY(reader.read_container(at, end));
      at += std::min<uint64_t>((8 - (at - offset) % 8) % 8, end - at);
      padding = 0;
      continue;
    }
    // Linkers align the parts, so there may be zeros between them.
    padding += 8;
    if (number_at(magic, 0, 8) != 0 || padding > kMaxPadding)
      return corrupt_fat_binary("no header here");
    at += 8;
  }
  return {};
}

Result<uint64_t> read_first_bundle(const scan::ReadAt& read_at, uint64_t offset, uint64_t room,
                                   FoundCode& found) {
  std::string magic = TRY(read_at(offset, kBundleMagic.size()));
  if (magic.size() < kBundleMagic.size()) return corrupt_bundle("section outside of the file");
  uint64_t length = 0;
  if (magic == kBundleMagic) {
    std::string table = TRY(read_at(offset, std::min<uint64_t>(room, kTable)));
    length = TRY(read_bundle(table, found));
  } else if (magic.starts_with(kPackedMagic)) {
    std::string bytes = TRY(read_at(offset, std::min<uint64_t>(room, kPacked)));
    length = TRY(read_packed(bytes, found));
  }
  if (length > room) return corrupt_bundle("it is longer than its section");
  return length;
}

Result<void> read_fat_binary_file(const scan::ReadAt& read_at, FoundCode& found) {
  constexpr int kMost = 1000;  // compilers write one
  uint64_t at = 0;
  for (int i = 0; i < kMost; ++i) {
    std::string header = TRY(read_at(at, kContainerHeader));
    if (header.size() < kContainerHeader || !header.starts_with(kFatBinaryMagic)) return {};
    uint64_t size = number_at(header, 6, 2), rest = number_at(header, 8, 8);
    if (rest > UINT64_MAX / 2 - at) return corrupt_fat_binary("it is longer than its file");
    size += rest;
    std::string last = TRY(read_at(at + size - 1, 1));
    if (size == 0 || last.empty()) return corrupt_fat_binary("it is longer than its file");
    TRY(read_fat_binaries(read_at, at, size, found));
    at += size;
  }
  return {};
}

Result<void> read_offload_bundles(const scan::ReadAt& read_at, uint64_t offset, uint64_t size,
                                  FoundCode& found) {
  if (size > UINT64_MAX - offset) return corrupt_bundle("section outside of the file");
  uint64_t pages_looked_at = 0;
  for (uint64_t at = 0; size - at > kBundleMagic.size();) {
    uint64_t length = TRY(read_first_bundle(read_at, offset + at, size - at, found));
    if (++pages_looked_at > kMaxPages) return corrupt_bundle("too many of them");
    uint64_t pages = std::max<uint64_t>((length + kAlignment - 1) / kAlignment, 1);
    if (pages > (size - at) / kAlignment) break;
    at += pages * kAlignment;
  }
  return {};
}

}  // namespace berth::facts
