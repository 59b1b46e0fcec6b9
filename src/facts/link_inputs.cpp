// SPDX-License-Identifier: Apache-2.0
#include "facts/link_inputs.hpp"

#include <algorithm>
#include <array>

#include "base/text.hpp"
#include "facts/window.hpp"

namespace berth::facts {
namespace {

constexpr size_t kElfHeader = 64, kRow = 64;
constexpr uint64_t kUnnumbered = 0xffff;
constexpr uint64_t kMaxSections = 1'000'000;
constexpr size_t kArchiveHeader = 60;
// The largest static library of CUDA has about 10,000 members.
constexpr uint64_t kMaxObjects = 500'000;
constexpr std::array<std::string_view, 2> kSections = {{".nv_fatbin", "__nv_relfatbin"}};
constexpr size_t kLongestName = 15;

Error corrupt(std::string_view what) {
  return make_error(Kind::corrupt, std::string(what));
}

/// An object file inside of another file.
class Object {
 public:
  /// The tables of neighbouring objects are in one window; `file` is the caller's.
  Object(const scan::ReadAt& read_at, Window& file, uint64_t offset, uint64_t size)
      : read_at_(read_at), file_(file), names_(read_at), offset_(offset), size_(size) {}

  Result<void> read(FoundCode& found);

 private:
  Result<std::string> row(uint64_t index);
  Result<bool> holds_code(uint64_t name);
  /// Whether the object has `size` bytes at `at`.
  bool has(uint64_t at, uint64_t size) const { return at <= size_ && size <= size_ - at; }

  const scan::ReadAt& read_at_;
  Window& file_;
  Window names_;
  const uint64_t offset_, size_;
  uint64_t table_ = 0, names_at_ = 0, names_size_ = 0;
};

Result<std::string> Object::row(uint64_t index) {
  if (index > kMaxSections || !has(table_, (index + 1) * kRow) ||
      table_ > UINT64_MAX / 2 - offset_) {
    return corrupt("object: sections outside of the file");
  }
  std::string_view bytes =
      TRY(file_.need(offset_ + table_ + index * kRow, kRow, "object: sections"));
  return std::string(bytes);
}

Result<bool> Object::holds_code(uint64_t name) {
  if (name >= names_size_) return false;
  std::string_view text = TRY(names_.read(offset_ + names_at_ + name, kLongestName));
  text = text.substr(0, text.find('\0'));
  return std::ranges::find(kSections, text) != kSections.end();
}

Result<void> Object::read(FoundCode& found) {
  constexpr char kWide = 2, kLittleEndian = 1;
  std::string header(TRY(file_.read(offset_, kElfHeader)));
  bool is_object = header.size() == kElfHeader && size_ >= kElfHeader &&
                   header.starts_with(kElfMagic) && header[4] == kWide &&
                   header[5] == kLittleEndian && number_at(header, 16, 2) == kRelocatable &&
                   number_at(header, 58, 2) == kRow;
  if (!is_object) return {};
  if (auto target = cubin_target(header)) {
    found.code.insert(std::move(*target));
    return {};
  }
  table_ = number_at(header, 40, 8);
  uint64_t count = number_at(header, 60, 2), names_index = number_at(header, 62, 2);
  if (table_ == 0) return {};
  std::string first = TRY(row(0));  // which has the numbers that are too large for the header
  if (count == 0) count = number_at(first, 32, 8);
  if (names_index == kUnnumbered) names_index = number_at(first, 40, 4);
  if (count > kMaxSections) return corrupt("object: too many sections");
  std::string names = TRY(row(names_index));
  names_at_ = number_at(names, 24, 8);
  names_size_ = number_at(names, 32, 8);
  if (!has(names_at_, names_size_) || names_at_ > UINT64_MAX / 2 - offset_) {
    return corrupt("object: names of sections outside of the file");
  }
  uint64_t end = 0;  // each byte is read once
  for (uint64_t i = 1; i < count; ++i) {
    constexpr uint64_t kAllocated = 2, kCode = 4;
    std::string section = TRY(row(i));
    uint64_t flags = number_at(section, 8, 8);
    uint64_t at = number_at(section, 24, 8), size = number_at(section, 32, 8);
    bool may_hold = number_at(section, 4, 4) != scan::kSectionNoBits && size != 0 &&
                    (flags & kAllocated) != 0 && (flags & kCode) == 0;
    if (!may_hold || at < end) continue;
    bool holds = TRY(holds_code(number_at(section, 0, 4)));
    if (!holds) continue;
    if (!has(at, size) || at > UINT64_MAX / 2 - offset_) {
      return corrupt("object: GPU code outside of the file");
    }
    TRY(read_fat_binaries(read_at_, offset_ + at, size, found));
    end = at + size;
  }
  return {};
}

}  // namespace

Result<void> read_object(const scan::ReadAt& read_at, uint64_t offset, uint64_t size,
                         FoundCode& found) {
  Window file(read_at);
  return Object(read_at, file, offset, size).read(found);
}

Result<void> read_archive(const scan::ReadAt& read_at, FoundCode& found) {
  Window file(read_at);
  uint64_t at = kArchiveMagic.size();
  for (uint64_t members = 0;; ++members) {
    if (members > kMaxObjects) return corrupt("archive: too many members");
    // With it comes the beginning of the member.
    std::string header(TRY(file.read(at, kArchiveHeader + kElfHeader)));
    if (header.empty()) {
      std::string last = TRY(read_at(at - 1, 1));
      // The padding of the last member may be missing.
      if (last.empty() && at % 2 == 0) last = TRY(read_at(at - 2, 1));
      return last.empty() ? Result<void>(corrupt("archive: a member outside of the file"))
                          : Result<void>();
    }
    constexpr size_t kSizeAt = 48, kSizeDigits = 10;
    constexpr std::string_view kEnd = "`\n";
    if (header.size() < kArchiveHeader || header.substr(58, 2) != kEnd) {
      return corrupt("archive: no header here");
    }
    std::string_view digits = std::string_view(header).substr(kSizeAt, kSizeDigits);
    auto size = parse_u64(digits.substr(0, digits.find(' ')));
    if (!size) return corrupt("archive: size of a member");
    at += kArchiveHeader;
    if (std::string_view(header).substr(kArchiveHeader).starts_with(kElfMagic)) {
      TRY(Object(read_at, file, at, *size).read(found));
    }
    at += *size + *size % 2;
  }
}

}  // namespace berth::facts
