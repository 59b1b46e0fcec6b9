// SPDX-License-Identifier: Apache-2.0
#include "engine/request/keep_id.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "sys/user/identity.hpp"

namespace berth::engine {
namespace {

constexpr std::string_view kLargerRange = "a larger range in /etc/subuid and /etc/subgid";

bool holds(const std::vector<sys::IdRange>& ranges, uint32_t id) {
  return std::ranges::any_of(ranges, [&](const sys::IdRange& range) {
    return id >= range.inside && id - range.inside < range.count;
  });
}

/// Adds `range` without the ids `taken` (ascending), each mapped to itself.
void add_rest(const sys::IdRange& range, const std::vector<uint32_t>& taken,
              std::vector<oci::IdMapping>& out) {
  uint64_t first = range.inside;
  const uint64_t end = first + range.count;
  auto add_up_to = [&](uint64_t last) {
    if (last <= first) return;
    auto id = static_cast<uint32_t>(first);
    out.push_back({id, id, static_cast<uint32_t>(last - first)});
  };
  for (uint32_t id : taken) {
    if (id < first || id >= end) continue;
    add_up_to(id);
    first = uint64_t{id} + 1;
  }
  add_up_to(end);
}

/// The id outside of this namespace to which id 0 is mapped.
uint32_t caller_of(const std::vector<sys::IdRange>& here) {
  for (const sys::IdRange& range : here) {
    if (range.inside == 0) return range.outside;
  }
  return 0;
}

enum Column : size_t { kName = 0, kNumber = 2 };
/// Whether a line of passwd or group has `word` in `column`.
bool lists(std::string_view text, Column column, std::string_view word) {
  for (std::string_view line : split(text, '\n')) {
    auto words = split(line, ':');
    if (words.size() > column && words[column] == word) return true;
  }
  return false;
}

std::string name_in(std::string_view text, const std::string& name, uint32_t id) {
  return name.empty() || lists(text, kName, name) ? "user" + std::to_string(id) : name;
}

std::string with_line(std::string_view text, const std::string& line) {
  std::string out(text);
  if (!out.ends_with('\n')) out += '\n';
  return out + line + "\n";
}

Result<void> check(const Context& context, const RunRequest& request) {
  if (context.identity == Identity::root) {
    return make_error(Kind::usage, "keep-id is only supported in rootless mode",
                      "no --userns: root has every id");
  }
  if (joined_container(request).empty()) return {};
  return make_error(Kind::usage,
                    "conflicting options: --userns keep-id and a namespace of another container");
}

}  // namespace

std::vector<oci::IdMapping> swap_with_root(const std::vector<sys::IdRange>& here, uint32_t kept) {
  std::vector<oci::IdMapping> out;
  uint32_t last = 0;
  for (const sys::IdRange& range : here) last = std::max(last, range.inside + (range.count - 1));
  uint32_t root = holds(here, kept) ? kept : last;
  out.push_back({kept, 0, 1});
  if (kept != 0 && root != 0) out.push_back({0, root, 1});
  std::vector<uint32_t> taken = {0};
  if (root != 0) taken.push_back(root);
  for (const sys::IdRange& range : here) add_rest(range, taken, out);
  return out;
}

Result<KeptIds> keep_ids(const Context& context, const RunRequest& request) {
  TRY(check(context, request));
  auto uids = TRY(sys::mapped_uids());
  auto gids = TRY(sys::mapped_gids());
  KeptIds ids;
  ids.uid = request.userns.uid.value_or(caller_of(uids));
  ids.gid = request.userns.gid.value_or(caller_of(gids));
  ids.name = sys::user_name(caller_of(uids));
  ids.uids = swap_with_root(uids, ids.uid);
  ids.gids = swap_with_root(gids, ids.gid);
  return ids;
}

void keep_own_id(const Context& context, RunRequest& request) {
  if (!check(context, request).ok()) return;
  if (request.userns.kind != NamespaceMode::Kind::usual) return;
  auto uids = sys::mapped_uids();
  auto gids = sys::mapped_gids();
  if (!uids.ok() || !gids.ok()) return;
  std::string uid = std::to_string(caller_of(*uids));
  if (request.user == uid || request.user == uid + ":" + std::to_string(caller_of(*gids))) {
    request.userns.kind = NamespaceMode::Kind::keep_id;
  }
}

std::string with_account(std::string_view passwd, const KeptIds& ids, std::string_view home) {
  if (passwd.empty() || lists(passwd, kNumber, std::to_string(ids.uid))) return std::string(passwd);
  std::string name = name_in(passwd, ids.name, ids.uid);
  return with_line(passwd, name + ":*:" + std::to_string(ids.uid) + ":" + std::to_string(ids.gid) +
                               ":" + name + ":" + std::string(home) + ":/bin/sh");
}

std::string with_group(std::string_view group, const KeptIds& ids) {
  if (group.empty() || lists(group, kNumber, std::to_string(ids.gid))) return std::string(group);
  std::string name = name_in(group, ids.name, ids.gid);
  return with_line(group, name + ":x:" + std::to_string(ids.gid) + ":");
}

Result<bool> has_ids(const oci::ContainerUser& user) {
  if (user.uid == 0 && user.gid == 0) return true;  // always mapped in Berth's user namespaces
  if (!holds(TRY(sys::mapped_uids()), user.uid)) return false;
  return holds(TRY(sys::mapped_gids()), user.gid);
}

Error no_such_ids(std::string_view wish) {
  return make_error(Kind::denied, "user " + quote(wish) + ": this user namespace has no such id",
                    std::string(kLargerRange));
}

Result<void> leave_out_groups(const Context& context, oci::ContainerUser& user) {
  if (user.additional_gids.empty()) return {};
  auto ranges = TRY(sys::mapped_gids());
  std::erase_if(user.additional_gids, [&](uint32_t gid) {
    if (gid == user.gid || holds(ranges, gid)) return false;
    context.log.warn("this user namespace has no id for group " + std::to_string(gid) +
                     " of the user, ignoring");
    return true;
  });
  return {};
}

Result<void> require_groups(const std::vector<uint32_t>& groups) {
  if (groups.empty()) return {};
  auto ranges = TRY(sys::mapped_gids());
  for (uint32_t gid : groups) {
    if (holds(ranges, gid)) continue;
    return make_error(Kind::denied,
                      "group '" + std::to_string(gid) + "': this user namespace has no such id",
                      std::string(kLargerRange));
  }
  return {};
}

}  // namespace berth::engine
