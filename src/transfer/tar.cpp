// SPDX-License-Identifier: Apache-2.0
#include "transfer/tar.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

#include "base/text.hpp"

namespace berth::transfer {
namespace {

constexpr size_t kRecord = 512;
constexpr uint64_t kMaxSpecial = uint64_t{1} << 20;  // as Go: a pax header or GNU long name
constexpr int kMaxSpecialsInARow = 16;
constexpr uint64_t kMaxSize = uint64_t{1} << 60;
constexpr std::string_view kXattrPrefix = "SCHILY.xattr.";

Error corrupt(std::string what) {
  return make_error(Kind::corrupt, "tar: " + std::move(what));
}

/// A field of text ends at its first NUL or at its full width.
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
    // Two's complement over the whole field; what does not fit 63 bits is no number of ours.
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

/// Old writers summed signed bytes.
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
  return std::all_of(record.begin(), record.end(), [](char c) { return c == '\0'; });
}

std::string header_path(std::string_view record) {
  std::string name(text_field(record, 0, 100));
  if (record.substr(257, 6) != std::string_view("ustar\0", 6)) return name;
  bool star = record.substr(508, 4) == std::string_view("tar\0", 4);
  std::string prefix(text_field(record, 345, star ? 131 : 155));
  return prefix.empty() ? name : prefix + "/" + name;
}

using PaxRecords = std::map<std::string, std::string, std::less<>>;

/// "LENGTH KEY=VALUE\n", LENGTH counting all of it.
Result<PaxRecords> parse_pax(std::string_view text) {
  PaxRecords records;
  while (!text.empty()) {
    size_t blank = text.find(' ');
    auto length = parse_u64(text.substr(0, std::min(blank, text.size())));
    if (!length || *length > text.size() || *length < blank + 4) {
      return corrupt("a pax header has a record of a wrong length");
    }
    std::string_view record = text.substr(blank + 1, *length - blank - 2);
    size_t equals = record.find('=');
    if (text[*length - 1] != '\n' || equals == 0 || equals == record.npos) {
      return corrupt("a pax header has a record without a key or an end");
    }
    std::string_view key = record.substr(0, equals);
    std::string_view value = record.substr(equals + 1);
    bool is_name = key == "path" || key == "linkpath";
    if (key.find('\0') != key.npos || (is_name && value.find('\0') != value.npos)) {
      return corrupt("a pax header has a NUL in a name");
    }
    records.insert_or_assign(std::string(key), std::string(value));
    text.remove_prefix(*length);
  }
  return records;
}

/// "1700000000.25" → seconds and nanoseconds; more digits are cut, as Go does.
std::optional<std::pair<int64_t, uint32_t>> parse_pax_time(std::string_view text) {
  size_t dot = text.find('.');
  auto seconds = parse_i64(text.substr(0, dot));
  if (!seconds) return std::nullopt;
  uint32_t nanoseconds = 0;
  if (dot != text.npos) {
    std::string digits(text.substr(dot + 1, 9));
    if (text.find_first_not_of("0123456789", dot + 1) != text.npos) return std::nullopt;
    digits.resize(9, '0');
    nanoseconds = static_cast<uint32_t>(*parse_u64(digits));
  }
  if (text.starts_with('-') && nanoseconds != 0) {
    return std::pair(*seconds - 1, 1'000'000'000 - nanoseconds);
  }
  return std::pair(*seconds, nanoseconds);
}

/// What a pax header says wins over the fields; an empty value gives the field back its word.
Result<void> apply_pax(const PaxRecords& records, TarEntry& entry) {
  for (const auto& [key, value] : records) {
    if (key.starts_with("GNU.sparse.")) {
      return make_error(
          Kind::unsupported,
          "tar: entry " + quoted(entry.path) + " is sparse, which image layers are not",
          "tar without --sparse");
    }
    if (key.starts_with(kXattrPrefix)) {
      entry.xattrs.emplace_back(key.substr(kXattrPrefix.size()), value);
      continue;
    }
    if (value.empty()) continue;
    if (key == "path") entry.path = value;
    if (key == "linkpath") entry.link = value;
    if (key == "size" || key == "uid" || key == "gid") {
      auto number = parse_u64(value);
      if (!number || *number > kMaxSize) {
        return corrupt("entry " + quoted(entry.path) + ": pax " + key + " " +
                       quoted(value.substr(0, 40)) + " is no valid number");
      }
      (key == "size" ? entry.size : key == "uid" ? entry.uid : entry.gid) = *number;
    }
    if (key == "mtime") {
      auto time = parse_pax_time(value);
      if (!time) return corrupt("entry " + quoted(entry.path) + ": pax mtime is no valid time");
      std::tie(entry.mtime, entry.mtime_nanoseconds) = *time;
    }
  }
  return {};
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
               *size <= static_cast<int64_t>(kMaxSize);
  if (!valid)
    return corrupt("entry " + quoted(entry.path) + " has a field that is no valid number");
  entry.mode = static_cast<uint32_t>(*mode) & 07777;
  entry.uid = static_cast<uint64_t>(*uid);
  entry.gid = static_cast<uint64_t>(*gid);
  entry.size = static_cast<uint64_t>(*size);
  entry.mtime = *mtime;
  entry.mtime_nanoseconds = 0;
  entry.device_major = entry.device_minor = 0;
  entry.xattrs.clear();
  return {};
}

Result<void> read_device(std::string_view record, TarEntry& entry) {
  auto major = number_field(record, 329, 8);
  auto minor = number_field(record, 337, 8);
  if (!major || !minor || *major < 0 || *minor < 0) {
    return corrupt("entry " + quoted(entry.path) + " has no valid device number");
  }
  entry.device_major = static_cast<uint64_t>(*major);
  entry.device_minor = static_cast<uint64_t>(*minor);
  return {};
}

std::optional<TarEntry::Type> entry_type(char flag, const std::string& path) {
  using Type = TarEntry::Type;
  switch (flag) {
    case '\0':
    case '0':
    case '7':
      return path.ends_with('/') ? Type::directory : Type::file;  // v7 had no directories
    case '1':
      return Type::hard_link;
    case '2':
      return Type::symlink;
    case '3':
      return Type::character_device;
    case '4':
      return Type::block_device;
    case '5':
      return Type::directory;
    case '6':
      return Type::fifo;
    default:
      return std::nullopt;
  }
}

}  // namespace

/// What the special members before a member say about it.
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
      return corrupt("the archive ends inside a header");
    }
    size_t take = std::min(kRecord - record.size(), window_.size());
    record.append(window_.substr(0, take));
    window_.remove_prefix(take);
  }
  return true;
}

