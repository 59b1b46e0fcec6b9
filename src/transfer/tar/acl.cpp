// SPDX-License-Identifier: Apache-2.0
#include "transfer/tar/acl.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <tuple>

#include "base/text.hpp"

namespace berth::transfer {
namespace {

constexpr uint32_t kVersion = 2;
constexpr size_t kEntryBytes = 8;
constexpr size_t kMaxEntries = 1024;  // 8 KiB, more than any Linux file system takes except XFS

template <class T>
T take(std::string_view bytes, size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);  // all supported CPUs are little-endian
  return value;
}

template <class T>
void put(std::string& bytes, T value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

std::optional<uint16_t> parse_permissions(std::string_view text) {
  uint16_t bits = 0;
  for (char c : trim(text)) {
    if (c == 'r') bits |= 4;
    if (c == 'w') bits |= 2;
    if (c == 'x') bits |= 1;
    if (std::string_view("rwx-").find(c) == std::string_view::npos) return std::nullopt;
  }
  return bits;
}

std::optional<uint16_t> parse_tag(std::string_view word, bool named) {
  if (word == "user" || word == "u") return named ? Acl::user : Acl::owner;
  if (word == "group" || word == "g") return named ? Acl::group : Acl::owning_group;
  if (word == "mask" || word == "m") return Acl::mask;
  if (word == "other" || word == "o") return Acl::other;
  return std::nullopt;
}

std::optional<uint32_t> parse_id(std::string_view text) {
  auto number = parse_u64(text);
  if (!number || *number >= Acl::kNobody) return std::nullopt;
  return static_cast<uint32_t>(*number);
}

/// The parts of the string, without comments and blanks.
std::vector<std::string_view> parts_of(std::string_view text) {
  std::vector<std::string_view> parts;
  for (std::string_view line : split(text, '\n')) {
    for (std::string_view part : split(line.substr(0, line.find('#')), ',')) {
      if (!trim(part).empty()) parts.push_back(trim(part));
    }
  }
  return parts;
}

}  // namespace

const Acl::Entry* Acl::find(uint16_t tag) const {
  auto found = std::ranges::find(entries, tag, &Entry::tag);
  return found == entries.end() ? nullptr : &*found;
}

/// Sorts the entries as the kernel requires; false if it would refuse the list.
bool Acl::complete() {
  std::ranges::sort(entries, {}, [](const Entry& e) { return std::tuple(e.tag, e.id); });
  auto same = [](const Entry& a, const Entry& b) { return a.tag == b.tag && a.id == b.id; };
  if (std::ranges::adjacent_find(entries, same) != entries.end()) return false;
  bool whole = find(owner) && find(owning_group) && find(other);
  bool names = find(user) || find(group);
  return whole && (find(mask) || !names) && entries.size() <= kMaxEntries;
}

std::optional<Acl> Acl::parse_text(std::string_view text) {
  Acl acl;
  for (std::string_view part : parts_of(text)) {
    std::vector<std::string_view> fields = split(part, ':');
    // Solaris writes "other:r--" and "mask:r--".
    bool is_short = fields.size() == 2 && (fields[0] == "other" || fields[0] == "mask");
    if (is_short) fields.insert(fields.begin() + 1, std::string_view());
    if (fields.size() < 3 || fields.size() > 4 || acl.entries.size() == kMaxEntries) return {};
    auto tag = parse_tag(trim(fields[0]), !fields[1].empty());
    auto permissions = parse_permissions(fields[2]);
    if (!tag || !permissions) return {};
    Entry entry{*tag, *permissions, kNobody};
    if (*tag == user || *tag == group) {
      auto id = parse_id(fields.size() == 4 ? fields[3] : fields[1]);
      acl.unknown_names |= !id;
      if (!id) continue;
      entry.id = *id;
    }
    acl.entries.push_back(entry);
  }
  if (!acl.complete()) return {};
  return acl;
}

std::optional<Acl> Acl::parse(std::string_view value) {
  bool whole = value.size() >= 4 && (value.size() - 4) % kEntryBytes == 0;
  if (!whole || take<uint32_t>(value, 0) != kVersion) return {};
  Acl acl;
  if (value.size() / kEntryBytes > kMaxEntries) return {};
  for (size_t at = 4; at < value.size(); at += kEntryBytes) {
    Entry entry{take<uint16_t>(value, at), take<uint16_t>(value, at + 2),
                take<uint32_t>(value, at + 4)};
    constexpr uint16_t kTags[] = {owner, user, owning_group, group, mask, other};
    bool named = entry.tag == user || entry.tag == group;
    bool known = std::ranges::find(kTags, entry.tag) != std::end(kTags);
    if (!known || entry.permissions > 7 || (named && entry.id == kNobody)) return {};
    if (!named) entry.id = kNobody;
    acl.entries.push_back(entry);
  }
  if (!acl.complete()) return {};
  return acl;
}

std::string Acl::value() const {
  std::string bytes;
  put(bytes, kVersion);
  for (const Entry& entry : entries) {
    put(bytes, entry.tag);
    put(bytes, entry.permissions);
    put(bytes, entry.id);
  }
  return bytes;
}

uint32_t Acl::apply_to(uint32_t mode) const {
  const Entry* shown = find(mask) ? find(mask) : find(owning_group);
  return (mode & ~0777u) | find(owner)->permissions << 6 | shown->permissions << 3 |
         find(other)->permissions;
}

uint32_t Acl::tighten(uint32_t mode) const {
  return mode & (~070u | find(owning_group)->permissions << 3);
}

}  // namespace berth::transfer
