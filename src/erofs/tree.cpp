// SPDX-License-Identifier: Apache-2.0
#include "erofs/tree.hpp"

#include "base/text.hpp"
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

Node* find(const Directory& directory, std::string_view name) {
  auto child = directory.children.find(name);
  return child == directory.children.end() ? nullptr : child->second.get();
}

Directory* as_directory(Node* node) {
  bool is = node != nullptr && node->type == FileType::directory;
  return is ? static_cast<Directory*>(node) : nullptr;
}

const Directory* as_directory(const Node* node) {
  return as_directory(const_cast<Node*>(node));
}

std::string path_of(const Directory& directory) {
  if (directory.parent == nullptr) return {};
  std::string above = path_of(*directory.parent);
  return above.empty() ? directory.name : above + "/" + directory.name;
}

namespace {

/// Collects entries until the next one would not fit into the block.
class BlockFiller {
 public:
  explicit BlockFiller(const BlockVisitor& visit) : visit_(visit) {}

  Result<void> add(std::string_view name, const Node* node) {
    size_t needed = sizeof(DiskEntry) + name.size();
    if (size_ + needed > kBlock) TRY(finish());
    entries_.push_back({name, node});
    size_ += needed;
    return {};
  }
  Result<void> finish() {
    TRY(visit_(entries_, size_));
    entries_.clear();
    size_ = 0;
    return {};
  }

 private:
  const BlockVisitor& visit_;
  std::vector<NamedInode> entries_;
  size_t size_ = 0;
};

}  // namespace

Result<void> for_each_block(const Directory& directory, const BlockVisitor& visit) {
  const Node* above = directory.parent == nullptr ? &directory : directory.parent;
  const NamedInode dots[] = {{".", &directory}, {"..", above}};
  BlockFiller filler(visit);
  // "." and ".." are sorted like other names: names that begin with "+" or "-" precede them.
  size_t next_dot = 0;
  for (const auto& [name, node] : directory.children) {
    for (; next_dot < 2 && dots[next_dot].name < name; ++next_dot) {
      TRY(filler.add(dots[next_dot].name, dots[next_dot].node));
    }
    TRY(filler.add(name, node.get()));
  }
  for (; next_dot < 2; ++next_dot) TRY(filler.add(dots[next_dot].name, dots[next_dot].node));
  return filler.finish();
}

std::string encode_block(const std::vector<NamedInode>& entries) {
  std::string block;
  size_t name_at = entries.size() * sizeof(DiskEntry);
  for (const NamedInode& entry : entries) {
    uint64_t number = entry.node->address / kSlot;
    append_struct(block,
                  DiskEntry{{static_cast<uint32_t>(number), static_cast<uint32_t>(number >> 32)},
                            static_cast<uint16_t>(name_at),
                            static_cast<uint8_t>(entry.node->type),
                            0});
    name_at += entry.name.size();
  }
  for (const NamedInode& entry : entries) block += entry.name;
  return block;
}

}  // namespace berth::erofs
