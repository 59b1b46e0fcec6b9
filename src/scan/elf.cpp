// SPDX-License-Identifier: Apache-2.0
#include "scan/elf.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace berth::scan {
namespace {

// The limits are far above what linkers write (libcuda has 13 segments, 31 sections and a string
// table of 100 kB), but low enough to be read quickly.
constexpr size_t kMaxHeaders = 512;
constexpr size_t kMaxDynamic = 4096;
constexpr size_t kMaxNeeded = 512;
constexpr size_t kMaxName = 4096;
constexpr size_t kMaxSectionName = 256;
constexpr size_t kMaxNoteBytes = 1 << 20;

constexpr uint64_t kNeededTag = 1, kStringsTag = 5, kStringsSizeTag = 10, kSonameTag = 14,
                   kRpathTag = 15, kRunpathTag = 29;

Error corrupt(std::string_view what) {
  return make_error(Kind::corrupt, fmt::format("ELF: {}", what));
}

// The file being read; the ELF class decides the width of fields.
class File {
 public:
  explicit File(const ReadAt& read_at) : read_at_(read_at) {}

  Result<void> read_header();
  Result<void> read_segments();
  Result<void> read_interpreter();
  Result<void> read_dynamic();
  Result<void> read_sections();
  Result<void> read_notes();
  ElfFile take() { return std::move(elf_); }

 private:
  bool wide() const { return elf_.elf_class == ElfClass::elf64; }

  /// Exactly `size` bytes. Errors: corrupt, if the file ends earlier.
  Result<std::string> bytes(uint64_t offset, uint64_t size, std::string_view what) {
    if (offset > UINT64_MAX - size) return corrupt(fmt::format("{} outside of the file", what));
    std::string out = TRY(read_at_(offset, static_cast<size_t>(size)));
    if (out.size() != size) return corrupt(fmt::format("{} outside of the file", what));
    return out;
  }

  // A little-endian number from a table that bytes() has checked.
  static uint64_t number(std::string_view table, size_t at, size_t width) {
    uint64_t value = 0;
    for (size_t i = 0; i < width && at + i < table.size(); ++i) {
      value |= uint64_t{static_cast<unsigned char>(table[at + i])} << (8 * i);
    }
    return value;
  }
  uint64_t word(std::string_view table, size_t at) const {
    return number(table, at, wide() ? 8 : 4);
  }

  Result<std::string> string_at(uint64_t table, uint64_t table_size, uint64_t at);
  Result<void> parse_notes(std::string_view section, std::string_view table, uint64_t alignment);

