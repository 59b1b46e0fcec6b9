// SPDX-License-Identifier: Apache-2.0
#include "facts/versions.hpp"

#include <algorithm>
#include <array>

#include "facts/window.hpp"
#include "scan/driver_files.hpp"

namespace berth::facts {
namespace {

constexpr uint64_t kStrings = 5, kStringsSize = 10, kDefinitions = 0x6fff'fffc,
                   kDefinitionCount = 0x6fff'fffd, kNeeds = 0x6fff'fffe, kNeedCount = 0x6fff'ffff;
// libc.so.6 defines about 60 versions, and a library needs versions of about a dozen others.
constexpr uint64_t kMaxVersionEntries = 4096;
constexpr size_t kMaxName = 128;
constexpr uint64_t kWeak = 2, kBase = 1;
constexpr std::array<std::string_view, 6> kFamilies = {"GLIBC", "GLIBCXX",  "CXXABI",
                                                       "GCC",   "GFORTRAN", "GOMP"};

void add(std::map<std::string, std::string>& highest, std::string_view name) {
  // The mark of relative relocations, which glibc 2.36 introduced.
  if (name == "GLIBC_ABI_DT_RELR") name = "GLIBC_2.36";
  size_t line = name.rfind('_');
  if (line == std::string_view::npos) return;
  std::string_view family = name.substr(0, line), version = name.substr(line + 1);
  if (std::ranges::find(kFamilies, family) == kFamilies.end()) return;
  if (version.empty() || version.find_first_not_of("0123456789.") != version.npos) return;
  std::string& known = highest[std::string(family)];
  if (known.empty() || scan::compare_versions(known, version) < 0) known = version;
}

class Tables {
 public:
  Tables(const scan::ElfFile& elf, const scan::ReadAt& read_at)
      : elf_(elf), file_(read_at), names_(read_at) {}

  Result<void> read_needs(std::map<std::string, std::string>& needs);
  Result<void> read_definitions(std::map<std::string, std::string>& offers);

 private:
  struct Table {
    uint64_t at = 0, count = 0;  ///< count 0: there is no table
  };
  Result<Table> table(uint64_t address_tag, uint64_t count_tag) const;
  Result<std::string> name(uint64_t offset);
  Result<void> count_one() {
    if (++entries_ <= kMaxVersionEntries) return {};
    return make_error(Kind::corrupt, "ELF: too many symbol versions");
  }

  const scan::ElfFile& elf_;
  Window file_;
  Window names_;
  uint64_t entries_ = 0;
};

Result<Tables::Table> Tables::table(uint64_t address_tag, uint64_t count_tag) const {
  auto address = elf_.dynamic_value(address_tag);
  if (!address) return Table{};
  auto at = elf_.file_offset(*address);
  if (!at) return make_error(Kind::corrupt, "ELF: symbol versions outside of the segments");
  return Table{*at, elf_.dynamic_value(count_tag).value_or(0)};
}

Result<std::string> Tables::name(uint64_t offset) {
  auto strings = elf_.dynamic_value(kStrings);
  auto at = strings ? elf_.file_offset(*strings) : std::nullopt;
  if (!at || offset >= elf_.dynamic_value(kStringsSize).value_or(0)) {
    return make_error(Kind::corrupt, "ELF: name of a version outside of its table");
  }
  // The names are together at the end of the table, so one read gets them all.
  std::string_view text = TRY(names_.read(*at + offset, kMaxName));
  return std::string(text.substr(0, text.find('\0')));
}

// The tables are linked lists: every entry has the offset of the next one.
Result<void> Tables::read_needs(std::map<std::string, std::string>& needs) {
  Table needed = TRY(table(kNeeds, kNeedCount));
  for (uint64_t i = 0, at = needed.at; i < needed.count; ++i) {
    TRY(count_one());
    std::string_view entry = TRY(file_.need(at, 16, "ELF: needed versions"));
    uint64_t count = number_at(entry, 2, 2), next = number_at(entry, 12, 4);
    uint64_t version_at = at + number_at(entry, 8, 4);
    for (uint64_t j = 0; j < count; ++j) {
      TRY(count_one());
      std::string_view version = TRY(file_.need(version_at, 16, "ELF: needed versions"));
      bool weak = (number_at(version, 4, 2) & kWeak) != 0;
      uint64_t name_at = number_at(version, 8, 4), step = number_at(version, 12, 4);
      if (!weak) {
        std::string text = TRY(name(name_at));
        add(needs, text);
      }
      if (step == 0) break;
      version_at += step;
    }
    if (next == 0) break;
    at += next;
  }
  return {};
}

Result<void> Tables::read_definitions(std::map<std::string, std::string>& offers) {
  Table defined = TRY(table(kDefinitions, kDefinitionCount));
  for (uint64_t i = 0, at = defined.at; i < defined.count; ++i) {
    TRY(count_one());
    std::string_view entry = TRY(file_.need(at, 20, "ELF: defined versions"));
    bool base = (number_at(entry, 2, 2) & kBase) != 0;  // the name of the library itself
    uint64_t first = at + number_at(entry, 12, 4), next = number_at(entry, 16, 4);
    if (!base) {
      std::string_view name_of = TRY(file_.need(first, 8, "ELF: defined versions"));
      std::string text = TRY(name(number_at(name_of, 0, 4)));
      add(offers, text);
    }
    if (next == 0) break;
    at += next;
  }
  return {};
}

}  // namespace

Result<SymbolVersions> read_symbol_versions(const scan::ElfFile& elf, const scan::ReadAt& read_at) {
  SymbolVersions versions;
  Tables tables(elf, read_at);
  TRY(tables.read_needs(versions.needs));
  TRY(tables.read_definitions(versions.offers));
  return versions;
}

}  // namespace berth::facts
