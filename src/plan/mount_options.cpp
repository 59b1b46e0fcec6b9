// SPDX-License-Identifier: Apache-2.0
#include "plan/mount_options.hpp"

#include <linux/mount.h>

#include <algorithm>
#include <array>

#include "base/text.hpp"

namespace berth::plan {
namespace {

struct Word {
  std::string_view name;
  uint64_t set;
  uint64_t clear;
};

// The access time mode is one field with three values, so every change clears the field first.
constexpr std::array kWords = {
    Word{"ro", MOUNT_ATTR_RDONLY, 0},
    Word{"rw", 0, MOUNT_ATTR_RDONLY},
    Word{"nosuid", MOUNT_ATTR_NOSUID, 0},
    Word{"suid", 0, MOUNT_ATTR_NOSUID},
    Word{"nodev", MOUNT_ATTR_NODEV, 0},
    Word{"dev", 0, MOUNT_ATTR_NODEV},
    Word{"noexec", MOUNT_ATTR_NOEXEC, 0},
    Word{"exec", 0, MOUNT_ATTR_NOEXEC},
    Word{"nodiratime", MOUNT_ATTR_NODIRATIME, 0},
    Word{"diratime", 0, MOUNT_ATTR_NODIRATIME},
    Word{"relatime", MOUNT_ATTR_RELATIME, MOUNT_ATTR__ATIME},
    Word{"norelatime", MOUNT_ATTR_RELATIME, MOUNT_ATTR__ATIME},
    Word{"noatime", MOUNT_ATTR_NOATIME, MOUNT_ATTR__ATIME},
    Word{"atime", MOUNT_ATTR_RELATIME, MOUNT_ATTR__ATIME},
    Word{"strictatime", MOUNT_ATTR_STRICTATIME, MOUNT_ATTR__ATIME},
    Word{"nostrictatime", MOUNT_ATTR_RELATIME, MOUNT_ATTR__ATIME},
    Word{"nosymfollow", MOUNT_ATTR_NOSYMFOLLOW, 0},
    Word{"symfollow", 0, MOUNT_ATTR_NOSYMFOLLOW},
};

// Accepted for completeness: the kernel's default, or a hint that the kernel may ignore.
constexpr std::array<std::string_view, 9> kNoEffect = {
    "", "defaults", "async", "loud", "silent", "noiversion", "iversion", "nomand", "nolazytime"};

// Superblock flags, which fsconfig(2) takes by the same name.
constexpr std::array<std::string_view, 4> kSuperBlock = {"sync", "dirsync", "lazytime", "mand"};

template <size_t N>
bool contains(const std::array<std::string_view, N>& words, std::string_view word) {
  return std::ranges::find(words, word) != words.end();
}

const Word* find_word(std::string_view name) {
  auto found = std::ranges::find(kWords, name, &Word::name);
  return found == kWords.end() ? nullptr : &*found;
}

// Applies an option; a later option overrides an earlier one.
void add(uint64_t& set, uint64_t& clear, const Word& word) {
  set = (set & ~word.clear) | word.set;
  clear = (clear & ~word.set) | word.clear;
  if (word.clear & MOUNT_ATTR__ATIME) clear |= MOUNT_ATTR__ATIME;
}

std::optional<PropagationChange> propagation_of(std::string_view word) {
  bool recursive = word.starts_with("r") && word != "ro" && word != "rw";
  std::string_view type = recursive ? word.substr(1) : word;
  if (type == "shared") return PropagationChange{Propagation::shared, recursive};
  if (type == "slave") return PropagationChange{Propagation::slave, recursive};
  if (type == "private") return PropagationChange{Propagation::private_, recursive};
  if (type == "unbindable") return PropagationChange{Propagation::unbindable, recursive};
  return std::nullopt;
}

bool* link_option(BindLinks& links, std::string_view word) {
  if (word == "src-nofollow") return &links.source;
  if (word == "dest-nofollow") return &links.target;
  return word == "copy-symlink" ? &links.copy : nullptr;
}

}  // namespace

bool MountAttributes::operator==(const MountAttributes& other) const {
  auto same = [](const std::optional<PropagationChange>& a,
                 const std::optional<PropagationChange>& b) {
    return a.has_value() == b.has_value() &&
           (!a || (a->type == b->type && a->recursive == b->recursive));
  };
  return set == other.set && clear == other.clear && recursive_set == other.recursive_set &&
         recursive_clear == other.recursive_clear && same(propagation, other.propagation);
}

MountOptions parse_mount_options(const std::vector<std::string>& options) {
  MountOptions sorted;
  auto& attributes = sorted.attributes;
  for (const std::string& option : options) {
    if (const Word* word = find_word(option)) {
      add(attributes.set, attributes.clear, *word);
    } else if (const Word* all = option.starts_with("r") ? find_word(option.substr(1)) : nullptr) {
      add(attributes.recursive_set, attributes.recursive_clear, *all);
    } else if (auto propagation = propagation_of(option)) {
      attributes.propagation = propagation;
    } else if (option == "bind" || option == "rbind") {
      sorted.bind = true;
      // As with the flags of mount(2), "bind" does not revert "rbind".
      sorted.recursive_bind |= option == "rbind";
    } else if (option == "remount") {
      sorted.remount = true;
    } else if (option == "idmap" || option == "ridmap") {
      sorted.id_map = true;
      sorted.recursive_id_map = option == "ridmap";
    } else if (bool* link = link_option(sorted.links, option)) {
      *link = true;
    } else if (option == "tmpcopyup") {
      sorted.copy_up = true;
    } else if (!contains(kNoEffect, option)) {
      sorted.data.push_back(option);
    }
  }
  if (sorted.bind) {
    // A bind has no superblock of its own.
    std::erase_if(sorted.data, [](const std::string& word) { return contains(kSuperBlock, word); });
  }
  return sorted;
}

std::vector<std::string> mount_option_names() {
  std::vector<std::string> names = {"bind",         "rbind",         "remount",
                                    "idmap",        "ridmap",        "tmpcopyup",
                                    "src-nofollow", "dest-nofollow", "copy-symlink"};
  for (const Word& word : kWords) {
    names.emplace_back(word.name);
    names.push_back("r" + std::string(word.name));
  }
  for (std::string_view type : {"shared", "slave", "private", "unbindable"}) {
    names.emplace_back(type);
    names.push_back("r" + std::string(type));
  }
  names.insert(names.end(), kNoEffect.begin(), kNoEffect.end());
  names.insert(names.end(), kSuperBlock.begin(), kSuperBlock.end());
  std::ranges::sort(names);
  return names;
}

std::string attribute_names(const MountAttributes& attributes) {
  std::vector<std::string> names;
  auto add_names = [&](uint64_t set, uint64_t clear, std::string_view prefix) {
    for (const Word& word : kWords) {
      bool atime = word.clear & MOUNT_ATTR__ATIME;
      if (atime) {
        // Report the access time only if an option sets it, and "relatime" without its synonyms.
        if (!(clear & MOUNT_ATTR__ATIME) || (set & MOUNT_ATTR__ATIME) != word.set) continue;
        if (word.set == MOUNT_ATTR_RELATIME && word.name != "relatime") continue;
      } else if (word.set ? !(set & word.set) : !(clear & word.clear)) {
        continue;
      }
      names.push_back(std::string(prefix) + std::string(word.name));
    }
  };
  add_names(attributes.set, attributes.clear, "");
  add_names(attributes.recursive_set, attributes.recursive_clear, "r");
  if (attributes.propagation) {
    static constexpr std::array<std::string_view, 4> kNames = {"shared", "slave", "private",
                                                               "unbindable"};
    names.push_back((attributes.propagation->recursive ? "r" : "") +
                    std::string(kNames[static_cast<size_t>(attributes.propagation->type)]));
  }
  return join(names, ",");
}

}  // namespace berth::plan
