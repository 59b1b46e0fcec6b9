// SPDX-License-Identifier: Apache-2.0
#include "scan/loader.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <iterator>
#include <map>
#include <set>
#include <string_view>
#include <tuple>

static_assert(std::endian::native == std::endian::little, "the cache has the machine's byte order");

namespace berth::scan {

std::string expand_origin(std::string directories, const std::string& origin) {
  // The result is limited, because a hostile list may contain $ORIGIN many times.
  constexpr size_t kMaxLength = size_t{64} << 10;
  for (std::string_view word : {"$ORIGIN", "${ORIGIN}"}) {
    size_t at = directories.find(word);
    while (at != std::string::npos && directories.size() < kMaxLength) {
      directories.replace(at, word.size(), origin);
      at = directories.find(word, at + origin.size());
    }
  }
  return directories;
}

std::string parent_of(const std::string& path) {
  size_t slash = path.rfind('/');
  return slash == 0 || slash == std::string::npos ? "/" : path.substr(0, slash);
}

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
constexpr size_t kMaxString = 4096;               // PATH_MAX
constexpr size_t kMaxStrings = size_t{32} << 20;  // total length; strings may overlap in the file
constexpr size_t kMaxHwcaps = 64;
constexpr unsigned char kLittleEndian = 2;  // cache_file_new_flags_endian_little

Error corrupt_cache(std::string what) {
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

/// An entry that refers to strings of its file or of `added`.
struct EntryView {
  std::string_view soname;
  std::string_view path;
  int32_t flags = 0;
  uint32_t os_version = 0;
  uint64_t hwcap = 0;
};

struct CacheView {
  std::vector<EntryView> entries;
  std::vector<std::string_view> hwcap_names;
};

/// The strings of one file. Each one is short, and their total length is limited: otherwise, if all
/// entries refer to one long string, the written file would be a thousand times as large as the one
/// that was read.
class Strings {
 public:
  explicit Strings(std::string_view bytes) : bytes_(bytes) {}
  Result<std::string_view> at(size_t place) {
    if (place >= bytes_.size()) return corrupt_cache("string outside of the file");
    std::string_view rest = bytes_.substr(place, kMaxString + 1);
    size_t end = rest.find('\0');
    if (end == std::string_view::npos) return corrupt_cache("string without an end");
    total_ += end;
    if (total_ > kMaxStrings) return corrupt_cache("strings longer than the file");
    return rest.substr(0, end);
  }

 private:
  std::string_view bytes_;
  size_t total_ = 0;
};

// Strings follow the entries; their offsets count from the end of the entries.
Result<CacheView> view_old(std::string_view bytes, size_t count) {
  CacheView cache;
  Strings strings(bytes.substr(kOldHeader + count * kOldEntry));
  cache.entries.resize(count);
  for (size_t i = 0; i < count; ++i) {
    size_t at = kOldHeader + i * kOldEntry;
    // One TRY per statement: leaving an initialiser half-way would leak the members already made.
    EntryView& entry = cache.entries[i];
    entry.soname = TRY(strings.at(number<uint32_t>(bytes, at + 4)));
    entry.path = TRY(strings.at(number<uint32_t>(bytes, at + 8)));
    entry.flags = number<int32_t>(bytes, at);
  }
  return cache;
}

Result<std::vector<std::string_view>> view_hwcaps(std::string_view bytes, size_t extension) {
  std::vector<std::string_view> names;
  if (extension == 0) return names;
  if (extension > bytes.size() || bytes.size() - extension < 8)
    return corrupt_cache("extension outside of the file");
  if (number<uint32_t>(bytes, extension) != kExtensionMagic)
    return corrupt_cache("unknown extension");
  size_t sections = number<uint32_t>(bytes, extension + 4);
  if (sections > kMaxHwcaps || bytes.size() - extension - 8 < sections * 16)
    return corrupt_cache("extension outside of the file");
  Strings strings(bytes);
  for (size_t i = 0; i < sections; ++i) {
    size_t at = extension + 8 + i * 16;
    if (number<uint32_t>(bytes, at) != kHwcapsTag) continue;
    size_t offset = number<uint32_t>(bytes, at + 8), size = number<uint32_t>(bytes, at + 12);
    if (offset > bytes.size() || size > bytes.size() - offset || size / 4 > kMaxHwcaps) {
      return corrupt_cache("extension outside of the file");
    }
    for (size_t k = 0; k + 4 <= size; k += 4) {
      names.push_back(TRY(strings.at(number<uint32_t>(bytes, offset + k))));
    }
  }
  return names;
}

Result<CacheView> view_new(std::string_view bytes) {
  if (bytes.size() < kNewHeader) return corrupt_cache("header outside of the file");
  size_t count = number<uint32_t>(bytes, 20);
  auto endian = static_cast<unsigned char>(bytes[28]) & 3;
  if (endian != 0 && endian != kLittleEndian) {
    return make_error(Kind::unsupported, "loader cache: of another byte order");
  }
  if (count > kMaxEntries || (bytes.size() - kNewHeader) / kNewEntry < count) {
    return corrupt_cache("entries outside of the file");
  }
  CacheView cache;
  cache.hwcap_names = TRY(view_hwcaps(bytes, number<uint32_t>(bytes, 32)));
  Strings strings(bytes);
  cache.entries.resize(count);
  for (size_t i = 0; i < count; ++i) {
    size_t at = kNewHeader + i * kNewEntry;
    EntryView& entry = cache.entries[i];
    entry.soname = TRY(strings.at(number<uint32_t>(bytes, at + 4)));
    entry.path = TRY(strings.at(number<uint32_t>(bytes, at + 8)));
    entry.flags = number<int32_t>(bytes, at);
    entry.os_version = number<uint32_t>(bytes, at + 12);
    entry.hwcap = number<uint64_t>(bytes, at + 16);
    if ((entry.hwcap & kHwcapExtension) != 0 &&
        static_cast<uint32_t>(entry.hwcap) >= cache.hwcap_names.size()) {
      return corrupt_cache("unknown hwcaps directory");
    }
  }
  return cache;
}

Result<CacheView> view_cache(std::string_view bytes) {
  if (bytes.starts_with(kNewMagic)) return view_new(bytes);
  if (!bytes.starts_with(kOldMagic) || bytes.size() < kOldHeader)
    return corrupt_cache("unknown magic");
  size_t count = number<uint32_t>(bytes, 12);
  if (count > kMaxEntries || (bytes.size() - kOldHeader) / kOldEntry < count) {
    return corrupt_cache("entries outside of the file");
  }
  // The newer part follows at the next multiple of 8; offsets of its strings count from the start
  // of that part.
  size_t after = (kOldHeader + count * kOldEntry + 7) / 8 * 8;
  if (after < bytes.size() && bytes.substr(after).starts_with(kNewMagic)) {
    return view_new(bytes.substr(after));
  }
  return view_old(bytes, count);
}

EntryView view_of(const LoaderEntry& entry) {
  return {entry.soname, entry.path, entry.flags, entry.os_version, entry.hwcap};
}

// The order of ldconfig: by descending name, then by flags, then variants for newer processors
// first, because the loader stops at the first plain entry (glibc elf/cache.c compare()).
bool goes_before(const EntryView& left, const EntryView& right) {
  int names = compare_library_names(left.soname, right.soname);
  if (names != 0) return names > 0;
  if (left.flags != right.flags) return left.flags > right.flags;
  bool left_variant = (left.hwcap & kHwcapExtension) != 0;
  bool right_variant = (right.hwcap & kHwcapExtension) != 0;
  if (left_variant != right_variant) return left_variant;
  return !left_variant && left.hwcap > right.hwcap;
}

void sort_entries(std::vector<EntryView>& entries) {
  // Entries from ldconfig and from our own code are sorted already.
  if (std::ranges::is_sorted(entries, goes_before)) return;
  std::ranges::stable_sort(entries, goes_before);
}

std::string write_view(const CacheView& cache) {
  const auto& entries = cache.entries;
  size_t strings_at = kNewHeader + entries.size() * kNewEntry;
  size_t strings_size = 0;
  for (const EntryView& entry : entries)
    strings_size += entry.soname.size() + entry.path.size() + 2;
  for (std::string_view name : cache.hwcap_names) strings_size += name.size() + 1;
  size_t aligned = cache.hwcap_names.empty() ? 0 : (8 - (strings_at + strings_size) % 8) % 8;
  size_t extension_at = cache.hwcap_names.empty() ? 0 : strings_at + strings_size + aligned;
  std::string out;
  out.reserve(strings_at + strings_size + aligned + 24 + cache.hwcap_names.size() * 4);
  out += kNewMagic;
  append<uint32_t>(out, static_cast<uint32_t>(entries.size()));
  append<uint32_t>(out, static_cast<uint32_t>(strings_size));
  append<uint32_t>(out, kLittleEndian);
  append<uint32_t>(out, static_cast<uint32_t>(extension_at));
  out.append(12, '\0');
  auto at = static_cast<uint32_t>(strings_at);
  for (const EntryView& entry : entries) {
    append<int32_t>(out, entry.flags);
    append<uint32_t>(out, at);
    at += static_cast<uint32_t>(entry.soname.size() + 1);
    append<uint32_t>(out, at);
    at += static_cast<uint32_t>(entry.path.size() + 1);
    append<uint32_t>(out, entry.os_version);
    append<uint64_t>(out, entry.hwcap);
  }
  for (const EntryView& entry : entries) {
    out.append(entry.soname).push_back('\0');
    out.append(entry.path).push_back('\0');
  }
  if (cache.hwcap_names.empty()) return out;
  for (std::string_view name : cache.hwcap_names) out.append(name).push_back('\0');
  out.append(aligned, '\0');
  append<uint32_t>(out, kExtensionMagic);
  append<uint32_t>(out, 1);
  append<uint32_t>(out, kHwcapsTag);
  append<uint32_t>(out, 0);
  append<uint32_t>(out, static_cast<uint32_t>(extension_at + 24));
  append<uint32_t>(out, static_cast<uint32_t>(cache.hwcap_names.size() * 4));
  for (std::string_view name : cache.hwcap_names) {
    append<uint32_t>(out, at);
    at += static_cast<uint32_t>(name.size() + 1);
  }
  return out;
}

/// Like merge(), for sorted `base` and `added`.
std::vector<EntryView> merge_sorted(const std::vector<EntryView>& base,
                                    const std::vector<EntryView>& added) {
  std::vector<EntryView> merged;
  merged.reserve(base.size() + added.size());
  size_t from = 0;  // index of the first of `added` with a name not before that of the entry
  size_t next = 0;  // index of the first of `added` that is not in `merged` yet
  auto order = [&](size_t i, const EntryView& entry) {
    return compare_library_names(added[i].soname, entry.soname);
  };
  for (const EntryView& entry : base) {
    int first = -1;
    while (from < added.size() && (first = order(from, entry)) > 0) ++from;
    bool replaced = false;
    // Names that compare equal may differ: "libc.so.6", "libc.so.06".
    for (size_t i = from; first == 0 && i < added.size() && order(i, entry) == 0; ++i) {
      replaced = replaced || (added[i].soname == entry.soname && added[i].flags == entry.flags);
    }
    if (replaced) continue;
    bool later = next == from && first < 0;  // later by name, so no further comparison is needed
    while (!later && next < added.size() && goes_before(added[next], entry)) {
      merged.push_back(added[next++]);
    }
    merged.push_back(entry);
  }
  merged.insert(merged.end(), added.begin() + static_cast<ptrdiff_t>(next), added.end());
  return merged;
}

std::string_view directory_of(std::string_view path) {
  return path.substr(0, path.rfind('/'));
}

std::string_view name_of(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

constexpr std::string_view kCompatPlace = "/usr/local/cuda/compat/";

/// Removes the effects of `added` from a cache; returns false if there were none.
bool drop_added(std::vector<LoaderEntry>& entries, const std::vector<LoaderEntry>& added) {
  std::set<std::pair<std::string, std::string>> there;
  bool cuda = false;
  for (const LoaderEntry& entry : added) {
    there.emplace(directory_of(entry.path), entry.soname);
    cuda = cuda || entry.soname == "libcuda.so.1";
  }
  for (const LibraryLink& link : default_links(added)) {
    // With a merged /usr, ldconfig may use the other name of the directory.
    for (const char* directory : {"/usr/lib", "/lib"}) there.emplace(directory, name_of(link.path));
  }
  return std::erase_if(entries, [&](const LoaderEntry& entry) {
           return is_in_driver_place(entry.path) ||
                  (cuda && entry.path.starts_with(kCompatPlace)) ||
                  there.contains({std::string(directory_of(entry.path)), entry.soname});
         }) != 0;
}

std::vector<LoaderEntry> entries_of(std::string_view bytes) {
  auto cache = read_loader_cache(bytes);
  return cache.ok() ? std::move(cache->entries) : std::vector<LoaderEntry>();
}

}  // namespace

bool is_in_driver_place(std::string_view path) {
  return std::ranges::any_of(kDriverPlaces, [&](auto place) {
    return path.starts_with(place) && path.substr(place.size()).starts_with('/');
  });
}

int compare_library_names(std::string_view left, std::string_view right) {
  auto digit = [](char c) { return c >= '0' && c <= '9'; };
  // The common prefix only matters for finding the start of a number.
  size_t same = 0, most = std::min(left.size(), right.size());
  while (same < most && left[same] == right[same]) ++same;
  while (same > 0 && digit(left[same - 1])) --same;
  size_t l = same, r = same;
  while (l < left.size()) {
    char right_char = r < right.size() ? right[r] : '\0';
    if (digit(left[l])) {
      if (!digit(right_char)) return 1;  // digits sort after everything else
      size_t l_start = l, r_start = r;
      while (l < left.size() && digit(left[l])) ++l;
      while (r < right.size() && digit(right[r])) ++r;
      // Compared as numbers of any length. glibc computes ints, but no library has a name whose
      // number overflows one.
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
  CacheView view = TRY(view_cache(bytes));
  LoaderCache cache;
  cache.entries.reserve(view.entries.size());
  for (const EntryView& entry : view.entries) {
    cache.entries.push_back({std::string(entry.soname), std::string(entry.path), entry.flags,
                             entry.os_version, entry.hwcap});
  }
  for (std::string_view name : view.hwcap_names) cache.hwcap_names.emplace_back(name);
  return cache;
}

std::string write_loader_cache(const LoaderCache& cache) {
  CacheView view;
  for (const LoaderEntry& entry : cache.entries) view.entries.push_back(view_of(entry));
  for (const std::string& name : cache.hwcap_names) view.hwcap_names.emplace_back(name);
  sort_entries(view.entries);
  return write_view(view);
}

std::string merged_loader_cache(std::string_view image, const std::vector<LoaderEntry>& added) {
  auto read = view_cache(image);
  CacheView cache = read.ok() ? std::move(*read) : CacheView{};
  std::vector<EntryView> views;
  views.reserve(added.size());
  for (const LoaderEntry& entry : added) views.push_back(view_of(entry));
  sort_entries(views);
  sort_entries(cache.entries);
  cache.entries = merge_sorted(cache.entries, views);
  return write_view(cache);
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

std::string loader_cache_without(std::string_view bytes, const std::vector<LoaderEntry>& added) {
  auto cache = read_loader_cache(bytes);
  if (!cache.ok() || !drop_added(cache->entries, added)) return std::string(bytes);
  return write_loader_cache(*cache);
}

bool is_same_but_for(std::string_view own, std::string_view image,
                     const std::vector<LoaderEntry>& added) {
  auto order = [](const LoaderEntry& left, const LoaderEntry& right) {
    return std::tie(left.soname, left.path, left.flags, left.hwcap) <
           std::tie(right.soname, right.path, right.flags, right.hwcap);
  };
  std::set<std::string_view> names;
  for (const LoaderEntry& entry : added) names.insert(entry.soname);
  std::vector<LoaderEntry> left = entries_of(own);
  std::vector<LoaderEntry> right = entries_of(image);
  drop_added(left, added);
  drop_added(right, added);
  std::ranges::sort(left, order);
  std::ranges::sort(right, order);
  if (!std::includes(right.begin(), right.end(), left.begin(), left.end(), order)) return false;
  std::vector<LoaderEntry> missing;
  std::set_difference(right.begin(), right.end(), left.begin(), left.end(),
                      std::back_inserter(missing), order);
  // An added library has replaced the image's.
  return std::ranges::all_of(
      missing, [&](const LoaderEntry& entry) { return names.contains(entry.soname); });
}

std::string without_number(const std::string& soname) {
  size_t dot = soname.find(".so.");
  return dot == std::string::npos ? soname : soname.substr(0, dot + 3);
}

std::vector<LibraryLink> default_links(const std::vector<LoaderEntry>& entries) {
#if defined(__x86_64__)
  constexpr uint16_t kMachine = kMachineX86_64;
#else
  constexpr uint16_t kMachine = kMachineAarch64;
#endif
  auto native = loader_flags(ElfClass::elf64, kMachine);
  std::map<std::string, std::string> links;
  for (const LoaderEntry& entry : entries) {
    if (entry.flags != native || !is_in_driver_place(entry.path)) continue;
    links.emplace("/usr/lib/" + entry.soname, entry.path);
  }
  std::vector<LibraryLink> list;
  for (auto& [path, target] : links) list.push_back({path, std::move(target)});
  return list;
}

std::vector<LibraryLink> linker_links(const std::vector<LoaderEntry>& entries) {
  std::vector<LibraryLink> links = default_links(entries);
  std::erase_if(links, [](const LibraryLink& link) {
    std::string_view soname = name_of(link.path);
    return soname.find(".so.") != soname.npos && name_of(link.target) == soname;
  });
  return links;
}

std::string loader_configuration(const std::vector<LoaderEntry>& entries) {
  std::string text;
  std::set<std::string_view> known;
  for (const LoaderEntry& entry : entries) {
    std::string_view directory = directory_of(entry.path);
    if (known.insert(directory).second) text.append(directory).push_back('\n');
  }
  return text;
}

}  // namespace berth::scan
