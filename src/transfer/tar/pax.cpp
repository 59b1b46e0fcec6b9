// SPDX-License-Identifier: Apache-2.0
#include "transfer/tar/pax.hpp"

#include <algorithm>
#include <iterator>
#include <tuple>
#include <utility>

#include "base/text.hpp"
#include "transfer/tar/acl.hpp"
#include "transfer/work/base64.hpp"

namespace berth::transfer {
namespace {

constexpr std::string_view kSchilyXattr = "SCHILY.xattr.";
constexpr std::string_view kLibarchiveXattr = "LIBARCHIVE.xattr.";

Error corrupt_pax(std::string what) {
  return make_error(Kind::corrupt, "tar: " + std::move(what));
}

Result<void> add_record(std::string_view key, std::string_view value, PaxRecords& records) {
  constexpr std::string_view kNames[] = {"path", "linkpath", "GNU.sparse.name"};
  bool is_name = std::ranges::find(kNames, key) != std::end(kNames);
  if (key.find('\0') != key.npos || (is_name && value.find('\0') != value.npos)) {
    return corrupt_pax("a pax header has a NUL in a name");
  }
  // Of these two keys, and only of these, every occurrence counts, in order.
  if (key == "GNU.sparse.offset" || key == "GNU.sparse.numbytes") {
    if (!records.sparse_list.empty()) records.sparse_list += ',';
    records.sparse_list += value.substr(0, 21);
    return {};
  }
  records.values.insert_or_assign(std::string(key), std::string(value));
  return {};
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

/// "user.a%20b" → "user.a b".
std::string decode_url(std::string_view text) {
  auto digit = [](char c) -> int {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
  };
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    bool coded =
        text[i] == '%' && i + 2 < text.size() && digit(text[i + 1]) >= 0 && digit(text[i + 2]) >= 0;
    plain += coded ? static_cast<char>(digit(text[i + 1]) * 16 + digit(text[i + 2])) : text[i];
    if (coded) i += 2;
  }
  return plain;
}

using Attributes = std::map<std::string, std::string, std::less<>>;

/// A list that cannot be parsed becomes an empty value, which is reported later.
void set_acl(TarEntry& entry, std::string_view key, std::string_view text, Attributes& found) {
  auto acl = Acl::parse_text(text);
  bool complete = acl && !acl->unknown_names;
  if (acl && !complete && key == kAccessAcl) entry.mode = acl->tighten(entry.mode);
  found.insert_or_assign(std::string(key), complete ? acl->value() : std::string());
}

/// libarchive writes each attribute under two keys. If the name of the attribute needs encoding,
/// only the SCHILY key has it encoded: "user.a%20b" for "user.a b".
bool is_coded_twin(const std::string& key, const PaxRecords& records) {
  if (!key.starts_with(kSchilyXattr)) return false;
  std::string name = key.substr(kSchilyXattr.size());
  return decode_url(name) != name && records.values.contains(std::string(kLibarchiveXattr) + name);
}

/// False if the record is not about an attribute.
bool apply_attribute(const std::string& key, const std::string& value, TarEntry& entry,
                     Attributes& found) {
  if (key.starts_with(kSchilyXattr)) {
    found.insert_or_assign(key.substr(kSchilyXattr.size()), value);
  } else if (key.starts_with(kLibarchiveXattr)) {
    std::string name = decode_url(std::string_view(key).substr(kLibarchiveXattr.size()));
    auto bytes = base64_decode(value);
    if (bytes && name.find('\0') == name.npos) found.insert_or_assign(name, *bytes);
  } else if (key == "SCHILY.acl.access") {
    set_acl(entry, kAccessAcl, value, found);
  } else if (key == "SCHILY.acl.default") {
    set_acl(entry, kDefaultAcl, value, found);
  } else {
    return false;
  }
  return true;
}

}  // namespace

std::string_view PaxRecords::value(std::string_view key) const {
  auto found = values.find(key);
  return found == values.end() ? std::string_view() : std::string_view(found->second);
}

Result<PaxRecords> parse_pax(std::string_view text) {
  PaxRecords records;
  while (!text.empty()) {
    size_t blank = text.find(' ');
    auto length = parse_u64(text.substr(0, std::min(blank, text.size())));
    if (!length || *length > text.size() || *length < blank + 4) {
      return corrupt_pax("a pax header has a record of a wrong length");
    }
    std::string_view record = text.substr(blank + 1, *length - blank - 2);
    size_t equals = record.find('=');
    if (text[*length - 1] != '\n' || equals == 0 || equals == record.npos) {
      return corrupt_pax("a pax header has a record without a key or an end");
    }
    TRY(add_record(record.substr(0, equals), record.substr(equals + 1), records));
    text.remove_prefix(*length);
  }
  return records;
}

Result<void> apply_pax(const PaxRecords& records, TarEntry& entry) {
  Attributes found;
  for (const auto& [key, value] : records.values) {
    if (is_coded_twin(key, records)) continue;
    if (apply_attribute(key, value, entry, found)) continue;
    if (value.empty()) continue;
    if (key == "path") entry.path = value;
    if (key == "linkpath") entry.link = value;
    if (key == "size" || key == "uid" || key == "gid") {
      auto number = parse_u64(value);
      if (!number || *number > kMaxTarNumber) {
        return corrupt_pax("entry " + quote(entry.path) + ": pax " + key + " " +
                           quote(value.substr(0, 40)) + " is not a valid number");
      }
      (key == "size" ? entry.size : key == "uid" ? entry.uid : entry.gid) = *number;
    }
    if (key == "mtime") {
      auto time = parse_pax_time(value);
      if (!time)
        return corrupt_pax("entry " + quote(entry.path) + ": pax mtime is not a valid time");
      std::tie(entry.mtime, entry.mtime_nanoseconds) = *time;
    }
  }
  entry.xattrs.assign(std::make_move_iterator(found.begin()), std::make_move_iterator(found.end()));
  // In the later forms of sparse members, the path is a substitute for old programs.
  std::string_view name = records.value("GNU.sparse.name");
  if (!name.empty()) entry.path = name;
  return {};
}

Result<SparseKind> sparse_kind(const PaxRecords& records, const TarEntry& entry) {
  std::string_view major = records.value("GNU.sparse.major");
  std::string_view minor = records.value("GNU.sparse.minor");
  bool older = major.empty() || (major == "0" && (minor == "0" || minor == "1"));
  if (older) {
    bool has_list = !records.sparse_list.empty() || records.values.contains("GNU.sparse.map") ||
                    records.values.contains("GNU.sparse.size");
    return has_list ? SparseKind::list : SparseKind::none;
  }
  if (major == "1" && minor == "0") return SparseKind::lines;
  return make_error(Kind::unsupported, "tar: entry " + quote(entry.path) +
                                           " is sparse in the form " +
                                           quote(std::string(major) + "." + std::string(minor)) +
                                           ", which GNU tar does not have");
}

Result<uint64_t> sparse_size(const PaxRecords& records, const TarEntry& entry) {
  std::string_view text = records.value("GNU.sparse.realsize");
  if (text.empty()) text = records.value("GNU.sparse.size");
  auto size = parse_u64(text);
  if (!size || *size > kMaxTarNumber) {
    return corrupt_pax("entry " + quote(entry.path) + " is sparse and has no valid size");
  }
  return *size;
}

}  // namespace berth::transfer
