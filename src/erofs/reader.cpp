// SPDX-License-Identifier: Apache-2.0
#include "erofs/reader.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cstring>

#include "base/text.hpp"
#include "erofs/format.hpp"
#include "sys/file/file.hpp"

namespace berth::erofs {
namespace {

constexpr const char* kReaderName = "image";
constexpr uint64_t kMaxLink = 4095;

Error damaged(const std::string& what) {
  return make_error(Kind::corrupt, "the EROFS image is damaged: " + what);
}

// Bits of Superblock::incompatible. kPadded is accepted: without compression it has no meaning.
constexpr uint32_t kPadded = 1;
constexpr std::pair<uint32_t, std::string_view> kFeatures[] = {
    {0x02, "compression"},        {0x04, "files in chunks"},
    {0x08, "several devices"},    {0x10, "compressed ends of files"},
    {0x20, "fragments of files"}, {0x40, "prefixes of attributes"},
    {0x80, "48-bit addresses"},
};

Result<void> check_features(uint32_t features, bool compressed) {
  std::vector<std::string> names;
  if (compressed) features |= kFeatures[0].first;
  for (const auto& [bit, name] : kFeatures) {
    if ((features & bit) != 0) names.emplace_back(name);
    features &= ~bit;
  }
  if ((features & ~kPadded) != 0) names.emplace_back("what is newer than this program");
  if (names.empty()) return {};
  return make_error(Kind::unsupported, "the EROFS image uses " + join(names, ", "),
                    "mkfs.erofs without -z, -C and -E");
}

Result<void> check_layout(unsigned layout) {
  constexpr std::string_view kNames[] = {"", "compressed", "", "compressed", "in chunks"};
  if (layout == 0 || layout == 2) return {};
  std::string name(layout < std::size(kNames) ? kNames[layout] : "in a way that is unknown");
  return make_error(Kind::unsupported, "a file of the EROFS image lies " + name,
                    "mkfs.erofs without -z and -E");
}

bool is_name(std::string_view name) {
  return !name.empty() && name.size() <= kMaxName && name.find('/') == name.npos &&
         name.find('\0') == name.npos;
}

/// The beginning of the key; for prefixes without a name, the whole key.
std::optional<std::string_view> prefix_text(uint8_t prefix) {
  switch (static_cast<Prefix>(prefix)) {
    case Prefix::user:
      return "user.";
    case Prefix::acl_access:
      return "system.posix_acl_access";
    case Prefix::acl_default:
      return "system.posix_acl_default";
    case Prefix::trusted:
      return "trusted.";
    case Prefix::security:
      return "security.";
  }
  return std::nullopt;
}

bool has_content(uint32_t mode) {
  return S_ISREG(mode) || S_ISDIR(mode) || S_ISLNK(mode);
}

}  // namespace

Result<DirectoryBlock> DirectoryBlock::parse(std::string bytes) {
  DirectoryBlock block;
  block.bytes_ = std::move(bytes);
  DiskEntry first;
  if (block.bytes_.size() < sizeof first) return damaged("a directory's block is too short");
  std::memcpy(&first, block.bytes_.data(), sizeof first);
  bool possible = first.name_at != 0 && first.name_at % sizeof first == 0 &&
                  first.name_at < block.bytes_.size();
  if (!possible) return damaged("a directory has its first name nowhere");
  block.size_ = first.name_at / sizeof first;
  return block;
}

Result<DirectoryBlock::Entry> DirectoryBlock::at(size_t index) const {
  DiskEntry entries[2];
  bool is_last = index + 1 == size_;
  std::memcpy(entries, bytes_.data() + index * sizeof entries[0],
              sizeof entries[0] * (is_last ? 1 : 2));
  size_t begin = entries[0].name_at;
  size_t end = is_last ? bytes_.size() : entries[1].name_at;
  if (begin < size_ * sizeof entries[0] || begin >= end || end > bytes_.size()) {
    return damaged("a directory has a name nowhere");
  }
  std::string_view name = std::string_view(bytes_).substr(begin, end - begin);
  // The last name may end before the block does.
  if (is_last) name = name.substr(0, name.find('\0'));
  if (!is_name(name)) return damaged("a directory has a name that is none");
  uint64_t inode = entries[0].inode[0] | static_cast<uint64_t>(entries[0].inode[1]) << 32;
  return Entry{inode, entries[0].type, name};
}

Result<Reader> Reader::open(const sys::Fd& image) {
  Reader reader(image);
  struct stat info = TRY(sys::stat_fd(image, kReaderName));
  if (!S_ISREG(info.st_mode)) return make_error(Kind::usage, "the image is not a regular file");
  reader.size_ = static_cast<uint64_t>(info.st_size);
  TRY(reader.read_superblock());
  Inode root = TRY(reader.inode(reader.root()));
  if (!S_ISDIR(root.mode)) return damaged("its root is not a directory");
  return reader;
}

bool Reader::holds(const Piece& piece) const {
  return piece.at <= size_ && piece.length <= size_ - piece.at;
}

Result<void> Reader::fill(uint64_t at, char* bytes, size_t length) const {
  if (!holds({at, length})) return damaged("something lies beyond its end");
  size_t filled = 0;
  while (filled < length) {
    size_t got =
        TRY(sys::read_at(*image_, at + filled, bytes + filled, length - filled, kReaderName));
    if (got == 0) return damaged("it has become shorter");
    filled += got;
  }
  return {};
}

template <class T>
Result<T> Reader::read_struct(uint64_t at) const {
  T value;
  TRY(fill(at, reinterpret_cast<char*>(&value), sizeof value));
  return value;
}

Result<std::string> Reader::read(const Piece& piece) const {
  if (!holds(piece)) return damaged("something lies beyond its end");
  std::string bytes = TRY(sys::read_at(*image_, piece.at, piece.length, kReaderName));
  if (bytes.size() != piece.length) return damaged("it has become shorter");
  return bytes;
}

Result<void> Reader::check_length() const {
  struct stat info = TRY(sys::stat_fd(*image_, kReaderName));
  if (static_cast<uint64_t>(info.st_size) < size_) return damaged("it has become shorter");
  return {};
}

Result<void> Reader::read_superblock() {
  if (size_ < kBlock) return make_error(Kind::corrupt, "the file is too short for an EROFS image");
  std::string block = TRY(read({kSuperblockAt, kBlock - kSuperblockAt}));
  std::memcpy(&superblock_, block.data(), sizeof superblock_);
  if (superblock_.magic != kMagic) {
    return make_error(Kind::corrupt, "the file is not an EROFS image");
  }
  if (superblock_.block_bits != kBlockBits) {
    return make_error(Kind::unsupported, "the EROFS image has blocks that are not of 4096 bytes",
                      "mkfs.erofs -b 4096");
  }
  TRY(check_features(superblock_.incompatible, superblock_.lz4_distance != 0));
  if ((superblock_.compatible & kCompatChecksum) != 0) {
    constexpr size_t kAt = offsetof(Superblock, checksum);
    block.replace(kAt, sizeof superblock_.checksum, sizeof superblock_.checksum, '\0');
    if (checksum(block) != superblock_.checksum) {
      return damaged("its superblock has another checksum");
    }
  }
  if (superblock_.blocks > size_ / kBlock) {
    return make_error(Kind::corrupt,
                      "the EROFS image is truncated: it has " + std::to_string(superblock_.blocks) +
                          " blocks, the file has " + std::to_string(size_) + " bytes");
  }
  return {};
}

/// `behind`: the address directly behind the inode and its attributes.
Result<void> Reader::place_content(Inode& inode, unsigned layout, uint32_t where,
                                   uint64_t behind) const {
  uint64_t blocks = inode.size / kBlock + (inode.size % kBlock != 0 ? 1 : 0);
  bool has_tail = layout == static_cast<unsigned>(Layout::tail) && blocks > 0;
  inode.in_blocks = has_tail ? (blocks - 1) * kBlock : inode.size;
  inode.blocks_at = uint64_t{where} * kBlock;
  inode.tail_at = behind;
  uint64_t tail = inode.size - inode.in_blocks;
  // The kernel reads the tail only from the block of the inode.
  if (tail > 0 && behind % kBlock + tail > kBlock)
    return damaged("a file's end lies in two blocks");
  bool inside =
      (inode.in_blocks == 0 || holds({inode.blocks_at, inode.in_blocks})) && holds({behind, tail});
  if (!inside) return damaged("a file lies beyond its end");
  return {};
}

Result<Inode> Reader::inode(uint64_t number) const {
  if (number > size_ / kSlot) return damaged("an inode lies beyond its end");
  uint64_t at = uint64_t{superblock_.inodes_block} * kBlock + number * kSlot;
  // One read for both forms; the file may end directly behind a compact inode.
  std::array<char, sizeof(DiskInode)> bytes = {};
  bool room = holds({at, sizeof(DiskInode)});
  TRY(fill(at, bytes.data(), room ? sizeof(DiskInode) : sizeof(CompactInode)));
  CompactInode compact;
  std::memcpy(&compact, bytes.data(), sizeof compact);
  unsigned layout = compact.format >> kLayoutShift & kLayoutMask;
  if ((compact.format >> kLayoutShift & ~kLayoutMask) != 0) {
    return damaged("an inode has no known format");
  }
  Inode inode;
  inode.number = number;
  inode.mode = compact.mode;
  uint32_t where = compact.where;
  uint64_t behind = at;
  if ((compact.format & kExtendedInode) != 0) {
    if (!room) return damaged("an inode lies beyond its end");
    DiskInode extended;
    std::memcpy(&extended, bytes.data(), sizeof extended);
    inode.uid = extended.uid;
    inode.gid = extended.gid;
    inode.links = extended.links;
    inode.modified = extended.modified;
    inode.modified_nanoseconds = extended.modified_nanoseconds;
    inode.size = extended.size;
    where = extended.where;
    behind += sizeof extended;
  } else {
    inode.uid = compact.uid;
    inode.gid = compact.gid;
    inode.links = compact.links;
    inode.modified = static_cast<int64_t>(superblock_.build_time);
    inode.modified_nanoseconds = superblock_.build_time_nanoseconds;
    inode.size = compact.size;
    behind += sizeof compact;
  }
  if (inode.modified_nanoseconds >= 1'000'000'000) return damaged("an inode has no valid time");
  inode.attributes_at = behind;
  if (compact.attributes != 0) {
    inode.attributes_size = sizeof(AttributesHeader) + uint64_t{4} * (compact.attributes - 1);
  }
  behind += inode.attributes_size;
  if (!holds({inode.attributes_at, inode.attributes_size})) {
    return damaged("an inode's attributes lie beyond its end");
  }
  if (has_content(inode.mode)) {
    TRY(check_layout(layout));
    TRY(place_content(inode, layout, where, behind));
    return inode;
  }
  bool device = S_ISCHR(inode.mode) || S_ISBLK(inode.mode);
  if (!device && !S_ISFIFO(inode.mode) && !S_ISSOCK(inode.mode)) {
    return damaged("an inode is of no known type");
  }
  inode.size = 0;
  if (device) {
    inode.device_major = where >> 8 & 0xfff;
    inode.device_minor = (where & 0xff) | (where >> 12 & 0xfff00);
  }
  return inode;
}

std::array<Piece, 2> Reader::places(const Inode& inode, uint64_t offset, uint64_t length) {
  std::array<Piece, 2> pieces;
  if (offset >= inode.size) return pieces;
  length = std::min(length, inode.size - offset);
  if (offset < inode.in_blocks) {
    pieces[0] = {inode.blocks_at + offset, std::min(length, inode.in_blocks - offset)};
    offset += pieces[0].length;
    length -= pieces[0].length;
  }
  if (length > 0) pieces[1] = {inode.tail_at + (offset - inode.in_blocks), length};
  return pieces;
}

Result<std::string> Reader::read_link(const Inode& inode) const {
  if (!S_ISLNK(inode.mode)) return damaged("a symbolic link is none");
  if (inode.size == 0 || inode.size > kMaxLink) return damaged("a symbolic link has no target");
  std::string target;
  for (const Piece& piece : places(inode, 0, inode.size)) {
    std::string part = TRY(read(piece));
    target += part;
  }
  if (target.find('\0') != target.npos) return damaged("a symbolic link's target holds a NUL");
  return target;
}

uint64_t Reader::directory_blocks(const Inode& directory) {
  return directory.size / kBlock + (directory.size % kBlock != 0 ? 1 : 0);
}

Result<DirectoryBlock> Reader::directory_block(const Inode& directory, uint64_t index) const {
  if (!S_ISDIR(directory.mode)) return damaged("a directory is none");
  if (index >= directory_blocks(directory)) return damaged("a directory ends too early");
  // A block of a directory is never in two pieces: the tail begins at a multiple of the block size.
  auto pieces = places(directory, index * kBlock, kBlock);
  std::string bytes = TRY(read(pieces[pieces[0].length == 0 ? 1 : 0]));
  return DirectoryBlock::parse(std::move(bytes));
}

Result<std::optional<uint64_t>> Reader::find(const Inode& directory, std::string_view name) const {
  // Binary search for the last block with a first name up to the wanted name, then within that
  // block.
  uint64_t low = 0;
  uint64_t high = directory_blocks(directory);
  std::optional<DirectoryBlock> found;
  while (low < high) {
    uint64_t middle = low + (high - low) / 2;
    auto block = TRY(directory_block(directory, middle));
    DirectoryBlock::Entry first = TRY(block.at(0));
    if (first.name == name) return std::optional(first.inode);
    if (name < first.name) {
      high = middle;
    } else {
      low = middle + 1;
      found = std::move(block);
    }
  }
  size_t begin = 1;
  size_t end = found ? found->size() : 0;
  while (begin < end) {
    size_t middle = begin + (end - begin) / 2;
    DirectoryBlock::Entry entry = TRY(found->at(middle));
    if (entry.name == name) return std::optional(entry.inode);
    if (name < entry.name) {
      end = middle;
    } else {
      begin = middle + 1;
    }
  }
  return std::optional<uint64_t>();
}

/// The attribute that begins at `at`; it must end at or before `end`.
Result<AttributePlace> Reader::attribute_at(uint64_t at, uint64_t end) const {
  auto entry = TRY(read_struct<AttributeEntry>(at));
  uint64_t name_at = at + sizeof entry;
  uint64_t value_at = name_at + entry.name_length;
  if (value_at + entry.value_size > end) return damaged("an attribute lies beyond its place");
  auto prefix = prefix_text(entry.prefix);
  if (!prefix) return AttributePlace{"", {value_at, entry.value_size}};
  if (prefix->ends_with('.') != (entry.name_length > 0)) {
    return damaged("an attribute has no name");
  }
  std::string name = TRY(read({name_at, entry.name_length}));
  if (name.find('\0') != name.npos) return damaged("an attribute's name holds a NUL");
  return AttributePlace{std::string(*prefix) + name, {value_at, entry.value_size}};
}

Result<std::vector<AttributePlace>> Reader::attributes(const Inode& inode) const {
  constexpr size_t kMaxKeys = 64 << 10;  // the limit of listxattr(2)
  std::vector<AttributePlace> found;
  if (inode.attributes_size == 0) return found;
  auto header = TRY(read_struct<AttributesHeader>(inode.attributes_at));
  uint64_t at = inode.attributes_at + sizeof header;
  uint64_t end = inode.attributes_at + inode.attributes_size;
  if (header.shared * sizeof(uint32_t) > end - at)
    return damaged("attributes lie beyond their place");
  size_t keys = 0;
  auto add = [&](AttributePlace attribute) -> Result<void> {
    constexpr size_t kUnknownKey = 64;
    // An attribute without a key has a prefix that Linux does not know either.
    keys += attribute.key.empty() ? kUnknownKey : attribute.key.size() + 1;
    if (keys > kMaxKeys) return damaged("an inode has too many attributes");
    if (attribute.key.empty()) return {};
    found.push_back(std::move(attribute));
    return {};
  };
  for (unsigned i = 0; i < header.shared; ++i, at += sizeof(uint32_t)) {
    auto word = TRY(read_struct<uint32_t>(at));
    uint64_t shared_at = uint64_t{superblock_.attributes_block} * kBlock + uint64_t{word} * 4;
    AttributePlace attribute = TRY(attribute_at(shared_at, size_));
    TRY(add(std::move(attribute)));
  }
  while (at < end) {
    if (end - at < sizeof(AttributeEntry)) return damaged("attributes that do not end");
    AttributePlace attribute = TRY(attribute_at(at, end));
    at = round_up(attribute.value.at + attribute.value.length, 4);
    TRY(add(std::move(attribute)));
  }
  return found;
}

}  // namespace berth::erofs
