// SPDX-License-Identifier: Apache-2.0
#include "erofs/attributes.hpp"

#include "base/text.hpp"
#include "erofs/bytes.hpp"
#include "erofs/format.hpp"

namespace berth::erofs {
namespace {

constexpr size_t kMaxValue = 0xffff;

/// Splits the key into the prefix code and the rest.
std::optional<std::pair<Prefix, std::string_view>> split_key(std::string_view key) {
  constexpr std::pair<std::string_view, Prefix> kWhole[] = {
      {"system.posix_acl_access", Prefix::acl_access},
      {"system.posix_acl_default", Prefix::acl_default}};
  constexpr std::pair<std::string_view, Prefix> kPrefixes[] = {
      {"user.", Prefix::user}, {"trusted.", Prefix::trusted}, {"security.", Prefix::security}};
  for (const auto& [whole, prefix] : kWhole) {
    if (key == whole) return std::pair(prefix, std::string_view());
  }
  for (const auto& [text, prefix] : kPrefixes) {
    if (key.starts_with(text) && key.size() > text.size()) {
      return std::pair(prefix, key.substr(text.size()));
    }
  }
  return std::nullopt;
}

}  // namespace

Result<void> Attributes::add(std::string_view key, std::string_view value) {
  auto parts = split_key(key);
  if (!parts) {
    return make_error(Kind::unsupported, "an EROFS image has no attribute " + quote(key));
  }
  const auto& [prefix, name] = *parts;
  size_t before = bytes_.empty() ? sizeof(AttributesHeader) : bytes_.size();
  size_t after = round_up(before + sizeof(AttributeEntry) + name.size() + value.size(), 4);
  if (name.size() > kMaxName || value.size() > kMaxValue || after > max_bytes_) {
    return make_error(Kind::unsupported, "attribute " + quote(key) +
                                             " is too long for an EROFS "
                                             "image");
  }
  if (bytes_.empty()) append_struct(bytes_, AttributesHeader{});
  append_struct(bytes_,
                AttributeEntry{static_cast<uint8_t>(name.size()), static_cast<uint8_t>(prefix),
                               static_cast<uint16_t>(value.size())});
  bytes_ += name;
  bytes_ += value;
  bytes_.resize(after, '\0');
  return {};
}

}  // namespace berth::erofs
