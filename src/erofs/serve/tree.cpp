// SPDX-License-Identifier: Apache-2.0
#include "erofs/serve/tree.hpp"

#include <algorithm>
#include <set>

namespace berth::erofs {
namespace {

constexpr std::string_view kAccessList = "system.posix_acl_access";

bool is_list(std::string_view key) {
  return key.starts_with("system.posix_acl_");
}

}  // namespace

std::optional<std::string> shown_key(std::string_view stored, Marks marks) {
  constexpr std::string_view kTrusted = "trusted.";
  constexpr std::string_view kMark = "trusted.overlay.";
  if (marks == Marks::stored || !stored.starts_with(kTrusted)) return std::string(stored);
  if (!stored.starts_with(kMark)) return std::nullopt;
  return "user." + std::string(stored.substr(kTrusted.size()));
}

Result<Inode> ShownTree::inode(uint64_t number) const {
  Inode inode = TRY(reader_->inode(number));
  owners_.translate(inode);
  if (inode.attributes_size == 0) return inode;
  for (const AttributePlace& attribute : TRY(reader_->attributes(inode))) {
    if (attribute.key != kAccessList) continue;
    std::string list = TRY(reader_->read(attribute.value));
    if (!owners_.know_all_of(list)) inode.mode = owners_.without_list(inode.mode, list);
    break;  // of several the first counts
  }
  return inode;
}

/// By visible keys; of two with one key the first.
Result<std::vector<AttributePlace>> ShownTree::attributes(const Inode& inode) const {
  std::vector<AttributePlace> shown;
  std::set<std::string> lists;
  for (AttributePlace& attribute : TRY(reader_->attributes(inode))) {
    if (is_list(attribute.key)) {
      if (!lists.insert(attribute.key).second) continue;
      // The kernel would refuse the whole file because of an unknown id.
      std::string list = TRY(reader_->read(attribute.value));
      if (!owners_.know_all_of(list)) continue;
    }
    auto key = shown_key(attribute.key, marks_);
    bool taken = key && std::ranges::find(shown, *key, &AttributePlace::key) != shown.end();
    if (key && !taken) shown.push_back({std::move(*key), attribute.value});
  }
  return shown;
}

Result<std::optional<std::string>> ShownTree::attribute(const Inode& inode,
                                                        std::string_view key) const {
  for (const AttributePlace& attribute : TRY(attributes(inode))) {
    if (attribute.key != key) continue;
    std::string value = TRY(reader_->read(attribute.value));
    return std::optional<std::string>(std::move(value));
  }
  return std::optional<std::string>();
}

Result<std::vector<std::string>> ShownTree::attribute_names(const Inode& inode) const {
  std::vector<std::string> names;
  for (AttributePlace& attribute : TRY(attributes(inode)))
    names.push_back(std::move(attribute.key));
  return names;
}

}  // namespace berth::erofs