Result<std::string_view> TarReader::content() {
  if (left_ == 0) return std::string_view();
  if (window_.empty() && !TRY(refill())) return corrupt("the archive ends inside a file");
  std::string_view part = window_.substr(0, left_);
  window_.remove_prefix(part.size());
  left_ -= part.size();
  return part;
}

Result<void> TarReader::skip_rest() {
  while (left_ > 0) TRY(content());
  // umoci ends a layer right after its last file. As in Go's reader that is an end, no damage.
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
    return corrupt(std::string(kind) + " of " + std::to_string(size) +
                   " bytes, more than the 1 MiB allowed");
  }
  std::string text;
  while (text.size() < size) text += TRY(content());
  return text;
}

Result<bool> TarReader::next(TarEntry& entry) {
  if (at_end_) return false;
  Extensions extensions;
  std::string record;
  for (int specials = 0; specials <= kMaxSpecialsInARow; ++specials) {
    TRY(skip_rest());
    if (!TRY(read_record(record))) {
      at_end_ = true;
      return false;
    }
    if (is_zero(record)) {
      bool more = TRY(read_record(record));
      if (more && !is_zero(record)) return corrupt("data follows a zero block");
      at_end_ = true;
      return false;
    }
    if (!checksum_holds(record)) return corrupt("a header has a wrong checksum");
    TRY(read_fields(record, entry));
    char flag = record[156];
    left_ = entry.size;
    padding_ = (kRecord - entry.size % kRecord) % kRecord;

    if (flag == 'x' || flag == 'X' || flag == 'L' || flag == 'K') {
      std::string text = TRY(read_special(entry.size, "an extended header"));
      if (flag == 'x' || flag == 'X') {
        extensions.pax = TRY(parse_pax(text));
      } else {
        std::string& name = flag == 'L' ? extensions.gnu_path : extensions.gnu_link;
        name = text.substr(0, std::min(text.find('\0'), text.size()));
      }
      continue;
    }
    // Global headers hold a commit id or the like; docker ignores them, too.
    if (flag == 'g') {
      TRY(read_special(entry.size, "a global header"));
      continue;
    }
    TRY(apply_pax(extensions.pax, entry));
    if (!extensions.gnu_path.empty()) entry.path = extensions.gnu_path;
    if (!extensions.gnu_link.empty()) entry.link = extensions.gnu_link;
    auto type = entry_type(flag, entry.path);
    if (!type) {
      return make_error(Kind::unsupported, "tar: entry " + quoted(entry.path) + " has the type " +
                                               quoted(std::string_view(&flag, 1)) +
                                               ", which is no file, link, device or directory");
    }
    entry.type = *type;
    bool device = entry.type == TarEntry::Type::character_device ||
                  entry.type == TarEntry::Type::block_device;
    if (device) TRY(read_device(record, entry));
    // Some writers give links and directories a size without content (Go: isHeaderOnlyType).
    bool has_content = entry.type == TarEntry::Type::file;
    if (!has_content) entry.size = 0;
    left_ = entry.size;
    padding_ = (kRecord - entry.size % kRecord) % kRecord;
    return true;
  }
  return corrupt("more than 16 extended headers before one entry");
}

}  // namespace berth::transfer
