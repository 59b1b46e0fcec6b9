// SPDX-License-Identifier: Apache-2.0
#include "transfer/layer/rules.hpp"

#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <cerrno>

#include "base/text.hpp"
#include "transfer/tar/acl.hpp"

namespace berth::transfer {
namespace {

using Type = TarEntry::Type;

constexpr size_t kMaxName = 255;          // NAME_MAX
constexpr uint64_t kMaxId = 0xffff'fffe;  // 2³²−1 means "leave as it is" to chown(2)

}  // namespace

Error refuse_entry(const std::string& path, std::string reason) {
  return make_error(Kind::corrupt, "entry " + quote(path) + ": " + std::move(reason));
}

std::string parent_of(const std::string& path) {
  size_t slash = path.rfind('/');
  return slash == std::string::npos ? std::string() : path.substr(0, slash);
}
std::string name_of(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}
std::string join_path(const std::string& directory, const std::string& name) {
  return directory.empty() ? name : directory + "/" + name;
}
bool is_below(std::string_view path, std::string_view directory) {
  return directory.empty() || path == directory ||
         (path.starts_with(directory) && path[directory.size()] == '/');
}

Result<std::string> clean_path(const std::string& path, const UnpackLimits& limits) {
  std::string clean;
  size_t depth = 0;
  for (std::string_view part : split(path, '/')) {
    if (part.empty() || part == ".") continue;
    if (part == "..") {
      clean = parent_of(clean);
      depth -= depth > 0 ? 1 : 0;
      continue;
    }
    if (part.find('\0') != part.npos) return refuse_entry(path, "its path holds a NUL");
    // The name that a whiteout hides may have the full length.
    if (part.size() > kMaxName + (part.starts_with(kWhiteout) ? kWhiteout.size() : 0)) {
      return refuse_entry(path, "a part of its path is longer than 255 bytes");
    }
    if (++depth > limits.path_depth) return refuse_depth(path, limits);
    if (!clean.empty()) clean += '/';
    clean += part;
  }
  if (clean.size() > limits.path_length) {
    return refuse_entry(path.substr(0, 100),
                        "its path is longer than " + std::to_string(limits.path_length) + " bytes");
  }
  return clean;
}

Error refuse_depth(const std::string& path, const UnpackLimits& limits) {
  Error error =
      refuse_entry(path.substr(0, 100),
                   "its path is deeper than " + std::to_string(limits.path_depth) + " directories");
  error.hint = kRaiseHint;
  return error;
}

Result<void> check_step(const std::string& entry, const std::string& name) {
  if (name.size() > kMaxName) {
    return refuse_entry(entry, "a part of its path is longer than 255 bytes");
  }
  if (name.starts_with(kWhiteout)) return refuse_entry(entry, "it lies below a whiteout");
  return {};
}

PathWalk::PathWalk(const std::string& path, const UnpackLimits& limits)
    : parts_left_(2 * limits.path_depth) {
  prepend(path);
}

std::string PathWalk::take() {
  std::string part = std::move(parts_.back());
  parts_.pop_back();
  return part;
}

bool PathWalk::follow(std::string_view target) {
  size_t before = parts_.size();
  prepend(target);
  size_t more = parts_.size() - before;
  if (links_left_-- == 0 || more > parts_left_) return false;
  parts_left_ -= more;
  return true;
}

void PathWalk::prepend(std::string_view path) {
  std::vector<std::string_view> parts = split(path, '/');
  for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
    if (!part->empty() && *part != ".") parts_.emplace_back(*part);
  }
}

Result<void> check_entry(const TarEntry& entry, uint64_t count, const UnpackLimits& limits) {
  if (count > limits.entries) {
    return make_error(Kind::corrupt,
                      "the layer has more than " + std::to_string(limits.entries) + " entries",
                      kRaiseHint);
  }
  if (entry.uid > kMaxId || entry.gid > kMaxId) {
    return refuse_entry(entry.path, "its owner " + std::to_string(entry.uid) + ":" +
                                        std::to_string(entry.gid) + " is not a valid id");
  }
  return {};
}

Result<std::string> hidden_name(const std::string& path) {
  std::string hidden = name_of(path).substr(kWhiteout.size());
  if (hidden.empty() || hidden == "." || hidden == "..") {
    return refuse_entry(path, "a whiteout of " + quote(hidden) + " does not name a file");
  }
  return hidden;
}

Result<void> check_symlink(const std::string& path, const TarEntry& entry) {
  if (entry.link.empty() || entry.link.size() > 4095) {
    return refuse_entry(path, "a symbolic link needs a target of 1 to 4095 bytes");
  }
  return {};
}

Result<void> check_node(const std::string& path, const TarEntry& entry) {
  if (entry.type == Type::fifo) return {};
  if (entry.device_major > 0xfff || entry.device_minor > 0xfffff) {
    return refuse_entry(path, "a device " + std::to_string(entry.device_major) + ":" +
                                  std::to_string(entry.device_minor) + " cannot be");
  }
  return {};
}

bool may_keep(std::string_view key) {
  if (key == "security.capability" || key == kAccessAcl || key == kDefaultAcl) return true;
  constexpr std::string_view kOfOverlays[] = {"user.overlay.", "user.fuseoverlayfs.",
                                              "user.containers.override_stat"};
  bool marks = std::ranges::any_of(kOfOverlays, [&](auto mark) { return key.starts_with(mark); });
  return key.starts_with("user.") && !marks && key.size() <= 255;
}

