// SPDX-License-Identifier: Apache-2.0
#include "scan/loader_cache.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <set>
#include <utility>

static_assert(std::endian::native == std::endian::little, "the cache has the machine's byte order");

namespace berth::scan {
namespace {

using namespace std::string_view_literals;

constexpr std::string_view kOldMagic = "ld.so-1.7.0\0"sv;
constexpr std::string_view kNewMagic = "glibc-ld.so.cache1.1";
constexpr size_t kOldHeader = 16, kOldEntry = 12;
constexpr size_t kNewHeader = 48, kNewEntry = 24;
constexpr uint32_t kExtensionMagic = 0xEAA42174;
constexpr uint32_t kHwcapsTag = 1;  // cache_extension_tag_glibc_hwcaps
constexpr uint64_t kHwcapExtension = uint64_t{1} << 62;
constexpr size_t kMaxEntries = 200'000;
constexpr size_t kMaxHwcaps = 64;
constexpr unsigned char kLittleEndian = 2;  // cache_file_new_flags_endian_little

Error corrupt(std::string what) {
  return make_error(Kind::corrupt, "loader cache: " + what);
}

template <class T>
T number(std::string_view bytes, size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

template <class T>
void append(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

Result<std::string> string_at(std::string_view bytes, size_t at) {
  if (at >= bytes.size()) return corrupt("string outside of the file");
  size_t end = bytes.find('\0', at);
  if (end == std::string_view::npos) return corrupt("string without an end");
  return std::string(bytes.substr(at, end - at));
}

// Strings follow the entries; an offset counts from there.
Result<LoaderCache> read_old(std::string_view bytes, size_t count) {
  LoaderCache cache;
  std::string_view strings = bytes.substr(kOldHeader + count * kOldEntry);
  for (size_t i = 0; i < count; ++i) {
    size_t at = kOldHeader + i * kOldEntry;
    // One TRY a statement: leaving an initialiser half-way would leak the members already made.
    LoaderEntry& entry = cache.entries.emplace_back();
    entry.soname = TRY(string_at(strings, number<uint32_t>(bytes, at + 4)));
    entry.path = TRY(string_at(strings, number<uint32_t>(bytes, at + 8)));
    entry.flags = number<int32_t>(bytes, at);
  }
  return cache;
}

Result<std::vector<std::string>> read_hwcaps(std::string_view bytes, size_t extension) {
  std::vector<std::string> names;
  if (extension == 0) return names;
  if (extension > bytes.size() || bytes.size() - extension < 8)
    return corrupt("extension outside of the file");
  if (number<uint32_t>(bytes, extension) != kExtensionMagic) return corrupt("unknown extension");
  size_t sections = number<uint32_t>(bytes, extension + 4);
  if (sections > kMaxHwcaps || bytes.size() - extension - 8 < sections * 16)
    return corrupt("extension outside of the file");
  for (size_t i = 0; i < sections; ++i) {
    size_t at = extension + 8 + i * 16;
    if (number<uint32_t>(bytes, at) != kHwcapsTag) continue;
    size_t offset = number<uint32_t>(bytes, at + 8), size = number<uint32_t>(bytes, at + 12);
    if (offset > bytes.size() || size > bytes.size() - offset || size / 4 > kMaxHwcaps) {
      return corrupt("extension outside of the file");
    }
    for (size_t k = 0; k + 4 <= size; k += 4) {
      names.push_back(TRY(string_at(bytes, number<uint32_t>(bytes, offset + k))));
    }
  }
  return names;
}

Result<LoaderCache> read_new(std::string_view bytes) {
  if (bytes.size() < kNewHeader) return corrupt("header outside of the file");
  size_t count = number<uint32_t>(bytes, 20);
  auto endian = static_cast<unsigned char>(bytes[28]) & 3;
  if (endian != 0 && endian != kLittleEndian) {
    return make_error(Kind::unsupported, "loader cache: of another byte order");
  }
  if (count > kMaxEntries || (bytes.size() - kNewHeader) / kNewEntry < count) {
    return corrupt("entries outside of the file");
  }
  LoaderCache cache;
  cache.hwcap_names = TRY(read_hwcaps(bytes, number<uint32_t>(bytes, 32)));
  for (size_t i = 0; i < count; ++i) {
    size_t at = kNewHeader + i * kNewEntry;
    LoaderEntry& entry = cache.entries.emplace_back();
    entry.soname = TRY(string_at(bytes, number<uint32_t>(bytes, at + 4)));
    entry.path = TRY(string_at(bytes, number<uint32_t>(bytes, at + 8)));
    entry.flags = number<int32_t>(bytes, at);
    entry.os_version = number<uint32_t>(bytes, at + 12);
    entry.hwcap = number<uint64_t>(bytes, at + 16);
    if ((entry.hwcap & kHwcapExtension) != 0 &&
        static_cast<uint32_t>(entry.hwcap) >= cache.hwcap_names.size()) {
      return corrupt("unknown hwcaps directory");
    }
  }
  return cache;
}

// ldconfig's order: names descending; then the flags; then variants for newer processors first,
// because the loader stops at the first plain entry (glibc elf/cache.c compare()).
bool goes_before(const LoaderEntry& left, const LoaderEntry& right) {
  int names = compare_library_names(left.soname, right.soname);
  if (names != 0) return names > 0;
  if (left.flags != right.flags) return left.flags > right.flags;
  bool left_variant = (left.hwcap & kHwcapExtension) != 0;
  bool right_variant = (right.hwcap & kHwcapExtension) != 0;
  if (left_variant != right_variant) return left_variant;
  return !left_variant && left.hwcap > right.hwcap;
}

}  // namespace

int compare_library_names(std::string_view left, std::string_view right) {
  auto digit = [](char c) { return c >= '0' && c <= '9'; };
  size_t l = 0, r = 0;
  while (l < left.size()) {
    char right_char = r < right.size() ? right[r] : '\0';
    if (digit(left[l])) {
      if (!digit(right_char)) return 1;  // digits sort after everything else
      size_t l_start = l, r_start = r;
      while (l < left.size() && digit(left[l])) ++l;
      while (r < right.size() && digit(right[r])) ++r;
      // Compared as numbers of any length. glibc computes ints; a name long enough to overflow one
      // is not a library's.
      auto strip = [](std::string_view text) {
        while (text.size() > 1 && text.front() == '0') text.remove_prefix(1);
        return text;
      };
      std::string_view l_number = strip(left.substr(l_start, l - l_start));
      std::string_view r_number = strip(right.substr(r_start, r - r_start));
      if (l_number.size() != r_number.size()) return l_number.size() < r_number.size() ? -1 : 1;
      if (int order = l_number.compare(r_number); order != 0) return order;
    } else if (digit(right_char)) {
      return -1;
    } else if (left[l] != right_char) {
      return static_cast<int>(left[l]) - static_cast<int>(right_char);
    } else {
      ++l;
      ++r;
    }
  }
  return r < right.size() ? -1 : 0;
}

Result<LoaderCache> read_loader_cache(std::string_view bytes) {
  if (bytes.starts_with(kNewMagic)) return read_new(bytes);
  if (!bytes.starts_with(kOldMagic) || bytes.size() < kOldHeader) return corrupt("unknown magic");
  size_t count = number<uint32_t>(bytes, 12);
  if (count > kMaxEntries || (bytes.size() - kOldHeader) / kOldEntry < count) {
    return corrupt("entries outside of the file");
  }
  // The newer part follows at the next multiple of its alignment, 8; its strings count from its own
  // start.
  size_t after = (kOldHeader + count * kOldEntry + 7) / 8 * 8;
  if (after < bytes.size() && bytes.substr(after).starts_with(kNewMagic)) {
    return read_new(bytes.substr(after));
  }
  return read_old(bytes, count);
}

std::string write_loader_cache(const LoaderCache& cache) {
  std::vector<LoaderEntry> entries = cache.entries;
  std::stable_sort(entries.begin(), entries.end(), goes_before);
  size_t strings_at = kNewHeader + entries.size() * kNewEntry;
  std::string table, strings;
  auto place = [&](const std::string& text) {
    auto at = static_cast<uint32_t>(strings_at + strings.size());
    strings.append(text).push_back('\0');
    return at;
  };
  for (const LoaderEntry& entry : entries) {
    append<int32_t>(table, entry.flags);
    append<uint32_t>(table, place(entry.soname));
    append<uint32_t>(table, place(entry.path));
    append<uint32_t>(table, entry.os_version);
    append<uint64_t>(table, entry.hwcap);
  }
  std::string hwcaps;
  for (const std::string& name : cache.hwcap_names) append<uint32_t>(hwcaps, place(name));
  size_t strings_size = strings.size();
  std::string extension;
  size_t extension_at = 0;
  if (!hwcaps.empty()) {
    strings.append((8 - (strings_at + strings.size()) % 8) % 8, '\0');
    extension_at = strings_at + strings.size();
    append<uint32_t>(extension, kExtensionMagic);
    append<uint32_t>(extension, 1);
    append<uint32_t>(extension, kHwcapsTag);
    append<uint32_t>(extension, 0);
    append<uint32_t>(extension, static_cast<uint32_t>(extension_at + 24));
    append<uint32_t>(extension, static_cast<uint32_t>(hwcaps.size()));
  }
  std::string out(kNewMagic);
  append<uint32_t>(out, static_cast<uint32_t>(entries.size()));
  append<uint32_t>(out, static_cast<uint32_t>(strings_size));
  append<uint32_t>(out, kLittleEndian);
  append<uint32_t>(out, static_cast<uint32_t>(extension_at));
  out.append(12, '\0');
  return out + table + strings + extension + hwcaps;
}

std::optional<int32_t> loader_flags(ElfClass elf_class, uint16_t machine) {
  constexpr int32_t kElfLibc6 = 3;
  bool wide = elf_class == ElfClass::elf64;
  if (wide && machine == kMachineX86_64) return 0x0300 | kElfLibc6;
  if (wide && machine == kMachineAarch64) return 0x0A00 | kElfLibc6;
  if (!wide && machine == kMachine386) return kElfLibc6;
  if (!wide && machine == kMachineArm) return 0x0900 | kElfLibc6;
  return std::nullopt;
}

LoaderCache merge(LoaderCache base, const std::vector<LoaderEntry>& added) {
  std::set<std::pair<std::string_view, int32_t>> names;
  for (const LoaderEntry& entry : added) names.emplace(entry.soname, entry.flags);
  std::erase_if(base.entries, [&](const LoaderEntry& entry) {
    return names.contains({std::string_view(entry.soname), entry.flags});
  });
  base.entries.insert(base.entries.end(), added.begin(), added.end());
  return base;
}

}  // namespace berth::scan
