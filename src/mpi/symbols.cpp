// SPDX-License-Identifier: Apache-2.0
#include "mpi/symbols.hpp"

#include <algorithm>
#include <map>

namespace berth::mpi {
namespace {

constexpr uint64_t kHash = 4, kStrings = 5, kSymbols = 6, kStringsSize = 10,
                   kSymbolVersions = 0x6fff'fff0, kDefinitions = 0x6fff'fffc,
                   kDefinitionCount = 0x6fff'fffd, kNeeds = 0x6fff'fffe, kNeedCount = 0x6fff'ffff;
constexpr uint32_t kSymbolSection = 11;  // SHT_DYNSYM
constexpr size_t kSymbolSize = 24;
// Far above real libraries: Intel's libmpi has about twenty thousand symbols.
constexpr uint64_t kMaxSymbols = 300'000, kMaxStrings = uint64_t{32} << 20, kMaxVersions = 4096;
constexpr size_t kMaxName = 4096, kMaxNameBytes = size_t{32} << 20, kMaxTable = size_t{1} << 20;
constexpr size_t kMaxVersionText = 64;
constexpr uint64_t kWeakNeed = 2, kBaseDefinition = 1;
constexpr uint64_t kGlobal = 1, kWeak = 2, kUnique = 10;  // STB_*

uint64_t number_at(std::string_view bytes, size_t at, size_t width) {
  uint64_t value = 0;
  for (size_t i = 0; i < width && at + i < bytes.size(); ++i) {
    value |= uint64_t{static_cast<unsigned char>(bytes[at + i])} << (8 * i);
  }
  return value;
}

Error corrupt(std::string_view what) {
  return make_error(Kind::corrupt, "ELF: " + std::string(what));
}

bool keeps_version(std::string_view name) {
  return name == "MPII_Version_string" || name == "MPIR_Version_string" ||
         name == "ompi_version_string";
}

class Tables {
 public:
  Tables(const scan::ElfFile& elf, const scan::ReadAt& read_at) : elf_(elf), read_at_(read_at) {}

  Result<Symbols> run() {
    TRY(read_strings());
    TRY(read_needs());
    TRY(read_definitions());
    TRY(read_names());
    return std::move(found_);
  }

 private:
  Result<std::string> table(uint64_t address_tag, uint64_t size, std::string_view what) const;
  std::string_view text_at(uint64_t at) const;
  Result<void> read_strings();
  Result<void> read_needs();
  Result<void> read_definitions();
  Result<uint64_t> count_symbols() const;
  Result<void> read_names();
  Result<void> read_mpi_version(uint64_t address);

