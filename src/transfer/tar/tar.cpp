// SPDX-License-Identifier: Apache-2.0
#include "transfer/tar/tar.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include "base/text.hpp"
#include "transfer/tar/pax.hpp"

namespace berth::transfer {
namespace {

constexpr size_t kMaxDigits = 20;

Error refuse_map(const std::string& path, std::string_view reason) {
  return make_error(Kind::corrupt,
                    "tar: entry " + quote(path) + ": its sparse map " + std::string(reason));
}

constexpr size_t kRecord = 512;
constexpr uint64_t kMaxSpecial = uint64_t{1} << 20;  // as in Go: a pax header or GNU long name
constexpr int kMaxSpecialsInARow = 16;
/// The content of a hole for readers of bytes.
constexpr std::array<char, 65536> kZeros = {};

Error corrupt_tar(std::string what) {
  return make_error(Kind::corrupt, "tar: " + std::move(what));
}

/// A string field ends at its first NUL or at its full width.
std::string_view text_field(std::string_view record, size_t offset, size_t width) {
  std::string_view field = record.substr(offset, width);
  return field.substr(0, std::min(field.find('\0'), field.size()));
}

/// Octal digits between blanks, or base 256 when the top bit of the first byte is set.
std::optional<int64_t> number_field(std::string_view record, size_t offset, size_t width) {
  std::string_view field = record.substr(offset, width);
  auto first = static_cast<unsigned char>(field[0]);
  if (first & 0x80) {
    bool negative = first & 0x40;
    // Two's complement over the whole field; numbers beyond 63 bits are refused.
    uint64_t value = negative ? ~uint64_t{0} : 0;
    for (size_t i = 0; i < field.size(); ++i) {
      auto byte = static_cast<unsigned char>(field[i]);
      if (i == 0) byte = negative ? byte | 0x80 : byte & 0x7f;
      uint64_t top = value >> 55;
      if (top != 0 && top != 0x1ff) return std::nullopt;
      value = value << 8 | byte;
    }
    return static_cast<int64_t>(value);
  }
  while (!field.empty() && (field.back() == ' ' || field.back() == '\0')) field.remove_suffix(1);
  while (!field.empty() && field.front() == ' ') field.remove_prefix(1);
  field = field.substr(0, std::min(field.find('\0'), field.size()));
  int64_t value = 0;
  for (char c : field) {
    if (c < '0' || c > '7' || value >> 59) return std::nullopt;
    value = value * 8 + (c - '0');
  }
  return value;
}

/// Accepts also sums of signed bytes, which old writers made.
bool checksum_holds(std::string_view record) {
  auto written = number_field(record, 148, 8);
  int64_t plain = 0;
  int64_t with_sign = 0;
  for (size_t i = 0; i < kRecord; ++i) {
    char c = i >= 148 && i < 156 ? ' ' : record[i];
    plain += static_cast<unsigned char>(c);
    with_sign += static_cast<signed char>(c);
  }
  return written && (*written == plain || *written == with_sign);
}

bool is_zero(std::string_view record) {
  return std::ranges::all_of(record, [](char c) { return c == '\0'; });
}

std::string header_path(std::string_view record) {
  std::string name(text_field(record, 0, 100));
  if (record.substr(257, 6) != std::string_view("ustar\0", 6)) return name;
  bool star = record.substr(508, 4) == std::string_view("tar\0", 4);
  std::string prefix(text_field(record, 345, star ? 131 : 155));
  return prefix.empty() ? name : prefix + "/" + name;
}

Result<void> read_fields(std::string_view record, TarEntry& entry) {
  entry.path = header_path(record);
  entry.link = text_field(record, 157, 100);
  auto mode = number_field(record, 100, 8);
  auto uid = number_field(record, 108, 8);
  auto gid = number_field(record, 116, 8);
  auto size = number_field(record, 124, 12);
  auto mtime = number_field(record, 136, 12);
  bool valid = mode && uid && gid && size && mtime && *uid >= 0 && *gid >= 0 && *size >= 0 &&
               *size <= static_cast<int64_t>(kMaxTarNumber);
  if (!valid)
    return corrupt_tar("entry " + quote(entry.path) + " has a field that is not a valid number");
  entry.mode = static_cast<uint32_t>(*mode) & 07777;
  entry.uid = static_cast<uint64_t>(*uid);
  entry.gid = static_cast<uint64_t>(*gid);
  entry.size = static_cast<uint64_t>(*size);
  entry.mtime = *mtime;
  entry.mtime_nanoseconds = 0;
  entry.device_major = entry.device_minor = 0;
  entry.sparse = false;
  entry.xattrs.clear();
  return {};
}

Result<void> read_device(std::string_view record, TarEntry& entry) {
  auto major = number_field(record, 329, 8);
  auto minor = number_field(record, 337, 8);
  if (!major || !minor || *major < 0 || *minor < 0) {
    return corrupt_tar("entry " + quote(entry.path) + " has no valid device number");
  }
  entry.device_major = static_cast<uint64_t>(*major);
  entry.device_minor = static_cast<uint64_t>(*minor);
  return {};
}

std::optional<TarEntry::Type> entry_type(char flag, const std::string& path) {
  using enum TarEntry::Type;
  switch (flag) {
    case '\0':
    case '0':
    case '7':
    case 'S':                                         // GNU: sparse file
      return path.ends_with('/') ? directory : file;  // v7 has no type for directories
    case '1':
      return hard_link;
    case '2':
      return symlink;
    case '3':
      return character_device;
    case '4':
      return block_device;
    case '5':
      return directory;
    case '6':
      return fifo;
    default:
      return std::nullopt;
  }
}

}  // namespace

Result<Extents> parse_sparse_list(std::string_view text, const std::string& path) {
  Extents extents;
  if (text.empty()) return extents;
  bool has_offset = false;
  for (std::string_view part : split(text, ',')) {
    auto number = parse_u64(part);
    if (!number) return refuse_map(path, "contains something that is not a number");
    if (has_offset) {
      extents.back().length = *number;
    } else {
      if (extents.size() == kMaxExtents) return refuse_map(path, "has too many parts");
      extents.push_back({*number, 0});
    }
    has_offset = !has_offset;
  }
  if (has_offset) return refuse_map(path, "ends in the middle of a part");
  return extents;
}

Result<bool> SparseLines::add_number(uint64_t number) {
  if (!has_count_) {
    if (number > kMaxExtents) return refuse_map(path_, "has too many parts");
    has_count_ = true;
    count_ = number;
  } else if (!has_offset_) {
    has_offset_ = true;
    offset_ = number;
  } else {
    has_offset_ = false;
    extents_.push_back({offset_, number});
  }
  return !has_offset_ && extents_.size() == count_;
}

Result<bool> SparseLines::add(std::string_view block) {
  for (char c : block) {
    if (c != '\n') {
      if (digits_.size() == kMaxDigits)
        return refuse_map(path_, "contains something that is not a number");
      digits_ += c;
      continue;
    }
    auto number = parse_u64(digits_);
    if (!number) return refuse_map(path_, "contains something that is not a number");
    digits_.clear();
    if (TRY(add_number(*number))) return true;
  }
  return false;
}

Result<void> check_extents(const Extents& extents, uint64_t size, uint64_t stored,
                           const std::string& path) {
  uint64_t end = 0;
  uint64_t sum = 0;
  for (const Extent& extent : extents) {
    if (extent.offset < end) return refuse_map(path, "goes back or overlaps");
    if (extent.offset > size || extent.length > size - extent.offset) {
      return refuse_map(path, "goes beyond the end of the file");
    }
    end = extent.offset + extent.length;
    sum += extent.length;  // at most `size`, as extents do not overlap
  }
  if (sum != stored) return refuse_map(path, "does not fit the bytes that are stored");
  return {};
}

/// The content of the extended headers in front of a member.
struct TarReader::Extensions {
  PaxRecords pax;
  std::string gnu_path;
  std::string gnu_link;
};

Result<bool> TarReader::refill() {
  window_ = TRY(source_());
  return !window_.empty();
}

/// False at the end of the stream; a stream that ends inside a record is corrupt.
Result<bool> TarReader::read_record(std::string& record) {
  record.clear();
  while (record.size() < kRecord) {
    if (window_.empty() && !TRY(refill())) {
      if (record.empty()) return false;
      return corrupt_tar("the archive ends inside a header");
    }
    size_t take = std::min(kRecord - record.size(), window_.size());
    record.append(window_.substr(0, take));
    window_.remove_prefix(take);
  }
  return true;
}

/// Begins a member with `stored` bytes and padding. Unless a sparse map is set later, the bytes are
/// its whole content.
void TarReader::begin(uint64_t stored) {
  left_ = size_ = stored;
  padding_ = (kRecord - stored % kRecord) % kRecord;
  extents_.assign(1, {0, stored});
  extent_ = 0;
  position_ = 0;
}

Result<std::string_view> TarReader::stored() {
  if (left_ == 0) return std::string_view();
  if (window_.empty() && !TRY(refill())) return corrupt_tar("the archive ends inside a file");
  std::string_view part = window_.substr(0, left_);
  return part;
}

uint64_t TarReader::skip_hole() {
  while (extent_ < extents_.size() &&
         position_ >= extents_[extent_].offset + extents_[extent_].length) {
    ++extent_;
  }
  uint64_t next = extent_ < extents_.size() ? extents_[extent_].offset : size_;
  uint64_t hole = next - std::min(position_, next);
  position_ += hole;
  return hole;
}

Result<std::string_view> TarReader::content() {
  uint64_t before = position_;
  if (uint64_t hole = skip_hole(); hole > 0) {
    std::string_view zeros(kZeros.data(), std::min<uint64_t>(hole, kZeros.size()));
    position_ = before + zeros.size();
    return zeros;
  }
  if (position_ == size_) return std::string_view();
  const Extent& extent = extents_[extent_];
  std::string_view part = TRY(stored()).substr(0, extent.offset + extent.length - position_);
  window_.remove_prefix(part.size());
  left_ -= part.size();
  position_ += part.size();
  return part;
}

Result<void> TarReader::skip_rest() {
  while (left_ > 0) {
    std::string_view part = TRY(stored());
    window_.remove_prefix(part.size());
    left_ -= part.size();
  }
  // umoci ends a layer directly after the last file, without padding. As in Go's reader, that is a
  // valid end.
  while (padding_ > 0 && (!window_.empty() || TRY(refill()))) {
    uint64_t take = std::min<uint64_t>(padding_, window_.size());
    window_.remove_prefix(take);
    padding_ -= take;
  }
  padding_ = 0;
  return {};
}

Result<std::string> TarReader::read_special(uint64_t size, std::string_view kind) {
  if (size > kMaxSpecial) {
    return corrupt_tar(std::string(kind) + " of " + std::to_string(size) +
                       " bytes, more than the 1 MiB allowed");
  }
  std::string text;
  while (text.size() < size) text += TRY(content());
  return text;
}

/// Reads one of the up to sixteen extended headers before a member.
/// False if the record is the header of the member itself.
Result<bool> TarReader::read_extension(char flag, uint64_t size, Extensions& extensions) {
  switch (flag) {
    case 'x':
    case 'X': {
      std::string text = TRY(read_special(size, "an extended header"));
      extensions.pax = TRY(parse_pax(text));
      return true;
    }
    case 'L':
    case 'K': {
      std::string text = TRY(read_special(size, "an extended header"));
      std::string& name = flag == 'L' ? extensions.gnu_path : extensions.gnu_link;
      name = text.substr(0, std::min(text.find('\0'), text.size()));
      return true;
    }
    case 'g':
      // Global headers hold a commit id or the like; docker ignores them, too.
      TRY(read_special(size, "a global header"));
      return true;
    default:
      return false;
  }
}

/// Returns false at the end of the archive.
Result<bool> TarReader::read_header(std::string& record) {
  bool more = TRY(read_record(record));
  if (more && is_zero(record)) {
    bool follows = TRY(read_record(record));
    if (follows && !is_zero(record)) return corrupt_tar("data follows a zero block");
    more = false;
  }
  at_end_ = !more;
  if (more && !checksum_holds(record)) return corrupt_tar("a header has a wrong checksum");
  return more;
}

Result<bool> TarReader::next(TarEntry& entry) {
  if (at_end_) return false;
  Extensions extensions;
  std::string record;
  for (int specials = 0; specials <= kMaxSpecialsInARow; ++specials) {
    TRY(skip_rest());
    if (!TRY(read_header(record))) return false;
    TRY(read_fields(record, entry));
    begin(entry.size);
    if (TRY(read_extension(record[156], entry.size, extensions))) continue;
    TRY(read_member(record, extensions, entry));
    return true;
  }
  return corrupt_tar("more than 16 extended headers before one entry");
}

Result<void> TarReader::read_member(const std::string& record, const Extensions& extensions,
                                    TarEntry& entry) {
  TRY(apply_pax(extensions.pax, entry));
  if (!extensions.gnu_path.empty()) entry.path = extensions.gnu_path;
  if (!extensions.gnu_link.empty()) entry.link = extensions.gnu_link;
  char flag = record[156];
  auto type = entry_type(flag, entry.path);
  bool is_old_sparse = flag == 'S';
  if (!type || (is_old_sparse && record.substr(257, 6) != "ustar ")) {
    return make_error(Kind::unsupported, "tar: entry " + quote(entry.path) + " has the type " +
                                             quote(std::string_view(&flag, 1)) +
                                             ", which is not a file, link, device or directory");
  }
  entry.type = *type;
  bool device =
      entry.type == TarEntry::Type::character_device || entry.type == TarEntry::Type::block_device;
  if (device) TRY(read_device(record, entry));
  // Some writers give links and directories a size without content (Go: isHeaderOnlyType).
  bool has_content = entry.type == TarEntry::Type::file;
  if (!has_content) entry.size = 0;
  begin(entry.size);
  if (has_content) TRY(read_sparse(record, extensions, entry));
  return {};
}

/// Finds the map and the true size of a sparse file.
Result<void> TarReader::read_sparse(const std::string& record, const Extensions& extensions,
                                    TarEntry& entry) {
  const PaxRecords& pax = extensions.pax;
  bool old = record[156] == 'S';
  SparseKind kind = old ? SparseKind::list : TRY(sparse_kind(pax, entry));
  if (kind == SparseKind::none) return {};
  Extents extents;
  uint64_t size = 0;
  if (old) {
    auto real = number_field(record, 483, 12);
    if (!real || *real < 0 || *real > static_cast<int64_t>(kMaxTarNumber)) {
      return corrupt_tar("entry " + quote(entry.path) + " is sparse and has no valid size");
    }
    size = static_cast<uint64_t>(*real);
    extents = TRY(read_old_sparse(record, entry));
  } else {
    size = TRY(sparse_size(pax, entry));
    std::string_view list = pax.sparse_list.empty() ? pax.value("GNU.sparse.map") : pax.sparse_list;
    extents = kind == SparseKind::lines ? TRY(read_sparse_lines(entry))
                                        : TRY(parse_sparse_list(list, entry.path));
  }
  TRY(check_extents(extents, size, left_, entry.path));
  entry.size = size_ = size;
  entry.sparse = true;
  // GNU tar marks the end of the file with an empty extent.
  std::erase_if(extents, [](const Extent& extent) { return extent.length == 0; });
  extents_ = std::move(extents);
  extent_ = 0;
  position_ = 0;
  return {};
}

/// GNU's first form of a sparse map: four extents in the header, and 21 in each of the records that
/// may follow.
Result<Extents> TarReader::read_old_sparse(std::string_view record, const TarEntry& entry) {
  Extents extents;
  Error bad = corrupt_tar("entry " + quote(entry.path) +
                          ": its sparse map contains something that is not a number");
  auto take = [&](std::string_view from, size_t at, size_t count) -> Result<void> {
    for (size_t i = 0; i < count; ++i, at += 24) {
      if (from[at] == '\0') return {};
      auto offset = number_field(from, at, 12);
      auto length = number_field(from, at + 12, 12);
      if (!offset || !length || *offset < 0 || *length < 0) return bad;
      extents.push_back({static_cast<uint64_t>(*offset), static_cast<uint64_t>(*length)});
    }
    return {};
  };
  TRY(take(record, 386, 4));
  std::string more;
  for (bool extended = record[482] != '\0'; extended; extended = more[504] != '\0') {
    if (extents.size() + 21 > kMaxExtents) {
      return corrupt_tar("entry " + quote(entry.path) + ": its sparse map has too many parts");
    }
    size_t before = extents.size();
    if (!TRY(read_record(more))) return corrupt_tar("the archive ends inside a header");
    TRY(take(more, 0, 21));
    // Otherwise records without extents could go on forever.
    if (extents.size() == before) return bad;
  }
  return extents;
}

/// GNU's last form of a sparse map: the map precedes the data, in blocks of its own.
Result<Extents> TarReader::read_sparse_lines(const TarEntry& entry) {
  SparseLines lines(entry.path);
  for (uint64_t read = 0; read + kRecord <= kMaxSpecial; read += kRecord) {
    if (left_ < kRecord) break;
    std::string block;
    while (block.size() < kRecord) {
      std::string_view part = TRY(stored()).substr(0, kRecord - block.size());
      block += part;
      window_.remove_prefix(part.size());
      left_ -= part.size();
    }
    if (TRY(lines.add(block))) return lines.take();
  }
  return corrupt_tar("entry " + quote(entry.path) + ": its sparse map does not end");
}

}  // namespace berth::transfer