Result<void> check_attribute(const std::string& path, std::string_view value) {
  if (value.size() > kMaxAttribute) return refuse_entry(path, "an attribute is larger than 64 KiB");
  return {};
}

std::string opaque_key(const UnpackOptions& options) {
  return options.overlay_xattr == image::OverlayXattr::trusted ? "trusted.overlay.opaque"
                                                               : "user.overlay.opaque";
}

uint32_t usable_mode(const TarEntry& entry, image::Ownership ownership) {
  uint32_t mode = entry.mode;
  if (ownership == image::Ownership::single) {
    if (entry.uid != 0) mode &= ~04000u;
    if (entry.gid != 0 && entry.type != Type::directory) mode &= ~02000u;
  }
  return mode;
}

bool makes_devices(const UnpackOptions& options) {
  return options.ownership == image::Ownership::full &&
         options.overlay_xattr == image::OverlayXattr::trusted;
}

Error explain_entry(Error error, const std::string& path) {
  if (error.sys_errno == 0) return error;
  if (error.sys_errno == EINVAL && error.what.starts_with("change the owner")) {
    return make_error(
        Kind::unsupported,
        "entry " + quote(path) + ": this user namespace has no such id: " + error.what,
        "a larger range for this user in /etc/subuid and /etc/subgid");
  }
  if (error.sys_errno == ENOSPC || error.sys_errno == EDQUOT) {
    error.hint = "free space on the store's file system, or another --root";
  }
  return std::move(error).with_context("cannot unpack " + quote(path));
}

Result<void> check_size(const TarEntry& entry, uint64_t bytes_before, const UnpackLimits& limits) {
  if (entry.size <= limits.bytes && bytes_before <= limits.bytes - entry.size) return {};
  Error error = refuse_entry(entry.path, "with its " + std::to_string(entry.size) +
                                             " bytes the layer has more than " +
                                             std::to_string(limits.bytes));
  error.hint = kRaiseHint;
  return error;
}

Result<void> check_ratio(const TarEntry& entry, uint64_t blob_size, const UnpackLimits& limits) {
  bool much = entry.size > kRatioFrom && !entry.sparse && blob_size > 0;
  if (!much || entry.size / blob_size <= limits.ratio) return {};
  Error error =
      refuse_entry(entry.path, "its " + std::to_string(entry.size) + " bytes are more than " +
                                   std::to_string(limits.ratio) + " times the size of the layer");
  error.hint = kRaiseHint;
  return error;
}

bool has_acl(const TarEntry& entry) {
  return std::ranges::any_of(entry.xattrs, [](const auto& xattr) {
    return xattr.first == kAccessAcl || xattr.first == kDefaultAcl;
  });
}

void apply_acls(TarEntry& entry, const std::string& path, const UnpackOptions& options,
                LeftOut& left_out) {
  bool single = options.ownership == image::Ownership::single;
  auto goes = [&](auto& xattr) {
    auto& [key, value] = xattr;
    bool is_access = key == kAccessAcl;
    if (!is_access && key != kDefaultAcl) return false;
    auto acl = Acl::parse(value);
    bool fits = is_access ? entry.type == Type::file || entry.type == Type::directory
                          : entry.type == Type::directory;
    if (!acl || !fits || single) {
      if (acl && is_access) entry.mode = acl->tighten(entry.mode);
      left_out.add_attribute(key, path);
      return true;
    }
    if (is_access) entry.mode = acl->apply_to(entry.mode);
    value = acl->value();
    return is_access && acl->is_minimal();
  };
  std::erase_if(entry.xattrs, goes);
}

void LeftOut::add_device(const std::string& path, const TarEntry& entry) {
  if (++device_count_ > kMostDevices) return;
  uint32_t type = entry.type == TarEntry::Type::block_device ? S_IFBLK : S_IFCHR;
  devices_.push_back({path, type | (entry.mode & 0777),
                      makedev(static_cast<unsigned>(entry.device_major),
                              static_cast<unsigned>(entry.device_minor))});
}

bool LeftOut::add_link(const std::string& path, const std::string& target) {
  auto device = std::ranges::find(devices_, target, &LeftOutDevice::path);
  if (device == devices_.end()) return false;
  if (++device_count_ <= kMostDevices) devices_.push_back({path, device->mode, device->number});
  return true;
}

void LeftOut::add_attribute(const std::string& key, const std::string& path) {
  if (attributes_++ == 0) first_attribute_ = key + " of " + path;
}

void LeftOut::add_owner(const TarEntry& entry) {
  if (owners_++ > 0) return;
  first_owner_ = std::to_string(entry.uid) + ":" + std::to_string(entry.gid) + " of " + entry.path;
}

void LeftOut::warn(const UnpackOptions& options) const {
  if (!options.on_warning) return;
  if (device_count_ > 0) {
    options.on_warning(std::to_string(device_count_) +
                       " device nodes (first: " + quote(devices_.front().path) +
                       ") cannot be made by an ordinary user, ignoring them");
  }
  if (owners_ > 0) {
    options.on_warning("this user namespace has no ids for the owners of " +
                       std::to_string(owners_) + " files (first: " + quote(first_owner_) +
                       "), using root instead; a larger range in /etc/subuid and /etc/subgid "
                       "keeps them");
  }
  if (attributes_ > 0) {
    options.on_warning(std::to_string(attributes_) + " file attributes (first: " +
                       quote(first_attribute_) + ") cannot be set here, ignoring them");
  }
}

}  // namespace berth::transfer