  const scan::ElfFile& elf_;
  const scan::ReadAt& read_at_;
  std::string strings_;
  std::map<uint64_t, size_t> need_of_;  ///< by the number of the version in the table of symbols
  uint64_t symbols_ = 0;
  Symbols found_;
};

/// Up to `size` bytes of the table at the address that the dynamic section has under `address_tag`;
/// empty if the tag is missing.
Result<std::string> Tables::table(uint64_t address_tag, uint64_t size,
                                  std::string_view what) const {
  auto address = elf_.dynamic_value(address_tag);
  if (!address) return std::string();
  auto at = elf_.file_offset(*address);
  if (!at) return corrupt(std::string(what) + " outside of the segments");
  return read_at_(*at, static_cast<size_t>(size));
}

Result<void> Tables::read_strings() {
  uint64_t size = elf_.dynamic_value(kStringsSize).value_or(0);
  if (size > kMaxStrings) return corrupt("strings too long");
  strings_ = TRY(table(kStrings, size, "strings"));
  if (strings_.size() != size) return corrupt("strings outside of the file");
  return {};
}

/// The string at `at`; empty if `at` is outside of the table.
std::string_view Tables::text_at(uint64_t at) const {
  if (at >= strings_.size()) return {};
  std::string_view rest = std::string_view(strings_).substr(static_cast<size_t>(at), kMaxName);
  return rest.substr(0, rest.find('\0'));
}

// Both version tables are linked lists: every entry has the offset of the next one.
Result<void> Tables::read_needs() {
  std::string bytes = TRY(table(kNeeds, kMaxTable, "needed versions"));
  uint64_t files = elf_.dynamic_value(kNeedCount).value_or(0), entries = 0;
  for (uint64_t i = 0, at = 0; i < files; ++i) {
    if (at + 16 > bytes.size()) return corrupt("needed versions outside of the file");
    uint64_t count = number_at(bytes, at + 2, 2), next = number_at(bytes, at + 12, 4);
    std::string library(text_at(number_at(bytes, at + 4, 4)));
    uint64_t one = at + number_at(bytes, at + 8, 4);
    for (uint64_t j = 0; j < count; ++j) {
      if (++entries > kMaxVersions) return corrupt("too many needed versions");
      if (one + 16 > bytes.size()) return corrupt("needed versions outside of the file");
      bool weak = (number_at(bytes, one + 4, 2) & kWeakNeed) != 0;
      if (!weak) {
        need_of_[number_at(bytes, one + 6, 2)] = found_.needs.size();
        found_.needs.push_back({library, std::string(text_at(number_at(bytes, one + 8, 4))), {}});
      }
      uint64_t step = number_at(bytes, one + 12, 4);
      if (step == 0) break;
      one += step;
    }
    if (next == 0) break;
    at += next;
  }
  return {};
}

Result<void> Tables::read_definitions() {
  std::string bytes = TRY(table(kDefinitions, kMaxTable, "defined versions"));
  uint64_t count = elf_.dynamic_value(kDefinitionCount).value_or(0);
  if (count > kMaxVersions) return corrupt("too many defined versions");
  for (uint64_t i = 0, at = 0; i < count; ++i) {
    if (at + 20 > bytes.size()) return corrupt("defined versions outside of the file");
    bool base = (number_at(bytes, at + 2, 2) & kBaseDefinition) != 0;  // the library's own name
    uint64_t first = at + number_at(bytes, at + 12, 4), next = number_at(bytes, at + 16, 4);
    if (first + 8 > bytes.size()) return corrupt("defined versions outside of the file");
    if (!base) found_.offers.emplace(text_at(number_at(bytes, first, 4)));
    if (next == 0) break;
    at += next;
  }
  return {};
}

/// The dynamic section does not have the number of symbols: it follows from the size of the
/// section, or from the older hash table.
Result<uint64_t> Tables::count_symbols() const {
  uint64_t count = 0;
  for (const scan::ElfSection& section : elf_.sections) {
    if (section.type == kSymbolSection) count = section.size / kSymbolSize;
  }
  if (count == 0) {
    std::string hashes = TRY(table(kHash, 8, "hashes"));
    count = number_at(hashes, 4, 4);
  }
  if (count > kMaxSymbols) return corrupt("too many symbols");
  return count;
}

Result<void> Tables::read_names() {
  symbols_ = TRY(count_symbols());
  std::string symbols = TRY(table(kSymbols, symbols_ * kSymbolSize, "symbols"));
  if (symbols.empty()) return {};
  if (symbols.size() != symbols_ * kSymbolSize) return corrupt("symbols outside of the file");
  std::string versions = TRY(table(kSymbolVersions, symbols_ * 2, "versions of symbols"));
  size_t taken = 0;  // names may overlap in the file
  std::optional<uint64_t> text;
  for (size_t i = 1; i < symbols_; ++i) {
    std::string_view row = std::string_view(symbols).substr(i * kSymbolSize, kSymbolSize);
    uint64_t bind = number_at(row, 4, 1) >> 4, visibility = number_at(row, 5, 1) & 3;
    if (bind != kGlobal && bind != kWeak && bind != kUnique) continue;
    std::string_view name = text_at(number_at(row, 0, 4));
    if (name.empty()) continue;
    taken += name.size();
    if (taken > kMaxNameBytes) return corrupt("names longer than the file");
    bool undefined = number_at(row, 6, 2) == 0;
    if (!undefined) {
      bool shown = visibility == 0 || visibility == 3;  // STV_DEFAULT, STV_PROTECTED
      if (shown) found_.defined.emplace(name);
      if (keeps_version(name)) text = number_at(row, 8, 8);
      continue;
    }
    auto need = need_of_.find(number_at(versions, i * 2, 2) & 0x7fff);
    if (need != need_of_.end() && found_.needs[need->second].symbol.empty()) {
      found_.needs[need->second].symbol = name;
    }
    if (bind == kGlobal) found_.undefined.emplace(name);
  }
  return text ? read_mpi_version(*text) : Result<void>();
}

Result<void> Tables::read_mpi_version(uint64_t address) {
  auto at = elf_.file_offset(address);
  if (!at) return {};
  std::string text = TRY(read_at_(*at, kMaxVersionText));
  text.resize(std::min(text.size(), text.find('\0')));
  bool plain = !text.empty() && std::ranges::all_of(text, [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' ||
           c == '-' || c == '+';
  });
  if (plain) found_.mpi_version = std::move(text);
  return {};
}

}  // namespace

Result<Symbols> read_symbols(const scan::ElfFile& elf, const scan::ReadAt& read_at) {
  if (elf.elf_class != scan::ElfClass::elf64) {
    return make_error(Kind::unsupported, "ELF: a file of 32 bits");
  }
  return Tables(elf, read_at).run();
}

}  // namespace berth::mpi