  const ReadAt& read_at_;
  ElfFile elf_;
  uint64_t segments_at_ = 0, sections_at_ = 0;
  size_t segment_count_ = 0, section_count_ = 0, names_index_ = 0;
};

Result<void> File::read_header() {
  std::string head = TRY(read_at_(0, 64));
  if (head.size() < 52 || head.compare(0, 4,
                                       "\x7f"
                                       "ELF") != 0) {
    return make_error(Kind::unsupported, "ELF: not an ELF file");
  }
  if (head[4] != 1 && head[4] != 2) return corrupt("unknown class");
  if (head[5] != 1) return make_error(Kind::unsupported, "ELF: not little-endian");
  elf_.elf_class = head[4] == 2 ? ElfClass::elf64 : ElfClass::elf32;
  if (wide() && head.size() < 64) return corrupt("header outside of the file");
  elf_.type = static_cast<uint16_t>(number(head, 16, 2));
  elf_.machine = static_cast<uint16_t>(number(head, 18, 2));
  elf_.entry = word(head, 24);
  segments_at_ = word(head, wide() ? 32 : 28);
  sections_at_ = word(head, wide() ? 40 : 32);
  size_t counts = wide() ? 54 : 42;
  size_t segment_size = number(head, counts, 2), section_size = number(head, counts + 4, 2);
  segment_count_ = number(head, counts + 2, 2);
  section_count_ = number(head, counts + 6, 2);
  names_index_ = number(head, counts + 8, 2);
  if (segment_count_ > kMaxHeaders || section_count_ > kMaxHeaders)
    return corrupt("too many headers");
  if (segment_count_ != 0 && segment_size != (wide() ? 56U : 32U)) return corrupt("segment size");
  if (section_count_ != 0 && section_size != (wide() ? 64U : 40U)) return corrupt("section size");
  return {};
}

Result<void> File::read_segments() {
  size_t size = wide() ? 56 : 32;
  std::string table = TRY(bytes(segments_at_, segment_count_ * size, "segments"));
  for (size_t i = 0; i < segment_count_; ++i) {
    std::string_view row = std::string_view(table).substr(i * size, size);
    elf_.segments.push_back({.type = static_cast<uint32_t>(number(row, 0, 4)),
                             .address = word(row, wide() ? 16 : 8),
                             .offset = word(row, wide() ? 8 : 4),
                             .alignment = word(row, wide() ? 48 : 28),
                             .size = word(row, wide() ? 32 : 16)});
  }
  return {};
}

Result<void> File::read_interpreter() {
  for (const ElfSegment& segment : elf_.segments) {
    if (segment.type != kSegmentInterpreter || segment.size > kMaxName) continue;
    elf_.interpreter = TRY(bytes(segment.offset, segment.size, "interpreter"));
    elf_.interpreter.resize(std::min(elf_.interpreter.size(), elf_.interpreter.find('\0')));
  }
  return {};
}

Result<std::string> File::string_at(uint64_t table, uint64_t table_size, uint64_t at) {
  if (at >= table_size || table > UINT64_MAX - at) return corrupt("string outside of its table");
  size_t room = static_cast<size_t>(std::min<uint64_t>(table_size - at, kMaxName));
  std::string text = TRY(read_at_(table + at, room));
  size_t end = text.find('\0');
  if (end == std::string::npos) return corrupt("string without an end");
  text.resize(end);
  return text;
}

Result<void> File::read_dynamic() {
  auto dynamic = std::ranges::find(elf_.segments, kSegmentDynamic, &ElfSegment::type);
  if (dynamic == elf_.segments.end()) return {};  // a static program
  size_t entry = wide() ? 16 : 8;
  if (dynamic->size / entry > kMaxDynamic) return corrupt("dynamic section too long");
  std::string table = TRY(bytes(dynamic->offset, dynamic->size, "dynamic section"));
  uint64_t strings = 0, strings_size = 0;
  std::optional<uint64_t> soname, rpath, runpath;
  std::vector<uint64_t> needed;
  for (size_t at = 0; at + entry <= table.size(); at += entry) {
    uint64_t tag = word(table, at), value = word(table, at + entry / 2);
    if (tag == 0) break;
    elf_.dynamic.emplace_back(tag, value);
    if (tag == kNeededTag) needed.push_back(value);
    if (tag == kStringsTag) strings = value;
    if (tag == kStringsSizeTag) strings_size = value;
    if (tag == kSonameTag) soname = value;
    if (tag == kRpathTag) rpath = value;
    if (tag == kRunpathTag) runpath = value;
  }
  if (!soname && !rpath && !runpath && needed.empty()) return {};
  if (needed.size() > kMaxNeeded) return corrupt("too many needed libraries");
  auto table_at = elf_.file_offset(strings);
  if (!table_at) return corrupt("string table outside of the segments");
  if (soname) elf_.soname = TRY(string_at(*table_at, strings_size, *soname));
  if (rpath) elf_.rpath = TRY(string_at(*table_at, strings_size, *rpath));
  if (runpath) elf_.runpath = TRY(string_at(*table_at, strings_size, *runpath));
  for (uint64_t at : needed) elf_.needed.push_back(TRY(string_at(*table_at, strings_size, at)));
  return {};
}

Result<void> File::read_sections() {
  size_t size = wide() ? 64 : 40;
  std::string table = TRY(bytes(sections_at_, section_count_ * size, "sections"));
  std::vector<uint64_t> names;
  for (size_t i = 0; i < section_count_; ++i) {
    std::string_view row = std::string_view(table).substr(i * size, size);
    names.push_back(number(row, 0, 4));
    elf_.sections.push_back({.name = {},
                             .type = static_cast<uint32_t>(number(row, 4, 4)),
                             .address = word(row, wide() ? 16 : 12),
                             .offset = word(row, wide() ? 24 : 16),
                             .size = word(row, wide() ? 32 : 20),
                             .alignment = word(row, wide() ? 48 : 32)});
  }
  if (names_index_ >= section_count_) return {};
  const ElfSection& strings = elf_.sections[names_index_];
  if (strings.size > kMaxNoteBytes) return {};
  std::string text = TRY(bytes(strings.offset, strings.size, "section names"));
  for (size_t i = 0; i < section_count_; ++i) {
    if (names[i] >= text.size()) continue;
    std::string_view name = std::string_view(text).substr(names[i], kMaxSectionName);
    elf_.sections[i].name = name.substr(0, name.find('\0'));
  }
  return {};
}

Result<void> File::parse_notes(std::string_view section, std::string_view table,
                               uint64_t alignment) {
  // gABI: name and descriptor are padded to 4 bytes; in sections with alignment 8 to 8.
  size_t pad = alignment == 8 ? 8 : 4;
  auto padded = [pad](size_t size) { return (size + pad - 1) / pad * pad; };
  for (size_t at = 0; at + 12 <= table.size();) {
    size_t owner_size = number(table, at, 4), content_size = number(table, at + 4, 4);
    auto type = static_cast<uint32_t>(number(table, at + 8, 4));
    size_t owner_at = at + 12;
    size_t content_at = padded(owner_at + owner_size);
    if (owner_at + owner_size > table.size() || content_at > table.size() ||
        content_size > table.size() - content_at) {
      return corrupt("note outside of its section");
    }
    std::string owner(table.substr(owner_at, owner_size));
    while (!owner.empty() && owner.back() == '\0') owner.pop_back();
    elf_.notes.push_back({.section = std::string(section),
                          .owner = std::move(owner),
                          .type = type,
                          .content = std::string(table.substr(content_at, content_size))});
    at = padded(content_at + content_size);
  }
  return {};
}

// Reads notes by section if the file has sections, because these have names, else by segment, which
// stripped files keep.
Result<void> File::read_notes() {
  uint64_t total = 0;
  for (const ElfSection& section : elf_.sections) {
    if (section.type != kSectionNote || section.size > kMaxNoteBytes - total) continue;
    total += section.size;
    std::string table = TRY(bytes(section.offset, section.size, "notes"));
    TRY(parse_notes(section.name, table, section.alignment));
  }
  if (section_count_ != 0) return {};
  for (const ElfSegment& segment : elf_.segments) {
    if (segment.type != kSegmentNote || segment.size > kMaxNoteBytes - total) continue;
    total += segment.size;
    std::string table = TRY(bytes(segment.offset, segment.size, "notes"));
    TRY(parse_notes("", table, segment.alignment));
  }
  return {};
}

}  // namespace

std::optional<uint64_t> ElfFile::file_offset(uint64_t address) const {
  for (const ElfSegment& segment : segments) {
    if (segment.type != kSegmentLoad || address < segment.address) continue;
    uint64_t inside = address - segment.address;
    if (inside < segment.size && segment.offset <= UINT64_MAX - inside) {
      return segment.offset + inside;
    }
  }
  return std::nullopt;
}

std::optional<uint64_t> ElfFile::dynamic_value(uint64_t tag) const {
  for (const auto& [known, value] : dynamic) {
    if (known == tag) return value;
  }
  return std::nullopt;
}

Result<ElfFile> read_elf(const ReadAt& read_at) {
  File file(read_at);
  TRY(file.read_header());
  TRY(file.read_segments());
  TRY(file.read_interpreter());
  TRY(file.read_dynamic());
  TRY(file.read_sections());
  TRY(file.read_notes());
  return file.take();
}

Result<ElfFile> read_elf(std::string_view bytes) {
  return read_elf([bytes](uint64_t offset, size_t length) -> Result<std::string> {
    if (offset >= bytes.size()) return std::string();
    return std::string(bytes.substr(static_cast<size_t>(offset), length));
  });
}

}  // namespace berth::scan
